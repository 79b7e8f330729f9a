"""Geometry: lengths, areas, angles, circles, coordinates and similar triangles."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt

import numpy as np

from priorkit.exercises.wording import (
    LOWEST,
    Item,
    Template,
    count,
    draw,
    draw_nonzero,
    latex,
    listing,
    pi_times,
    pick,
    plural,
    radical,
    several,
)

RIGHT_TRIANGLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41))
# Sides of triangles with whole areas and no right angle.
HERON_TRIANGLES = (
    (13, 14, 15), (4, 13, 15), (5, 5, 6), (10, 13, 13), (9, 10, 17), (11, 13, 20), (7, 15, 20),
    (12, 17, 25), (13, 20, 21), (10, 17, 21), (17, 25, 28), (13, 37, 40), (25, 29, 36), (8, 29, 35),
)  # fmt: skip
SHAPES = {"triangle": 3, "square": 4, "pentagon": 5, "hexagon": 6}


def end_to_end(rng: np.random.Generator) -> Item:
    """Two lengths laid end to end."""
    a, b = draw(rng, 1, 9), draw(rng, 2, 9)
    thing = pick(rng, ("stick", "rope", "ribbon"))
    return (
        f"A {thing} of {a} cm and a {thing} of {b} cm are laid end to end. "
        "How long are they together in cm?",
        str(a + b),
    )


def number_line(rng: np.random.Generator) -> Item:
    """A distance on the number line."""
    low, gap = draw(rng, 1, 10), draw(rng, 1, 9)
    return f"On a number line, how far is it from {low} to {low + gap}?", str(gap)


def regular_perimeter(rng: np.random.Generator) -> Item:
    """The perimeter of a square or an equilateral triangle."""
    shape, sides = pick(rng, (("square", 4), ("triangle", 3)))
    side = draw(rng, 1, 10)
    asked = pick(rng, ("What is its perimeter", "How long is the way around it"))
    return f"Each side of a {shape} is {side} cm long. {asked} in cm?", str(sides * side)


def rectangle_area(rng: np.random.Generator) -> Item:
    """The area of a small rectangle."""
    b = draw(rng, 1, 5)
    a = b + draw(rng, 1, 4)
    size = f"{a} units long and {count(b, 'unit')} wide"
    return f"A rectangle is {size}. What is its area in square units?", str(a * b)


def sides_of_shapes(rng: np.random.Generator) -> Item:
    """The sides or corners of a few shapes."""
    shape, n = pick(rng, tuple(SHAPES)), draw(rng, 1, 4)
    part = pick(rng, ("side", "corner"))
    if n == 1:
        return f"How many {plural(part)} does a {shape} have?", str(SHAPES[shape])
    return f"How many {plural(part)} do {n} {plural(shape)} have in total?", str(n * SHAPES[shape])


def missing_width(rng: np.random.Generator) -> Item:
    """The width of a rectangle from its length and its area or perimeter."""
    width = draw(rng, 2, 12)
    length = width + draw(rng, 1, 9)
    if draw(rng, 0, 1):
        known = f"a perimeter of {2 * (length + width)} cm"
    else:
        known = f"an area of {length * width} square cm"
    return (
        f"A rectangle has {known} and a length of {length} cm. What is its width in cm?",
        str(width),
    )


def third_angle(rng: np.random.Generator) -> Item:
    """The third angle of a triangle."""
    a, b = draw(rng, 20, 85), draw(rng, 20, 85)
    return (
        f"Two angles of a triangle are {a} degrees and {b} degrees. "
        "How many degrees is the third angle?",
        str(180 - a - b),
    )


def triangle_area(rng: np.random.Generator) -> Item:
    """The area of a triangle from base and height."""
    base, height = draw(rng, 3, 20), 2 * draw(rng, 2, 9)
    return (
        f"A triangle has a base of {base} cm and a height of {height} cm. "
        "What is its area in square cm?",
        str(base * height // 2),
    )


def box_volume(rng: np.random.Generator) -> Item:
    """The volume of a box."""
    a, b, c = (draw(rng, 2, 9) for _ in range(3))
    return (
        f"A box is {a} cm long, {b} cm wide and {c} cm high. What is its volume in cubic cm?",
        str(a * b * c),
    )


def right_triangle_side(rng: np.random.Generator) -> Item:
    """The missing side of a right triangle with whole sides."""
    k = draw(rng, 1, 6)
    a, b, c = (k * side for side in pick(rng, RIGHT_TRIANGLES))
    if draw(rng, 0, 1):
        return (
            f"The legs of a right triangle are {a} cm and {b} cm long. "
            "How long is the hypotenuse in cm?",
            str(c),
        )
    return (
        f"The hypotenuse of a right triangle is {c} cm long and one leg is {a} cm long. "
        "How long is the other leg in cm?",
        str(b),
    )


def path_around(rng: np.random.Generator) -> Item:
    """The area of a path around a rectangle."""
    a, b, wide = draw(rng, 8, 25), draw(rng, 5, 18), draw(rng, 1, 3)
    return (
        f"A rectangular lawn measures {a} meters by {b} meters. A path {count(wide, 'meter')} wide "
        "runs all the way around the outside of it, with square corners. "
        "What is the area of the path in square meters?",
        str((a + 2 * wide) * (b + 2 * wide) - a * b),
    )


def polygon_angles(rng: np.random.Generator) -> Item:
    """Sides and angles of a polygon."""
    if draw(rng, 0, 1):
        n = draw(rng, 5, 24)
        asked = f"What is the sum of the interior angles of a convex polygon with {n} sides"
        return f"{asked}, in degrees?", str(180 * (n - 2))
    n = pick(rng, [n for n in range(5, 41) if 360 % n == 0])
    kind, angle = pick(rng, (("exterior", 360 // n), ("interior", 180 - 360 // n)))
    asked = f"Each {kind} angle of a regular polygon measures {angle} degrees."
    return f"{asked} How many sides does the polygon have?", str(n)


def circle_in_pi(rng: np.random.Generator) -> Item:
    """The area or circumference of a circle in terms of pi."""
    r = draw(rng, 3, 20)
    given = pick(rng, (f"radius {r}", f"diameter {2 * r}"))
    what, times = pick(rng, (("area", r * r), ("circumference", 2 * r)))
    return (
        rf"What is the {what} of a circle with {given}? Give your answer in terms of $\pi$.",
        pi_times(times),
    )


def midpoint(rng: np.random.Generator) -> Item:
    """The midpoint of a segment, or its other end."""
    x, y, dx, dy = (draw_nonzero(rng, 9) for _ in range(4))
    a, b = f"({x - dx}, {y - dy})", f"({x + dx}, {y + dy})"
    if draw(rng, 0, 1):
        asked = f"What is the midpoint of the segment from ${a}$ to ${b}$?"
        answer = f"({x}, {y})"
    else:
        asked = f"$M = ({x}, {y})$ is the midpoint of segment $AB$, and $A = {a}$. Find $B$."
        answer = b
    return f"{asked} Give your answer as an ordered pair.", answer


def distance(rng: np.random.Generator) -> Item:
    """A distance between points with an irrational value."""
    x, y, dx, dy = draw(rng, -6, 6), draw(rng, -6, 6), draw_nonzero(rng, 12), draw_nonzero(rng, 12)
    dx += isqrt(dx * dx + dy * dy) ** 2 == dx * dx + dy * dy
    return (
        f"What is the distance between the points $({x}, {y})$ and $({x + dx}, {y + dy})$? "
        "Give your answer in simplest radical form.",
        radical(dx * dx + dy * dy),
    )


def parallel_cut(rng: np.random.Generator) -> Item:
    """A side of a triangle cut off by a parallel line."""
    ad, db, bc = draw(rng, 2, 12), draw(rng, 2, 12), draw(rng, 6, 30)
    return (
        "In triangle $ABC$, point $D$ lies on $AB$ and point $E$ lies on $AC$ so that $DE$ is "
        f"parallel to $BC$. If $AD = {ad}$, $DB = {db}$ and $BC = {bc}$, what is $DE$? " + LOWEST,
        latex(Fraction(ad * bc, ad + db)),
    )


def sector_area(rng: np.random.Generator) -> Item:
    """The area or arc length of a sector."""
    r, angle = draw(rng, 3, 15), 15 * pick(rng, (2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 16, 20))
    part = Fraction(angle, 360)
    what, times = pick(rng, (("area of", part * r * r), ("length of the arc of", part * 2 * r)))
    return (
        f"What is the {what} a sector with radius {r} and a central angle of {angle} degrees? "
        r"Give your answer in terms of $\pi$.",
        pi_times(times),
    )


def circle_equation(rng: np.random.Generator) -> Item:
    """The center or radius of a circle from its expanded equation."""
    a, b, r = draw_nonzero(rng, 9), draw_nonzero(rng, 9), draw(rng, 2, 12)
    rest = a * a + b * b - r * r
    terms = [(-2 * a, "x"), (-2 * b, "y"), *([(rest, "")] if rest else [])]
    tail = "".join(f" {'+-'[k < 0]} {abs(k)}{letter}" for k, letter in terms)
    circle = f"the circle $x^2 + y^2{tail} = 0$"
    if draw(rng, 0, 1):
        return f"What is the radius of {circle}?", str(r)
    return f"What is the center of {circle}? Give your answer as an ordered pair.", f"({a}, {b})"


def surd_area(rng: np.random.Generator) -> Item:
    """The area of an equilateral triangle or a regular hexagon."""
    half = draw(rng, 2, 20)
    shape, times = pick(rng, (("an equilateral triangle", 1), ("a regular hexagon", 6)))
    return (
        f"What is the area of {shape} with side length {2 * half}? "
        "Give your answer in simplest radical form.",
        radical(3, times * half * half),
    )


def heron_triangle(rng: np.random.Generator) -> Item:
    """A radius or an altitude of a triangle with whole sides and area."""
    k = draw(rng, 1, 3)
    a, b, c = (k * side for side in pick(rng, HERON_TRIANGLES))
    s = (a + b + c) // 2
    area = isqrt(s * (s - a) * (s - b) * (s - c))
    what, value = pick(
        rng,
        (
            ("the radius of its inscribed circle", Fraction(area, s)),
            ("the radius of its circumscribed circle", Fraction(a * b * c, 4 * area)),
            ("the length of its shortest altitude", Fraction(2 * area, max(a, b, c))),
        ),
    )
    return (
        f"A triangle has sides of length {listing((a, b, c))}. What is {what}? " + LOWEST,
        latex(value),
    )


def lattice_points(rng: np.random.Generator) -> Item:
    """How many lattice points lie strictly inside a triangle, by Pick's theorem."""
    a, b, d = draw(rng, 6, 20), draw(rng, 1, 8), draw(rng, 6, 18)
    c = b + draw(rng, 1, 9)
    doubled = a * d - b * c
    edge = gcd(a, b) + gcd(c, d) + gcd(a - c, b - d)
    if doubled <= edge:
        return lattice_points(rng)
    return (
        "How many points with integer coordinates lie strictly inside the triangle with vertices "
        f"$(0, 0)$, $({a}, {b})$ and $({c}, {d})$?",
        str((doubled - edge) // 2 + 1),
    )


def common_tangent(rng: np.random.Generator) -> Item:
    """The length of a common tangent of two circles."""
    r, s = sorted(several(rng, range(2, 12), 2))
    apart = r + s + draw(rng, 1, 9)
    side, reach = pick(rng, (("the same side", s - r), ("opposite sides", s + r)))
    return (
        f"Two circles have radii {r} and {s}, and their centers are {apart} apart. A line is "
        f"tangent to both circles, with the circles on {side} of it. What is the distance between "
        "the two points of tangency? Give an integer or an expression in simplest radical form.",
        radical(apart * apart - reach * reach),
    )


def shortest_touching_path(rng: np.random.Generator) -> Item:
    """The shortest path between two points by way of the x-axis."""
    x, a, b, dx = draw(rng, -5, 5), draw(rng, 1, 9), draw(rng, 1, 9), draw(rng, 2, 14)
    return (
        f"An ant walks in the plane from $({x}, {a})$ to some point of the $x$-axis and from there "
        f"to $({x + dx}, {b})$. What is the least possible length of its path? "
        "Give an integer or an expression in simplest radical form.",
        radical(dx * dx + (a + b) ** 2),
    )


def square_in_triangle(rng: np.random.Generator) -> Item:
    """The side of a square inscribed in a right triangle."""
    k = draw(rng, 1, 4)
    a, b, c = (k * side for side in pick(rng, RIGHT_TRIANGLES))
    place, side = pick(
        rng,
        (
            ("has one corner at the right angle and the opposite corner", Fraction(a * b, a + b)),
            ("has one side", Fraction(a * b * c, a * b + c * c)),
        ),
    )
    rest = "" if "corner" in place else " and one corner on each leg"
    return (
        f"A square inscribed in a right triangle with legs {a} and {b} {place} on the "
        f"hypotenuse{rest}. What is the side length of the square? " + LOWEST,
        latex(side),
    )


def crossing_cevians(rng: np.random.Generator) -> Item:
    """The ratio in which one cevian cuts another, by mass points."""
    p, q = several(rng, range(1, 7), 2)
    r, s = several(rng, range(1, 7), 2)
    return (
        "In triangle $ABC$, point $D$ lies on $BC$ with "
        f"$BD : DC = {p} : {q}$, and point $E$ lies on $CA$ with $CE : EA = {r} : {s}$. "
        r"Segments $AD$ and $BE$ meet at $P$. Find $\frac{AP}{PD}$ "
        "as an integer or a fraction in lowest terms.",
        latex(Fraction(s * (p + q), p * r)),
    )


TEMPLATES: dict[int, tuple[Template, ...]] = {
    1: (end_to_end, number_line, regular_perimeter, rectangle_area, sides_of_shapes),
    2: (missing_width, third_angle, triangle_area, box_volume),
    3: (right_triangle_side, path_around, polygon_angles, circle_in_pi, midpoint),
    4: (distance, parallel_cut, sector_area, circle_equation, surd_area),
    5: (
        heron_triangle,
        lattice_points,
        common_tangent,
        shortest_touching_path,
        square_in_triangle,
        crossing_cevians,
    ),
}
