"""`priorkit/verify/{reading,equality}.py`: when structure and exact arithmetic can tell."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from priorkit.errors import SettingError
from priorkit.verify.equality import Policies, equal

SAME = [
    ("7", "7.0"),
    (r"\frac{1}{2}", "0.5"),
    ("1,234", "1234"),
    ("71/6", "11 5/6"),
    (r"\pi", r"\pi"),
    ("9" * 2000, "9" * 2000),
    # lists, sets, signs
    ("1,-2", "-2, 1"),
    (r"\{1,2,3\}", "1,2,3"),
    (r"2, 3, \text{ and } 4", "4, 3 and 2"),
    ("1, 234", "1,234"),
    (r"\pm 3", "3, -3"),
    (r"x = \pm 2", r"-2 \text{ or } 2"),
    ("(0,100)", "(0, 100)"),
    ("100,200", "100, 200"),
    (r"(-\infty,-8)\cup (8,\infty)", r"(8, \infty) \cup (-\infty, -8)"),
    (r"\text{A, B}", r"\text{B, A}"),
    # in order
    ("(1, 4.5)", r"\left(1,\frac{9}{2}\right)"),
    ("[2,5)", "[2, 5)"),
    ("1:2", "1 : 2.0"),
    (r"\begin{pmatrix} 1/2 \\ 3 \end{pmatrix}", r"\begin{bmatrix}0.5\\3\\\end{bmatrix}"),
    # names and chains
    ("x=5", "5"),
    ("5", "x = 5"),
    ("n=2, 3, 4", "4,3,2"),
    ("a=1 \\text{ or } a=-2", "a = -2 \\text{ or } a = 1"),
    ("(1,2)", "(x,y) = (1, 2)"),
    ("11232", r"\text{Total} = \$11,232"),
    ("0.56 = 56\\%", "0.56"),
    # units, money, per cent, bases, degrees
    ("5", r"5 \text{ cm}"),
    (r"5\text{ cm}^2", r"5 \text{ square centimeters}"),
    (r"\$18.90", "18.9 dollars"),
    ("28\\%", "28 percent"),
    ("28\\%", "0.28"),
    ("28", "28\\%"),
    (r"60^\circ", "60"),
    ("1234_5", "1234"),
    # words and letters
    (r"\text{Evelyn}", "evelyn"),
    (r"\text{(C)}", "C"),
    ("(E)", "E."),
    # long decimals
    (r"\frac{1}{12}", "0.0833333333333333"),
    ("33.3", "100/3"),
]

OTHER = [
    ("7", "8"),
    ("10", "4 10/3"),
    ("40/3", "4 10/3"),
    ("0,100", "100"),
    ("2", "2 2/3"),
    ("0.5", "0.46"),
    ("0.3", "1/3"),
    ("1/3", "0.333"),
    ("100/3", "33.3"),
    ("1, 2", "1, 2, 3"),
    ("1, 1, 2", "1, 2, 2"),
    ("(1,2)", "(2,1)"),
    ("(1,2)", "[1,2]"),
    ("(1,2)", "1,2"),
    (r"\pm 2021", "2021"),
    ("x=5", "6"),
    ("3", "1=3"),
    ("3", "3 = 5"),
    (r"5\text{ cm}", r"5\text{ m}"),
    (r"\$50", "50 cents"),
    ("3", "30%"),
    ("10_2", "10_3"),
    (r"\text{east}", "west"),
    (r"\text{(C)}", "D"),
    (r"1, 2, \ldots, n", r"1, 3, \ldots, n"),
    ("f(x) = 0", r"\forall x>0, f(x) = 0"),
    (r"\text{1 and odd primes}", "1"),
    ("", ""),
    (".", "."),
]

UNKNOWN = [
    (r"\pi", "3.14"),
    ("x+1", "1+x"),
    ("n=3k", "3"),
    ("0 < x < 2", "(0,2)"),
    ("2x+4y-3=0", "0"),
    ("9" * 2000, "8" * 2000),
    ("C", "D"),
]


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_what_a_person_calls_the_same_is_equal(gold: str, answer: str) -> None:
    assert equal(gold, answer) is True


@pytest.mark.parametrize(("gold", "answer"), OTHER)
def test_what_a_person_tells_apart_is_unequal(gold: str, answer: str) -> None:
    assert equal(gold, answer) is False


@pytest.mark.parametrize(("gold", "answer"), UNKNOWN)
def test_what_only_algebra_can_say_is_left_open(gold: str, answer: str) -> None:
    assert equal(gold, answer) is None


@pytest.mark.parametrize(("found", "expected"), [(True, True), (False, False), (None, None)])
def test_algebra_is_asked_about_the_parts_that_need_it(
    found: bool | None, expected: bool | None
) -> None:
    asked: list[tuple[str, str]] = []

    def algebra(gold: str, answer: str) -> bool | None:
        asked.append((gold, answer))
        return found

    assert equal("(1, 2x)", "(1.0, x+x)", algebra=algebra) is expected
    assert equal("(1, 2x)", "(3, x+x)", algebra=algebra) is False
    assert set(asked) == {("2x", "x+x")}


POLICIES = [
    ("28", "28\\%", {"percent": "exact"}),
    ("5", "5 cm", {"units": "required"}),
    ("1234_5", "1234", {"base": "required"}),
    ("33.3", "100/3", {"rounding": "none"}),
    (r"\frac{1}{12}", "0.0833333333333333", {"rounding": "none"}),
]


@pytest.mark.parametrize(("gold", "answer", "named"), POLICIES)
def test_a_policy_makes_the_difference(gold: str, answer: str, named: dict[str, str]) -> None:
    assert equal(gold, answer) is True
    assert equal(gold, answer, Policies(**named)) is False  # type: ignore[arg-type]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(SettingError, match="policy units must be one of optional, required"):
        Policies(units="sometimes")  # type: ignore[arg-type]


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
    assert equal(left, right) is True


@given(decimals.map(Fraction))
def test_a_decimal_equals_its_fraction(value: Fraction) -> None:
    digits = f"{value.numerator * 10**4 // value.denominator:+06d}"
    assert equal(f"{digits[:-4]}.{digits[-4:]}", f"{value.numerator}/{value.denominator}") is True


@given(rationals, rationals, st.data())
def test_two_unequal_rationals_are_never_accepted(
    one: Fraction, other: Fraction, data: st.DataObject
) -> None:
    assume(one != other)
    left, right = (data.draw(st.sampled_from(spellings(value))) for value in (one, other))
    assert equal(left, right) is False


letters = r"0123456789 ,./-+%$\{}()[]=:_^xfrac"
mathish = st.text(alphabet=letters, max_size=12) | st.text(max_size=8)


@given(mathish, mathish)
def test_without_rounding_the_decision_is_symmetric(left: str, right: str) -> None:
    exact = Policies(rounding="none")
    assert equal(left, right, exact) == equal(right, left, exact)


@given(mathish)
def test_an_answer_equals_itself_or_is_none(text: str) -> None:
    assert equal(text, text) is True or equal(text, text + "1") is not None


HOSTILE = {
    "digits": "9" * 10**6,
    "groups": "1" + ",111" * 250_000,
    "spaces": "1" + " " * 10**6 + "1",
    "fractions": r"\frac{1}" * 100_000,
    "minus signs": "-" * 10**6,
    "backslashes": "\\" * 10**6,
    "lefts and spaces": (r"\left" + " " * 1000) * 1000,
    "delimiters": r"\(" * 250_000 + r"\)" * 250_000,
    "dollars": "$" * 10**6,
    "braces": "{" * 500_000 + "}" * 500_000,
    "tuples in tuples": "(" * 500_000 + "1,2" + ")" * 500_000,
    "roots": r"\sqrt[" * 150_000,
    "words": r"\text{" * 150_000,
    "units": "1 " + "aaaa " * 200_000,
    "signs": r"\pm 1" * 200_000,
    "chains": "a=" * 300_000,
    "ratios": "1:" * 300_000,
    "rows": r"\begin{pmatrix}1" + r"&1\\" * 200_000 + r"1\end{pmatrix}",
    "powers": "x^{" * 300_000,
    "sets": r"\{" * 300_000 + r"\}" * 300_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_answer_ten_times_as_long_takes_ten_times_as_long(text: str) -> None:
    def seconds(share: int) -> float:
        part = text[: len(text) // share]
        start = time.process_time()
        equal(part + "1", part + "2")
        return time.process_time() - start

    seconds(1000)
    assert seconds(10) < 5.0 + 40 * seconds(100)
