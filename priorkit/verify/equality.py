r"""When two answers are the same, as far as text and exact arithmetic can tell.

`decide` is cheap and never wrong about numbers: `None` means that only algebra can say.
"""

from __future__ import annotations

import re
from fractions import Fraction

from priorkit.verify.extract import strip_math

MAX_DIGITS = 1000
"""Numbers with more digits than this are not read, so that hostile ones stay cheap."""

# A doubled backslash is a line break: it passes, so that what follows is not read as a command.
_NOISE = re.compile(
    r"\\\\|\\(?:left|right)(?![A-Za-z])(?:\s*+\.)?|\\[dtc]frac(?![A-Za-z])|\\!"
    r"|\\[,;:> ]|~|\\(?:q?quad|displaystyle|textstyle)(?![A-Za-z])"
)
_MINUS = str.maketrans("\u2212\u2013", "--")  # the minus sign proper, and the dash typed for it
_IDLE_SPACE = re.compile(r"(?<![\w.]) | (?![\w.])")

_INTEGER = r"(?:[0-9]{1,3}(?:(?:,|\{,\}|\\,|,\\!)[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)"
_SIGNED = rf"[+-]?\s*{_DECIMAL}"
_RATIONAL = re.compile(
    rf"(?P<sign>[+-]?)\s*(?:(?P<top>{_DECIMAL})(?:\s*/\s*(?P<bottom>{_SIGNED}))?"
    rf"|\\[dtc]?frac\s*\{{\s*(?P<over>{_SIGNED})\s*\}}\s*\{{\s*(?P<under>{_SIGNED})\s*\}}"
    r"|\\[dtc]?frac\s*(?P<digit>[0-9])\s*(?P<by>[0-9]))"
)
_SEPARATOR = re.compile(r"[\s,{}\\!]")


def normalise(text: str) -> str:
    r"""A spelling that does not depend on spacing, sizing and surrounding `$`.

    Space between two letters or digits stays as one space: `2 2/3` is not `22/3`.

    >>> normalise(r"$\left( 3, \dfrac{\pi}{2} \right)$")
    '(3,\\frac{\\pi}{2})'
    """
    plain = re.sub(r"\s+", " ", _NOISE.sub(_plainer, text.translate(_MINUS)))
    return _IDLE_SPACE.sub("", strip_math(plain))


def _plainer(match: re.Match[str]) -> str:
    token = match.group()
    if token == r"\\":
        return token
    if token.endswith("frac"):
        return r"\frac"
    return "" if token.startswith((r"\left", r"\right", r"\!")) else " "


def exact_rational(text: str) -> Fraction | None:
    r"""The number a numeral stands for, exactly; None when it is anything but one number.

    Read are integers, decimals, thousands set off by `,`, `{,}` or `\,`, `a/b` and `\frac{a}{b}`,
    with signs. A percentage, a mixed number, a list such as `1, 234` and a zero denominator are
    not, nor is a numeral of more than `MAX_DIGITS` digits.

    >>> exact_rational("1,234.50") == exact_rational(r"\frac{2469}{2}")
    True
    """
    if len(text) > 4 * MAX_DIGITS:
        return None
    match = _RATIONAL.fullmatch(strip_math(text.translate(_MINUS)))
    if match is None or sum(map(str.isdigit, text)) > MAX_DIGITS:
        return None
    top = _value(match["top"] or match["over"] or match["digit"])
    bottom = _value(match["bottom"] or match["under"] or match["by"] or "1")
    if bottom == 0:
        return None
    return -top / bottom if match["sign"] == "-" else top / bottom


def _value(numeral: str) -> Fraction:
    return Fraction(_SEPARATOR.sub("", numeral))


def decide(gold: str, answer: str) -> bool | None:
    """Whether two answers are equal, or None when neither text nor arithmetic can tell.

    True for one normalised spelling; True or False for two rationals, compared exactly (a rounded
    decimal is not the fraction it rounds). Symmetric.
    """
    spelling = normalise(gold)
    if spelling and spelling == normalise(answer):
        return True
    left, right = exact_rational(gold), exact_rational(answer)
    return None if left is None or right is None else left == right
