"""The worker process's own side: reads pairs of answers, writes outcomes, keeps its limits.

Both sides speak JSON, a line each way: `[gold, answer]` in, an `Outcome` out. The first line out is
`null`, or a string saying why there can be no comparison.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any, BinaryIO, Literal

Outcome = Literal["equal", "unequal", "timeout", "error"]

_ORPHAN_GRACE_S = 5.0


def serve(limit_s: float, memory_bytes: int, policies: dict[str, Any]) -> None:
    """The child: answers lines on standard input until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _silence()
    try:
        from priorkit.verify.algebra import algebraically_equal
        from priorkit.verify.equality import Policies, equal

        agreed = Policies(**policies)
        # The first comparison is slow, so it is part of the start-up; and a parser that does not
        # fit math-verify raises nothing, it only finds nothing equal.
        sound = algebraically_equal("x+x", "2x")
    except Exception as failure:
        _send(replies, f"{type(failure).__name__}: {failure}")
        return
    if not sound:
        _send(replies, "math-verify cannot tell that x+x is 2x (does its antlr4 runtime fit?)")
        return
    _limit_memory(memory_bytes)
    _send(replies, None)
    for line in requests:
        gold, answer = json.loads(line)
        _die_in(limit_s + _ORPHAN_GRACE_S)
        try:
            same = equal(gold, answer, agreed, algebraically_equal)
            outcome: Outcome = "equal" if same else "unequal"
        except BaseException:
            outcome = "error"
        _die_in(0.0)
        _send(replies, outcome)


def _silence() -> None:
    """Point the standard streams elsewhere: a parser that prints would garble the replies."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)


def _limit_memory(extra: int) -> None:
    """Let this process grow by `extra` bytes of address space, where that can be limited."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = used + extra if hard == resource.RLIM_INFINITY else min(used + extra, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ImportError, OSError, ValueError):
        return  # not this system; the wall limit stands


def _die_in(seconds: float) -> None:
    """Have the kernel end this process then, 0 for never.

    The parent kills it earlier; this is for a computation whose parent died, and works while the
    interpreter is stuck in one long multiplication.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _send(replies: BinaryIO, message: str | None) -> None:
    replies.write(json.dumps(message).encode("ascii") + b"\n")
    replies.flush()
