"""Out of memory, said so that a person can do something about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from priorkit.errors import EngineError


@contextmanager
def memory_advice(doing: str, remedy: str) -> Iterator[None]:
    """Turn a device's or the machine's out-of-memory into one error with a remedy.

    Args:
        doing: what was going on, after "out of memory".
        remedy: what to try.

    Raises:
        EngineError: in place of whatever the allocator raised.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        # The CPU's allocator raises a bare RuntimeError.
        known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if known or "allocate memory" in str(error):
            raise EngineError(f"out of memory {doing}; {remedy}") from error
        raise
