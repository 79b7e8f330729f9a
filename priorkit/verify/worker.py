"""A process that compares answers, and that can be killed.

Algebra on a hostile answer may never end, hold the interpreter lock, or eat all memory, so it
runs in a child process with a wall limit, a memory limit and nothing to lose. The child is a
clean interpreter started by `subprocess`: the caller's `__main__` is never imported again, so
scripts, notebooks, threads and pytest are all alike. It ends when its input does, so it does not
outlive a parent that was killed. `priorkit.verify.child` is its side of the conversation.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO, cast

from priorkit.errors import EngineError, MissingExtraError, SettingError
from priorkit.verify.child import Outcome

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from priorkit.verify.child import serve; "
    "serve(float(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child process may take."""

    limit_s: float = 5.0
    """Wall seconds for one comparison, start-up apart."""
    start_limit_s: float = 120.0
    """Wall seconds for the start-up, which imports sympy."""
    memory_bytes: int = 2 * 2**30
    """Address space a child may add after start-up, where the system can limit it."""
    recycle_after: int = 5000
    """Comparisons after which a child makes room for a fresh one: sympy remembers what it did."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingError(
                    f"a verifier's worker needs finite limits above zero, got "
                    f"{name}={getattr(self, name)}"
                )


class Worker:
    """Compares answers in one child process, started at first need and again after each death.

    Threads may share it; they take turns. A process forked from its owner gets a child of its own.

    Args:
        limits: of the child.
        policies: what counts as the same; fields of `priorkit.verify.equality.Policies`.
    """

    def __init__(
        self, limits: Limits = Limits(), policies: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        """Starts nothing yet."""
        self._settings = (limits, dict(policies))
        self.limits = limits
        self._begin()

    def compare(self, gold: str, answer: str) -> Outcome:
        """Whether both are equal, or why that is not known.

        `timeout` and `error` are about this pair alone: the next one gets a fresh child.

        Raises:
            EngineError: no child could be started.
        """
        if self._owner != os.getpid():
            self._begin()
        with self._lock:
            if self._compared >= self.limits.recycle_after:
                self._drop()
            return self._ask(json.dumps([gold, answer]).encode("ascii"))

    def close(self) -> None:
        """End the child; a later comparison starts another."""
        with self._lock:
            self._drop()

    @property
    def pid(self) -> int | None:
        """The child's process id while there is one."""
        child = self._child
        return child.process.pid if child else None

    def __enter__(self) -> Worker:
        """Closed at the end of a `with`."""
        return self

    def __exit__(self, *exc: object) -> None:
        """As `close`."""
        self.close()

    def __reduce__(self) -> tuple[type[Worker], tuple[object, ...]]:
        """A copy has the same limits, and no child until it needs one."""
        return Worker, self._settings

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._compared = 0  # by this child

    def _drop(self) -> None:
        child, self._child, self._compared = self._child, None, 0
        if child:
            child.stop()

    def _ask(self, line: bytes) -> Outcome:
        """The outcome of one comparison; a child that dies of it is replaced and asked once more.

        Once more, since a child may also die for reasons of the machine's.
        """
        for _ in range(2):
            if self._child is None:
                self._child = self._started()
            try:
                reply = self._child.ask(line, self.limits.limit_s)
                self._compared += 1
            except BaseException as failure:  # an interrupt too leaves a reply on its way
                self._drop()
                if isinstance(failure, TimeoutError):
                    return "timeout"
                if not isinstance(failure, EOFError):
                    raise
            else:
                return cast(Outcome, reply)
        return "error"

    def _started(self) -> _Child:
        try:
            child = _Child(*self._settings)
        except OSError as failure:
            raise _start_error(str(failure)) from failure
        try:
            trouble = child.reply(self.limits.start_limit_s)
        except TimeoutError:
            trouble = f"it was not ready within {self.limits.start_limit_s:g} s (start_limit_s)"
        except EOFError:
            trouble = "it ended at once"
        except BaseException:
            child.stop()
            raise
        if trouble is None:
            return child
        child.stop()
        raise _start_error(trouble)


def _start_error(trouble: str) -> EngineError:
    if trouble.startswith("ModuleNotFoundError"):
        return MissingExtraError(
            f"the verifier's worker process lacks a package: {trouble}. "
            "Install it with `pip install math-verify==0.9.0`, or use the verifier 'exact'"
        )
    return EngineError(
        f"the verifier's worker process ({sys.executable}) could not start: {trouble}. "
        "See whether `python -c 'import math_verify'` works in the same environment"
    )


class _Child:
    """One running process, the thread that reads it, and its end."""

    def __init__(self, limits: Limits, policies: Mapping[str, object]) -> None:
        paths, agreed = json.dumps([str(path) for path in sys.path]), json.dumps(policies)
        boot = [_BOOT, paths, repr(limits.limit_s), str(limits.memory_bytes), agreed]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", *boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin
        assert self.process.stdout
        self._stdin = self.process.stdin
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_read,
            args=(cast(BinaryIO, self.process.stdout), self._replies),
            name="priorkit-verify-reader",
            daemon=True,
        )
        reader.start()
        # Runs once: on stop(), when nobody holds this any more, or at exit.
        self.stop = weakref.finalize(self, _end, self.process, reader)

    def ask(self, line: bytes, limit_s: float) -> str | None:
        """The reply to one line; TimeoutError when it is late, EOFError when the child is gone."""
        try:
            self._stdin.write(line + b"\n")
            self._stdin.flush()
        except OSError as gone:
            raise EOFError from gone
        return self.reply(limit_s)

    def reply(self, limit_s: float) -> str | None:
        """The next line the child writes; errors as `ask`."""
        try:
            line = self._replies.get(timeout=limit_s)
        except queue.Empty:
            raise TimeoutError from None
        if not line:
            raise EOFError
        return cast("str | None", json.loads(line))


def _read(stdout: BinaryIO, replies: queue.SimpleQueue[bytes]) -> None:
    """Pass each line on, and an empty one at the end. A thread, since pipes have no time limit."""
    with stdout:
        for line in stdout:
            replies.put(line)
    replies.put(b"")


def _end(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    process.kill()  # in a forked copy Popen finds that the child is not its own, and lets it be
    process.wait()
    if reader is not threading.current_thread():  # where the garbage collector may run
        reader.join(timeout=1.0)
    assert process.stdin
    with contextlib.suppress(OSError):
        process.stdin.close()
