r"""Numerals as exact numbers: what a person reads off the page, without any algebra.

Read are integers, decimals, thousands set off by `,`, `{,}` or `\,`, fractions, mixed numbers and
powers of ten. A numeral of more than `MAX_DIGITS` digits is not read, so hostile ones stay cheap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 1000
_MAX_EXPONENT = 1000

_INTEGER = r"(?:[1-9][0-9]{0,2}(?:(?:,|\{,\}|\\,)[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)"
_SIGNED = rf"[+-]?{_DECIMAL}"
_POWER = r"10\^(?:[0-9]|\{[+-]?[0-9]+\})"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<decimal>{_DECIMAL})"
    rf"(?:\\cdot ?(?P<power>{_POWER})|e(?P<e>[+-]?[0-9]+))?"
    rf"|\\frac\{{(?P<over>{_SIGNED})\}}\{{(?P<under>{_SIGNED})\}}"
    rf"|(?P<top>{_DECIMAL})/(?P<bottom>{_SIGNED})"
    r"|(?P<whole>[0-9]+)"
    r"(?: (?P<m>[0-9]+)/(?P<n>[0-9]+)| ?\\frac\{(?P<p>[0-9]+)\}\{(?P<q>[0-9]+)\}))"
)
_SEPARATOR = re.compile(r"[^0-9.+-]")


@dataclass(frozen=True, slots=True)
class Numeral:
    """An exact number and how it was written.

    Attributes:
        value: the number.
        decimals: digits behind the point; None for a fraction, a mixed number or a power of ten.
        digits: significant ones of a decimal.
    """

    value: Fraction
    decimals: int | None
    digits: int


def numeral(text: str) -> Numeral | None:
    r"""The number that a spelling (`priorkit.verify.spelling`) stands for; None for anything else.

    >>> numeral(r"1,234.50").value == numeral(r"\frac{2469}{2}").value
    True
    >>> numeral("11 5/6").value
    Fraction(71, 6)
    """
    if len(text) > 4 * MAX_DIGITS:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None or sum(map(str.isdigit, text)) > MAX_DIGITS:
        return None
    sign = -1 if match["sign"] == "-" else 1
    if match["decimal"]:
        return _decimal(sign, match["decimal"], match["power"] or match["e"])
    if match["whole"]:
        top, bottom = int(match["m"] or match["p"]), int(match["n"] or match["q"])
        if not 0 < top < bottom:
            return None  # 4 10/3 is no mixed number
        return Numeral(sign * (int(match["whole"]) + Fraction(top, bottom)), None, 0)
    below = _value(match["under"] or match["bottom"])
    return Numeral(sign * _value(match["over"] or match["top"]) / below, None, 0) if below else None


def _decimal(sign: int, text: str, power: str | None) -> Numeral | None:
    plain = _SEPARATOR.sub("", text)
    places = len(plain.partition(".")[2])
    digits = len(plain.replace(".", "").lstrip("0"))
    value = sign * Fraction(plain)
    if power is None:
        return Numeral(value, places, digits)
    exponent = int(power.removeprefix("10^").strip("{}"))
    if abs(exponent) > _MAX_EXPONENT:
        return None
    return Numeral(value * Fraction(10) ** exponent, None, 0)


def _value(text: str) -> Fraction:
    return Fraction(_SEPARATOR.sub("", text))


def stands_for(short: Numeral, long: Numeral, digits: int) -> bool:
    """Whether a decimal of so many significant digits or more is the other, cut or rounded.

    The other must have no end, or with six digits at least more of them: 0.5 is not 0.46.
    """
    if short.decimals is None or short.decimals < 1 or short.digits < digits:
        return False
    ends = long.decimals is not None or not _endless(long.value)
    if ends and (digits < 6 or (long.decimals or 0) <= short.decimals):
        return False
    return abs(short.value - long.value) < Fraction(1, 10**short.decimals)


def _endless(value: Fraction) -> bool:
    """Whether a fraction has no finite decimal."""
    below = value.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    return below != 1
