"""Algebra: equations, systems, inequalities, polynomials and symmetric functions of roots."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from priorkit.exercises.wording import (
    Item,
    Template,
    draw,
    draw_nonzero,
    latex,
    listing,
    pick,
    polynomial,
    several,
)


def add_unknown(rng: np.random.Generator) -> Item:
    """A one-step equation with a sum."""
    x, a = draw(rng, 1, 9), draw(rng, 1, 9)
    wordings = (
        f"Find x if x + {a} = {x + a}.",
        f"If x + {a} = {x + a}, what is x?",
        f"What number plus {a} equals {x + a}?",
    )
    return pick(rng, wordings), str(x)


def subtract_unknown(rng: np.random.Generator) -> Item:
    """A one-step equation with a difference."""
    rest, a = draw(rng, 1, 8), draw(rng, 1, 5)
    wordings = (
        f"Find x if x - {a} = {rest}.",
        f"What number minus {a} equals {rest}?",
    )
    return pick(rng, wordings), str(rest + a)


def fill_blank(rng: np.random.Generator) -> Item:
    """A blank in a sum."""
    a, b = draw(rng, 1, 9), draw(rng, 1, 9)
    return f"{a} + __ = {a + b}. What number goes in the blank?", str(b)


def put_in(rng: np.random.Generator) -> Item:
    """A letter replaced by its value."""
    letter, value, a = pick(rng, ("x", "n", "k")), draw(rng, 3, 9), draw(rng, 1, 6)
    if draw(rng, 0, 1):
        return f"If {letter} = {value}, what is {letter} + {a}?", str(value + a)
    a = min(a, value - 1)
    return f"If {letter} = {value}, what is {letter} - {a}?", str(value - a)


def multiple_of_unknown(rng: np.random.Generator) -> Item:
    """A one-step equation with a product."""
    a, x = draw(rng, 2, 5), draw(rng, 2, 9)
    return f"{a} times a number is {a * x}. What is the number?", str(x)


def two_steps(rng: np.random.Generator) -> Item:
    """A linear equation in two steps."""
    a, x, b = draw(rng, 2, 9), draw(rng, 2, 12), draw_nonzero(rng, 15)
    b = max(b, 1 - a * x)
    return f"Solve for x: {polynomial((a, b))} = {a * x + b}.", str(x)


def thought_number(rng: np.random.Generator) -> Item:
    """A number found from what was done to it."""
    a, x, b = draw(rng, 2, 8), draw(rng, 3, 15), draw(rng, 1, 12)
    b = min(b, a * x - 1)
    step, result = pick(rng, ((f"add {b}", a * x + b), (f"subtract {b}", a * x - b)))
    return (
        f"I think of a number. I multiply it by {a} and then {step}. The result is {result}. "
        "What is my number?",
        str(x),
    )


def put_in_two(rng: np.random.Generator) -> Item:
    """Two letters replaced by their values."""
    a, b = several(rng, range(2, 10), 2)
    p, q = draw(rng, 2, 6), draw(rng, 2, 6)
    return f"If a = {a} and b = {b}, what is {p}a + {q}b?", str(p * a + q * b)


def sum_and_gap(rng: np.random.Generator) -> Item:
    """Two numbers from their sum and difference."""
    small, gap = draw(rng, 3, 20), draw(rng, 2, 12)
    which, answer = pick(rng, (("larger", small + gap), ("smaller", small)))
    return (
        f"Two numbers add up to {2 * small + gap}. One of them is {gap} more than the other. "
        f"What is the {which} number?",
        str(answer),
    )


def both_sides(rng: np.random.Generator) -> Item:
    """A linear equation with the unknown on both sides."""
    a, c = several(rng, range(2, 10), 2)
    x, b = draw_nonzero(rng, 9), draw_nonzero(rng, 20)
    left, right = polynomial((a, b)), polynomial((c, (a - c) * x + b))
    return f"Solve for $x$: ${left} = {right}$.", str(x)


def product_from_system(rng: np.random.Generator) -> Item:
    """The product of two unknowns in a linear system."""
    x, y, a = draw(rng, 2, 12), draw(rng, 2, 12), draw(rng, 2, 5)
    return (
        f"If $x + y = {x + y}$ and ${a}x - y = {a * x - y}$, what is the value of $xy$?",
        str(x * y),
    )


def middle_coefficient(rng: np.random.Generator) -> Item:
    """One coefficient of a product of two linear factors."""
    a, c = draw(rng, 2, 7), draw(rng, 1, 6)
    b, d = draw_nonzero(rng, 9), draw_nonzero(rng, 9)
    product = f"({polynomial((a, b))})({polynomial((c, d))})"
    return (
        f"What is the coefficient of $x$ when ${product}$ is expanded and like terms are combined?",
        str(a * d + b * c),
    )


def positive_root(rng: np.random.Generator) -> Item:
    """The positive root of a quadratic with roots of both signs."""
    r, s = draw(rng, 2, 12), draw(rng, 1, 12)
    s += r == s
    equation = polynomial((1, s - r, -r * s))
    return f"What is the positive solution of ${equation} = 0$?", str(r)


def fractional_parts(rng: np.random.Generator) -> Item:
    """An equation with two fractions of the unknown."""
    p, q = sorted(several(rng, range(2, 10), 2))
    k = draw(rng, 1, 4)
    sign = pick(rng, (1, -1))
    x = p * q * k
    left = rf"\frac{{x}}{{{p}}} {'+' if sign > 0 else '-'} \frac{{x}}{{{q}}}"
    return f"Solve for $x$: ${left} = {x // p + sign * (x // q)}$.", str(x)


def reciprocal_roots(rng: np.random.Generator) -> Item:
    """The sum of the reciprocals of the roots of a quadratic."""
    a, b, c = draw(rng, 2, 6), draw(rng, 14, 25), draw(rng, 2, 7)
    sign = pick(rng, (1, -1))
    return (
        f"The equation ${polynomial((a, -b * sign, c))} = 0$ has roots $r$ and $s$. "
        r"Find $\frac{1}{r} + \frac{1}{s}$ as an integer or a fraction in lowest terms.",
        latex(Fraction(b * sign, c)),
    )


def quadratic_inequality(rng: np.random.Generator) -> Item:
    """A quadratic inequality whose solution is one interval."""
    low = draw(rng, -9, 4)
    high = low + draw(rng, 2, 11)
    sign, left, right = pick(rng, (("<", "(", ")"), (r"\le", "[", "]")))
    inequality = f"{polynomial((1, -low - high, low * high))} {sign} 0"
    return (
        f"Solve ${inequality}$ for real $x$. Give the solution set in interval notation.",
        f"{left}{low}, {high}{right}",
    )


def division_remainder(rng: np.random.Generator) -> Item:
    """The remainder of a cubic divided by a linear factor."""
    a, b, c, d = draw(rng, 1, 4), draw_nonzero(rng, 6), draw_nonzero(rng, 7), draw_nonzero(rng, 9)
    r = draw_nonzero(rng, 3)
    cubic = polynomial((a, b, c, d))
    return (
        f"What is the remainder when ${cubic}$ is divided by ${polynomial((1, -r))}$?",
        str(a * r**3 + b * r**2 + c * r + d),
    )


def exact_quotient(rng: np.random.Generator) -> Item:
    """The quotient of a cubic by one of its linear factors."""
    a, b, c = draw(rng, 1, 4), draw_nonzero(rng, 6), draw_nonzero(rng, 9)
    r = draw_nonzero(rng, 5)
    cubic = polynomial((a, b - a * r, c - b * r, -c * r))
    return (
        f"The polynomial ${cubic}$ is divisible by ${polynomial((1, -r))}$. What is the quotient?",
        polynomial((a, b, c)),
    )


def solve_system(rng: np.random.Generator) -> Item:
    """A linear system with one solution."""
    x, y = draw_nonzero(rng, 9), draw_nonzero(rng, 9)
    a, c = several(rng, range(2, 8), 2)
    b, d = draw(rng, 1, 6), draw_nonzero(rng, 6)
    d = -d if a * d == b * c else d
    first, second = f"{a}x {_signed(b)}y", f"{c}x {_signed(d)}y"
    return (
        rf"Solve the system ${first} = {a * x + b * y}$ and ${second} = {c * x + d * y}$. "
        "Give your answer as an ordered pair $(x, y)$.",
        f"({x}, {y})",
    )


def absolute_value(rng: np.random.Generator) -> Item:
    """The product of the solutions of an absolute value equation."""
    a, b, c = draw(rng, 2, 5), draw_nonzero(rng, 12), draw(rng, 1, 20)
    c += abs(b) == c
    return (
        f"What is the product of all solutions of $|{polynomial((a, b))}| = {c}$? "
        "Give an integer or a fraction in lowest terms.",
        latex(Fraction(b * b - c * c, a * a)),
    )


def root_powers(rng: np.random.Generator) -> Item:
    """A power sum of the roots of a cubic."""
    e1, e2, e3 = draw_nonzero(rng, 5), draw_nonzero(rng, 6), draw_nonzero(rng, 6)
    sums = [3, e1, e1 * e1 - 2 * e2]
    for _ in range(2):
        sums.append(e1 * sums[-1] - e2 * sums[-2] + e3 * sums[-3])
    k = draw(rng, 2, 4)
    powers = " + ".join(f"{root}^{k}" for root in "pqr")
    return (
        "Let $p$, $q$ and $r$ be the three complex roots of "
        f"${polynomial((1, -e1, e2, -e3))} = 0$. Find ${powers}$.",
        str(sums[k]),
    )


def symmetric_pair(rng: np.random.Generator) -> Item:
    """A higher power sum of two numbers from their sum and sum of squares."""
    total, product = draw(rng, 1, 7), draw(rng, -6, 5)
    product = product or -1
    if total * total < 4 * product:
        product = -product
    sums = [2, total]
    for _ in range(4):
        sums.append(total * sums[-1] - product * sums[-2])
    k = draw(rng, 3, 5)
    return (
        f"Real numbers $x$ and $y$ satisfy $x + y = {total}$ and $x^2 + y^2 = {sums[2]}$. "
        f"Find $x^{k} + y^{k}$.",
        str(sums[k]),
    )


def reciprocal_powers(rng: np.random.Generator) -> Item:
    """A power of a number plus or minus that of its reciprocal."""
    total, k, sign = draw(rng, 3, 9), draw(rng, 3, 6), pick(rng, (1, -1))
    sums = [2, total]
    for _ in range(5):
        sums.append(total * sums[-1] - sign * sums[-2])
    given, asked = "+-"[sign < 0], "+-"[sign < 0 and k % 2 == 1]
    return (
        rf"If $x {given} \frac{{1}}{{x}} = {total}$, "
        rf"what is the value of $x^{k} {asked} \frac{{1}}{{x^{k}}}$?",
        str(sums[k]),
    )


def least_square_sum(rng: np.random.Generator) -> Item:
    """The least sum of squares on a plane."""
    factors = [draw(rng, 1, 6) for _ in range(3)]
    total = draw(rng, 5, 40)
    a, b, c = ("" if factor == 1 else str(factor) for factor in factors)
    value = Fraction(total * total, sum(factor * factor for factor in factors))
    return (
        f"Real numbers $x$, $y$ and $z$ satisfy ${a}x + {b}y + {c}z = {total}$. "
        "What is the least possible value of $x^2 + y^2 + z^2$? "
        "Give an integer or a fraction in lowest terms.",
        latex(value),
    )


def pairwise_products(rng: np.random.Generator) -> Item:
    """Three positive numbers from what each pair gives."""
    x, y, z = (draw(rng, 2, 12) for _ in range(3))
    products = [(a + 1) * (b + 1) - 1 for a, b in ((x, y), (y, z), (z, x))]
    return (
        "Positive numbers $x$, $y$ and $z$ satisfy "
        f"$xy + x + y = {products[0]}$, $yz + y + z = {products[1]}$ and "
        f"$zx + z + x = {products[2]}$. Find $x + y + z$.",
        str(x + y + z),
    )


def interpolated_value(rng: np.random.Generator) -> Item:
    """A monic polynomial known at as many points as its degree."""
    n, slope, rise = draw(rng, 3, 5), draw(rng, 2, 7), draw(rng, -5, 5)
    at = draw(rng, n + 1, n + 3)
    given = listing([f"$P({k}) = {slope * k + rise}$" for k in range(1, n + 1)])
    value = slope * at + rise + prod(at - k for k in range(1, n + 1))
    return (
        f"$P(x)$ is a polynomial of degree {n} with leading coefficient 1. "
        f"It satisfies {given}. Find $P({at})$.",
        str(value),
    )


def _signed(factor: int) -> str:
    """A coefficient with its sign in front, to follow another term."""
    return f"{'-' if factor < 0 else '+'} {'' if abs(factor) == 1 else abs(factor)}"


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (add_unknown, subtract_unknown, fill_blank, put_in, multiple_of_unknown),
    2: (two_steps, thought_number, put_in_two, sum_and_gap),
    3: (both_sides, product_from_system, middle_coefficient, positive_root, fractional_parts),
    4: (
        reciprocal_roots,
        quadratic_inequality,
        division_remainder,
        exact_quotient,
        solve_system,
        absolute_value,
    ),
    5: (
        root_powers,
        symmetric_pair,
        reciprocal_powers,
        least_square_sum,
        pairwise_products,
        interpolated_value,
    ),
}
