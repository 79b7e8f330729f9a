"""The rows of a run's log: an update, a candidate group, an evaluated prompt.

A response is a trial, or an error where there is no verdict; a group is silent when C ∈ {0, trials}
on exact counts, so a group without trials is silent too.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from priorkit import schema
from priorkit.schema import FileKind

Fate = Literal["used", "silent", "surplus", "short"]
FATES: tuple[Fate, ...] = get_args(Fate)


@dataclass(frozen=True, slots=True)
class StepRow:
    """One update.

    Attributes:
        step: from 1.
        loss: of the update.
        kl: to the reference; None where there is none.
        grad_norm: before clipping.
        learning_rate: used by this update.
        reward: mean over trials; None without a trial.
        n_groups: candidate groups generated, at least 1.
        n_silent: silent ones among them.
        n_used: groups in the loss whose advantages are not all zero.
        n_responses: of all candidate groups.
        n_wasted: responses in silent groups.
        n_no_verdict: responses that are no trials.
        n_truncated: responses that hit their limit without an answer.
        n_tokens: generated.
        n_replayed: taken from a stored prefix instead.
        n_prompt_tokens: read as prompts.
        expected: mean predicted E[U] of the selected prompts; None from a selector without one.
        seconds_generate: wall time in the engine.
        seconds_verify: wall time in the verifier.
        seconds_update: wall time in the loss and the optimizer.
        seconds_total: wall time of the whole update.
    """

    step: int
    loss: float
    kl: float | None
    grad_norm: float
    learning_rate: float
    reward: float | None
    n_groups: int
    n_silent: int
    n_used: int
    n_responses: int
    n_wasted: int
    n_no_verdict: int
    n_truncated: int
    n_tokens: int
    n_replayed: int
    n_prompt_tokens: int
    expected: float | None
    seconds_generate: float
    seconds_verify: float
    seconds_update: float
    seconds_total: float


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One candidate group, used or not.

    Attributes:
        step: the update that generated it.
        round: of dynamic sampling, from 1.
        rank: place in the selection's order, from 0.
        prompt_id: pool key.
        successes: correct responses.
        trials: responses with a verdict.
        n_error: responses without one.
        n_truncated: trials that hit their limit without an answer.
        fate: what became of it.
        expected: predicted E[U] at selection; None from a selector without one.
        prefix_kind: where its prefix came from; None without a prefix.
        prefix_tokens: length of the prefix, 0 without one.
        node_id: of the prefix tree; None without one.
        n_tokens: generated.
        n_replayed: taken from a stored prefix instead.
    """

    step: int
    round: int
    rank: int
    prompt_id: str
    successes: int
    trials: int
    n_error: int
    n_truncated: int
    fate: Fate
    expected: float | None
    prefix_kind: str | None
    prefix_tokens: int
    node_id: str | None
    n_tokens: int
    n_replayed: int

    @property
    def silent(self) -> bool:
        """Whether all verdicts agree."""
        return self.successes in (0, self.trials)

    @property
    def n_responses(self) -> int:
        """Responses, with a verdict or without."""
        return self.trials + self.n_error


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One prompt of one evaluation.

    Attributes:
        step: the update after which it was asked; 0 before training.
        prompt_id: pool key.
        successes: correct responses.
        trials: responses with a verdict.
        n_error: responses without one.
        n_truncated: trials that hit their limit without an answer.
        n_tokens: generated.
        temperature: of the sampling, 0 for greedy.
    """

    step: int
    prompt_id: str
    successes: int
    trials: int
    n_error: int
    n_truncated: int
    n_tokens: int
    temperature: float


Row = TypeVar("Row", StepRow, GroupRow, EvalRow)

KINDS: dict[type, FileKind] = {
    StepRow: schema.STEPS,
    GroupRow: schema.GROUPS,
    EvalRow: schema.EVALS,
}

_INT_BITS = {"int32": 31, "int64": 63}
_FROM_ONE: dict[type, tuple[str, ...]] = {
    StepRow: ("step", "n_groups"),
    GroupRow: ("step", "round"),
    EvalRow: (),
}
_COUNTED = (("successes", "trials"), ("n_truncated", "trials"))
_PARTS: dict[type, tuple[tuple[str, str], ...]] = {
    StepRow: (
        ("n_silent", "n_groups"),
        ("n_used", "n_groups"),
        ("n_wasted", "n_responses"),
        ("n_no_verdict", "n_responses"),
        ("n_truncated", "n_responses"),
    ),
    GroupRow: _COUNTED,
    EvalRow: _COUNTED,
}


def checked(row: Row) -> Row:
    """The row, if every field is what its file can hold; else ValueError saying which is not."""
    kind = type(row)
    for column in KINDS[kind].columns:
        value = getattr(row, column.name)
        if value is None and column.nullable:
            continue
        least = 1 if column.name in _FROM_ONE[kind] else 0
        expected = _mismatch(column.type, value, least)
        if expected:
            raise ValueError(f"{column.name} is {reprlib.repr(value)}, expected {expected}")
    for part, whole in _PARTS[kind]:
        if getattr(row, part) > getattr(row, whole):
            raise ValueError(
                f"{part} is {getattr(row, part)}, more than {whole} = {getattr(row, whole)}"
            )
    if isinstance(row, GroupRow):
        _check_fate(row)
    return row


def json_line(row: Row) -> bytes:
    """The row as one line of JSON, in ASCII; AssertionError where a reader would refuse it."""
    names = [column.name for column in KINDS[type(row)].columns]
    try:
        checked(row)
        values = {name: getattr(row, name) for name in names}
        return json.dumps(values, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    except (ValueError, TypeError) as caught:
        raise AssertionError(f"no row of a run's log, step {row.step!r}: {caught}") from caught


def tally(groups: Iterable[GroupRow]) -> dict[str, int]:
    """What the groups of one update come to, by the name of the step's column."""
    held = list(groups)
    silent = [group for group in held if group.silent]
    return {
        "n_groups": len(held),
        "n_silent": len(silent),
        "n_responses": sum(group.n_responses for group in held),
        "n_wasted": sum(group.n_responses for group in silent),
    }


def is_unicode(value: object) -> bool:
    """Whether a value is text that a file can hold; a lone surrogate is not."""
    try:
        return type(value) is str and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _mismatch(column_type: str, value: object, least: int) -> str:
    """What was expected of a value that does not fit; empty when it fits."""
    if column_type == "string":
        return "" if is_unicode(value) else "valid Unicode text"
    if column_type == "float64":
        whole = type(value) is int and abs(value) < 2**53
        fits = whole or (isinstance(value, float) and math.isfinite(value))
        return "" if fits else "a finite number"
    bits = _INT_BITS[column_type]
    fits = type(value) is int and least <= value < 2**bits
    return "" if fits else f"an integer from {least} to below 2**{bits}"


def _check_fate(row: GroupRow) -> None:
    if row.fate not in FATES:
        raise ValueError(f"fate is {reprlib.repr(row.fate)}, expected one of {', '.join(FATES)}")
    if row.fate == "silent" and not row.silent:
        raise ValueError(f"fate is 'silent', but {row.successes} of {row.trials} trials succeeded")
