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
from collections import OrderedDict
from typing import BinaryIO, cast

from priorkit.errors import EngineError, MissingExtraError, SettingError
from priorkit.verify.child import Outcome

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from priorkit.verify.child import serve; serve(float(sys.argv[2]), int(sys.argv[3]))"
)


class Worker:
    """Compares answers in one child process, started at first need and again after each death.

    Threads may share it; they take turns. A process forked from its owner gets a child of its own.

    Args:
        limit_s: wall seconds for one comparison, start-up apart; above zero.
        start_limit_s: wall seconds for the start-up, which imports sympy; above zero.
        memory_bytes: address space the child may add after start-up, where the system can limit it.
        cache_size: comparisons remembered, least recently used out first.
    """

    def __init__(
        self,
        limit_s: float = 5.0,
        start_limit_s: float = 120.0,
        memory_bytes: int = 2 * 2**30,
        cache_size: int = 4096,
    ) -> None:
        """Starts nothing yet; SettingError when a limit is not above zero."""
        self._settings = (limit_s, start_limit_s, memory_bytes, cache_size)
        if not all(0 < setting < float("inf") for setting in self._settings):
            raise SettingError(
                "a verifier's worker needs finite limits above zero, got "
                f"limit_s={limit_s}, start_limit_s={start_limit_s}, "
                f"memory_bytes={memory_bytes}, cache_size={cache_size}"
            )
        self.limit_s, self._start_limit_s, self._memory_bytes, self._cache_size = self._settings
        self._begin()

    def compare(self, gold: str, answer: str) -> Outcome:
        """Whether both are equal, or why that is not known.

        `timeout` and `error` are about this pair alone: the next one gets a fresh child.

        Raises:
            EngineError: no child could be started.
        """
        if self._owner != os.getpid():
            self._begin()
        key = (gold, answer)
        with self._lock:
            known = self._cache.get(key)
            if known is None:
                known = self._cache[key] = self._ask(json.dumps(key).encode("ascii"))
                if len(self._cache) > self._cache_size:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(key)
            return known

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

    def __reduce__(self) -> tuple[type[Worker], tuple[float, float, int, int]]:
        """A copy has the same limits, and no child until it needs one."""
        return Worker, self._settings

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._cache: OrderedDict[tuple[str, str], Outcome] = OrderedDict()
        self._child: _Child | None = None

    def _drop(self) -> None:
        child, self._child = self._child, None
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
                reply = self._child.ask(line, self.limit_s)
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
            child = _Child(self.limit_s, self._memory_bytes)
        except OSError as failure:
            raise _start_error(str(failure)) from failure
        try:
            trouble = child.reply(self._start_limit_s)
        except TimeoutError:
            trouble = f"it was not ready within {self._start_limit_s:g} s (start_limit_s)"
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

    def __init__(self, limit_s: float, memory_bytes: int) -> None:
        boot = [_BOOT, json.dumps([str(p) for p in sys.path]), repr(limit_s), str(memory_bytes)]
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
