"""Everyday: stories of money, time, ages, speeds, shares, work and mixtures."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np

from priorkit.exercises.wording import (
    LOWEST,
    Item,
    Template,
    clock,
    count,
    draw,
    fold,
    latex,
    pick,
    plural,
    several,
)
from priorkit.exercises.words import GOODS, NAMES, THINGS


def gain(rng: np.random.Generator) -> Item:
    """Some things and some more."""
    name, thing, a, b = pick(rng, NAMES), pick(rng, THINGS), draw(rng, 1, 8), draw(rng, 1, 6)
    start = f"{name} has {count(a, thing)} and gets {b} more."
    return f"{start} How many {plural(thing)} does {name} have now?", str(a + b)


def loss(rng: np.random.Generator) -> Item:
    """Some things and some fewer."""
    name, thing, b, left = pick(rng, NAMES), pick(rng, THINGS), draw(rng, 1, 5), draw(rng, 1, 8)
    start = f"{name} has {count(left + b, thing)} and gives away {b}."
    return f"{start} How many {plural(thing)} does {name} have left?", str(left)


def price(rng: np.random.Generator) -> Item:
    """The price of several things."""
    thing, n, each = pick(rng, GOODS), draw(rng, 2, 5), draw(rng, 1, 6)
    start = f"One {thing} costs {count(each, 'dollar')}."
    return f"{start} How many dollars do {n} {plural(thing)} cost?", str(n * each)


def age_later(rng: np.random.Generator) -> Item:
    """An age in a few years."""
    name, age, later = pick(rng, NAMES), draw(rng, 2, 12), draw(rng, 1, 5)
    start = f"{name} is {age} years old."
    return f"{start} How old will {name} be in {count(later, 'year')}?", str(age + later)


def equal_shares(rng: np.random.Generator) -> Item:
    """Things shared equally."""
    people, each, thing = draw(rng, 2, 4), draw(rng, 1, 6), pick(rng, THINGS)
    start = f"{people} children share {people * each} {plural(thing)} equally."
    return f"{start} How many {plural(thing)} does each child get?", str(each)


def change(rng: np.random.Generator) -> Item:
    """The change after buying several things."""
    name, thing, n, each = pick(rng, NAMES), pick(rng, GOODS), draw(rng, 2, 6), draw(rng, 2, 8)
    paid = n * each + draw(rng, 1, 20)
    return (
        f"{name} buys {n} {plural(thing)} for {each} dollars each and pays with {paid} dollars. "
        f"How many dollars does {name} get back?",
        str(paid - n * each),
    )


def boxes_and_rest(rng: np.random.Generator) -> Item:
    """Full boxes less what was used, or with some loose ones."""
    name, thing, n, size = pick(rng, NAMES), pick(rng, THINGS), draw(rng, 3, 8), draw(rng, 4, 12)
    more, less = draw(rng, 2, 9), draw(rng, 2, 9)
    act, total = pick(rng, ((f"finds {more} more", more), (f"gives away {less}", -less)))
    return (
        f"{name} has {n} boxes with {size} {plural(thing)} in each box and {act}. "
        f"How many {plural(thing)} does {name} have now?",
        str(n * size + total),
    )


def two_ages(rng: np.random.Generator) -> Item:
    """The sum of two ages now or in some years."""
    (one, two), age, gap = several(rng, NAMES, 2), draw(rng, 5, 30), draw(rng, 2, 12)
    later = draw(rng, 2, 9)
    return (
        f"{one} is {age} years old. {two} is {gap} years older than {one}. "
        f"What will be the sum of their ages in {later} years?",
        str(2 * age + gap + 2 * later),
    )


def bus_riders(rng: np.random.Generator) -> Item:
    """Riders of a bus after two stops."""
    start, off, on, on2 = draw(rng, 20, 45), draw(rng, 3, 15), draw(rng, 2, 9), draw(rng, 2, 9)
    return (
        f"A bus starts with {start} passengers. At the first stop, {off} passengers get off and "
        f"{on} get on. At the second stop, {on2} get on and nobody gets off. "
        "How many passengers are on the bus now?",
        str(start - off + on + on2),
    )


def two_speeds(rng: np.random.Generator) -> Item:
    """The length of a trip in two parts."""
    v1, v2 = several(rng, range(20, 101, 5), 2)
    t1, t2 = draw(rng, 1, 5), draw(rng, 1, 5)
    return (
        f"A car drives for {count(t1, 'hour')} at {v1} km per hour and then for "
        f"{count(t2, 'hour')} at {v2} km per hour. How many kilometers does it drive in total?",
        str(v1 * t1 + v2 * t2),
    )


def discount(rng: np.random.Generator) -> Item:
    """A price after a percentage off and a coupon."""
    full, percent, coupon = 20 * draw(rng, 2, 15), 5 * draw(rng, 1, 10), draw(rng, 2, 9)
    thing = pick(rng, ("coat", "lamp", "bag", "chair"))
    return (
        f"A {thing} costs {full} dollars. In a sale the price is reduced by {percent}%, and then a "
        f"coupon takes off another {coupon} dollars. What is the final price in dollars?",
        str(full * (100 - percent) // 100 - coupon),
    )


def elapsed_time(rng: np.random.Generator) -> Item:
    """Minutes between two clock times."""
    start, minutes = draw(rng, 6 * 60, 15 * 60), draw(rng, 75, 400)
    what = pick(rng, ("train", "bus", "ferry"))
    return (
        f"A {what} leaves at {clock(start)} and arrives at {clock(start + minutes)} on the same "
        "day (24-hour clock). How many minutes does the trip take?",
        str(minutes),
    )


def shared_in_ratio(rng: np.random.Generator) -> Item:
    """A difference of shares in a given ratio."""
    (one, two), thing = several(rng, NAMES, 2), pick(rng, THINGS)
    a, b = sorted(pick(rng, ((1, 2), (1, 3), (2, 3), (3, 4), (2, 5), (3, 5), (4, 7), (5, 8))))
    k = draw(rng, 3, 15)
    return (
        f"{one} and {two} share {k * (a + b)} {plural(thing)} in the ratio {b} to {a}. "
        f"How many more {plural(thing)} does {one} get than {two}?",
        str(k * (b - a)),
    )


def weeks_of_saving(rng: np.random.Generator) -> Item:
    """How many weeks of saving a purchase takes."""
    name, goal, has = pick(rng, NAMES), draw(rng, 90, 300), draw(rng, 5, 40)
    earns, spends = draw(rng, 15, 30), draw(rng, 2, 9)
    return (
        f"{name} has {has} dollars and wants to buy a bicycle for {goal} dollars. Every week "
        f"{name} earns {earns} dollars and spends {spends} dollars. "
        f"After how many full weeks will {name} first have enough money?",
        str(-(-(goal - has) // (earns - spends))),
    )


def working_together(rng: np.random.Generator) -> Item:
    """The time two workers need together."""
    (one, two), (a, b) = several(rng, NAMES, 2), several(rng, range(2, 13), 2)
    job = pick(rng, ("paint a fence", "clean a hall", "sort the mail"))
    return (
        f"Working alone, {one} needs {a} hours to {job} and {two} needs {b} hours. "
        f"How many hours do they need together at these rates? {LOWEST}",
        latex(Fraction(a * b, a + b)),
    )


def dilution(rng: np.random.Generator) -> Item:
    """How much water weakens a solution, or pure stuff strengthens it."""
    low, high = sorted(several(rng, range(5, 65, 5), 2))
    liters = draw(rng, 4, 24)
    substance = pick(rng, ("alcohol", "acid"))
    if draw(rng, 0, 1):
        before, after, added, other = high, low, "water", low
    else:
        before, after, added, other = low, high, f"pure {substance}", 100 - high
    return (
        f"How many liters of {added} must be added to {liters} liters of a solution that is "
        f"{before}% {substance} by volume to make a solution that is {after}% {substance} by "
        f"volume? {LOWEST}",
        latex(Fraction(liters * (high - low), other)),
    )


def trains_meeting(rng: np.random.Generator) -> Item:
    """When two trains meet, the second of which starts later."""
    v1, v2 = (10 * draw(rng, 4, 12) for _ in range(2))
    head, together = 6 * draw(rng, 2, 9), 6 * draw(rng, 5, 25)
    apart = (v1 * head + (v1 + v2) * together) // 60
    return (
        f"Two towns are {apart} km apart. A train leaves the first town toward the second "
        f"at {v1} km per hour. {head} minutes later another train leaves the second town toward "
        f"the first at {v2} km per hour. How many minutes after the second train starts do "
        "the trains meet?",
        str(together),
    )


# Times as old now, times as old later, the younger age: only cases with a whole number of years.
_AGES_BY_FACTORS = [
    (now, then, age)
    for now in range(3, 8)
    for then in range(2, now)
    for age in range(3, 15)
    if age * (now - then) % (then - 1) == 0 and 24 <= now * age <= 70
]


def ages_by_factors(rng: np.random.Generator) -> Item:
    """Two ages from how many times one is the other at two moments."""
    (old, young), (now, then, age) = several(rng, NAMES, 2), pick(rng, _AGES_BY_FACTORS)
    later = age * (now - then) // (then - 1)
    return (
        f"{old} is {now} times as old as {young}. In {count(later, 'year')}, {old} will be "
        f"{fold(then)} as old as {young} will be then. How old is {old} now?",
        str(age * now),
    )


def there_and_back(rng: np.random.Generator) -> Item:
    """The average speed of a way there and back."""
    v1, v2 = several(rng, range(30, 100, 3), 2)
    name = pick(rng, NAMES)
    return (
        f"{name} drives to a lake at {v1} km per hour and returns along the same road at {v2} km "
        f"per hour. What is the average speed of the whole trip in km per hour? {LOWEST}",
        latex(Fraction(2 * v1 * v2, v1 + v2)),
    )


def drifting_raft(rng: np.random.Generator) -> Item:
    """How long a raft drifts, from a boat's times with and against the stream."""
    down, up = sorted(several(rng, range(2, 16), 2))
    return (
        f"A boat goes down a river from one town to another in {down} hours and needs {up} hours "
        "for the way back, always with the same speed relative to the water. How many hours does "
        f"a raft need to drift from the first town to the second? {LOWEST}",
        latex(Fraction(2 * down * up, up - down)),
    )


def clock_hands(rng: np.random.Generator) -> Item:
    """When the hands of a clock first form an angle after a full hour."""
    hour, angle = draw(rng, 1, 11), 10 * draw(rng, 0, 18)
    turns = (30 * hour + sign * angle + 360 * k for sign in (1, -1) for k in (-1, 0, 1))
    minutes = min(Fraction(2 * turn, 11) for turn in turns if turn > 0)
    shape = "point in the same direction" if angle == 0 else f"form an angle of {angle} degrees"
    return (
        f"How many minutes after {hour} o'clock do the hour hand and the minute hand of a clock "
        f"next {shape}? {LOWEST}",
        latex(minutes),
    )


def repeated_replacement(rng: np.random.Generator) -> Item:
    """What is left after part of a mixture is replaced again and again."""
    size, n = draw(rng, 5, 24), draw(rng, 2, 4)
    out = draw(rng, 2, size // 2)
    return (
        f"A barrel holds {count(size, 'liter')} of pure juice. {count(out, 'liter')} of its "
        f"contents are replaced by water and the barrel is stirred well; this is done {fold(n)} "
        f"in all. How many liters of juice are left in the barrel? {LOWEST}",
        latex(size * Fraction(size - out, size) ** n),
    )


def three_pairs_of_pipes(rng: np.random.Generator) -> Item:
    """One pipe's time from the times of the pairs."""
    a, b, c = (Fraction(1, n) for n in several(rng, (4, 5, 6, 8, 9, 10, 12, 15, 18, 20), 3))
    ab, bc, ca = 1 / (a + b), 1 / (b + c), 1 / (c + a)
    times = [f"${latex(t)}$" for t in (ab, bc, ca)]
    who, value = pick(rng, (("all three pipes together", 1 / (a + b + c)), ("pipe A alone", 1 / a)))
    return (
        f"Three pipes can fill a tank. Pipes A and B together need {times[0]} hours, pipes B and C "
        f"together need {times[1]} hours, and pipes C and A together need {times[2]} hours. "
        f"How many hours does it take {who} to fill the tank? {LOWEST}",
        latex(value),
    )


def grazing_cows(rng: np.random.Generator) -> Item:
    """How long a growing meadow feeds a herd, from two other herds."""
    times = pick(rng, [t for t in combinations(range(3, 16), 3) if lcm(*t) <= 72])
    growth, stock = draw(rng, 2, 15), lcm(*times) * draw(rng, 1, 3)
    herds = [growth + stock // time for time in times]
    first, asked, last = pick(rng, ((0, 1, 2), (0, 2, 1), (1, 0, 2)))
    return (
        "Some grass stands on a meadow and more grows at a constant rate. Every cow eats the same "
        f"amount each week. {herds[first]} cows would clear the meadow in exactly {times[first]} "
        f"weeks, and {herds[last]} cows in exactly {times[last]} weeks. "
        f"In how many weeks would {herds[asked]} cows clear it?",
        str(times[asked]),
    )


def ages_in_the_past(rng: np.random.Generator) -> Item:
    """Two ages from a sentence about when one was as old as the other is."""
    (one, two), times, unit = several(rng, NAMES, 2), draw(rng, 2, 5), draw(rng, 2, 8)
    older, younger = 2 * times * unit, (times + 1) * unit
    who, age = pick(rng, ((one, older), (two, younger)))
    return (
        f"{one} is {fold(times)} as old as {two} was when {one} was as old as {two} is now. "
        f"The sum of their present ages is {older + younger}. How old is {who}?",
        str(age),
    )


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (gain, loss, price, age_later, equal_shares),
    2: (change, boxes_and_rest, two_ages, bus_riders),
    3: (two_speeds, discount, elapsed_time, shared_in_ratio, weeks_of_saving),
    4: (working_together, dilution, trains_meeting, ages_by_factors, there_and_back),
    5: (
        drifting_raft,
        clock_hands,
        repeated_replacement,
        three_pairs_of_pipes,
        grazing_cows,
        ages_in_the_past,
    ),
}
