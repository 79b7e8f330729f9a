"""Selectors that rank by learnability: ThinkPrior, its two ablations, and the oracle.

ThinkPrior (arXiv 2609.09075), Algorithm 1: take the top `B` by expected learnability, ties by pool
order; count the outcomes of the selected prompts only; prompts stay in the pool.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from priorkit.beta import BetaPrior, expected_learnability, flat_prior, learnability
from priorkit.columns import IntArray
from priorkit.errors import SettingError
from priorkit.selectors.protocol import CountingSelector
from priorkit.selectors.ranking import Ranking
from priorkit.selectors.uniform import UniformSelector


class ThinkPriorSelector(CountingSelector):
    """The top `n` by expected learnability under prior and counts; only drawn rows are rescored."""

    name = "thinkprior"

    def __init__(self, prior: BetaPrior, group_size: int) -> None:
        super().__init__(prior, group_size)
        self._ranking = Ranking(expected_learnability(prior.alpha, prior.beta, group_size))
        self._last = float("nan")

    def select(self, n: int) -> IntArray:
        """The `n` best rows, best first, ties by pool order."""
        self._check_n(n)
        rows = self._ranking.top(n)
        self._last = float(self._ranking.scores[rows].mean())
        return rows

    def observe(self, rows: IntArray, successes: IntArray, trials: IntArray) -> None:
        """Count, then rescore those rows."""
        super().observe(rows, successes, trials)
        at = np.asarray(rows, dtype=np.int64)
        if at.size:
            self._ranking.update(at, self._score(at))

    def scores(self) -> npt.NDArray[np.float64]:
        """`[P]` expected learnability now."""
        return self._ranking.scores.copy()

    def metrics(self) -> dict[str, float]:
        """As every selector, and the mean expected learnability of the last selection."""
        return super().metrics() | {"expected_learnability": self._last}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """As every selector; scores follow from the counts."""
        super().load_state_dict(state)
        seen = np.flatnonzero(self._successes + self._failures)
        fresh = expected_learnability(self._prior.alpha, self._prior.beta, self.group_size)
        self._ranking = Ranking(fresh)
        if seen.size:
            self._ranking.update(seen, self._score(seen))

    def _score(self, rows: IntArray) -> npt.NDArray[np.float64]:
        alpha = self._prior.alpha[rows] + self._successes[rows]
        beta = self._prior.beta[rows] + self._failures[rows]
        return expected_learnability(alpha, beta, self.group_size)


class OnlineNPSelector(ThinkPriorSelector):
    """ThinkPrior's score and updates from Beta(1, 1): the first batches are pool order.

    Any prior given is used for its prompts alone.
    """

    name = "online-np"

    def __init__(self, prior: BetaPrior, group_size: int) -> None:
        super().__init__(flat_prior(prior.prompt_id), group_size)


class PriorOnlySelector(UniformSelector):
    """Uniform draws from the fixed top half of the initial ranking; outcomes change nothing."""

    name = "prior-only"

    def __init__(self, prior: BetaPrior, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(prior, group_size, rng)
        ranking = Ranking(expected_learnability(prior.alpha, prior.beta, group_size))
        self._candidates = np.sort(ranking.top(-(-len(prior) // 2)))


class OracleSelector(CountingSelector):
    """The top `n` by U at reference rates: what a selector that knew the truth at the start does.

    The reference is fixed, so a policy that moves leaves it behind; it is a yardstick for the
    first steps, and uses what no run has.
    """

    name = "oracle"

    def __init__(
        self, prior: BetaPrior, group_size: int, reference_rate: npt.ArrayLike | None = None
    ) -> None:
        super().__init__(prior, group_size)
        if reference_rate is None:
            raise SettingError("the oracle needs reference solve rates: reference_rate=[P]")
        rate = np.asarray(reference_rate, dtype=float)
        if rate.shape != (len(prior),):
            raise SettingError(f"reference_rate has shape {rate.shape}, expected ({len(prior)},)")
        self._ranking = Ranking(learnability(rate, group_size))

    def select(self, n: int) -> IntArray:
        """The `n` best rows by U at the reference rate, ties by pool order."""
        self._check_n(n)
        return self._ranking.top(n)
