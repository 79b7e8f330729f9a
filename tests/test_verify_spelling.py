"""`priorkit/verify/{spelling,numerals,units}.py`: what is written, before anything is compared."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorkit.verify.numerals import MAX_DIGITS, numeral
from priorkit.verify.spelling import spelling
from priorkit.verify.units import split_unit

SAME_SPELLING = [
    ("x + 1", "x+1"),
    ("$x$", "x"),
    (r"\left( 3, 4 \right)", "(3,4)"),
    (r"\bigl( 3, 4 \Bigr)", "(3,4)"),
    (r"\left\{1\right\}", r"\{1\}"),
    (r"\left. x \right|", "x|"),
    (r"\dfrac{1}{2}", r"\frac{1}{2}"),
    (r"\frac12", r"\frac{1}{2}"),
    (r"\frac1{2}", r"\frac{1}{2}"),
    (r"\frac{1}2", r"\frac{1}{2}"),
    (r"\frac \pi 2", r"\frac{\pi}{2}"),
    (r"\sqrt2", r"\sqrt{2}"),
    (r"\sqrt[3]2", r"\sqrt[3]{2}"),
    (r"\sqrt [ 3 ] {2}", r"\sqrt[3]{2}"),
    (r"\frac{\frac12}3", r"\frac{\frac{1}{2}}{3}"),
    (r"10\!000", "10000"),
    (r"10\,000", "10,000"),
    (r"x\, dx", "x dx"),
    (r"x~y", "x y"),
    (r"\displaystyle x", "x"),
    ("\u22125", "-5"),
    (" 5. ", "5"),
    ("5,", "5"),
    (r"\[ 5 \]", "5"),
    (r"$a$, $b$", "a,b"),
    ("two\n words", "two words"),
    ("x^{2}", "x^2"),
    ("x_{1}", "x_1"),
    ("60^{\\circ}", "60\u00b0"),
    (r"\text{13}", "13"),
    (r"\text{ cm }", r"\text{cm}"),
    (r"\mbox{cm}", r"\text{cm}"),
    (r"\mathrm{e}", "e"),
    (r"x \leq 3", "x \u2264 3"),
    (r"1, 2, \ldots", r"1, 2, ..."),
    (r"28\%", "28%"),
    (r"\begin{bmatrix} 1 & 2 \\ \end{bmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"),
    ("\uff11\uff12", "12"),
]

OTHER_SPELLING = [
    ("2 2/3", "22/3"),
    ("1 000", "1000"),
    (r"\leftarrow", "arrow"),
    (r"a \\ b", "a b"),
    (r"a \\, b", "a b"),
    ("x", "X"),
    ("2 .5", "2.5"),
    ("x^{12}", "x^12"),
    (r"\text{ab}", "a b"),
    (r"\{1\}", "{1}"),
]

NUMERALS = [
    ("5", "5"),
    ("-5", "-5"),
    ("+5", "5"),
    ("- 5", "-5"),
    ("004", "4"),
    ("0.5", "1/2"),
    (".5", "1/2"),
    ("5.", "5"),
    ("-0.125", "-1/8"),
    ("1,234", "1234"),
    ("1,234,567.5", "2469135/2"),
    ("1{,}234", "1234"),
    (r"10\,000", "10000"),
    (r"1,\!234", "1234"),
    ("3/4", "3/4"),
    ("-3/4", "-3/4"),
    ("3/-4", "-3/4"),
    ("1 / 2", "1/2"),
    ("1.5/2", "3/4"),
    (r"-\frac{3}{4}", "-3/4"),
    (r"\frac{-3}{-4}", "3/4"),
    (r"\frac34", "3/4"),
    ("$1,234.00", "1234"),
    ("11 5/6", "71/6"),
    (r"11\frac{5}{6}", "71/6"),
    (r"-1\frac12", "-3/2"),
    (r"1.5 \times 10^{3}", "1500"),
    (r"2\cdot 10^{-2}", "1/50"),
    ("1e5", "100000"),
]

NO_NUMERALS = [
    "", "x", "1, 234", "1,23", "12,34,567", "1234,567", "50%", "4 10/3", "2 2/2", "1/0",
    r"\frac{1}{0}", "1/2/3", "- -5", "0x10", "1_000", "\u0665", "nan", "inf", "5!", "1.2.3",
    r"\sqrt{2}", r"\frac{1}{x}", "1234_5", ".", "-", "1e99999", r"10^{5}",
    "9" * (MAX_DIGITS + 1), "1/" + "9" * MAX_DIGITS,
]  # fmt: skip

UNITS = [
    (r"\$18.90", ("18.90", "dollar")),
    ("\u20ac77", ("77", "euro")),
    (r"-\$5", ("-5", "dollar")),
    ("5 dollars", ("5", "dollar")),
    (r"5\text{ cm}^2", ("5", "square cm")),
    (r"5 \text{ square centimeters}", ("5", "square cm")),
    (r"5 \text{ sq. units}", ("5", "square unit")),
    ("5 cm", ("5", "cm")),
    ("5.4cents", ("5.4", "cent")),
    (r"50\%", ("50", "percent")),
    ("50 percent", ("50", "percent")),
    (r"60^\circ", ("60", "degree")),
    ("60 degrees", ("60", "degree")),
    (r"20 ^\circ \text{C}", ("20", "degree c")),
    (r"8.24 \text{ mph}", ("8.24", "mph")),
    (r"\frac{\sqrt{3}}{2} \text{ units}", (r"\frac{\sqrt{3}}{2}", "unit")),
    ("10 apples per day", ("10", "apple per day")),
]

NO_UNITS = [
    "5", "3 xy", "3x", "3m", "2 pi", r"2\pi", "x", "cm", r"\text{cm}", r"\text{east}",
    "3 sin x", r"5 \text{ or } 6", r"x = \text{cm}",
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SAME_SPELLING)
def test_ways_of_writing_one_thing_have_one_spelling(left: str, right: str) -> None:
    assert spelling(left) == spelling(right)


@pytest.mark.parametrize(("left", "right"), OTHER_SPELLING)
def test_what_changes_the_meaning_stays_in_the_spelling(left: str, right: str) -> None:
    assert spelling(left) != spelling(right)


mathish = st.text(alphabet=r"0123456789 ,./-+%$\{}()[]^_&xfracsqt", max_size=16) | st.text(
    max_size=8
)


@given(mathish)
def test_any_text_has_a_spelling(text: str) -> None:
    assert "\n" not in spelling(text)


@pytest.mark.parametrize(("text", "value"), NUMERALS)
def test_a_numeral_stands_for_its_exact_value(text: str, value: str) -> None:
    held = numeral(spelling(text))
    assert held is not None and held.value == Fraction(value)


@pytest.mark.parametrize("text", NO_NUMERALS)
def test_what_is_not_one_numeral_has_no_value(text: str) -> None:
    assert numeral(spelling(text)) is None


def test_a_numeral_of_just_the_digit_limit_is_read() -> None:
    held = numeral("9" * MAX_DIGITS)
    assert held is not None and held.value == 10**MAX_DIGITS - 1


@pytest.mark.parametrize(("text", "expected"), UNITS)
def test_a_unit_is_split_off_in_one_spelling(text: str, expected: tuple[str, str]) -> None:
    assert split_unit(spelling(text)) == expected


@pytest.mark.parametrize("text", NO_UNITS)
def test_what_is_no_unit_stays(text: str) -> None:
    assert split_unit(spelling(text)) is None
