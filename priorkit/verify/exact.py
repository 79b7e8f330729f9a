"""The plainest verifier, and the order in which every verifier decides a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from priorkit.errors import SettingError
from priorkit.verify.equality import normalise
from priorkit.verify.extract import extract_answer
from priorkit.verify.protocol import Status, Verdict


def judge(response: str, finish_reason: str | None, status_of: Callable[[str], Status]) -> Verdict:
    """The verdict in the order of the design; `status_of` judges a complete answer's text."""
    if finish_reason == "error":
        return Verdict("engine_error")
    cut_off = finish_reason == "length"
    extracted = extract_answer(response, cut_off=cut_off)
    if extracted is None:
        return Verdict("truncated" if cut_off else "no_answer")
    return Verdict(status_of(extracted), extracted)


def accepted_answers(answer: str | Sequence[str]) -> tuple[str, ...]:
    """The accepted answers, at least one, none of them blank; SettingError otherwise."""
    accepted = (answer,) if isinstance(answer, str) else tuple(answer or ())
    if not accepted or not all(isinstance(gold, str) and gold.strip() for gold in accepted):
        raise SettingError(
            f"an accepted answer must be non-blank text, or several of them, got {answer!r:.200}; "
            "mend the pool's 'answer' column"
        )
    return accepted


@dataclass(frozen=True)
class ExactVerifier:
    """Accepts an answer whose normalised text is that of an accepted one: no arithmetic at all."""

    name: ClassVar[str] = "exact"
    version: ClassVar[int] = 1

    @property
    def policies(self) -> Mapping[str, object]:
        """Nothing can be set."""
        return {}

    def check(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None = None
    ) -> Verdict:
        """As `Verifier.check`."""
        spellings = {normalise(gold) for gold in accepted_answers(answer)}
        return judge(
            response,
            finish_reason,
            lambda extracted: "correct" if normalise(extracted) in spellings else "wrong",
        )
