"""Arithmetic: whole numbers, fractions, decimals, percentages, powers and roots."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from priorkit.exercises.wording import (
    Item,
    Template,
    coprime_fraction,
    decimal,
    draw,
    latex,
    listing,
    pick,
    radical,
    several,
)
from priorkit.exercises.words import NUMBER_WORDS


def sum_of_two(rng: np.random.Generator) -> Item:
    """The sum of two digits."""
    a, b = draw(rng, 1, 9), draw(rng, 1, 9)
    return f"What is {a} + {b}?", str(a + b)


def difference_of_two(rng: np.random.Generator) -> Item:
    """A difference of small numbers with a one-digit result."""
    b, rest = draw(rng, 1, 7), draw(rng, 1, 9)
    return f"What is {b + rest} - {b}?", str(rest)


def half_of(rng: np.random.Generator) -> Item:
    """Half of a small even number."""
    half = draw(rng, 1, 10)
    asked = pick(
        rng,
        (
            f"What is half of {2 * half}?",
            f"What is {2 * half} divided by 2?",
            f"If you cut {2 * half} into two equal parts, how much is each part?",
        ),
    )
    return asked, str(half)


def sum_of_three(rng: np.random.Generator) -> Item:
    """The sum of three digits up to five."""
    a, b, c = (draw(rng, 1, 5) for _ in range(3))
    return f"What is {a} + {b} + {c}?", str(a + b + c)


def small_product(rng: np.random.Generator) -> Item:
    """A product of two small numbers."""
    a, b = draw(rng, 2, 5), draw(rng, 2, 6)
    return pick(rng, (f"What is {a} times {b}?", f"How much is {a} times {b}?")), str(a * b)


def carrying_sum(rng: np.random.Generator) -> Item:
    """A sum or difference of two-digit numbers with a carry."""
    a, b = 10 * draw(rng, 2, 7) + draw(rng, 5, 9), 10 * draw(rng, 1, 6) + draw(rng, 5, 9)
    if draw(rng, 0, 1):
        return f"What is {a} + {b}?", str(a + b)
    return f"What is {a + b} - {b}?", str(a)


def two_operations(rng: np.random.Generator) -> Item:
    """A product and a sum or difference without brackets."""
    a, b, c = draw(rng, 2, 9), draw(rng, 3, 9), draw(rng, 2, 20)
    if draw(rng, 0, 1):
        return rf"Work out ${c} + {a} \times {b}$.", str(c + a * b)
    c = min(c, a * b - 1)
    return rf"Work out ${a} \times {b} - {c}$.", str(a * b - c)


def missing_addend(rng: np.random.Generator) -> Item:
    """What completes a two-digit number."""
    part, rest = draw(rng, 12, 58), draw(rng, 11, 39)
    return f"What number must be added to {part} to make {part + rest}?", str(rest)


def fraction_of(rng: np.random.Generator) -> Item:
    """A simple fraction of a whole number."""
    share = coprime_fraction(rng, draw(rng, 3, 6))
    whole = share.denominator * draw(rng, 2, 9)
    return f"What is {share} of {whole}?", str(share * whole)


def divide_then_add(rng: np.random.Generator) -> Item:
    """An exact division followed by a sum."""
    a, b, c = draw(rng, 3, 9), draw(rng, 3, 12), draw(rng, 4, 20)
    return f"Divide {a * b} by {a} and then add {c}. What number do you get?", str(b + c)


def fraction_sum(rng: np.random.Generator) -> Item:
    """A sum or difference of fractions with different denominators."""
    first, second = (coprime_fraction(rng, d) for d in several(rng, range(2, 13), 2))
    first, second = max(first, second), min(first, second)
    sign = pick(rng, ("+", "-"))
    value = first + second if sign == "+" else first - second
    asked = f"Compute ${latex(first)} {sign} {latex(second)}$."
    return f"{asked} Give your answer as a fraction in lowest terms.", latex(value)


def percent_of_percent(rng: np.random.Generator) -> Item:
    """A percentage of a percentage."""
    p, q = 5 * draw(rng, 2, 15), 10 * draw(rng, 1, 9)
    whole = 200 * draw(rng, 1, 10)
    return f"What is {p}% of {q}% of {whole}?", str(p * q * whole // 10_000)


def signed_brackets(rng: np.random.Generator) -> Item:
    """Brackets, a square and a negative factor."""
    b, c, d = draw(rng, 2, 9), draw(rng, 2, 6), draw(rng, 1, 8)
    a, e = b + draw(rng, 2, 8), d + draw(rng, 2, 7)
    value = (a - b) ** 2 - c * (d - e)
    return rf"Evaluate $({a} - {b})^2 - {c} \times ({d} - {e})$.", str(value)


def missing_from_average(rng: np.random.Generator) -> Item:
    """The last of several numbers with a known average."""
    known = [draw(rng, 5, 30) for _ in range(draw(rng, 3, 4))]
    n = len(known) + 1
    last = draw(rng, 5, 30)
    last += -(sum(known) + last) % n
    mean = (sum(known) + last) // n
    return (
        f"The average of {NUMBER_WORDS[n]} numbers is {mean}. "
        f"{NUMBER_WORDS[n - 1].capitalize()} of them are {listing(known)}. "
        "What is the remaining number?",
        str(last),
    )


def decimal_product(rng: np.random.Generator) -> Item:
    """A product of two decimals."""
    a = Fraction(draw(rng, 2, 9), 10)
    b = Fraction(10 * draw(rng, 1, 9) + draw(rng, 1, 9), pick(rng, (10, 100)))
    asked = rf"Compute ${decimal(a)} \times {decimal(b)}$. Give your answer as a decimal."
    return asked, decimal(a * b)


def quotient_of_powers(rng: np.random.Generator) -> Item:
    """A quotient of powers whose bases share factors."""
    p, q = pick(rng, ((2, 3), (2, 5), (2, 7), (3, 5)))
    n = draw(rng, 6, 12)
    less_p, less_q = draw(rng, 1, 4), draw(rng, 1, 2)
    bottom = rf"{p}^{{{n - less_p}}} \cdot {q}^{{{n - less_q}}}"
    asked = rf"Evaluate $\frac{{{p * q}^{{{n}}}}}{{{bottom}}}$."
    return asked, str(p**less_p * q**less_q)


def continued_fraction(rng: np.random.Generator) -> Item:
    """A continued fraction of three levels."""
    a, b, c, d = (draw(rng, 1, 6) for _ in range(4))
    d += 1
    value = a + 1 / (b + 1 / (c + Fraction(1, d)))
    inner = rf"{b} + \frac{{1}}{{{c} + \frac{{1}}{{{d}}}}}"
    asked = rf"Write ${a} + \frac{{1}}{{{inner}}}$ as a single fraction in lowest terms."
    return asked, latex(value)


def like_roots(rng: np.random.Generator) -> Item:
    """Three roots that reduce to multiples of one."""
    base = pick(rng, (2, 3, 5, 6, 7))
    a, b, c = several(rng, range(2, 8), 3)
    if a + b - c < 2:
        a, c = c, a
    terms = [rf"\sqrt{{{n * n * base}}}" for n in (a, b, c)]
    return (
        f"Simplify ${terms[0]} + {terms[1]} - {terms[2]}$. "
        r"Give your answer in the form $a\sqrt{b}$ with $b$ as small as possible.",
        radical(base, a + b - c),
    )


def repeating_decimal(rng: np.random.Generator) -> Item:
    """A repeating decimal with one digit before the period."""
    lead = draw(rng, 0, 9)
    block = draw(rng, 1, 98)
    block += block % 11 == 0
    value = Fraction(100 * lead + block - lead, 990)
    asked = rf"Write the repeating decimal $0.{lead}\overline{{{block:02d}}}$ as a fraction"
    return f"{asked} in lowest terms.", latex(value)


def square_difference(rng: np.random.Generator) -> Item:
    """A difference of two squares around a round number."""
    middle, away = 100 * draw(rng, 2, 12), draw(rng, 3, 29)
    return f"Compute ${middle + away}^2 - {middle - away}^2$.", str(4 * middle * away)


def telescoping_fractions(rng: np.random.Generator) -> Item:
    """A telescoping sum of reciprocal products."""
    first, step, n = draw(rng, 1, 5), draw(rng, 2, 5), draw(rng, 8, 40)
    ends = [first + step * k for k in range(n + 1)]
    terms = [rf"\frac{{1}}{{{a} \cdot {b}}}" for a, b in pairwise(ends)]
    value = sum(Fraction(1, a * b) for a, b in pairwise(ends))
    asked = rf"Find the sum ${terms[0]} + {terms[1]} + {terms[2]} + \cdots + {terms[-1]}$."
    return f"{asked} Give your answer as a fraction in lowest terms.", latex(value)


def nested_root(rng: np.random.Generator) -> Item:
    """A nested root that comes apart."""
    p, q, r = draw(rng, 1, 9), draw(rng, 1, 4), pick(rng, (2, 3, 5, 6, 7))
    sign = pick(rng, ("+", "-"))
    surd = radical(r, q)
    if sign == "+":
        answer = f"{p} + {surd}"
    else:
        answer = f"{p} - {surd}" if p * p > q * q * r else f"{surd} - {p}"
    asked = rf"Write $\sqrt{{{p * p + q * q * r} {sign} {radical(r, 2 * p * q)}}}$"
    form = r"in the form $a + b\sqrt{c}$, where $a$, $b$ and $c$ are integers"
    return f"{asked} {form} and $c$ is squarefree.", answer


def digits_of_difference(rng: np.random.Generator) -> Item:
    """The digit sum of a number just below a power of ten."""
    power, less = draw(rng, 20, 90), draw(rng, 100, 9999)
    total = sum(int(digit) for digit in str(10**power - less))
    asked = f"What is the sum of the digits of $10^{{{power}}} - {less}$"
    return f"{asked} when it is written out in full?", str(total)


def alternating_squares(rng: np.random.Generator) -> Item:
    """An alternating sum of squares in arithmetic progression."""
    low, step, pairs = draw(rng, 1, 9), draw(rng, 1, 5), draw(rng, 10, 30)
    roots = [low + step * k for k in range(2 * pairs)][::-1]
    value = sum(a * a - b * b for a, b in zip(roots[::2], roots[1::2], strict=True))
    a, b, c, d = roots[:4]
    middle = rf"{a}^2 - {b}^2 + {c}^2 - {d}^2 + \cdots + {roots[-2]}^2 - {roots[-1]}^2"
    return f"Compute ${middle}$.", str(value)


def telescoping_roots(rng: np.random.Generator) -> Item:
    """A sum of reciprocal root sums between two perfect squares."""
    first, last = draw(rng, 1, 6), draw(rng, 8, 25)
    gap = last**2 - first**2
    step = pick(rng, [d for d in (1, 2, 3, 4, 5, 6, 7, 8) if gap % d == 0 and gap // d > 4])
    ends = [first**2 + step * k for k in (0, 1, 2)] + [last**2 - step, last**2]
    terms = [
        rf"\frac{{1}}{{\sqrt{{{a}}} + \sqrt{{{b}}}}}" for a, b in (ends[0:2], ends[1:3], ends[3:5])
    ]
    asked = rf"Find the exact value of ${terms[0]} + {terms[1]} + \cdots + {terms[2]}$."
    return asked, latex(Fraction(last - first, step))


def telescoping_product(rng: np.random.Generator) -> Item:
    """A product of factors one minus a reciprocal square."""
    low, high = draw(rng, 2, 9), draw(rng, 20, 99)
    value = Fraction(low - 1, low) * Fraction(high + 1, high)
    factors = [rf"\left(1 - \frac{{1}}{{{n}^2}}\right)" for n in (low, low + 1, high)]
    asked = rf"Find the product ${factors[0]}{factors[1]} \cdots {factors[2]}$."
    return f"{asked} Give your answer as a fraction in lowest terms.", latex(value)


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (sum_of_two, difference_of_two, half_of, sum_of_three, small_product),
    2: (carrying_sum, two_operations, missing_addend, fraction_of, divide_then_add),
    3: (fraction_sum, percent_of_percent, signed_brackets, missing_from_average, decimal_product),
    4: (quotient_of_powers, continued_fraction, like_roots, repeating_decimal, square_difference),
    5: (
        telescoping_fractions,
        nested_root,
        digits_of_difference,
        alternating_squares,
        telescoping_roots,
        telescoping_product,
    ),
}
