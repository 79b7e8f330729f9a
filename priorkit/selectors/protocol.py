"""What a selector is asked and what it answers, and the counting every one of them shares.

`P` prompts in the pool, `G` rollouts in a group. Rows are positions in the pool; ids stay outside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from priorkit.beta import BetaPrior, check_group_size
from priorkit.columns import IntArray, as_counts, order_hash
from priorkit.errors import MismatchError, SettingError

CountArray = npt.NDArray[np.int32]


class Selector(Protocol):
    """Chooses which prompts to roll out next, and learns from how it went."""

    def select(self, n: int) -> IntArray:
        """Pool rows of `n` distinct prompts, `[n]`, best first."""
        ...

    def observe(self, rows: IntArray, successes: IntArray, trials: IntArray) -> None:
        """How the groups of those rows went, `[n]` each."""
        ...

    def posterior(self) -> BetaPrior:
        """The prior plus every observed count, whatever the selector itself believes."""
        ...

    def metrics(self) -> dict[str, float]:
        """Figures for a log line."""
        ...

    def state_dict(self) -> dict[str, object]:
        """All that a resumed run needs: numbers, text and numpy arrays."""
        ...

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from a saved state; refuses one of another pool, order or prior."""
        ...


class CountingSelector:
    """Keeps the base beliefs and integer counts apart, so that no update is ever rounded away.

    Thirty-two bytes a prompt with a score: α and β, two 32-bit counts, and the subclass's score.
    """

    name = "counting"

    def __init__(self, prior: BetaPrior, group_size: int) -> None:
        check_group_size(group_size)
        # The file's other columns would only be carried along.
        self._prior = replace(
            prior, rate=None, successes=None, trials=None, n_truncated=None, n_error=None
        )
        self.group_size = group_size
        self._successes: CountArray = np.zeros(len(prior), dtype=np.int32)
        self._failures: CountArray = np.zeros(len(prior), dtype=np.int32)
        self._groups = self._silent = 0

    def __len__(self) -> int:
        return len(self._prior)

    def observe(self, rows: IntArray, successes: IntArray, trials: IntArray) -> None:
        """Count the groups of those rows, `[n]` each; a row may come more than once."""
        at, solved, tried = (
            as_counts(values, name)
            for values, name in ((rows, "rows"), (successes, "successes"), (trials, "trials"))
        )
        self._check(at, solved, tried)
        held = self._successes[at].astype(np.int64) + self._failures[at]
        if at.size and int(held.max()) + int(tried.sum()) >= 2**31:
            raise SettingError("more than 2**31 rollouts of one prompt cannot be counted")
        np.add.at(self._successes, at, solved.astype(np.int32))
        np.add.at(self._failures, at, (tried - solved).astype(np.int32))
        self._groups += int(np.count_nonzero(tried))
        self._silent += int(np.count_nonzero((tried > 0) & ((solved == 0) | (solved == tried))))

    def posterior(self) -> BetaPrior:
        """The prior plus every observed count."""
        return self._prior.updated(self._successes, self._failures)

    def metrics(self) -> dict[str, float]:
        """Groups observed, the silent share of them, and the share of the pool seen at all."""
        seen = np.count_nonzero(self._successes + self._failures)
        return {
            "groups": float(self._groups),
            "silent": self._silent / self._groups if self._groups else 0.0,
            "coverage": float(seen) / len(self),
        }

    def state_dict(self) -> dict[str, object]:
        """Base beliefs, counts, and what identifies the pool and its order."""
        return {
            "selector": self.name,
            "order_hash": self._order_hash(),
            "group_size": self.group_size,
            "alpha": self._prior.alpha.copy(),
            "beta": self._prior.beta.copy(),
            "successes": self._successes.copy(),
            "failures": self._failures.copy(),
            "groups": self._groups,
            "silent": self._silent,
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Counts of a saved state, after checking that they are about this pool and prior."""
        for key, ours in (
            ("selector", self.name),
            ("order_hash", self._order_hash()),
            ("group_size", self.group_size),
        ):
            if state.get(key) != ours:
                raise MismatchError(
                    f"the saved state has {key} {_brief(state.get(key))}, this "
                    f"selector {_brief(ours)}; it belongs to another run"
                )
        absent = {"alpha", "beta", "successes", "failures", "groups", "silent"} - set(state)
        if absent:
            raise MismatchError(f"the saved state lacks {sorted(absent)[0]!r}; it is not whole")
        for key in ("alpha", "beta"):
            if not np.array_equal(np.asarray(state[key]), getattr(self._prior, key)):
                raise MismatchError(f"the saved state started from another prior ({key} differs)")
        counts = [np.array(state[key], dtype=np.int32) for key in ("successes", "failures")]
        if any(count.shape != self._successes.shape for count in counts):
            raise MismatchError(f"the saved state does not hold counts of {len(self)} prompts")
        self._successes, self._failures = counts
        self._groups = int(cast("int", state["groups"]))
        self._silent = int(cast("int", state["silent"]))

    def _order_hash(self) -> str:
        return order_hash(self._prior.prompt_id)

    def _check_n(self, n: int, available: int | None = None) -> None:
        limit = len(self) if available is None else available
        if not 1 <= n <= limit:
            raise SettingError(
                f"cannot select {n} distinct prompts from {limit}; the batch must "
                "lie between 1 and the pool's size"
            )

    def _check(self, rows: IntArray, solved: IntArray, tried: IntArray) -> None:
        if not (rows.ndim == 1 and rows.shape == solved.shape == tried.shape):
            raise SettingError(
                f"rows, successes and trials must be [n] alike, got {rows.shape}, "
                f"{solved.shape}, {tried.shape}"
            )
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise SettingError(
                f"rows must lie in 0..{len(self) - 1}, got {rows.min()}..{rows.max()}"
            )
        if not np.all((solved >= 0) & (solved <= tried)):
            at = int(np.argmin((solved >= 0) & (solved <= tried)))
            raise SettingError(
                f"successes must lie in 0..trials, got {solved[at]} of {tried[at]} "
                f"in row {rows[at]}"
            )


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 20 else text[:10] + "…'"
