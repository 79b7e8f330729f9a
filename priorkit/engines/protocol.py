"""What an engine is asked and what it answers: token ids in, token ids and text out.

An engine knows a model and nothing else: no pool, no verifier, no prior. Requests carry token
ids, never text, so that a replayed prefix is what the policy really sampled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from priorkit.errors import SettingError

FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Defaults are the anchor pass of ThinkPrior (arXiv 2609.09075, app. F).

    Attributes:
        temperature: softmax temperature; 0 is greedy.
        top_p: nucleus mass in (0, 1]; 1 keeps the whole vocabulary.
        max_new_tokens: tokens generated at most, at least 1.
    """

    temperature: float = 0.9
    top_p: float = 1.0
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise SettingError(f"temperature must be 0 or more, got {self.temperature}")
        if not 0.0 < self.top_p <= 1.0:
            raise SettingError(f"top_p must lie in (0, 1], got {self.top_p}")
        if not 1 <= self.max_new_tokens < 2**31:
            raise SettingError(
                f"max_new_tokens must be from 1 to below 2**31, got {self.max_new_tokens}"
            )


@dataclass(frozen=True, slots=True)
class Request:
    """`n` samples of one prompt, numbered from `first_sample`.

    Attributes:
        prompt_id: the pool's key.
        prompt_tokens: the rendered prompt, template included.
        prefix_tokens: a replayed start of the response; new tokens continue it.
        first_sample: number of the first sample; a later top-up starts where the last ended.
        n: samples wanted.
        seed: from `request_seed`; sample `i` draws from the stream `(seed, i)`.
        sampling: how to draw.
        want_entropy: also return the log-probability of each new token and the entropy of the
            full vocabulary it was drawn from, both in nats at temperature 1.
    """

    prompt_id: str
    prompt_tokens: tuple[int, ...]
    prefix_tokens: tuple[int, ...] = ()
    first_sample: int = 0
    n: int = 1
    seed: int = 0
    sampling: Sampling = Sampling()
    want_entropy: bool = False

    def __post_init__(self) -> None:
        if not self.prompt_tokens:
            raise SettingError(f"prompt {self.prompt_id!r} renders to no tokens")
        if self.n < 1:
            raise SettingError(f"prompt {self.prompt_id!r}: n must be at least 1, got {self.n}")


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled response.

    Attributes:
        prompt_id: as requested.
        sample: its number, `first_sample` ≤ sample < `first_sample + n`.
        tokens: the *new* token ids, end token included when it was drawn.
        text: the whole response, prefix and new tokens decoded together, special tokens dropped.
        finish_reason: `stop` (end token), `length` (limit reached) or `error` (no text to judge).
        logprobs: one per new token, only with `want_entropy`.
        entropy: one per new token, only with `want_entropy`.
    """

    prompt_id: str
    sample: int
    tokens: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    logprobs: tuple[float, ...] | None = None
    entropy: tuple[float, ...] | None = None


class Engine(Protocol):
    """Generates completions for requests."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Completions as they finish, in any order, each (prompt_id, sample) once."""
        ...


@runtime_checkable
class BatchedEngine(Engine, Protocol):
    """An engine whose arithmetic depends on batch mates, and says how it would cut a job.

    A resumed job repeats the same cuts, so that a batch broken by a kill is generated again bit
    for bit; engines that batch continuously need not implement this.
    """

    def batches(self, requests: Sequence[Request]) -> list[tuple[Request, ...]]:
        """The job cut into batches: a function of the requests alone."""
        ...


def check_seed(seed: int) -> None:
    """Refuse a run's seed that torch, or a file of settings, cannot take; SettingError."""
    if not 0 <= seed < 2**63:
        raise SettingError(f"seed must be from 0 to below 2**63, got {seed}")


def request_seed(
    run_seed: int,
    stage: str,
    prompt_id: str,
    *,
    step: int = 0,
    round_: int = 0,
    node_id: str = "",
    first_sample: int = 0,
) -> int:
    """The seed of one request, a 63-bit hash of all that names it.

    Seeding `n` children as seed + index would make a later top-up repeat finished samples, and
    neighbouring prompts share streams; hashing keeps every request's stream its own.

    >>> request_seed(0, "probe", "a") == request_seed(0, "probe", "a")
    True
    >>> request_seed(0, "probe", "a") == request_seed(0, "probe", "a", first_sample=16)
    False
    """
    named = (run_seed, stage, step, round_, prompt_id, node_id, first_sample)
    digest = hashlib.sha256("\x1f".join(map(str, named)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
