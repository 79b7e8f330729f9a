"""Graded arithmetic with written-out working: the lab's tasks.

A problem is its question, the lines of its working and the answer that follows from them. Some
lines hold a **slip**: a place where careless people forget something (a carry, a borrow, a sign, a
remainder) and from where on everything is worked out consistently, but wrongly. A level is the
length of the problem, so working, number of slips and difficulty grow together.

    >>> import numpy as np
    >>> problem = addition(47, 85)
    >>> problem.work(careful)
    (('7+5=12', '4+8+1=13'), 132)
    >>> problem.work(lambda: True)
    (('7+5=12', '4+8=12'), 122)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

LEVELS = (1, 2, 3, 4, 5)

Slip = Callable[[], bool]
"""Asked at every place where something can be forgotten: is it?"""

Working = tuple[tuple[str, ...], int]
"""Lines of working, and the answer they lead to."""


def careful() -> bool:
    """Never forgets anything."""
    return False


@dataclass(frozen=True, slots=True)
class Problem:
    """One question.

    Attributes:
        subject: name in `SUBJECTS`.
        question: what is asked, such as `47+85`.
        work: the working and the answer of somebody who forgets what the argument says.
    """

    subject: str
    question: str
    work: Callable[[Slip], Working]

    @property
    def answer(self) -> int:
        """The right answer."""
        return self.work(careful)[1]


def addition(a: int, b: int) -> Problem:
    """Column by column from the right; the slip is a carry."""

    def work(slip: Slip) -> Working:
        lines, digits, carry = [], [], 0
        for x, y in _columns(a, b):
            kept = carry if carry and not slip() else 0
            total = x + y + kept
            lines.append(f"{x}+{y}+1={total}" if kept else f"{x}+{y}={total}")
            digits.append(total % 10)
            carry = total // 10
        return tuple(lines), _number(digits, carry)

    return Problem("addition", f"{a}+{b}", work)


def subtraction(a: int, b: int) -> Problem:
    """Column by column from the right, `a` ≥ `b`; the slip is a borrow."""

    def work(slip: Slip) -> Working:
        lines, digits, borrow = [], [], 0
        for x, y in _columns(a, b):
            kept = borrow if borrow and not slip() else 0
            top = x if x >= y + kept else x + 10
            left = top - kept - y
            lines.append(f"{top}-1-{y}={left}" if kept else f"{top}-{y}={left}")
            digits.append(left)
            borrow = int(top > x)
        return tuple(lines), _number(digits, 0)

    return Problem("subtraction", f"{a}-{b}", work)


def multiplication(a: int, b: int) -> Problem:
    """Digit by digit of `a` from the right, `b` a single digit; the slip is a carry."""

    def work(slip: Slip) -> Working:
        lines, digits, carry = [], [], 0
        for x in _digits(a):
            kept = carry if carry and not slip() else 0
            total = x * b + kept
            lines.append(f"{x}*{b}+{kept}={total}" if kept else f"{x}*{b}={total}")
            digits.append(total % 10)
            carry = total // 10
        return tuple(lines), _number(digits, carry)

    return Problem("multiplication", f"{a}*{b}", work)


def running_sum(terms: tuple[int, ...]) -> Problem:
    """Signed terms added one after another; the slip takes a minus for a plus."""

    def work(slip: Slip) -> Working:
        lines, total = [], terms[0]
        for term in terms[1:]:
            sign = "-" if term < 0 and not slip() else "+"
            before, total = total, total + (abs(term) if sign == "+" else -abs(term))
            lines.append(f"{before}{sign}{abs(term)}={total}")
        return tuple(lines), total

    question = str(terms[0]) + "".join(f"{term:+d}" for term in terms[1:])
    return Problem("running sum", question, work)


def remainder(a: int, m: int) -> Problem:
    """Long division of `a` by a single-digit `m`; the slip drops what is brought down."""

    def work(slip: Slip) -> Working:
        lines, left = [], 0
        for x in reversed(_digits(a)):
            kept = left if left and not slip() else 0
            value = 10 * kept + x
            left = value % m
            lines.append(f"{value}-{value - left}={left}")
        return tuple(lines), left

    return Problem("remainder", f"{a}%{m}", work)


def _draw_addition(level: int, rng: np.random.Generator) -> Problem:
    return addition(_of_length(level, rng), _of_length(level, rng))


def _draw_subtraction(level: int, rng: np.random.Generator) -> Problem:
    a, b = sorted((_of_length(level, rng), _of_length(level, rng)), reverse=True)
    return subtraction(a, b)


def _draw_multiplication(level: int, rng: np.random.Generator) -> Problem:
    return multiplication(_of_length(level, rng), int(rng.integers(2, 10)))


def _draw_running_sum(level: int, rng: np.random.Generator) -> Problem:
    terms = [int(rng.integers(5, 20))]
    while len(terms) < level + 1:
        size = int(rng.integers(1, 20))
        terms.append(-size if rng.random() < 0.6 and size <= sum(terms) else size)
    return running_sum(tuple(terms))


def _draw_remainder(level: int, rng: np.random.Generator) -> Problem:
    return remainder(_of_length(level, rng), int(rng.integers(3, 10)))


SUBJECTS: Mapping[str, Callable[[int, np.random.Generator], Problem]] = MappingProxyType(
    {
        "addition": _draw_addition,
        "subtraction": _draw_subtraction,
        "multiplication": _draw_multiplication,
        "running sum": _draw_running_sum,
        "remainder": _draw_remainder,
    }
)
"""A problem of a given level, by subject."""


def draw_problem(subject: str, level: int, rng: np.random.Generator) -> Problem:
    """A random problem; `level` in `LEVELS`, `subject` in `SUBJECTS`."""
    return SUBJECTS[subject](level, rng)


def _of_length(n: int, rng: np.random.Generator) -> int:
    return int(rng.integers(10 ** (n - 1) if n > 1 else 1, 10**n))


def _digits(number: int) -> list[int]:
    """Decimal digits, the last one first."""
    return [int(digit) for digit in reversed(str(number))]


def _columns(a: int, b: int) -> list[tuple[int, int]]:
    """Digit pairs from the right, the shorter number filled with zeros."""
    x, y = _digits(a), _digits(b)
    width = max(len(x), len(y))
    return list(zip(x + [0] * (width - len(x)), y + [0] * (width - len(y)), strict=True))


def _number(digits: list[int], carry: int) -> int:
    return int(str(carry) + "".join(map(str, reversed(digits))))
