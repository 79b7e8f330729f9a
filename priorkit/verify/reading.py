r"""What an answer consists of: a number, a list, a tuple, a name and its value, words, algebra.

Reads a spelling (`priorkit.verify.spelling`), the outermost structure first. What is left is
`Algebra`, which a computer algebra system compares, or `Words`, which only their spelling makes
equal. Every pass is linear in the text's length, and structure is read `_DEEPEST` levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from priorkit.verify.numerals import Numeral, numeral
from priorkit.verify.units import split_unit


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number."""

    numeral: Numeral
    text: str


@dataclass(frozen=True, slots=True)
class Algebra:
    """A formula that only algebra can compare."""

    text: str


@dataclass(frozen=True, slots=True)
class Words:
    """Prose, a name, or a letter of choice: lower case, single spaces."""

    text: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit, a currency or a percent sign, as `priorkit.verify.units` names it."""

    value: Answer
    unit: str


@dataclass(frozen=True, slots=True)
class Based:
    """Digits in a base."""

    value: Answer
    base: str


@dataclass(frozen=True, slots=True)
class Tuple:
    """Things in order: a point, an interval, a ratio (`:`), a matrix and its rows."""

    opening: str
    items: tuple[Answer, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Several:
    """Things in any order: a list, a set, the pieces of a union."""

    items: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A name and what it equals or lies in."""

    name: str
    value: Answer
    text: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Sides said to be equal: an equation, or a value worked out."""

    sides: tuple[Answer, ...]
    text: str


Answer = Number | Algebra | Words | Quantity | Based | Tuple | Several | Named | Chain

_DEEPEST = 6
_MOST = 100  # parts of one structure; beyond, only the same spelling is the same

_LIST = frozenset([",", ";", r"\text{and}", r"\text{or}", r"\cup", "and", "or"])
_TOKEN = re.compile(
    r"\\text\{(?:and|or)\}|\\begin\{[a-z]*\}|\\end\{[a-z]*\}|\\[A-Za-z]+|\\.|(?: |\b)(?:and|or) |.",
    re.DOTALL,
)
_OPENING = frozenset(["(", "[", "{", r"\{", r"\begin{pmatrix}", r"\begin{array}"])
_CLOSING = frozenset([")", "]", "}", r"\}", r"\end{pmatrix}", r"\end{array}"])

_NAME = re.compile(
    r"(?P<name>\\?[A-Za-z]+(?:_(?:\\?[A-Za-z0-9]+|\{[^{}]*\}))?+ ?'*+(?:\([A-Za-z0-9,]{1,7}\))?+"
    r"|\([A-Za-z](?:,[A-Za-z])++\)|\\text\{[^{}]*\}|\\angle ?[A-Za-z0-9_ ]++)"
    r"\s*+(?:=|:=|\\in(?![A-Za-z])) ?"
)
_ORDER = re.compile(r"[<>]|\\(?:le|ge|ne|approx|equiv|sim|subset|in)(?![A-Za-z])")
_UNREADABLE = re.compile(r"\\(?:dots|vdots|forall|exists)(?![A-Za-z])|[0-9] [0-9]")
_THOUSANDS = re.compile(r",[0-9]{3}(?![0-9])")
_ABOUT = re.compile(r"^(?:\\approx ?|\+)")
_BASE = re.compile(
    r"(?P<digits>[0-9][0-9A-Za-z]*+)_(?:(?P<one>[0-9])|\{(?P<more>[0-9]+|\\text\{[a-z]+\})\})"
)
_LETTER = re.compile(r"(?:\\text\{)?\(?(?:\\text\{)?([A-Za-z])\}?\)?\}?[.:]?")
_MATRIX = re.compile(r"\\begin ?\{(pmatrix|array)\}(.*)\\end ?\{\1\}", re.DOTALL)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_LONG_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_NAMES = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log exp sqrt frac max min gcd lcm "
    "mod det dim ker deg lim sum prod int binom infty"
)
_FUNCTIONS = frozenset(_NAMES.split())


def read(text: str) -> Answer:
    r"""The structure of a spelling.

    >>> type(read("(1,2)")).__name__, type(read("x^2+1")).__name__
    ('Tuple', 'Algebra')
    """
    return _read(text, 0)


def _read(text: str, depth: int) -> Answer:
    text = _ABOUT.sub("", text.strip())
    held = numeral(text)
    if held is not None:
        return Number(held, text)
    if depth <= _DEEPEST and text:
        for attempt in _ATTEMPTS:
            found = attempt(text, depth + 1)
            if found is not None:
                return found
    return Algebra(text)


def _unreadable(text: str, depth: int) -> Answer | None:
    """What goes on unsaid, or holds for all, or is no number: only its own words are the same."""
    return Words(text) if _UNREADABLE.search(text) else None


def _matrix(text: str, depth: int) -> Answer | None:
    match = _MATRIX.fullmatch(text)
    if match is None or r"\begin" in match[2]:
        return None
    rows = [row.split("&") for row in match[2].split(r"\\")]
    if sum(map(len, rows)) > _MOST:
        return Words(text)
    cells = [Tuple("row", tuple(_read(cell, depth) for cell in row), "row") for row in rows]
    return Tuple("matrix", tuple(cells), "matrix")


def _both_signs(text: str, depth: int) -> Answer | None:
    r"""`a \pm b` is both: all signs one way, then all the other way."""
    if (r"\pm" not in text and r"\mp" not in text) or text.startswith(r"\{"):
        return None
    if len(_split(text, _LIST)) > 1:
        return None  # each item on its own
    return _flat([_read(_signed(text, "+", "-"), depth), _read(_signed(text, "-", "+"), depth)])


def _signed(text: str, upper: str, lower: str) -> str:
    text = re.sub(r"\\pm(?![A-Za-z]) ?", upper, text)
    return re.sub(r"\\mp(?![A-Za-z]) ?", lower, text)


def _several(text: str, depth: int) -> Answer | None:
    items = _split(text, _LIST, thousands=True)
    if len(items) > _MOST:
        return Words(text)
    if len(items) < 2:
        whole = _TEXT.fullmatch(text)  # \text{A, B and C}
        return _several(whole[1], depth) if whole and "," in whole[1] else None
    found = [_read(item, depth) for item in items]
    first = found[0]
    if isinstance(first, Named) and not any(isinstance(one, Named) for one in found[1:]):
        return Named(first.name, _flat([first.value, *found[1:]]), text)  # n = 2, 3, 4
    return _flat(found)


def _flat(items: list[Answer]) -> Several:
    out: list[Answer] = []
    for item in items:
        out.extend(item.items if isinstance(item, Several) else [item])
    return Several(tuple(out))


def _named(text: str, depth: int) -> Answer | None:
    match = _NAME.match(text)
    if match is None:
        return None
    value = text[match.end() :]
    if not value or "=" in value or _ORDER.search(value):
        return None  # a chain or a condition
    return Named(match["name"].strip(), _read(value, depth), text)


def _chain(text: str, depth: int) -> Answer | None:
    sides = _split(text, frozenset("="))
    if len(sides) < 2 or _ORDER.search(text):
        return None
    if len(sides) > _MOST:
        return Words(text)
    return Chain(tuple(_read(side, depth) for side in sides), text)


def _set(text: str, depth: int) -> Answer | None:
    if not (text.startswith(r"\{") and text.endswith(r"\}") and len(text) > 4):
        return None
    inner = text[2:-2]
    if r"\{" in inner or "|" in inner or ":" in inner:
        return None  # sets of sets, and those given by a condition
    found = _read(inner, depth)
    return found if isinstance(found, Several) else Several((found,))


def _tuple(text: str, depth: int) -> Answer | None:
    if text[0] not in "([" or text[-1] not in ")]" or not _encloses(text):
        return None
    items = _split(text[1:-1], frozenset(",;"))
    if len(items) > _MOST:
        return Words(text)
    if len(items) > 1:
        return Tuple(text[0], tuple(_read(item, depth) for item in items), text[-1])
    plain = text[0] == "(" and text[-1] == ")" and text[1:-1].strip()
    return _read(text[1:-1], depth) if plain else None


def _ratio(text: str, depth: int) -> Answer | None:
    sides = _split(text, frozenset(":"))
    if not 2 <= len(sides) <= _MOST or text.count(":") != len(sides) - 1:
        return None
    return Tuple(":", tuple(_read(side, depth) for side in sides), ":")


def _letter(text: str, depth: int) -> Answer | None:
    match = _LETTER.fullmatch(text)
    return Words(match[1].lower()) if match and len(text) > 1 else None


def _quantity(text: str, depth: int) -> Answer | None:
    found = split_unit(text)
    if found is None:
        return None
    rest, unit = found
    value = _read(rest, depth)
    return value if isinstance(value, Quantity) else Quantity(value, unit)


def _based(text: str, depth: int) -> Answer | None:
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    held = numeral(match["digits"])
    digits = match["digits"]
    value: Answer = Words(digits.lower()) if held is None else Number(held, digits)
    return Based(value, match["one"] or match["more"])


def _words(text: str, depth: int) -> Answer | None:
    spoken = _TEXT.sub(r" \1 ", text)
    wordy = any(word.lower() not in _FUNCTIONS for word in _LONG_WORD.findall(spoken))
    return Words(" ".join(spoken.lower().split())) if r"\text{" in text or wordy else None


_ATTEMPTS: tuple[Callable[[str, int], Answer | None], ...] = (
    _unreadable, _matrix, _letter, _both_signs, _several, _named, _chain, _set, _tuple, _ratio,
    _quantity, _based, _words,
)  # fmt: skip


def _encloses(text: str) -> bool:
    """Whether the first delimiter is closed by the last one."""
    level = 0
    for place, token in _tokens(text):
        level += (token in _OPENING) - (token in _CLOSING)
        if level == 0:
            return place == len(text) - 1
    return False


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    return ((match.start(), match.group()) for match in _TOKEN.finditer(text))


def _sets_off_thousands(text: str, place: int) -> bool:
    """Whether the comma there stands in a number, which begins with no zero."""
    before = text[max(0, place - 2) : place]
    begins = before[-1:].isdigit() and (before[-1] != "0" or before[:-1].isdigit())
    return begins and _THOUSANDS.match(text, place) is not None


def _split(text: str, separators: frozenset[str], thousands: bool = False) -> list[str]:
    """The parts of a text between separators outside of all delimiters, none of them empty.

    With `thousands`, a comma that sets off three digits separates nothing.
    """
    parts: list[str] = []
    level = begin = 0
    for place, token in _tokens(text):
        if token in _OPENING:
            level += 1
        elif token in _CLOSING:
            level -= 1
        elif level == 0 and token.strip() in separators:
            if thousands and _sets_off_thousands(text, place):
                continue
            parts.append(text[begin:place].strip())
            begin = place + len(token)
    parts.append(text[begin:].strip())
    return [part for part in parts if part]
