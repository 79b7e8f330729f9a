"""`priorkit/verify/algebra.py`: formulas are equal where they have the same values."""

from __future__ import annotations

import pytest

from priorkit.verify.algebra import algebraically_equal

EQUAL = [
    ("(x+1)^2", "x^2+2x+1"),
    (r"\frac{1}{\sqrt{n}}", r"\sqrt{1/n}"),
    ("|x|", r"\sqrt{x^2}"),
    (r"\tan^2(y)+1", r"\sec^2(y)"),
    (r"\sum_{i=1}^{n} i", r"\frac{n(n+1)}{2}"),
    (r"(-1)^{2n}", "1"),
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\frac{1}{2004!}", r"\frac{2005}{2005!}"),
    ("34x+45y-20z+100=0", "-34x-45y+20z-100=0"),
    ("2x+4y-3=0", r"y = -\frac{1}{2}x + \frac{3}{4}"),
    ("(0, 12.5)", "0 < x < 12.5"),
    ("0 < x < 12.5", "(0, 12.5)"),
    (r"(-\infty, 3)", "x<3"),
    ("3.142", r"\pi"),
    (r"\pi", "3.14159265"),
]

UNEQUAL = [
    (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    (r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}", r"\frac{1}{3 \cdot 2^{2006}}"),
    ("(x+1)^2", "x^2+1"),
    ("x", "y"),
    ("n", "3"),
    ("x", "|x|"),
    ("2x+4y-3=0", "2x+4y-4=0"),
    ("2x+4y-3=0", "0"),
    ("(0, 12.5)", "0 < x < 12"),
    ("[0, 1)", "(0, 1)"),
    (r"\pi", "3.142"),
    (r"4\sqrt(2)", "4"),
    ("F_n = 2F_{n-1}", "F_n = 2F_{n-2}"),
    ("x", ""),
    ("x", "}{"),
    ("x", "\ud800\n\x00"),
]


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_formulas_with_the_same_values_are_equal(gold: str, answer: str) -> None:
    assert algebraically_equal(gold, answer) is True


@pytest.mark.parametrize(("gold", "answer"), UNEQUAL)
def test_formulas_with_other_values_or_none_are_not(gold: str, answer: str) -> None:
    assert algebraically_equal(gold, answer) is False
    assert algebraically_equal(answer, gold) is False or (gold, answer) == (r"\pi", "3.142")
