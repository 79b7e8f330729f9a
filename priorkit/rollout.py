"""Groups of rollouts: ask the engine, judge what comes back, keep both as arrays.

`B` groups, `G` rollouts a group.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from priorkit.columns import IntArray
from priorkit.engines.protocol import Completion, Engine, Request
from priorkit.tasks import Tasks

_NO_SAMPLE = Completion("", -1, (), "", "error")


@dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """What one round of generation gave.

    Attributes:
        rows: `[B]` pool rows.
        requests: `[B]` what was asked, prompt and prefix included.
        completions: `[B][G]` in order of sample.
        rewards: `[B, G]` 1 for a correct response, else 0.
        judged: `[B, G]` whether there is a verdict.
        truncated: `[B, G]` whether the response hit its limit without an answer.
        seconds_generate: wall time in the engine.
        seconds_verify: wall time in the verifier.
    """

    rows: IntArray
    requests: Sequence[Request]
    completions: Sequence[Sequence[Completion]]
    rewards: npt.NDArray[np.float64]
    judged: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    seconds_generate: float
    seconds_verify: float

    @property
    def successes(self) -> IntArray:
        """`[B]` correct responses."""
        return np.asarray((self.rewards * self.judged).sum(axis=1), dtype=np.int64)

    @property
    def trials(self) -> IntArray:
        """`[B]` responses with a verdict."""
        return np.asarray(self.judged.sum(axis=1), dtype=np.int64)

    @property
    def silent(self) -> npt.NDArray[np.bool_]:
        """`[B]` whether all verdicts agree, on exact counts; a group without any is silent."""
        return np.asarray((self.successes == 0) | (self.successes == self.trials))

    @property
    def n_tokens(self) -> IntArray:
        """`[B]` generated tokens."""
        return np.array([sum(len(c.tokens) for c in group) for group in self.completions])

    def reward_tensors(self) -> tuple[Tensor, Tensor]:
        """Rewards and whether they are judged, `[B, G]` each, float32 and bool."""
        return torch.from_numpy(self.rewards).float(), torch.from_numpy(self.judged)


def roll_out(engine: Engine, tasks: Tasks, rows: IntArray, requests: Sequence[Request]) -> Rollouts:
    """Generate and judge one group a request; every request asks for the same number of samples.

    Args:
        engine: generates.
        tasks: the pool's prompts and judge.
        rows: `[B]` pool rows.
        requests: `[B]` one a row.
    """
    size = requests[0].n
    place = {request.prompt_id: at for at, request in enumerate(requests)}
    shape = (len(requests), size)
    completions = [[_NO_SAMPLE] * size for _ in requests]
    rewards, judged, truncated = np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool)
    began, verifying = time.perf_counter(), 0.0
    for completion in engine.generate(requests):
        at = place[completion.prompt_id]
        i = completion.sample - requests[at].first_sample
        started = time.perf_counter()
        verdict = tasks.judge(completion).verdict
        verifying += time.perf_counter() - started
        completions[at][i] = completion
        rewards[at, i] = verdict.correct is True
        judged[at, i] = verdict.correct is not None
        truncated[at, i] = verdict.status == "truncated"
    elapsed = time.perf_counter() - began
    return Rollouts(
        np.asarray(rows, dtype=np.int64),
        requests,
        completions,
        rewards,
        judged,
        truncated,
        elapsed - verifying,
        verifying,
    )
