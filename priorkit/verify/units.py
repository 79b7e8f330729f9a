r"""Units, currencies and per cent at the edge of a value: split off, in one spelling.

A word counts as a unit when it stands in `\text{}`, when a number and a space come before it and it
has four letters or more, or when it is one of `KNOWN`: `3 xy` is a product, `3 cm` is a length.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from priorkit.verify.spelling import DOLLAR

_LONGEST = 80  # characters

_SHORT = (
    "mm cm km nm um in ft yd mi mg kg lb lbs oz ml sec secs min mins hr hrs ms hz khz mhz kw kj "
    "kpa mph kph deg rad usd cents cent sq cu am pm a.m. p.m. day days year years week weeks unit "
    "units dollar dollars percent degree degrees"
)
KNOWN = frozenset(_SHORT.split())
"""Units of two or three letters, and those that may follow a number without a space. One letter is
a variable unless it stands in `\\text{}`."""

_ALIAS = MappingProxyType(
    {
        "sq": "square", "squared": "square", "cu": "cubic", "cubed": "cubic", "usd": "dollar",
        "centimeter": "cm", "centimetre": "cm", "meter": "m", "metre": "m", "kilometer": "km",
        "kilometre": "km", "millimeter": "mm", "inches": "inch", "in": "inch", "feet": "foot",
        "ft": "foot", "hr": "hour", "hrs": "hour", "h": "hour", "min": "minute", "mins": "minute",
        "sec": "second", "secs": "second", "s": "second", "deg": "degree", "lb": "pound",
        "lbs": "pound", "oz": "ounce", "kilogram": "kg", "gram": "g", "liter": "l", "litre": "l",
        "yd": "yard", "mi": "mile", "bucks": "dollar",
    }
)  # fmt: skip
_MATHS = "pi sqrt sin cos tan cot sec csc log ln exp mod and or if for where"
_NO_UNITS = frozenset(_MATHS.split())

_MONEY = re.compile(
    rf"(?P<sign>[+-]?)(?P<currency>(?:US|us)?{DOLLAR}|[\u20ac\u00a3]) ?"
    r"(?=[-+]?(?:[0-9.]|\\frac))"
)
_SPOKEN = re.compile(
    r"\\text\{(?P<words>[A-Za-z][A-Za-z .,\-/]*+)\}"
    r"(?:\^(?P<power>\{?-?[0-9]\}?)|(?P<per>/\\text\{[A-Za-z]+\}(?:\^\{?-?[0-9]\}?)?))? ?$"
)
_SIGN = re.compile(r"(?:\^\\circ ?(?:\\text\{)?(?P<scale>[CFK]?)\}?|(?P<percent>%)) ?$")
_BARE = re.compile(
    r"(?<=[0-9})])(?P<gap> ?)(?P<words>[A-Za-z][A-Za-z.]*+(?:[ /\-][A-Za-z][A-Za-z.]*+){0,5})"
    r"(?:\^(?P<power>[23]))?$"
)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def split_unit(text: str) -> tuple[str, str] | None:
    r"""The value and the unit of a spelling, or None when it has no unit or nothing else.

    >>> split_unit("\u00a418.90"), split_unit(r"5\text{cm}^2"), split_unit("3 xy")
    (('18.90', 'dollar'), ('5', 'square cm'), None)
    """
    money = _MONEY.match(text)
    if money:
        return money["sign"] + text[money.end() :].strip(), _currency(money["currency"])
    begin = max(0, len(text) - _LONGEST)
    for pattern, unit_of in ((_SIGN, _sign), (_SPOKEN, _spoken), (_BARE, _bare)):
        match = pattern.search(text, begin)
        if match:
            found, rest = unit_of(match), text[: match.start()].strip()
            return (rest, found) if found and rest and rest[-1] not in "+-=<>^_\\/(," else None
    return None


def _currency(sign: str) -> str:
    return "dollar" if DOLLAR in sign else "euro" if "\u20ac" in sign else "pound"


def _spoken(match: re.Match[str]) -> str | None:
    if match["words"].split()[0].lower() in ("and", "or"):
        return None
    return _plain(match["words"] + _TEXT.sub(r"\1", match["per"] or ""), match["power"])


def _sign(match: re.Match[str]) -> str:
    return "percent" if match["percent"] else f"degree {match['scale'].lower()}".strip()


def _bare(match: re.Match[str]) -> str | None:
    first = match["words"].split()[0].lower().rstrip(".")
    known = first in KNOWN
    if first in _NO_UNITS or not (known or (match["gap"] and len(first) >= 4)):
        return None
    return _plain(match["words"], match["power"])


def _plain(words: str, power: str | None) -> str:
    """A unit in one spelling: singular words, `square` or `cubic` for a power."""
    said = words.lower().replace(".", "").replace("-", " ").replace(",", " ")
    parts = [_singular(word) for word in said.replace("/", " per ").split()]
    raised = {"2": ["square"], "3": ["cubic"]}.get((power or "").strip("{}"), [])
    return " ".join(sorted([*raised, *parts], key=lambda word: word not in ("square", "cubic")))


def _singular(word: str) -> str:
    plain = _ALIAS.get(word, word)
    if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss"):
        plain = plain[:-1]
    return _ALIAS.get(plain, plain)
