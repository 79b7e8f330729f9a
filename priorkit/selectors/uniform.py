"""Uniform sampling: the baseline, and a selector like any other."""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.columns import IntArray
from priorkit.selectors.protocol import CountingSelector


class UniformSelector(CountingSelector):
    """`n` distinct prompts at random, each step anew; outcomes change nothing."""

    name = "uniform"

    def __init__(self, prior: BetaPrior, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(prior, group_size)
        self._rng = rng
        self._candidates: IntArray | None = None  # None: the whole pool

    def select(self, n: int) -> IntArray:
        """`n` rows without replacement."""
        pool = len(self) if self._candidates is None else len(self._candidates)
        self._check_n(n, pool)
        drawn = self._rng.choice(pool, size=n, replace=False)
        return drawn if self._candidates is None else self._candidates[drawn]

    def state_dict(self) -> dict[str, object]:
        """As every selector, and the random state."""
        return super().state_dict() | {"random": copy.deepcopy(self._rng.bit_generator.state)}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """As every selector, and the random state."""
        super().load_state_dict(state)
        self._rng.bit_generator.state = cast("dict[str, Any]", copy.deepcopy(state["random"]))
