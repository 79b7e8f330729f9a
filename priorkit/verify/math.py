"""The verifier for mathematics: text, then exact arithmetic, then algebra in a worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from priorkit.errors import MissingExtraError, SettingError
from priorkit.verify.equality import decide
from priorkit.verify.exact import accepted_answers, judge
from priorkit.verify.protocol import Status, Verdict
from priorkit.verify.worker import Worker


@dataclass(frozen=True)
class MathVerifier:
    """Accepts an answer that equals an accepted one as mathematics.

    Most answers are decided here and now; algebra starts one child process at first need, which
    `close`, the garbage collector or the interpreter's exit ends. Threads may share a verifier;
    a copy sent to another process starts its own child.

    Attributes:
        limit_s: wall seconds for the algebra of one pair of answers, start-up apart.
        start_limit_s: wall seconds for the child's start-up.
        memory_bytes: address space the child may add after start-up.
        max_chars: a longer answer is correct only when it repeats an accepted one, and a longer
            accepted one is matched by nothing else.
    """

    limit_s: float = 5.0
    start_limit_s: float = 120.0
    memory_bytes: int = 2 * 2**30
    max_chars: int = 10_000
    _worker: Worker = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "math"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """SettingError when a limit is out of its domain."""
        if self.max_chars < 1:
            raise SettingError(f"max_chars must be at least 1, got {self.max_chars}")
        worker = Worker(self.limit_s, self.start_limit_s, self.memory_bytes)
        object.__setattr__(self, "_worker", worker)

    @property
    def policies(self) -> Mapping[str, object]:
        """What a verdict depends on besides the code here; asks which math-verify is installed."""
        return {
            "limit_s": self.limit_s,
            "memory_bytes": self.memory_bytes,
            "max_chars": self.max_chars,
            "math_verify": _math_verify_version(),
        }

    def check(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None = None
    ) -> Verdict:
        """As `Verifier.check`; EngineError when no worker process can be started."""
        golds = accepted_answers(answer)
        return judge(response, finish_reason, lambda extracted: self._status(golds, extracted))

    def close(self) -> None:
        """End the worker process; a later check starts another."""
        self._worker.close()

    def _status(self, golds: Sequence[str], extracted: str) -> Status:
        if extracted in {gold.strip() for gold in golds}:
            return "correct"
        if len(extracted) > self.max_chars:
            return "wrong"
        decisions = {gold: decide(gold, extracted) for gold in golds if len(gold) <= self.max_chars}
        if True in decisions.values():
            return "correct"
        return self._by_algebra([g for g, same in decisions.items() if same is None], extracted)

    def _by_algebra(self, golds: Sequence[str], extracted: str) -> Status:
        outcomes = set()
        for gold in golds:
            outcome = self._worker.compare(gold, extracted)
            if outcome == "equal":
                return "correct"
            outcomes.add(outcome)
        if "timeout" in outcomes:
            return "verifier_timeout"
        return "verifier_error" if "error" in outcomes else "wrong"


def _math_verify_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("math-verify")
    except PackageNotFoundError:
        raise MissingExtraError(
            "the verifier 'math' needs math-verify, which is not installed: "
            "`pip install math-verify==0.9.0`, or use the verifier 'exact'"
        ) from None
