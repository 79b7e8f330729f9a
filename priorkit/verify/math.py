"""The verifier for mathematics: spelling, structure, exact arithmetic; then algebra, elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar, NamedTuple

from priorkit.errors import MissingExtraError, SettingError
from priorkit.verify.child import Outcome
from priorkit.verify.equality import Policies, equal
from priorkit.verify.judging import Question, accepted_answers, unjudged
from priorkit.verify.protocol import Status, Verdict
from priorkit.verify.worker import Limits
from priorkit.verify.workers import Pair, Workers


class _Open(NamedTuple):
    """What is left of a question for algebra: the answer, and golds that it may be."""

    extracted: str
    golds: tuple[str, ...]


@dataclass(frozen=True)
class MathVerifier:
    """Accepts an answer that equals an accepted one as mathematics.

    Most answers are decided here and now; algebra starts child processes at first need, which
    `close`, the garbage collector or the interpreter's exit ends. Threads may share a verifier; a
    copy sent to another process starts children of its own.

    Attributes:
        percent, units, base, rounding: see `priorkit.verify.equality.Policies`.
        limit_s: wall seconds for the algebra of one pair of answers, start-up apart.
        start_limit_s: wall seconds for a child's start-up.
        memory_bytes: address space a child may add after start-up.
        max_chars: a longer answer is correct only when it repeats an accepted one, and a longer
            accepted one is matched by nothing else.
        workers: children at most; None for one a core, four at most. No verdict depends on it.
    """

    percent: str = "either"
    units: str = "optional"
    base: str = "optional"
    rounding: str = "long"
    limit_s: float = 5.0
    start_limit_s: float = 120.0
    memory_bytes: int = 2 * 2**30
    max_chars: int = 10_000
    workers: int | None = None
    _same: Policies = field(init=False, repr=False, compare=False)
    _workers: Workers = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "math"
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """SettingError when a limit or a policy is out of its domain."""
        if self.max_chars < 1:
            raise SettingError(f"max_chars must be at least 1, got {self.max_chars}")
        same = Policies(self.percent, self.units, self.base, self.rounding)  # type: ignore[arg-type]
        limits = Limits(self.limit_s, self.start_limit_s, self.memory_bytes)
        object.__setattr__(self, "_same", same)
        object.__setattr__(self, "_workers", Workers(limits, asdict(same), self.workers))

    @property
    def policies(self) -> Mapping[str, object]:
        """What a verdict depends on besides the code here; asks which math-verify is installed."""
        return {
            **asdict(self._same),
            "limit_s": self.limit_s,
            "memory_bytes": self.memory_bytes,
            "max_chars": self.max_chars,
            "math_verify": _math_verify_version(),
        }

    def check(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None = None
    ) -> Verdict:
        """As `Verifier.check`; EngineError when no worker process can be started."""
        return self.check_all([Question(response, answer, finish_reason)])[0]

    def check_all(self, questions: Sequence[Question]) -> list[Verdict]:
        """The verdicts in order; the algebra of all is done side by side, each pair once."""
        found = [self._at_once(*question) for question in questions]
        wanted = [
            (gold, one.extracted) for one in found if isinstance(one, _Open) for gold in one.golds
        ]
        outcomes = self._workers.compare_all(wanted) if wanted else {}
        return [
            one if isinstance(one, Verdict) else Verdict(_status(one, outcomes), one.extracted)
            for one in found
        ]

    def close(self) -> None:
        """End the worker processes; a later check starts others."""
        self._workers.close()

    def _at_once(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None
    ) -> Verdict | _Open:
        """The verdict, where neither algebra nor another process is needed."""
        golds = accepted_answers(answer)
        extracted = unjudged(response, finish_reason)
        if isinstance(extracted, Verdict):
            return extracted
        if extracted in {gold.strip() for gold in golds}:
            return Verdict("correct", extracted)
        if len(extracted) > self.max_chars:
            return Verdict("wrong", extracted)
        same = {g: equal(g, extracted, self._same) for g in golds if len(g) <= self.max_chars}
        if True in same.values():
            return Verdict("correct", extracted)
        left = tuple(gold for gold, known in same.items() if known is None)
        return _Open(extracted, left) if left else Verdict("wrong", extracted)


def _status(one: _Open, outcomes: Mapping[Pair, Outcome]) -> Status:
    found = {outcomes[gold, one.extracted] for gold in one.golds}
    if "equal" in found:
        return "correct"
    if "timeout" in found:
        return "verifier_timeout"
    return "verifier_error" if "error" in found else "wrong"


def _math_verify_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("math-verify")
    except PackageNotFoundError:
        raise MissingExtraError(
            "the verifier 'math' needs math-verify, which is not installed: "
            "`pip install math-verify==0.9.0`, or use the verifier 'exact'"
        ) from None
