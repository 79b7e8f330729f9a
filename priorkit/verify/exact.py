"""The plainest verifier: text against text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from priorkit.verify.judging import accepted_answers, judge
from priorkit.verify.protocol import Verdict
from priorkit.verify.spelling import spelling


@dataclass(frozen=True)
class ExactVerifier:
    """Accepts an answer whose spelling is that of an accepted one: no arithmetic at all."""

    name: ClassVar[str] = "exact"
    version: ClassVar[int] = 2

    @property
    def policies(self) -> Mapping[str, object]:
        """Nothing can be set."""
        return {}

    def check(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None = None
    ) -> Verdict:
        """As `Verifier.check`."""
        spellings = {spelling(gold) for gold in accepted_answers(answer)}
        return judge(
            response,
            finish_reason,
            lambda extracted: "correct" if spelling(extracted) in spellings else "wrong",
        )
