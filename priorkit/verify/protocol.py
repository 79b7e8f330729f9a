"""What a verifier is asked and what it answers.

A verdict's status is decided in a fixed order: a complete answer outside open thinking is
`correct` or `wrong`, whatever the finish reason; else the response is `truncated` when the engine
stopped at the length limit; else `no_answer`. Trouble of the verifier's own is
`verifier_timeout` or `verifier_error`, and trouble of the engine's is `engine_error`: those three
are no verdict, so they are no trial either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

Status = Literal[
    "correct",
    "wrong",
    "truncated",
    "no_answer",
    "verifier_timeout",
    "verifier_error",
    "engine_error",
]
STATUSES: tuple[Status, ...] = get_args(Status)
ERROR_STATUSES: frozenset[Status] = frozenset(
    {"verifier_timeout", "verifier_error", "engine_error"}
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of one response.

    Attributes:
        status: one of `STATUSES`.
        extracted: the answer it judged, as text; null when there was none.
    """

    status: Status
    extracted: str | None = None

    @property
    def correct(self) -> bool | None:
        """True or false for a trial, None where there is no verdict."""
        return None if self.status in ERROR_STATUSES else self.status == "correct"


class Verifier(Protocol):
    """Decides whether a response answers a prompt. Its identity travels in every file."""

    @property
    def name(self) -> str:
        """What `make_verifier` and a pool's `verifier` column call it."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever a verdict may come out differently."""
        ...

    @property
    def policies(self) -> Mapping[str, object]:
        """Every setting a verdict depends on, as JSON values."""
        ...

    def check(
        self, response: str, answer: str | Sequence[str], finish_reason: str | None = None
    ) -> Verdict:
        """The verdict on one response; several accepted answers match if any does."""
        ...
