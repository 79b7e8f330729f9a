r"""Whether two answers are equal as mathematics, by math-verify.

Everything here may run for ever or eat all memory on a hostile answer: only a worker process
(`priorkit.verify.worker`) calls it. Not symmetric: an equation or interval is judged from the
gold's side.
"""

from __future__ import annotations

from typing import Any

from math_verify import (  # type: ignore[import-untyped, unused-ignore]
    LatexExtractionConfig,
    parse,
    verify,
)

from priorkit.verify.extract import strip_math

_READING = (LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False),)


def symbolically_equal(gold: str, answer: str) -> bool:
    r"""True when math-verify can show that both are the same; what it cannot read is unequal.

    Both sides are boxed first: a bare `\frac{3}{7}` would parse to nothing, and every answer to
    it would be wrong.

    Raises:
        MemoryError: the process's memory limit was met.
    """
    try:
        return bool(
            verify(
                _parsed(gold),
                _parsed(answer),
                allow_set_relation_comp=True,
                timeout_seconds=None,  # its own limit is an alarm per pair, main thread only
                raise_on_error=True,
            )
        )
    except MemoryError:
        raise
    except Exception:  # what sympy cannot compare raises anything at all
        return False


def _parsed(text: str) -> list[Any]:
    parsed: list[Any] = parse(
        rf"\boxed{{{strip_math(text)}}}",  # `\[ \]` in a box reads as nothing
        extraction_config=_READING,
        fallback_mode="no_fallback",
        parsing_timeout=None,
        raise_on_error=True,
    )
    return parsed
