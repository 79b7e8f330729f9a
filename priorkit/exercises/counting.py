"""Counting and chance: lists, choices, arrangements, paths, probabilities and expectations."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial, perm, prod

import numpy as np

from priorkit.exercises.wording import (
    LOWEST,
    Item,
    Template,
    commas,
    count,
    draw,
    latex,
    listing,
    pick,
    plural,
    several,
)
from priorkit.exercises.words import COLORS, LISTS, NUMBER_WORDS, REPEATING_WORDS, SHORT_WORDS


def letters_in_word(rng: np.random.Generator) -> Item:
    """How many letters a word has."""
    word = pick(rng, SHORT_WORDS)
    asked = pick(rng, ("are in the word {}?", "does the word {} have?")).format(word)
    return f"How many letters {asked}", str(len(word))


def length_of_list(rng: np.random.Generator) -> Item:
    """How many entries a list has."""
    kind = pick(rng, tuple(LISTS))
    n = draw(rng, 2, 7)
    items = commas(several(rng, LISTS[kind], n))
    return f"How many {plural(kind)} are in this list: {items}?", str(n)


def occurrences(rng: np.random.Generator) -> Item:
    """How often a digit occurs in a list."""
    wanted, *others = several(rng, range(1, 10), 4)
    n = draw(rng, 1, 4)
    row = [wanted] * n + others[: draw(rng, 1, 3)]
    items = several(rng, row, len(row))
    return f"How many times does {wanted} appear in this list: {commas(items)}?", str(n)


def two_kinds(rng: np.random.Generator) -> Item:
    """How many things of two kinds there are together."""
    a, b = draw(rng, 2, 9), draw(rng, 2, 9)
    first, second = several(rng, COLORS, 2)
    thing, place = pick(rng, (("ball", "box"), ("marble", "bag"), ("flower", "vase")))
    things = plural(thing)
    return (
        f"A {place} holds {a} {first} {things} and {b} {second} {things}. "
        f"How many {things} are in the {place}?",
        str(a + b),
    )


def outfits(rng: np.random.Generator) -> Item:
    """How many ways to choose one thing of each kind."""
    a, b, c = draw(rng, 2, 6), draw(rng, 3, 7), draw(rng, 2, 4)
    goal, *kinds = pick(
        rng,
        (
            ("a lunch", "sandwich", "drink", "dessert"),
            ("an outfit", "shirt", "hat", "belt"),
            ("a bouquet", "rose", "tulip", "ribbon"),
        ),
    )
    one, two, three = (count(n, kind) for n, kind in zip((a, b, c), kinds, strict=True))
    return (
        f"{goal.capitalize()} is made up of one {kinds[0]}, one {kinds[1]} and one {kinds[2]}. "
        f"There are {one}, {two} and {three} to choose from, all different. "
        "How many different choices are possible?",
        str(a * b * c),
    )


def numbers_between(rng: np.random.Generator) -> Item:
    """How many whole numbers lie in a range."""
    low = draw(rng, 5, 60)
    high = low + draw(rng, 12, 80)
    if draw(rng, 0, 1):
        asked = f"How many whole numbers are there from {low} to {high}, counting both ends?"
        return asked, str(high - low + 1)
    asked = f"How many whole numbers are greater than {low} and less than {high}?"
    return asked, str(high - low - 1)


def posts_in_a_row(rng: np.random.Generator) -> Item:
    """How many posts stand along a line, both ends included."""
    gap, gaps = draw(rng, 2, 9), draw(rng, 5, 20)
    thing = pick(rng, ("tree", "lamp", "fence post", "flag"))
    return (
        f"{plural(thing).capitalize()} stand in a straight row, {gap} meters apart. From the first "
        f"{thing} to the last {thing} it is {gap * gaps} meters. "
        f"How many {plural(thing)} are there?",
        str(gaps + 1),
    )


def two_digit_numbers(rng: np.random.Generator) -> Item:
    """How many two-digit numbers given digits make."""
    digits = sorted(several(rng, range(1, 10), draw(rng, 3, 6)))
    n, different = len(digits), draw(rng, 0, 1)
    rule = "the two digits must be different" if different else "a digit may be used twice"
    return (
        f"How many two-digit numbers can be made with the digits {listing(digits)} if {rule}?",
        str(n * (n - 1) if different else n * n),
    )


def draw_one(rng: np.random.Generator) -> Item:
    """The probability of a color or of another one."""
    numbers = [draw(rng, 2, 12) for _ in range(3)]
    colors = several(rng, COLORS, 3)
    held = listing([f"{n} {color}" for n, color in zip(numbers, colors, strict=True)])
    which, negated = draw(rng, 0, 2), draw(rng, 0, 1)
    chance = Fraction(numbers[which], sum(numbers))
    return (
        f"A bag contains {held} marbles. One marble is drawn at random. What is the probability "
        f"that it is {'not ' * negated}{colors[which]}? "
        "Give your answer as a fraction in lowest terms.",
        latex(1 - chance if negated else chance),
    )


def all_pairs(rng: np.random.Generator) -> Item:
    """How many pairs a group has."""
    n = draw(rng, 6, 25)
    asked, times = pick(
        rng,
        (
            (f"{n} people all shake hands with each other once. How many handshakes is that?", 1),
            (f"In a league of {n} teams, each team plays every other team twice. "
             "How many games are played in total?", 2),
            (f"{n} points lie on a circle. How many line segments join two of these points?", 1),
        ),
    )  # fmt: skip
    return asked, str(times * n * (n - 1) // 2)


def first_places(rng: np.random.Generator) -> Item:
    """How many ways the first places of a race can be filled."""
    n, places = draw(rng, 4, 14), draw(rng, 2, 4)
    sport = pick(rng, ("runner", "swimmer", "cyclist"))
    return (
        f"{n} {plural(sport)} take part in a race without ties. "
        f"In how many different ways can the first {NUMBER_WORDS[places]} places be filled?",
        str(perm(n, places)),
    )


def in_neither(rng: np.random.Generator) -> Item:
    """How many belong to neither of two overlapping groups."""
    only_a, only_b, both, neither = (draw(rng, 3, 14) for _ in range(4))
    a, b = pick(rng, (("play chess", "sing"), ("swim", "dance"), ("speak French", "speak Spanish")))
    return (
        f"In a group of {only_a + only_b + both + neither} students, {only_a + both} {a}, "
        f"{only_b + both} {b} and {both} do both. How many students do neither?",
        str(neither),
    )


def two_dice(rng: np.random.Generator) -> Item:
    """The probability of a sum of two dice."""
    relation = pick(rng, ("exactly", "at least", "at most"))
    target = draw(rng, 3, 11)
    sums = [a + b for a, b in product(range(1, 7), repeat=2)]
    hits = {
        "exactly": sums.count(target),
        "at least": sum(s >= target for s in sums),
        "at most": sum(s <= target for s in sums),
    }[relation]
    return (
        "Two fair six-sided dice are rolled. What is the probability that the sum of the two "
        f"numbers is {relation} {target}? Give your answer as a fraction in lowest terms.",
        latex(Fraction(hits, 36)),
    )


def rearranged_word(rng: np.random.Generator) -> Item:
    """How many arrangements a word with repeated letters has."""
    word = pick(rng, REPEATING_WORDS)
    ways = factorial(len(word)) // prod(factorial(word.count(letter)) for letter in set(word))
    return f"In how many distinct ways can the letters of the word {word} be arranged?", str(ways)


def mixed_committee(rng: np.random.Generator) -> Item:
    """How many committees have a given number of each kind."""
    a, b = draw(rng, 4, 8), draw(rng, 4, 9)
    size, least = draw(rng, 3, 5), draw(rng, 1, 2)
    relation = pick(rng, ("exactly", "at least"))
    counts = [comb(a, k) * comb(b, size - k) for k in range(size + 1)]
    answer = counts[least] if relation == "exactly" else sum(counts[least:])
    one, two = pick(rng, (("teacher", "parent"), ("doctor", "nurse"), ("writer", "painter")))
    return (
        f"A committee of {size} people is chosen from {a} {plural(one)} and {b} {plural(two)}. "
        f"How many different committees include {relation} {count(least, one)}?",
        str(answer),
    )


def same_color(rng: np.random.Generator) -> Item:
    """The probability that two drawn things agree in color."""
    numbers = [draw(rng, 2, 9) for _ in range(draw(rng, 2, 3))]
    colors = several(rng, COLORS, len(numbers))
    held = listing([f"{n} {color}" for n, color in zip(numbers, colors, strict=True)])
    alike = Fraction(sum(comb(n, 2) for n in numbers), comb(sum(numbers), 2))
    wish, chance = pick(rng, (("the same color", alike), ("different colors", 1 - alike)))
    return (
        f"A box contains {held} socks. Two socks are drawn at random without replacement. "
        f"What is the probability that they have {wish}? "
        "Give your answer as a fraction in lowest terms.",
        latex(chance),
    )


def paths_through(rng: np.random.Generator) -> Item:
    """How many grid paths pass through a point."""
    a, b = draw(rng, 1, 4), draw(rng, 1, 4)
    m, n = a + draw(rng, 1, 4), b + draw(rng, 1, 4)
    return (
        f"A path on the grid goes from $(0, 0)$ to $({m}, {n})$. Each step moves one unit to the "
        f"right or one unit up. How many such paths pass through the point $({a}, {b})$?",
        str(comb(a + b, a) * comb(m + n - a - b, m - a)),
    )


def different_digits(rng: np.random.Generator) -> Item:
    """How many even or odd numbers with different digits some digits make."""
    top, length, odd = draw(rng, 4, 8), draw(rng, 3, 4), draw(rng, 0, 1)
    found = sum(p[0] != 0 and p[-1] % 2 == odd for p in permutations(range(top + 1), length))
    return (
        f"How many {'odd' if odd else 'even'} {NUMBER_WORDS[length]}-digit numbers with all digits "
        f"different can be formed from the digits {commas(range(top + 1))}? "
        "A number cannot begin with 0.",
        str(found),
    )


def union_of_multiples(rng: np.random.Generator) -> Item:
    """How many numbers are multiples of one, or of exactly one, of three."""
    bound, steps = draw(rng, 300, 1500), sorted(several(rng, (4, 5, 6, 7, 9, 10, 11, 15), 3))
    hits = [sum(n % step == 0 for step in steps) for n in range(1, bound + 1)]
    relation, wanted = pick(
        rng, (("at least one", {1, 2, 3}), ("exactly one", {1}), ("exactly two", {2}))
    )
    return (
        f"How many integers from 1 to {bound}, inclusive, are divisible by {relation} of the "
        f"numbers {listing(steps)}?",
        str(sum(h in wanted for h in hits)),
    )


def kept_apart(rng: np.random.Generator) -> Item:
    """How many seatings keep the members of one group apart."""
    many, round_table = draw(rng, 3, 6), draw(rng, 0, 1)
    few = min(many, draw(rng, 2, 4))
    whom, apart = pick(rng, (("boy", "girl"), ("teacher", "student"), ("parent", "child")))
    chairs = count(many + few, "chair")
    where = f"around a round table with {chairs}" if round_table else f"on {chairs} in a row"
    rule = " Seatings that differ only by a rotation count as one." if round_table else ""
    gaps = many if round_table else many + 1
    ways = factorial(many) // (many if round_table else 1) * perm(gaps, few)
    return (
        f"In how many ways can {many} {plural(whom)} and {few} {plural(apart)} sit {where} "
        f"so that no two {plural(apart)} are next to each other?{rule}",
        str(ways),
    )


def paths_avoiding(rng: np.random.Generator) -> Item:
    """How many grid paths avoid two points."""
    m, n = draw(rng, 4, 8), draw(rng, 4, 8)
    first, second = several(rng, list(product(range(1, m), range(1, n))), 2)
    ways = {(0, 0): 1}
    for x, y in list(product(range(m + 1), range(n + 1)))[1:]:
        before = ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
        ways[x, y] = 0 if (x, y) in (first, second) else before
    return (
        f"A path on the grid goes from $(0, 0)$ to $({m}, {n})$. Each step moves one unit to the "
        f"right or one unit up. How many such paths pass through neither ${first}$ nor "
        f"${second}$?",
        str(ways[m, n]),
    )


def bounded_sharing(rng: np.random.Generator) -> Item:
    """How many ways to share identical things within bounds."""
    children, low = draw(rng, 3, 4), draw(rng, 0, 2)
    high = low + draw(rng, 3, 6)
    total = draw(rng, children * low + high - low + 1, children * high - 3)
    shares = product(range(low, high + 1), repeat=children)
    ways = sum(sum(share) == total for share in shares)
    least = f"at least {low} and " if low else ""
    return (
        f"In how many ways can {total} identical candies be shared among {children} "
        f"children so that each child gets {least}at most {high} candies?",
        str(ways),
    )


def expected_extreme(rng: np.random.Generator) -> Item:
    """The expected extreme of drawn tickets or rolled dice."""
    largest = draw(rng, 0, 1)
    if draw(rng, 0, 1):
        n, k = draw(rng, 8, 40), draw(rng, 2, 5)
        start = f"A box contains tickets numbered from 1 to {n}. {k} tickets are drawn at random "
        start += "without replacement."
        least = Fraction(n + 1, k + 1)
        value, what = (k * least if largest else least), "number drawn"
    else:
        n, k = pick(rng, (4, 6, 8, 10, 12, 20)), draw(rng, 2, 3)
        start = f"{k} fair dice, each with faces numbered from 1 to {n}, are rolled."
        least = sum((Fraction(n - j, n) ** k for j in range(n)), Fraction(0))
        value, what = (n + 1 - least if largest else least), "number rolled"
    of_two, of_more = ("larger", "largest") if largest else ("smaller", "smallest")
    word = of_two if k == 2 else of_more
    return (
        f"{start} What is the expected value of the {word} {what}? {LOWEST}",
        latex(value),
    )


def no_run_of_a(rng: np.random.Generator) -> Item:
    """How many strings have no long run of one letter."""
    letters, n, run = "ABCD"[: draw(rng, 2, 4)], draw(rng, 5, 10), draw(rng, 2, 3)
    ending = [1] + [0] * (run - 1)  # strings so far by how many A's they end with
    for _ in range(n):
        ending = [(len(letters) - 1) * sum(ending), *ending[:-1]]
    return (
        f"How many strings of {n} letters, each of them {listing(letters, 'or')}, "
        f"do not contain {NUMBER_WORDS[run]} A's in a row?",
        str(sum(ending)),
    )


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (letters_in_word, length_of_list, occurrences, two_kinds),
    2: (outfits, numbers_between, posts_in_a_row, two_digit_numbers),
    3: (draw_one, all_pairs, first_places, in_neither, two_dice),
    4: (rearranged_word, mixed_committee, same_color, paths_through, different_digits),
    5: (
        union_of_multiples,
        kept_apart,
        paths_avoiding,
        bounded_sharing,
        expected_extreme,
        no_run_of_a,
    ),
}
