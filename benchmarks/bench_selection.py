"""One selection step at a million prompts: select and observe 512 groups of 8."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.selectors import ThinkPriorSelector

POOL, BATCH, GROUP = 1_000_000, 512, 8
TARGET = 2e-3  # seconds a step, median


def test_a_step_at_a_million_prompts(benchmark: Any) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(POOL)
    ids = [str(i) for i in range(POOL)]
    counts = rng.binomial(16, truth)
    selector = ThinkPriorSelector(BetaPrior.from_counts(ids, counts, np.full(POOL, 16)), GROUP)
    trials = np.full(BATCH, GROUP)

    def outcome_of_a_step() -> tuple[tuple[Any, ...], dict[str, Any]]:
        # The rollouts are not ours to time; their counts are drawn here, from the true rates.
        return (rng.binomial(GROUP, truth[selector.select(BATCH)]),), {}

    def step(successes: Any) -> None:
        selector.observe(selector.select(BATCH), successes, trials)

    benchmark.pedantic(step, setup=outcome_of_a_step, rounds=300, warmup_rounds=10)
    assert benchmark.stats.stats.median <= TARGET
