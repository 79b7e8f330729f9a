r"""Draws, plurals and LaTeX: what every exercise template needs to put numbers into words.

A template takes a numpy Generator and returns (prompt, answer). All draws are built on
`Generator.integers`, whose stream is the same on every platform, and all numbers are Python ints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, isqrt
from typing import TypeVar

import numpy as np

Item = tuple[str, str]
Template = Callable[[np.random.Generator], Item]
T = TypeVar("T")

LOWEST = "Give an integer or a fraction in lowest terms."


def draw(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(rng.integers(low, high + 1))


def draw_nonzero(rng: np.random.Generator, limit: int) -> int:
    """A whole number from `-limit` to `limit` other than zero."""
    return draw(rng, 1, limit) * pick(rng, (1, -1))


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of the options."""
    return options[draw(rng, 0, len(options) - 1)]


def several(rng: np.random.Generator, options: Sequence[T], n: int) -> list[T]:
    """`n` different options in random order."""
    rest = list(options)
    return [rest.pop(draw(rng, 0, len(rest) - 1)) for _ in range(n)]


def coprime_fraction(rng: np.random.Generator, denominator: int) -> Fraction:
    """A fraction between 0 and 1 whose lowest terms have this denominator, 2 or more."""
    tops = [top for top in range(1, denominator) if gcd(top, denominator) == 1]
    return Fraction(pick(rng, tops), denominator)


def plural(noun: str) -> str:
    """The plural of a regular English noun, and of the few irregular ones used here."""
    irregular = {"child": "children", "person": "people", "mouse": "mice", "sheep": "sheep"}
    if noun in irregular:
        return irregular[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def count(n: int, noun: str) -> str:
    """A number with its noun: `1 box`, `3 boxes`."""
    return f"{n} {noun if n == 1 else plural(noun)}"


def listing(items: Sequence[object], last: str = "and") -> str:
    """`a`, `a and b` or `a, b and c`."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def commas(items: Sequence[object]) -> str:
    """Items separated by commas."""
    return ", ".join(str(item) for item in items)


def ordinal(n: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, `11th` and so on."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def fold(n: int) -> str:
    """`twice`, `3 times`, `4 times` and so on."""
    return "twice" if n == 2 else f"{n} times"


def clock(minutes: int) -> str:
    """Minutes after midnight as the time on a 24-hour clock, `9:05`."""
    return f"{minutes // 60 % 24}:{minutes % 60:02d}"


def latex(value: Fraction | int) -> str:
    r"""An integer as it is, another fraction as `\frac{a}{b}` in lowest terms."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def decimal(value: Fraction) -> str:
    """A terminating decimal written out in full, without trailing zeros."""
    places = next(n for n in range(20) if (value * 10**n).denominator == 1)
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def radical(square: int, outside: int = 1) -> str:
    r"""`outside` times the root of `square`, both positive, with square factors taken out."""
    root = max(r for r in range(1, isqrt(square) + 1) if square % r**2 == 0)
    coefficient, inside = outside * root, square // root**2
    if inside == 1:
        return str(coefficient)
    return rf"{'' if coefficient == 1 else coefficient}\sqrt{{{inside}}}"


def pi_times(value: Fraction | int) -> str:
    r"""A positive rational multiple of pi: `\pi`, `6\pi`, `\frac{5\pi}{12}`."""
    value = Fraction(value)
    top = rf"{'' if value.numerator == 1 else value.numerator}\pi"
    return top if value.denominator == 1 else rf"\frac{{{top}}}{{{value.denominator}}}"


def polynomial(coefficients: Sequence[int], letter: str = "x") -> str:
    """A polynomial from its coefficients, highest power first, not all zero."""
    text = ""
    for power, factor in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        if factor == 0:
            continue
        sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
        size = "" if abs(factor) == 1 and power else str(abs(factor))
        symbol = "" if power == 0 else letter if power == 1 else f"{letter}^{power}"
        text += sign + size + symbol
    return text
