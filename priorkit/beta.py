r"""Beta beliefs about solve rates, and how learnable a prompt is under them.

`P` prompts, `G` rollouts in a group. Arrays in, arrays out; nothing here knows a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from priorkit.columns import (
    FloatArray,
    IntArray,
    TextArray,
    as_counts,
    as_ids,
    check_ids,
    refuse_rows,
)
from priorkit.errors import PriorFileError, SettingError
from priorkit.schema import PriorKind

KAPPA = 4.0  # strength of an anchor's word, in pseudo-rollouts (ThinkPrior, eq. 6)
EPSILON = 1e-3  # keeps both pseudo-counts above zero (ThinkPrior, eq. 6)

MAX_PSEUDO_COUNT = 1e15  # beyond, adding one rollout changes nothing
MAX_GROUP_SIZE = 512  # beyond, the smallest terms of a score underflow

_MEASURES = ("rate", "successes", "trials", "n_truncated", "n_error")
_BLOCK = 1 << 15  # prompts scored at once: the working set stays in cache


def learnability(rate: npt.ArrayLike, group_size: int) -> FloatArray:
    r"""Probability that a group of `G` rollouts is mixed, at a known solve rate.

    $$ U(p) = 1 - p^G - (1-p)^G $$

    ThinkPrior (arXiv 2609.09075), eq. 2. Summed over mixed outcomes rather than as printed,
    which loses every digit near `p` = 0 and 1.

    Args:
        rate: `[P]` solve rates in [0, 1].
        group_size: rollouts in a group, at least 2.

    Returns:
        `[P]` probabilities in [0, 1 − 2^{1−G}].

    >>> learnability([0.0, 0.05, 0.5, 0.95], group_size=8).round(3)
    array([0.   , 0.337, 0.992, 0.337])
    """
    check_group_size(group_size)
    p = np.asarray(rate, dtype=float)
    if not np.all((p >= 0) & (p <= 1)):
        raise SettingError("solve rates must lie in [0, 1]")
    low = np.minimum(p, 1 - p)
    high = 1 - low
    # 1 − pᴳ − qᴳ = q·(1 + p + … + p^{G−1}) − qᴳ = q·Σ_{j=1}^{G−1} pʲ + q·(1 − q^{G−1}), q = low;
    # and 1 − q^{G−1} = p·Σ_{j<G−1} qʲ: all terms positive.
    total = np.zeros_like(p)
    for j in range(1, group_size):
        total += high**j + high * low ** (j - 1)
    # Rounding may carry the peak an ulp past its exact value.
    mixed: FloatArray = np.minimum(low * total, 1 - 2.0 ** (1 - group_size))
    return mixed


def expected_learnability(alpha: npt.ArrayLike, beta: npt.ArrayLike, group_size: int) -> FloatArray:
    r"""Probability that a group of `G` rollouts is mixed, for $p \sim \mathrm{Beta}(\alpha,\beta)$.

    $$ U_\beta = 1 - \frac{(\alpha)_G + (\beta)_G}{(\alpha+\beta)_G},
       \qquad (a)_G = \prod_{j<G} (a+j) $$

    ThinkPrior (arXiv 2609.09075), eq. 3. This is not `learnability(mean)`: doubt about `p`
    lowers it, so a prompt never probed scores below one known to sit at one half.
    Summed over mixed outcomes rather than as printed, which loses six digits near the floor;
    equal to the bit when `alpha` and `beta` change places, so ties stay ties.

    Args:
        alpha: `[P]` pseudo-solves, above zero.
        beta: `[P]` pseudo-failures, above zero.
        group_size: rollouts in a group, 2 to 512.

    Returns:
        `[P]` probabilities in (0, 1).

    >>> expected_learnability([1.0, 50.0], [1.0, 50.0], group_size=8).round(3)
    array([0.778, 0.99 ])
    """
    check_group_size(group_size)
    a, b = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(beta, dtype=float))
    _check_pseudo_counts(a, b)
    flat_a, flat_b = a.ravel(), b.ravel()
    out = np.empty(flat_a.shape)
    for start in range(0, flat_a.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = _mixed_probability(flat_a[part], flat_b[part], group_size)
    return out.reshape(a.shape)


def _mixed_probability(alpha: FloatArray, beta: FloatArray, group_size: int) -> FloatArray:
    low, high = np.minimum(alpha, beta), np.maximum(alpha, beta)
    total = low + high
    term = np.ones_like(high)
    for j in range(group_size):
        term *= (high + j) / (total + j)  # P(all G on the likelier side)
    mixed = np.zeros_like(term)
    for c in range(1, group_size):  # P(c on the other side); positive terms, so nothing cancels
        term *= ((group_size - c + 1) / c) * ((low + (c - 1)) / (high + (group_size - c)))
        mixed += term
    return mixed


@dataclass(frozen=True, slots=True, eq=False)
class BetaPrior:
    """What is believed about each prompt's solve rate before training sees it.

    Attributes:
        prompt_id: `[P]` unique keys, in file order.
        alpha: `[P]` pseudo-count of solves, above zero.
        beta: `[P]` pseudo-count of failures, above zero.
        row_hash: `[P]` hash of the pool row each belief is about; None when not known.
        rate: `[P]` the measured solve rate φ̂, NaN for a prompt without; None when not known.
        successes: `[P]` correct samples behind the rate; None when not known.
        trials: `[P]` samples with a verdict behind the rate; None when not known.
        n_truncated: `[P]` of the trials, how many stopped at the length limit.
        n_error: `[P]` samples without a verdict, not among the trials.
        kind: where the belief comes from.
        provenance: the account a file carries in its footer.
    """

    prompt_id: TextArray  # [P]
    alpha: FloatArray  # [P]
    beta: FloatArray  # [P]
    row_hash: TextArray | None = None  # [P]
    rate: FloatArray | None = None  # [P]
    successes: IntArray | None = None  # [P]
    trials: IntArray | None = None  # [P]
    n_truncated: IntArray | None = None  # [P]
    n_error: IntArray | None = None  # [P]
    kind: PriorKind = "import"
    provenance: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*_MEASURES, "alpha", "beta", "row_hash"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.prompt_id):
                raise PriorFileError(f"{name!r} has {len(values)} rows, ids {len(self.prompt_id)}")
        check_ids(self.prompt_id)
        for name in ("alpha", "beta"):
            _check_column(self.prompt_id, name, getattr(self, name))
        self._check_measures()

    def _check_measures(self) -> None:
        ids = self.prompt_id
        if self.rate is not None:
            bad = (self.rate < 0) | (self.rate > 1)
            refuse_rows(ids, bad, "rate", self.rate, "must lie in [0, 1]", error=PriorFileError)
        for name in _MEASURES[1:]:
            values = getattr(self, name)
            if values is not None:
                refuse_rows(
                    ids, values < 0, name, values, "must not be negative", error=PriorFileError
                )
        if self.successes is not None and self.trials is not None:
            bad = self.successes > self.trials
            rule = "must not exceed the trials"
            refuse_rows(ids, bad, "successes", self.successes, rule, error=PriorFileError)

    def __len__(self) -> int:
        return len(self.prompt_id)

    @classmethod
    def from_counts(
        cls,
        prompt_id: Sequence[str] | TextArray,
        successes: npt.ArrayLike,
        trials: npt.ArrayLike,
        kappa: float = KAPPA,
        epsilon: float = EPSILON,
        **columns: Any,
    ) -> BetaPrior:
        """Beliefs from verified counts: α = κC/k + ε₀, β = κ(k−C)/k + ε₀ (ThinkPrior, eq. 6).

        Args:
            prompt_id: `[P]` unique keys.
            successes: `[P]` correct samples, 0 ≤ C ≤ k.
            trials: `[P]` samples with a verdict, at least 1.
            kappa: weight of the measurement in pseudo-rollouts, above zero.
            epsilon: added to both counts, above zero.
            columns: further fields of `BetaPrior`.
        """
        ids = as_ids(prompt_id)
        solved = as_counts(np.broadcast_to(np.asarray(successes), (len(ids),)), "successes")
        tried = as_counts(np.broadcast_to(np.asarray(trials), (len(ids),)), "trials")
        check_strength(kappa, epsilon)
        refuse_rows(ids, tried < 1, "trials", tried, "must be at least 1: no sample has a verdict")
        refuse_rows(
            ids, (solved < 0) | (solved > tried), "successes", solved, "must lie in 0..trials"
        )
        share, rest = solved / tried, (tried - solved) / tried  # both exact mirrors of each other
        return cls(
            ids,
            kappa * share + epsilon,
            kappa * rest + epsilon,
            rate=share,
            successes=solved,
            trials=tried,
            **columns,
        )

    @classmethod
    def from_rates(
        cls,
        prompt_id: Sequence[str] | TextArray,
        rate: npt.ArrayLike,
        trials: npt.ArrayLike | None = None,
        kappa: float = KAPPA,
        epsilon: float = EPSILON,
        **columns: Any,
    ) -> BetaPrior:
        """Beliefs from solve rates alone, or with the number of samples behind each.

        Args:
            prompt_id: `[P]` unique keys.
            rate: `[P]` solve rates in [0, 1].
            trials: samples behind each rate, `[P]` or one number; where rate · trials is whole,
                the counts are used, so that mirrored rates get mirrored beliefs to the bit.
            kappa: weight of the measurement in pseudo-rollouts, above zero.
            epsilon: added to both counts, above zero.
            columns: further fields of `BetaPrior`.
        """
        check_strength(kappa, epsilon)
        ids = as_ids(prompt_id)
        p = np.asarray(rate, dtype=float)
        if p.shape != (len(ids),):
            raise SettingError(f"rate has shape {p.shape}, expected ({len(ids)},) to match the ids")
        refuse_rows(ids, ~((p >= 0) & (p <= 1)), "rate", p, "must lie in [0, 1]")
        if trials is not None:
            tried = as_counts(np.broadcast_to(np.asarray(trials), p.shape), "trials")
            solved = np.rint(p * tried).astype(np.int64)
            if np.all((tried >= 1) & (np.abs(solved - p * tried) < 1e-6 * np.maximum(tried, 1))):
                return cls.from_counts(ids, solved, tried, kappa, epsilon, **columns)
            refuse_rows(ids, tried < 1, "trials", tried, "must be at least 1")
            columns = {**columns, "trials": tried.copy()}
        return cls(ids, kappa * p + epsilon, kappa * (1 - p) + epsilon, rate=p, **columns)

    @property
    def mean(self) -> FloatArray:
        """`[P]` expected solve rate α/(α+β)."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def measured(self) -> FloatArray:
        """The measured rates, without prompts that have none; the means where nothing is known."""
        return self.mean if self.rate is None else self.rate[~np.isnan(self.rate)]

    def updated(self, successes: npt.ArrayLike, failures: npt.ArrayLike) -> BetaPrior:
        """The belief after counting more rollouts; this one is left as it was."""
        return replace(
            self,
            alpha=self.alpha + np.asarray(successes),
            beta=self.beta + np.asarray(failures),
            kind="posterior",
        )

    def rescaled(self, kappa: float, epsilon: float = EPSILON) -> BetaPrior:
        """The same means at strength κ, as a posterior is when it becomes a new prior."""
        check_strength(kappa, epsilon)
        total = self.alpha + self.beta
        return replace(
            self,
            alpha=kappa * (self.alpha / total) + epsilon,
            beta=kappa * (self.beta / total) + epsilon,
        )

    def take(self, rows: IntArray) -> BetaPrior:
        """The beliefs of those rows, in that order."""
        columns: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in (
                "prompt_id", "alpha", "beta", "row_hash", "rate",
                "successes", "trials", "n_truncated", "n_error",
            )
        }  # fmt: skip
        return replace(self, **columns)

    def rows_of(self, prompt_id: Sequence[str] | TextArray) -> IntArray:
        """`[len(prompt_id)]` row of each id, −1 where it has none."""
        wanted = as_ids(prompt_id)
        if len(wanted) == len(self) and bool(np.all(wanted == self.prompt_id)):
            return np.arange(len(self), dtype=np.int64)
        place = {key: row for row, key in enumerate(self.prompt_id)}
        return np.fromiter((place.get(key, -1) for key in wanted), np.int64, len(wanted))


def flat_prior(prompt_id: Sequence[str] | TextArray) -> BetaPrior:
    """Beta(1, 1) for every prompt: nothing is known, every score is 1 − 2/(G+1)."""
    ids = as_ids(prompt_id)
    return BetaPrior(ids, np.ones(len(ids)), np.ones(len(ids)))


def _check_column(ids: TextArray, name: str, values: FloatArray) -> None:
    bad = ~((values > 0) & (values <= MAX_PSEUDO_COUNT / 2))  # so written, NaN is caught as well
    refuse_rows(
        ids, bad, name, values, "must be above zero and finite",
        "counts were probably written without a base prior; rebuild with `priorkit prior import`",
        PriorFileError,
    )  # fmt: skip


def check_group_size(group_size: int) -> None:
    """Refuse a group size for which there is no score.

    Raises:
        SettingError: below 2, or above 512, where the sums leave the range of floats.
    """
    if group_size > MAX_GROUP_SIZE:
        raise SettingError(f"group size must be at most {MAX_GROUP_SIZE}, got {group_size}")
    if not group_size >= 2:
        raise SettingError(
            f"group size must be at least 2, got {group_size}: one rollout has "
            "nothing to be compared with"
        )


def check_strength(kappa: float, epsilon: float) -> None:
    """Refuse pseudo-counts that are not above zero."""
    if not (0 < kappa < np.inf and 0 < epsilon < np.inf):
        raise SettingError(f"kappa and epsilon must be above zero, got {kappa} and {epsilon}")


def _check_pseudo_counts(alpha: FloatArray, beta: FloatArray) -> None:
    limit = MAX_PSEUDO_COUNT / 2
    if not all(np.all((count > 0) & (count <= limit)) for count in (alpha, beta)):
        raise SettingError(f"pseudo-counts alpha and beta must be above zero and at most {limit:g}")
