"""Number theory: order and parity, divisors, remainders, primes, bases and congruences."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, gcd, lcm

import numpy as np

from priorkit.exercises.wording import Item, Template, commas, draw, latex, listing, pick, several


def largest_or_smallest(rng: np.random.Generator) -> Item:
    """The largest or smallest of three numbers."""
    numbers = several(rng, range(1, 20), 3)
    which, answer = pick(rng, (("largest", max(numbers)), ("smallest", min(numbers))))
    return f"Which of these numbers is the {which}: {commas(numbers)}?", str(answer)


def neighbor(rng: np.random.Generator) -> Item:
    """The whole number just after or before another."""
    n = draw(rng, 2, 30)
    side, answer = pick(rng, (("after", n + 1), ("before", n - 1)))
    return f"What whole number comes just {side} {n}?", str(answer)


def even_or_odd(rng: np.random.Generator) -> Item:
    """The only even or only odd number of three."""
    evens, odds = range(2, 20, 2), range(1, 20, 2)
    which, ours, others = pick(rng, (("even", evens, odds), ("odd", odds, evens)))
    answer = pick(rng, ours)
    numbers = several(rng, [answer, *several(rng, others, 2)], 3)
    return f"Which of these numbers is {which}: {commas(numbers)}?", str(answer)


def place_digit(rng: np.random.Generator) -> Item:
    """The tens or ones digit of a two-digit number."""
    tens, ones = several(rng, range(1, 10), 2)
    which, answer = pick(rng, (("first", tens), ("last", ones)))
    return f"What is the {which} digit of {10 * tens + ones}?", str(answer)


def simple_remainder(rng: np.random.Generator) -> Item:
    """The remainder of a division."""
    divisor = draw(rng, 4, 12)
    rest = draw(rng, 1, divisor - 1)
    n = divisor * draw(rng, 3, 9) + rest
    return f"What is the remainder when {n} is divided by {divisor}?", str(rest)


def next_multiple(rng: np.random.Generator) -> Item:
    """The first multiple beyond a bound."""
    step, bound = draw(rng, 3, 12), draw(rng, 25, 99)
    return (
        f"What is the smallest multiple of {step} that is greater than {bound}?",
        str((bound // step + 1) * step),
    )


def largest_proper_factor(rng: np.random.Generator) -> Item:
    """The largest factor of a number other than itself."""
    smallest = pick(rng, (2, 2, 3, 3, 5, 7))
    rest = pick(rng, [n for n in range(7, 26) if all(n % p for p in range(2, smallest))])
    n = smallest * rest
    return f"What is the largest factor of {n} other than {n} itself?", str(rest)


def digits_combined(rng: np.random.Generator) -> Item:
    """The sum or product of the digits of a number."""
    a, b, c = (draw(rng, 1, 9) for _ in range(3))
    which, answer = pick(rng, (("sum", a + b + c), ("product", a * b * c)))
    return f"What is the {which} of the digits of {a}{b}{c}?", str(answer)


def small_common_factor(rng: np.random.Generator) -> Item:
    """The greatest common factor of two small numbers."""
    common = draw(rng, 2, 12)
    a, b = pick(rng, ((2, 3), (3, 4), (3, 5), (4, 5), (2, 5), (5, 6), (1, 3), (2, 7)))
    return (
        f"What is the largest whole number that divides both {common * a} and {common * b} evenly?",
        str(common),
    )


def least_common_multiple(rng: np.random.Generator) -> Item:
    """The least common multiple of two or three numbers."""
    numbers = sorted(several(rng, range(6, 31), draw(rng, 2, 3)))
    return f"What is the least common multiple of {listing(numbers)}?", str(lcm(*numbers))


def common_divisor(rng: np.random.Generator) -> Item:
    """The greatest common divisor of two larger numbers."""
    common = draw(rng, 6, 36)
    a, b = several(rng, (3, 4, 5, 7, 8, 9, 11), 2)
    common *= 1 if gcd(a, b) == 1 else 2
    a, b = common * a, common * b
    return f"What is the greatest common divisor of {a} and {b}?", str(gcd(a, b))


def prime_sum(rng: np.random.Generator) -> Item:
    """The sum of the primes in a range."""
    low = draw(rng, 4, 60)
    high = low + draw(rng, 14, 24)
    primes = [n for n in range(low, high + 1) if all(n % d for d in range(2, n))]
    asked = f"What is the sum of all prime numbers from {low} to {high}?"
    return asked, str(sum(primes))


def count_multiples(rng: np.random.Generator) -> Item:
    """How many multiples lie in a range."""
    step, low = draw(rng, 3, 15), draw(rng, 20, 150)
    high = low + draw(rng, 100, 400)
    return (
        f"How many integers from {low} to {high}, inclusive, are multiples of {step}?",
        str(high // step - (low - 1) // step),
    )


def largest_prime_factor(rng: np.random.Generator) -> Item:
    """The largest prime factor of a number with several."""
    small = draw(rng, 6, 60)
    n = small * pick(rng, (7, 11, 13, 17, 19, 23, 29))
    primes = [p for p in range(2, n + 1) if n % p == 0 and all(p % d for d in range(2, p))]
    return f"What is the largest prime factor of {n}?", str(max(primes))


def count_divisors(rng: np.random.Generator) -> Item:
    """How many positive divisors a number has."""
    a, b, c = draw(rng, 1, 5), draw(rng, 0, 3), pick(rng, (5, 7, 11, 25, 35, 49, 55))
    n = 2**a * 3**b * c
    which, step = pick(rng, (("positive", 1), ("even positive", 2)))
    total = sum(n % d == 0 for d in range(step, n + 1, step))
    return f"How many {which} divisors does {n} have?", str(total)


def units_digit(rng: np.random.Generator) -> Item:
    """The units digit of a sum of powers."""
    a, b = several(rng, (2, 3, 4, 7, 8, 9, 12, 13, 17, 18, 23), 2)
    m, n = draw(rng, 20, 99), draw(rng, 20, 99)
    return (
        f"What is the units digit of ${a}^{{{m}}} + {b}^{{{n}}}$?",
        str((pow(a, m, 10) + pow(b, n, 10)) % 10),
    )


def shared_remainder(rng: np.random.Generator) -> Item:
    """The least number with one remainder for three divisors."""
    divisors = sorted(several(rng, range(4, 16), 3))
    rest = draw(rng, 1, divisors[0] - 1)
    return (
        f"What is the smallest integer greater than {divisors[-1]} that leaves a remainder of "
        f"{rest} when divided by each of {listing(divisors)}?",
        str(lcm(*divisors) + rest),
    )


def change_base(rng: np.random.Generator) -> Item:
    """A number written in another base."""
    base, n = draw(rng, 3, 8), draw(rng, 60, 500)
    digits, rest = "", n
    while rest:
        rest, digit = divmod(rest, base)
        digits = str(digit) + digits
    if draw(rng, 0, 1):
        return f"What is the base-ten value of the base-{base} number ${digits}_{base}$?", str(n)
    return f"Write the number {n} in base {base}. Give only its digits.", digits


def missing_digit(rng: np.random.Generator) -> Item:
    """A hidden digit settled by divisibility by 9 or 11."""
    digits = [draw(rng, 1, 9), *(draw(rng, 0, 9) for _ in range(4))]
    place = draw(rng, 1, 4)
    divisor = pick(rng, (9, 11))
    fits: list[int] = []
    while len(fits) != 1:
        digits[0] = digits[0] % 9 + 1
        trials = [[*digits[:place], d, *digits[place + 1 :]] for d in range(10)]
        fits = [t[place] for t in trials if int("".join(map(str, t))) % divisor == 0]
    shown = "".join("A" if k == place else str(d) for k, d in enumerate(digits))
    return (
        f"The five-digit number ${shown}$, where $A$ stands for a single digit, is divisible by "
        f"{divisor}. Find the digit $A$.",
        str(fits[0]),
    )


def make_a_power(rng: np.random.Generator) -> Item:
    """The least multiplier that makes a square or cube."""
    exponents = {2: draw(rng, 1, 3), 3: draw(rng, 0, 3), 5: draw(rng, 0, 2), 7: draw(rng, 0, 1)}
    exponents[pick(rng, (3, 5, 7))] = 1
    n = 1
    for p, e in exponents.items():
        n *= p**e
    shape, power = pick(rng, (("square", 2), ("cube", 3)))
    answer = 1
    for p, e in exponents.items():
        answer *= p ** (-e % power)
    return (
        f"What is the smallest positive integer $n$ such that ${n}n$ is a perfect {shape}?",
        str(answer),
    )


def power_remainder(rng: np.random.Generator) -> Item:
    """The remainder of a sum of two big powers."""
    modulus = pick(rng, (11, 13, 17, 19, 23, 29, 31, 37, 41, 100))
    a, b = several(rng, (2, 3, 5, 6, 7, 8, 12), 2)
    m, n = draw(rng, 100, 999), draw(rng, 1000, 2999)
    return (
        f"Find the remainder when ${a}^{{{m}}} + {b}^{{{n}}}$ is divided by {modulus}.",
        str((pow(a, m, modulus) + pow(b, n, modulus)) % modulus),
    )


def power_tower(rng: np.random.Generator) -> Item:
    """The remainder of a tower of powers."""
    a, b, c = draw(rng, 2, 13), draw(rng, 2, 9), draw(rng, 10, 60)
    modulus = pick(rng, (25, 35, 77, 91, 100, 101, 125))
    return (
        f"Find the remainder when ${a}^{{({b}^{{{c}}})}}$ is divided by {modulus}.",
        str(pow(a, b**c, modulus)),
    )


def factorial_zeros(rng: np.random.Generator) -> Item:
    """The zeros at the end of a factorial in a given base."""
    n, base = draw(rng, 40, 200), pick(rng, (6, 9, 12, 14, 15, 18, 20, 24))
    zeros, rest = 0, factorial(n)
    while rest % base == 0:
        zeros, rest = zeros + 1, rest // base
    asked = f"The number ${n}!$ is written in base {base}. With how many zeros does it end?"
    return asked, str(zeros)


def three_remainders(rng: np.random.Generator) -> Item:
    """The least number with given remainders for three divisors."""
    divisors = pick(rng, ((5, 7, 9), (7, 8, 9), (5, 8, 11), (7, 9, 11), (4, 9, 13), (6, 7, 11)))
    rests = [draw(rng, 1, d - 1) for d in divisors]
    answer = next(
        n for n in range(10_000) if all(n % d == r for d, r in zip(divisors, rests, strict=True))
    )
    given = [f"{r} when divided by {d}" for r, d in zip(rests, divisors, strict=True)]
    return (
        f"What is the smallest positive integer that leaves a remainder of {listing(given)}?",
        str(answer),
    )


def count_coprime(rng: np.random.Generator) -> Item:
    """How many numbers up to a bound are coprime to another."""
    bound, n = draw(rng, 200, 999), pick(rng, (30, 42, 60, 66, 70, 84, 90, 105, 110))
    total = sum(gcd(k, n) == 1 for k in range(1, bound + 1))
    return (
        f"How many integers from 1 to {bound}, inclusive, are relatively prime to {n}?",
        str(total),
    )


def count_solutions(rng: np.random.Generator) -> Item:
    """How many positive solutions a linear equation has."""
    a, b = pick(rng, ((3, 5), (4, 7), (5, 7), (2, 9), (5, 8), (7, 9), (4, 9), (6, 11)))
    total = draw(rng, 100, 600)
    pairs = sum((total - a * x) % b == 0 for x in range(1, (total - b) // a + 1))
    return (
        f"How many ordered pairs $(x, y)$ of positive integers satisfy ${a}x + {b}y = {total}$?",
        str(pairs),
    )


def unit_fractions(rng: np.random.Generator) -> Item:
    """How many ways a fraction is a sum of two unit fractions."""
    n, k = draw(rng, 6, 72), pick(rng, (1, 1, 2, 3))
    target = Fraction(k, n)
    denominators = (x for x in range(1, 2 * n // k + 1) if Fraction(1, x) < target)
    pairs = sum((target - Fraction(1, x)).numerator == 1 for x in denominators)
    return (
        r"How many pairs $(x, y)$ of positive integers with $x \le y$ satisfy "
        rf"$\frac{{1}}{{x}} + \frac{{1}}{{y}} = {latex(target)}$?",
        str(pairs),
    )


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (largest_or_smallest, neighbor, even_or_odd, place_digit),
    2: (
        simple_remainder,
        next_multiple,
        largest_proper_factor,
        digits_combined,
        small_common_factor,
    ),
    3: (least_common_multiple, common_divisor, prime_sum, count_multiples, largest_prime_factor),
    4: (count_divisors, units_digit, shared_remainder, change_base, missing_digit, make_a_power),
    5: (
        power_remainder,
        power_tower,
        factorial_zeros,
        three_remainders,
        count_coprime,
        count_solutions,
        unit_fractions,
    ),
}
