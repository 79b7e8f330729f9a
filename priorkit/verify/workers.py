"""Several killable workers, and everything they have already been asked.

Each comparison has a wall limit of its own, enforced by killing the one child that is at it; the
others go on. What was found is remembered, so a pair is compared once however often it comes.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from priorkit.errors import SettingError
from priorkit.verify.child import Outcome
from priorkit.verify.worker import Limits, Worker

Pair = tuple[str, str]


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Compares pairs of answers in up to `count` child processes, started as they are needed.

    Threads may share it. A process forked from its owner gets children of its own, and a copy sent
    elsewhere has the same settings and none yet.

    Args:
        limits: of each child.
        policies: what counts as the same; passed to each child.
        count: children at most; None for one a core, four at most.
        remembered: comparisons kept, least recently used out first.
    """

    def __init__(
        self,
        limits: Limits,
        policies: Mapping[str, object],
        count: int | None = None,
        remembered: int = 65_536,
    ) -> None:
        if count is not None and count < 1:
            raise SettingError(f"workers must be at least 1, got {count}")
        self._settings = (limits, dict(policies), count, remembered)
        self._begin()

    def compare(self, gold: str, answer: str) -> Outcome:
        """Whether both are equal, or why that is not known; EngineError where no child starts."""
        return self.compare_all([(gold, answer)])[gold, answer]

    def compare_all(self, pairs: Iterable[Pair]) -> dict[Pair, Outcome]:
        """The outcome of every pair; `timeout` and `error` are about that pair alone.

        Raises:
            EngineError: no child could be started.
        """
        if self._owner != os.getpid():
            self._begin()
        asked = dict.fromkeys(pairs)
        found = {pair: known for pair in asked if (known := self._known(pair)) is not None}
        fresh = [pair for pair in asked if pair not in found]
        found.update(zip(fresh, self._ask_all(fresh), strict=True))
        return {pair: found[pair] for pair in asked}

    def close(self) -> None:
        """End the children; a later comparison starts others."""
        for worker in self._all:
            worker.close()

    def __reduce__(self) -> tuple[type[Workers], tuple[object, ...]]:
        return Workers, self._settings

    @property
    def pids(self) -> list[int]:
        """Process ids of the children there are."""
        return [worker.pid for worker in self._all if worker.pid is not None]

    def _begin(self) -> None:
        limits, policies, count, self._remembered = self._settings
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._found: OrderedDict[Pair, Outcome] = OrderedDict()
        self._all = [Worker(limits, policies) for _ in range(count or min(usable_cores(), 4))]
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()  # the last one used is warm
        for worker in reversed(self._all):
            self._idle.put(worker)

    def _known(self, pair: Pair) -> Outcome | None:
        with self._lock:
            known = self._found.get(pair)
            if known is not None:
                self._found.move_to_end(pair)
            return known

    def _ask_all(self, pairs: list[Pair]) -> list[Outcome]:
        if len(pairs) < 2 or len(self._all) < 2:
            return [self._ask(pair) for pair in pairs]
        pool = ThreadPoolExecutor(min(len(self._all), len(pairs)), "priorkit-verify")
        try:
            return list(pool.map(self._ask, pairs))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _ask(self, pair: Pair) -> Outcome:
        worker = self._idle.get()
        try:
            outcome = worker.compare(*pair)
        finally:
            self._idle.put(worker)
        with self._lock:
            self._found[pair] = outcome
            if len(self._found) > self._remembered:
                self._found.popitem(last=False)
        return outcome
