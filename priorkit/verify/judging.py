"""The order in which every verifier decides, and several questions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from priorkit.errors import SettingError
from priorkit.verify.extract import extract_answer
from priorkit.verify.protocol import Status, Verdict, Verifier


class Question(NamedTuple):
    """One response to be judged; the arguments of `Verifier.check`."""

    response: str
    answer: str | Sequence[str]
    finish_reason: str | None = None


def check_all(verifier: Verifier, questions: Sequence[Question]) -> list[Verdict]:
    """The verdicts in order, all at once where the verifier has a `check_all` of its own."""
    together = getattr(verifier, "check_all", None)
    if together is not None:
        found: list[Verdict] = together(questions)
        return found
    return [verifier.check(*question) for question in questions]


def unjudged(response: str, finish_reason: str | None) -> Verdict | str:
    """The text of a complete answer; or the verdict, where there is none to judge."""
    if finish_reason == "error":
        return Verdict("engine_error")
    cut_off = finish_reason == "length"
    extracted = extract_answer(response, cut_off=cut_off)
    if extracted is None:
        return Verdict("truncated" if cut_off else "no_answer")
    return extracted


def judge(response: str, finish_reason: str | None, status_of: Callable[[str], Status]) -> Verdict:
    """The verdict in the order of the design; `status_of` judges a complete answer's text."""
    found = unjudged(response, finish_reason)
    return found if isinstance(found, Verdict) else Verdict(status_of(found), found)


def accepted_answers(answer: str | Sequence[str]) -> tuple[str, ...]:
    """The accepted answers, at least one, none of them blank; SettingError otherwise."""
    accepted = (answer,) if isinstance(answer, str) else tuple(answer or ())
    if not accepted or not all(isinstance(gold, str) and gold.strip() for gold in accepted):
        raise SettingError(
            f"an accepted answer must be non-blank text, or several of them, got {answer!r:.200}; "
            "mend the pool's 'answer' column"
        )
    return accepted
