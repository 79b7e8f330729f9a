r"""When two answers are the same, as far as their structure and exact arithmetic can tell.

Three-valued: True, False, or None where only algebra can say and none is at hand. The process that
verifies asks without algebra; what is left, a worker process asks again with it.

Symmetric but for one thing: a *gold* decimal of three or more digits accepts the endless fraction
that it rounds, while an answer has to give six (`Policies.rounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from priorkit.errors import SettingError
from priorkit.verify.numerals import stands_for
from priorkit.verify.reading import (
    Algebra,
    Answer,
    Based,
    Chain,
    Named,
    Number,
    Quantity,
    Several,
    Tuple,
    Words,
    read,
)
from priorkit.verify.spelling import spelling

Same = bool | None
Leaf = Callable[[str, str], Same]

GOLD_DIGITS, ANSWER_DIGITS = 3, 6


@dataclass(frozen=True, slots=True)
class Policies:
    """What counts as the same where people differ; recorded with every verdict."""

    percent: Literal["either", "exact"] = "either"
    """`either`: 28 % is 0.28 and, where a percentage is asked for, 28; `exact`: 0.28 alone."""
    units: Literal["optional", "required"] = "optional"
    """`optional`: a unit or currency that only one side names is passed over."""
    base: Literal["optional", "required"] = "optional"
    """`optional`: the base of a numeral that only one side names is passed over."""
    rounding: Literal["long", "none"] = "long"
    """`long`: a decimal of six or more digits is what it rounds, and a gold one of three or more
    accepts the endless fraction that it rounds; `none`: only what is exactly equal."""

    def __post_init__(self) -> None:
        known = {"percent": ("either", "exact"), "rounding": ("long", "none")}
        for name in self.__slots__:
            allowed = known.get(name, ("optional", "required"))
            if getattr(self, name) not in allowed:
                raise SettingError(
                    f"policy {name} must be one of {', '.join(allowed)}, "
                    f"got {getattr(self, name)!r}"
                )


def no_algebra(gold: str, answer: str) -> Same:
    """Nobody here can say."""
    return None


def equal(
    gold: str, answer: str, policies: Policies = Policies(), algebra: Leaf = no_algebra
) -> Same:
    r"""Whether an answer is the gold one.

    Args:
        gold: the accepted answer, as text or LaTeX.
        answer: the one given.
        policies: what counts as the same.
        algebra: compares two formulas; None from it leaves the matter open.

    >>> equal(r"\frac{1}{2}", "0.5"), equal("1,-2", "-2, 1"), equal("3", "4")
    (True, True, False)
    >>> equal("(x+1)^2", "x^2+2x+1") is None
    True
    """
    left, right = spelling(gold), spelling(answer)
    if not left or not right:
        return False
    if left.replace(";", ",") == right.replace(";", ","):  # `1, 234` and `1,234` may be either
        return True
    return _Comparison(policies, algebra).same(_read(left), _read(right))


_read = lru_cache(maxsize=4096)(read)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The gold one stands on the left throughout."""

    policies: Policies
    algebra: Leaf

    def same(self, gold: Answer, answer: Answer) -> Same:
        if gold == answer:
            return True
        for kind, compare in _ORDER:
            if isinstance(gold, kind) or isinstance(answer, kind):
                return compare(self, gold, answer)
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self._numbers(gold, answer)
        if isinstance(gold, Tuple) and isinstance(answer, Tuple):
            return self._tuples(gold, answer)
        return self.algebra(_text(gold), _text(answer))

    def _numbers(self, gold: Number, answer: Number) -> bool:
        x, y = gold.numeral, answer.numeral
        if x.value == y.value:
            return True
        if self.policies.rounding == "none":
            return False
        return stands_for(x, y, GOLD_DIGITS) or stands_for(y, x, ANSWER_DIGITS)

    def _quantities(self, gold: Answer, answer: Answer) -> Same:
        (x, unit), (y, other) = _parts(gold), _parts(answer)
        if unit and other:
            return unit == other and self.same(x, y)
        if "percent" in (unit, other):
            return self._percent(x, y, hundredfold=0 if unit else 1)
        return self.policies.units == "optional" and self.same(x, y)

    def _percent(self, gold: Answer, answer: Answer, hundredfold: int) -> Same:
        """One of the two is a percentage: the gold one (0) or the answer (1)."""
        sides = (gold, answer)
        per_cent, plain = sides[hundredfold], sides[1 - hundredfold]
        if (
            isinstance(per_cent, Number)
            and isinstance(plain, Number)
            and per_cent.numeral.value == 100 * plain.numeral.value
        ):
            return True
        return self.policies.percent == "either" and self.same(gold, answer)

    def _named(self, gold: Answer, answer: Answer) -> Same:
        if isinstance(gold, Named) and isinstance(answer, Named):
            if gold.name == answer.name:
                return self.same(gold.value, answer.value)
            return self.algebra(gold.text, answer.text)
        if isinstance(gold, Chain) or isinstance(answer, Chain):
            return self.algebra(_text(gold), _text(answer))
        return self.same(*(s.value if isinstance(s, Named) else s for s in (gold, answer)))

    def _chains(self, gold: Answer, answer: Answer) -> Same:
        """Two equations; or a value, and one worked out that ends with it."""
        if isinstance(gold, Chain) and isinstance(answer, Chain):
            return self.algebra(gold.text, answer.text)
        sides = gold.sides if isinstance(gold, Chain) else answer.sides  # type: ignore[union-attr]
        last = sides[-1]
        ends = self.same(*(last if isinstance(s, Chain) else s for s in (gold, answer)))
        if ends is False:
            return False
        return _all([ends, *(self.same(side, last) for side in sides[:-1])])

    def _several(self, gold: Answer, answer: Answer) -> Same:
        if isinstance(gold, Several) and isinstance(answer, Several):
            if len(gold.items) != len(answer.items):
                return False
            return _matched([[self.same(x, y) for y in answer.items] for x in gold.items])
        lists = [side for side in (gold, answer) if isinstance(side, Several)]
        if len(lists[0].items) == 1:
            return self.same(*(s.items[0] if isinstance(s, Several) else s for s in (gold, answer)))
        other = answer if lists[0] is gold else gold
        return isinstance(other, Algebra) and self.algebra(_text(gold), _text(answer))

    def _words(self, gold: Answer, answer: Answer) -> Same:
        """Spelled alike; a letter of choice may look like a variable."""
        one, other = _text(gold).lower(), _text(answer).lower()
        return one == other and (len(one) == 1 or type(gold) is type(answer))

    def _based(self, gold: Answer, answer: Answer) -> Same:
        if isinstance(gold, Based) and isinstance(answer, Based):
            return gold.base == answer.base and self.same(gold.value, answer.value)
        bare = (side.value if isinstance(side, Based) else side for side in (gold, answer))
        return self.policies.base == "optional" and self.same(*bare)

    def _tuples(self, gold: Tuple, answer: Tuple) -> Same:
        shapes = [(side.opening, side.closing, len(side.items)) for side in (gold, answer)]
        return shapes[0] == shapes[1] and _all(map(self.same, gold.items, answer.items))


_ORDER: tuple[tuple[type, Callable[[_Comparison, Answer, Answer], Same]], ...] = (
    (Quantity, _Comparison._quantities),
    (Named, _Comparison._named),
    (Chain, _Comparison._chains),
    (Several, _Comparison._several),
    (Words, _Comparison._words),
    (Based, _Comparison._based),
)
"""Which kind of answer settles how two are compared, the first that either side is."""


def _parts(answer: Answer) -> tuple[Answer, str | None]:
    return (answer.value, answer.unit) if isinstance(answer, Quantity) else (answer, None)


def _all(found: Iterable[Same]) -> Same:
    known = list(found)
    return False if False in known else None if None in known else True


def _matched(same: Sequence[Sequence[Same]]) -> Same:
    """Whether rows and columns can be paired: surely, in no way, or as algebra will say."""
    if _can_pair([[one is True for one in row] for row in same]):
        return True
    return None if _can_pair([[one is not False for one in row] for row in same]) else False


def _can_pair(fits: Sequence[Sequence[bool]]) -> bool:
    taken: dict[int, int] = {}  # column → row

    def place(row: int, seen: set[int]) -> bool:
        for column in range(len(fits)):
            if fits[row][column] and column not in seen:
                seen.add(column)
                if column not in taken or place(taken[column], seen):
                    taken[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(fits)))


def _text(answer: Answer) -> str:
    """An answer as LaTeX that math-verify reads."""
    if isinstance(answer, Tuple):
        inner = ",".join(map(_text, answer.items))
        return f"{answer.opening}{inner}{answer.closing}"
    if isinstance(answer, Several):
        return ",".join(map(_text, answer.items))
    return _text(answer.value) if isinstance(answer, (Quantity, Based)) else answer.text
