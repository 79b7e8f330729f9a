from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from priorkit.verify.equality import MAX_DIGITS, decide, exact_rational, normalise

SAME_SPELLING = [
    ("x + 1", "x+1"),
    ("$x$", "x"),
    (r"\left( 3, 4 \right)", "(3,4)"),
    (r"\left\{1\right\}", r"\{1\}"),
    (r"\left. x \right|", "x|"),
    (r"\dfrac{1}{2}", r"\frac{1}{2}"),
    (r"\tfrac{1}{2}", r"\frac{1}{2}"),
    (r"10\!000", "10000"),
    (r"x\, dx", "x dx"),
    (r"x\;y", "x y"),
    (r"x~y", "x y"),
    (r"\displaystyle x", "x"),
    ("\u22125", "-5"),
    (" 5. ", "5"),
    (r"\[ 5 \]", "5"),
    (r"\frac{1} {2}", r"\frac{1}{2}"),
    ("two\n words", "two words"),
]

OTHER_SPELLING = [
    ("2 2/3", "22/3"),
    ("1 000", "1000"),
    (r"\leftarrow", "arrow"),
    (r"\rightarrow", "arrow"),
    (r"a \\ b", "a b"),
    (r"a \\, b", "a b"),
    ("x", "X"),
    ("2 .5", "2.5"),
]

RATIONALS = [
    ("5", "5"),
    ("-5", "-5"),
    ("+5", "5"),
    ("- 5", "-5"),
    ("\u22125", "-5"),
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
    (r"\frac{3}{4}", "3/4"),
    (r"-\frac{3}{4}", "-3/4"),
    (r"\frac{-3}{-4}", "3/4"),
    (r"\dfrac{ 3 }{ 4 }", "3/4"),
    (r"\frac34", "3/4"),
    ("$7$", "7"),
    (r"\(7\)", "7"),
    ("$1,234.00", "1234"),
    (r"\$20", "20"),
]

NO_RATIONALS = [
    "",
    "x",
    "1, 234",
    "1,23",
    "12,34,567",
    "1234,567",
    "50%",
    r"50\%",
    "50 percent",
    "11 5/6",
    "1/0",
    r"\frac{1}{0}",
    "1/2/3",
    "- -5",
    "1e5",
    "0x10",
    "1_000",
    "\u0665",  # an Arabic-Indic five
    "nan",
    "inf",
    "5!",
    "1.2.3",
    r"\sqrt{2}",
    r"\frac{1}{x}",
    "1234_5",
    ".",
    "-",
    "9" * (MAX_DIGITS + 1),
    "1/" + "9" * MAX_DIGITS,
]


@pytest.mark.parametrize(("left", "right"), SAME_SPELLING)
def test_spacing_and_sizing_do_not_matter(left: str, right: str) -> None:
    assert normalise(left) == normalise(right)


@pytest.mark.parametrize(("left", "right"), OTHER_SPELLING)
def test_what_changes_the_meaning_stays_in_the_spelling(left: str, right: str) -> None:
    assert normalise(left) != normalise(right)


def test_a_line_break_is_no_start_of_a_command() -> None:
    assert normalise(r"a \\, b \\left c") == r"a\\,b\\left c"


@pytest.mark.parametrize(("text", "value"), RATIONALS)
def test_a_numeral_stands_for_its_exact_value(text: str, value: str) -> None:
    assert exact_rational(text) == Fraction(value)


@pytest.mark.parametrize("text", NO_RATIONALS)
def test_what_is_not_one_rational_numeral_has_no_value(text: str) -> None:
    assert exact_rational(text) is None


def test_a_numeral_of_just_the_digit_limit_is_read() -> None:
    assert exact_rational("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        ("7", "7", True),
        ("7", "7.0", True),
        ("7", "8", False),
        ("1/3", "0.3333333333333333", False),
        (r"\frac{1}{2}", "0.5", True),
        ("1,234", "1234", True),
        (r"\pi", r"\pi", True),
        (r"\pi", "3.14", None),
        ("x+1", "1+x", None),
        ("50%", r"50\%", None),
        ("50", "50%", None),
        (".", ".", None),
        ("9" * 2000, "9" * 2000, True),
        ("9" * 2000, "8" * 2000, None),
    ],
)
def test_text_and_arithmetic_decide_what_they_can(
    gold: str, answer: str, same: bool | None
) -> None:
    assert decide(gold, answer) is same


rationals = st.fractions(max_denominator=10**6)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9))


def spellings(value: Fraction) -> list[str]:
    """The ways in which this project's own golds write a rational."""
    top, bottom = value.numerator, value.denominator
    sign = "-" if top < 0 else ""
    written = [f"{top}/{bottom}", f"{2 * top}/{2 * bottom}", f"{top:,}/{bottom:,}"]
    written += [f"{sign}\\{d}frac{{{abs(top)}}}{{{bottom}}}" for d in ("", "d", "t")]
    written += [rf"$\frac{{{top}}}{{{bottom}}}$", rf"\( {top} / {bottom} \)"]
    if bottom == 1:
        written += [f"{top}", f"{top:,}", f"{top}.0", f"{top}.", f"{top:,}".replace(",", "{,}")]
    return written


@given(rationals | st.integers().map(Fraction), st.data())
def test_every_spelling_of_one_rational_is_equal(value: Fraction, data: st.DataObject) -> None:
    left, right = (data.draw(st.sampled_from(spellings(value))) for _ in range(2))
    assert decide(left, right) is True


@given(decimals.map(Fraction))
def test_a_decimal_equals_its_fraction(value: Fraction) -> None:
    digits = f"{value.numerator * 10**4 // value.denominator:+06d}"
    assert decide(f"{digits[:-4]}.{digits[-4:]}", f"{value.numerator}/{value.denominator}") is True


@given(rationals, rationals, st.data())
def test_two_unequal_rationals_are_never_accepted(
    one: Fraction, other: Fraction, data: st.DataObject
) -> None:
    assume(one != other)
    left, right = (data.draw(st.sampled_from(spellings(value))) for value in (one, other))
    assert decide(left, right) is False


mathish = st.text(alphabet=r"0123456789 ,./-+%$\{}()xfrac", max_size=12) | st.text(max_size=8)


@given(mathish, mathish)
def test_the_decision_is_symmetric(left: str, right: str) -> None:
    assert decide(left, right) == decide(right, left)


@given(mathish)
def test_no_answer_is_unequal_to_itself(text: str) -> None:
    assert decide(text, text) is not False


HOSTILE = {
    "digits": "9" * 10**6,
    "groups": "1" + ",111" * 250_000,
    "spaces": "1" + " " * 10**6 + "1",
    "fractions": r"\frac{1}" * 100_000,
    "minus signs": "-" * 10**6,
    "backslashes": "\\" * 10**6,
    "lefts": r"\left" * 160_000,
    "lefts and spaces": (r"\left" + " " * 1000) * 1000,
    "delimiters": r"\(" * 250_000 + r"\)" * 250_000,
    "dollars": "$" * 10**6,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_million_hostile_characters_are_decided_within_seconds(text: str) -> None:
    start = time.perf_counter()
    decide(text + "1", text + "2")
    assert time.perf_counter() - start < 10.0
