"""Sequences and functions: patterns, rules, terms, sums, inverses, recursions and series."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np

from priorkit.exercises.wording import (
    LOWEST,
    Item,
    Template,
    commas,
    draw,
    draw_nonzero,
    latex,
    ordinal,
    pick,
    polynomial,
    several,
)


def count_on(rng: np.random.Generator) -> Item:
    """The next number when counting up."""
    start, step = draw(rng, 1, 10), draw(rng, 1, 3)
    shown = commas([start + step * k for k in range(4)])
    return f"What number comes next: {shown}?", str(start + 4 * step)


def count_down(rng: np.random.Generator) -> Item:
    """The next number when counting down."""
    last, step = draw(rng, 1, 12), draw(rng, 1, 2)
    shown = commas([last + step * k for k in (4, 3, 2, 1)])
    return f"What number comes next: {shown}?", str(last)


def repeating_pattern(rng: np.random.Generator) -> Item:
    """The next number of a pattern that repeats."""
    block = several(rng, range(1, 10), draw(rng, 2, 3))
    n = draw(rng, 2 * len(block), 3 * len(block) - 1)
    shown = [block[k % len(block)] for k in range(n)]
    return (
        f"A pattern repeats: {commas(shown)}. What number comes next?",
        str(block[n % len(block)]),
    )


def gap_in_row(rng: np.random.Generator) -> Item:
    """The missing number of a row."""
    start, step, hole = draw(rng, 1, 9), draw(rng, 1, 3), draw(rng, 1, 3)
    shown = ["__" if k == hole else start + step * k for k in range(5)]
    return f"What number is missing: {commas(shown)}?", str(start + step * hole)


def adding_machine(rng: np.random.Generator) -> Item:
    """The output of a machine with one rule."""
    a, x = draw(rng, 1, 8), draw(rng, 1, 9)
    return f"A machine adds {a} to any number. You put in {x}. What comes out?", str(a + x)


def next_term(rng: np.random.Generator) -> Item:
    """The next term of an arithmetic, geometric or growing sequence."""
    start, step, grow = draw(rng, 2, 30), draw(rng, 4, 12), draw(rng, 1, 5)
    rows = (
        [start + step * k for k in range(5)],
        [(start % 7 + 1) * (2 + step % 2) ** k for k in range(5)],
        [start + step * k + grow * k * (k - 1) // 2 for k in range(5)],
    )
    row = pick(rng, rows)
    return f"What is the next number in the pattern {commas(row[:4])}?", str(row[4])


def two_rule_machine(rng: np.random.Generator) -> Item:
    """The output, or the input, of a machine with two rules."""
    a, b, x = draw(rng, 2, 6), draw(rng, 1, 12), draw(rng, 2, 12)
    machine = f"A machine multiplies a number by {a} and then adds {b}."
    if draw(rng, 0, 1):
        return f"{machine} What comes out when {x} is put in?", str(a * x + b)
    return f"{machine} Which number must be put in so that {a * x + b} comes out?", str(x)


def early_term(rng: np.random.Generator) -> Item:
    """An early term of a sequence told in words."""
    start, step, n = draw(rng, 2, 30), draw(rng, 3, 12), draw(rng, 5, 10)
    return (
        f"The first number of a list is {start}. Each number after it is {step} more than the one "
        f"before it. What is the {ordinal(n)} number?",
        str(start + step * (n - 1)),
    )


def function_value(rng: np.random.Generator) -> Item:
    """A value of a linear function."""
    a, b, x = draw(rng, 2, 9), draw_nonzero(rng, 9), draw(rng, 2, 10)
    return f"If f(x) = {polynomial((a, b))}, what is f({x})?", str(a * x + b)


def far_term(rng: np.random.Generator) -> Item:
    """A far term of an arithmetic sequence, or the place of one."""
    step = pick(rng, (-7, -4, -3, 3, 4, 5, 6, 7, 8))
    start, n = draw(rng, -10, 30), draw(rng, 20, 80)
    shown = commas([start + step * k for k in range(3)])
    last = start + step * (n - 1)
    if draw(rng, 0, 1):
        asked = rf"What is the {ordinal(n)} term of the arithmetic sequence ${shown}, \dots$?"
        return asked, str(last)
    asked = rf"The number ${last}$ is the $n$th term of the arithmetic sequence ${shown}, \dots$."
    return f"{asked} What is $n$?", str(n)


def composition(rng: np.random.Generator) -> Item:
    """A value of a composed function."""
    a, b, c, x = draw(rng, 2, 5), draw_nonzero(rng, 9), draw_nonzero(rng, 9), draw_nonzero(rng, 4)
    f, g = polynomial((a, b)), polynomial((1, 0, c))
    order, value = pick(
        rng, (("f(g({}))", a * (x * x + c) + b), ("g(f({}))", (a * x + b) ** 2 + c))
    )
    return f"Let $f(x) = {f}$ and $g(x) = {g}$. What is ${order.format(x)}$?", str(value)


def arithmetic_sum(rng: np.random.Generator) -> Item:
    """The sum of an arithmetic series."""
    start, step, n = draw(rng, 1, 12), draw(rng, 2, 7), draw(rng, 8, 25)
    terms = [start + step * k for k in range(n)]
    asked = rf"What is the sum ${terms[0]} + {terms[1]} + {terms[2]} + \cdots + {terms[-1]}$,"
    return f"{asked} in which each term is {step} more than the one before?", str(sum(terms))


def short_recursion(rng: np.random.Generator) -> Item:
    """A term of a sequence with a linear rule."""
    start, factor, add = draw(rng, 1, 5), draw(rng, 2, 3), draw_nonzero(rng, 5)
    n, term = draw(rng, 4, 6), start
    for _ in range(n - 1):
        term = factor * term + add
    rule = f"a_{{n+1}} = {polynomial((factor, 0)).replace('x', 'a_n')} {'+-'[add < 0]} {abs(add)}"
    return (
        rf"A sequence is defined by $a_1 = {start}$ and ${rule}$ for $n \ge 1$. What is $a_{n}$?",
        str(term),
    )


def quadratic_value(rng: np.random.Generator) -> Item:
    """A value of a quadratic function at a negative number."""
    a, b, c, x = draw(rng, 1, 4), draw_nonzero(rng, 9), draw_nonzero(rng, 12), -draw(rng, 1, 7)
    asked = f"If $f(x) = {polynomial((a, b, c))}$, what is $f({x})$?"
    return asked, str(a * x * x + b * x + c)


def geometric_series(rng: np.random.Generator) -> Item:
    """The sum of an infinite geometric series."""
    bottom = draw(rng, 3, 8)
    top = draw(rng, 1, bottom - 1) * pick(rng, (1, -1))
    ratio, first = Fraction(top, bottom), draw(rng, 1, 12)
    terms = [latex(abs(first * ratio**k)) for k in range(4)]
    sign = "-" if top < 0 else "+"
    series = rf"{terms[0]} {sign} {terms[1]} + {terms[2]} {sign} {terms[3]} + \cdots"
    return (
        f"Find the sum of the infinite geometric series ${series}$. {LOWEST}",
        latex(first / (1 - ratio)),
    )


def inverse_value(rng: np.random.Generator) -> Item:
    """A value of the inverse of a linear fractional function."""
    a, b, c, d = draw(rng, 1, 6), draw_nonzero(rng, 9), draw(rng, 1, 5), draw_nonzero(rng, 9)
    y = draw(rng, -6, 6)
    if a * d == b * c or a == c * y:
        return inverse_value(rng)
    f = rf"\frac{{{polynomial((a, b))}}}{{{polynomial((c, d))}}}"
    return (
        f"Let $f(x) = {f}$. Find $f^{{-1}}({y})$. {LOWEST}",
        latex(Fraction(b - d * y, c * y - a)),
    )


def from_two_terms(rng: np.random.Generator) -> Item:
    """A term of an arithmetic or geometric sequence from two others."""
    m, gap = draw(rng, 2, 9), draw(rng, 3, 9)
    start, step, far = draw(rng, -20, 30), draw_nonzero(rng, 9), draw(rng, 25, 90)
    one, two = start + step * (m - 1), start + step * (m + gap - 1)
    return (
        f"The {ordinal(m)} term of an arithmetic sequence is {one} and its {ordinal(m + gap)} term "
        f"is {two}. What is its {ordinal(far)} term?",
        str(start + step * (far - 1)),
    )


def root_domain(rng: np.random.Generator) -> Item:
    """The domain of a sum of two square roots."""
    p, q = draw(rng, 1, 4), draw(rng, 1, 4)
    low = draw(rng, -8, 5)
    high = low + draw(rng, 1, 12)
    roots = rf"\sqrt{{{polynomial((p, -p * low))}}} + \sqrt{{{_falling(q, q * high)}}}"
    return (
        f"What is the domain of the real function $f(x) = {roots}$? "
        "Give your answer in interval notation.",
        f"[{low}, {high}]",
    )


def expanded_composition(rng: np.random.Generator) -> Item:
    """A composition of a quadratic and a linear function, expanded."""
    a, b = draw(rng, 2, 4), draw_nonzero(rng, 5)
    c, d = draw_nonzero(rng, 6), draw_nonzero(rng, 8)
    expanded = (a * a, 2 * a * b + a * c, b * b + b * c + d)
    return (
        f"Let $f(x) = {polynomial((1, c, d))}$ and $g(x) = {polynomial((a, b))}$. "
        "Write $f(g(x))$ as a polynomial in expanded form.",
        polynomial(expanded),
    )


def fractional_logarithm(rng: np.random.Generator) -> Item:
    """A logarithm whose base and argument are powers of one number."""
    root, most = pick(rng, ((2, 9), (3, 5), (5, 4)))
    m, n = draw(rng, 2, 4), draw(rng, -3, most)
    n += n % m == 0
    argument = latex(Fraction(root) ** n)
    return (
        rf"Evaluate $\log_{{{root**m}}} {argument}$ as a fraction in lowest terms.",
        latex(Fraction(n, m)),
    )


# A rule with period 3 to 6, as text and as code, and how many terms it starts from.
_PERIODIC: tuple[tuple[str, Callable[[list[Fraction]], Fraction], int], ...] = (
    (r"a_{n+1} = \frac{1 + a_n}{1 - a_n}", lambda a: (1 + a[-1]) / (1 - a[-1]), 1),
    (r"a_{n+1} = 1 - \frac{1}{a_n}", lambda a: 1 - 1 / a[-1], 1),
    (r"a_{n+1} = \frac{1}{1 - a_n}", lambda a: 1 / (1 - a[-1]), 1),
    (r"a_{n+2} = \frac{a_{n+1}}{a_n}", lambda a: a[-1] / a[-2], 2),
    (r"a_{n+2} = a_{n+1} - a_n", lambda a: a[-1] - a[-2], 2),
    (r"a_{n+2} = \frac{1 + a_{n+1}}{a_n}", lambda a: (1 + a[-1]) / a[-2], 2),
)


def periodic_recursion(rng: np.random.Generator) -> Item:
    """A far term of a sequence that turns out to repeat."""
    rule, step, seeds = pick(rng, _PERIODIC)
    start = [Fraction(draw(rng, 2, 9), draw(rng, 1, 3)) for _ in range(seeds)]
    start = [value + 2 if value == 1 else value for value in start]
    terms, n = list(start), draw(rng, 500, 2999)
    for _ in range(n - seeds):
        terms.append(step(terms))
    given = ", ".join(f"$a_{k} = {latex(value)}$" for k, value in enumerate(start, start=1))
    return (
        rf"A sequence is defined by {given} and ${rule}$ for $n \ge 1$. Find $a_{{{n}}}$. {LOWEST}",
        latex(terms[-1]),
    )


def fibonacci_remainder(rng: np.random.Generator) -> Item:
    """The remainder of a far term of a Fibonacci-like sequence."""
    a, b = draw(rng, 1, 9), draw(rng, 1, 9)
    n, modulus = draw(rng, 100, 999), draw(rng, 5, 13)
    one, two = a, b
    for _ in range(n - 1):
        one, two = two, one + two
    return (
        f"A sequence starts with $a_1 = {a}$ and $a_2 = {b}$, and every later term is the sum of "
        f"the two terms before it. Find the remainder when $a_{{{n}}}$ is divided by {modulus}.",
        str(one % modulus),
    )


def reciprocal_equation(rng: np.random.Generator) -> Item:
    """A function given by an equation in x and 1/x."""
    a, b = several(rng, range(1, 6), 2)
    c, k = draw(rng, 1, 9), draw(rng, 2, 9)
    first, second, right = ("" if n == 1 else str(n) for n in (a, b, c))
    return (
        rf"A function $f$ satisfies ${first}f(x) + {second}f\left(\frac{{1}}{{x}}\right) = "
        rf"{right}x$ for all real $x \ne 0$. Find $f({k})$. {LOWEST}",
        latex((a * c * k - Fraction(b * c, k)) / (a * a - b * b)),
    )


def weighted_series(rng: np.random.Generator) -> Item:
    """A series of linear terms over powers."""
    p, q, r = draw(rng, 1, 7), draw(rng, -4, 9), draw(rng, 2, 7)
    ratio = Fraction(1, r)
    # The sum of n x^n is x/(1-x)^2 and that of x^n is x/(1-x).
    value = p * ratio / (1 - ratio) ** 2 + q * ratio / (1 - ratio)
    top = polynomial((p, q), "n")
    return (
        rf"Find the sum $\sum_{{n=1}}^{{\infty}} \frac{{{top}}}{{{r}^n}}$. {LOWEST}",
        latex(value),
    )


def floor_sum(rng: np.random.Generator) -> Item:
    """A sum of rounded-down square roots."""
    low, high = draw(rng, 1, 40), draw(rng, 90, 400)
    floors = [rf"\lfloor \sqrt{{{n}}} \rfloor" for n in (low, low + 1, high)]
    return (
        rf"Compute ${floors[0]} + {floors[1]} + \cdots + {floors[2]}$, where "
        r"$\lfloor x \rfloor$ is the greatest integer less than or equal to $x$.",
        str(sum(isqrt(n) for n in range(low, high + 1))),
    )


def nearly_additive(rng: np.random.Generator) -> Item:
    """A function given by an addition rule and one value."""
    k, m, n = draw(rng, 1, 6), draw(rng, 2, 4), draw(rng, 10, 30)
    f1 = draw_nonzero(rng, 9)
    fm = m * f1 + k * m * (m - 1) // 2
    product = f"{'' if k == 1 else k}xy"
    return (
        f"A function $f$ satisfies $f(x + y) = f(x) + f(y) + {product}$ for all integers $x$ and "
        f"$y$, and $f({m}) = {fm}$. Find $f({n})$.",
        str(n * f1 + k * n * (n - 1) // 2),
    )


def _falling(slope: int, constant: int) -> str:
    """`constant - slope x` as it is usually written."""
    term = f"{'' if slope == 1 else slope}x"
    return f"{constant} - {term}" if constant else f"-{term}"


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (count_on, count_down, repeating_pattern, gap_in_row, adding_machine),
    2: (next_term, two_rule_machine, early_term, function_value),
    3: (far_term, composition, arithmetic_sum, short_recursion, quadratic_value),
    4: (
        geometric_series,
        inverse_value,
        from_two_terms,
        root_domain,
        expanded_composition,
        fractional_logarithm,
    ),
    5: (
        periodic_recursion,
        fibonacci_remainder,
        reciprocal_equation,
        weighted_series,
        floor_sum,
        nearly_additive,
    ),
}
