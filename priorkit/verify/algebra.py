r"""Whether two formulas are equal, by computer algebra: math-verify reads, sympy computes.

Formulas are compared where they have values: at fixed points, to many digits. That is symmetric,
knows no absolute rounding (1/2004! is not 1/2006!), and asks nothing to be simplified. Equations,
inequalities and sets are left to math-verify.

Everything here may run for ever or eat all memory on a hostile answer: only a worker process
(`priorkit.verify.worker`) calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify  # type: ignore[import-untyped, unused-ignore]

from priorkit.verify.numerals import numeral

_READING = (LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False),)
_DIGITS = 50  # computed
_AGREE = sympy.Float("1e-30", 50)  # relative
_POINTS = 5
_ENOUGH = 3
_COUNTING = frozenset("ijkmn")  # letters that stand for whole numbers as a rule


def algebraically_equal(gold: str, answer: str) -> bool:
    """True when both can be read and are the same; what cannot be read is unequal.

    Raises:
        MemoryError: the process's memory limit was met.
    """
    try:
        left, right = _parsed(gold), _parsed(answer)
        if left is None or right is None:
            return False
        return _same(left, right, gold, answer)
    except MemoryError:
        raise
    except Exception:  # what sympy cannot compare raises anything at all
        return False


def _same(left: Any, right: Any, gold: str, answer: str) -> bool:
    if isinstance(left, sympy.Eq) and isinstance(right, sympy.Eq):
        return _same_equation(left, right)
    if isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr):
        if left.free_symbols or right.free_symbols:
            return _same_function(left, right)
        return _same_number(left, right, gold, answer)
    if isinstance(left, sympy.Eq) or isinstance(right, sympy.Eq):
        return False  # an equation is no value, and no set of solutions either
    return any(
        verify(one, other, allow_set_relation_comp=True, timeout_seconds=None, raise_on_error=True)
        for one, other in ((left, right), (right, left))
    )


def _same_number(left: Any, right: Any, gold: str, answer: str) -> bool:
    x, y = _value(left), _value(right)
    if x is None or y is None:
        return False
    if _close(x, y):
        return True
    return _rounds(gold, y, least=3) or _rounds(answer, x, least=6)


def _rounds(text: str, value: Any, least: int) -> bool:
    """Whether a decimal of so many significant digits stands for a value that has no end."""
    held = numeral(text)
    if held is None or held.decimals is None or held.digits < least or held.decimals < 1:
        return False
    if value.is_real is False or value == int(value) or numeral(str(value)) is None:
        return False
    half = sympy.Rational(1, 2 * 10**held.decimals)
    return bool(abs(value - sympy.Rational(held.value)) <= half)


def _same_function(left: Any, right: Any) -> bool:
    left, right = _worked_out(left), _worked_out(right)
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    agreed = _agreements(left, right, _points(symbols))
    if agreed is False and any(symbol.name in _COUNTING for symbol in symbols):
        agreed = _agreements(left, right, _whole_points(symbols))
    return bool(agreed)


def _agreements(left: Any, right: Any, points: Iterable[dict[Any, Any]]) -> bool | None:
    """Whether both have equal values at enough points; None where they have too few values."""
    met = 0
    for point in points:
        x, y = _value(left.subs(point)), _value(right.subs(point))
        if x is None or y is None:
            continue
        positive = all(value > 0 for value in point.values())
        if not _close(x, y):
            if positive or (x.is_real and y.is_real):
                return False
            continue  # beyond where a person means them
        met += positive
    return met >= _ENOUGH or None


def _same_equation(left: Any, right: Any) -> bool:
    """Whether the sides' differences are a constant multiple of each other."""
    one, other = left.lhs - left.rhs, right.lhs - right.rhs
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    if not symbols:
        return False
    ratio = None
    met = 0
    for point in _points(symbols):
        x, y = _value(one.subs(point)), _value(other.subs(point))
        if x is None or y is None or x == 0 or y == 0:
            if x == 0 and y == 0:
                continue
            return False
        if ratio is not None and not _close(x / y, ratio):
            return False
        ratio, met = x / y, met + 1
    return met >= _ENOUGH


def _points(symbols: Sequence[Any]) -> Iterator[dict[Any, Any]]:
    """Positive points without a relation among their coordinates, then negative ones."""
    primes = [sympy.sqrt(sympy.prime(n)) for n in range(2, 2 + _POINTS + len(symbols))]
    for n in range(_POINTS):
        yield {symbol: (primes[n + at] + at).evalf(_DIGITS) for at, symbol in enumerate(symbols)}
    for n in range(2):
        yield {symbol: -(primes[n + at] + at).evalf(_DIGITS) for at, symbol in enumerate(symbols)}


def _whole_points(symbols: Sequence[Any]) -> Iterator[dict[Any, Any]]:
    for n in range(2, 2 + _POINTS):
        yield {
            symbol: sympy.Integer(n + 2 * at)
            if symbol.name in _COUNTING
            else (sympy.sqrt(sympy.prime(n + at + 3))).evalf(_DIGITS)
            for at, symbol in enumerate(symbols)
        }


def _value(expression: Any) -> Any:
    """A finite number to `_DIGITS` digits; None where there is none."""
    value = _worked_out(expression).evalf(_DIGITS, maxn=20_000)
    if not value.is_number or value.has(sympy.nan, sympy.zoo, sympy.oo):
        return None
    return value


def _worked_out(expression: Any) -> Any:
    """Sums, products, integrals and limits in a closed form, where there is one."""
    if expression.has(sympy.Sum, sympy.Product, sympy.Integral, sympy.Limit):
        return expression.doit()
    return expression


def _close(x: Any, y: Any) -> bool:
    size = max(abs(x), abs(y))
    return bool(abs(x - y) <= _AGREE * size)


@lru_cache(maxsize=512)
def _parsed(text: str) -> Any:
    found: list[Any] = parse(
        rf"\boxed{{{text}}}",
        extraction_config=_READING,
        fallback_mode="no_fallback",
        parsing_timeout=None,
        raise_on_error=True,
    )
    read = next((one for one in found if not isinstance(one, str)), None)
    if isinstance(read, sympy.Basic):  # symbols of one name may come with unlike assumptions
        return read.xreplace({symbol: sympy.Symbol(symbol.name) for symbol in read.free_symbols})
    return read
