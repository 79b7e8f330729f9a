r"""How well a prior foretells reference solve rates: the whole pool, and the learnable band.

`P` prompts that both know. The **learnable band** is U(p) > 0.8 at the reference rate. Figures as
in ThinkPrior (arXiv 2609.09075), Table 5 and appendix B; which score the paper's AUC ranks by is
not printed there: ours is expected learnability, the score the selector uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from priorkit.beta import BetaPrior, expected_learnability, learnability
from priorkit.columns import FloatArray, IntArray
from priorkit.errors import MismatchError, SettingError
from priorkit.rates import Rates

BAND = 0.8  # U(p) above this is learnable (the paper's definition)

Interval = tuple[float, float]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its 95 % bootstrap interval over prompts."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """One row of a reliability table: prompts whose expected rate lies in [low, high)."""

    low: float
    high: float
    n: int
    expected: float
    measured: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A prior against a reference.

    Attributes:
        n: prompts compared.
        n_band: of them, how many lie in the learnable band.
        n_floor_in_band: band prompts that the prior's source never or always solved, which start
            near the floor of expected learnability.
        spearman: rank correlation of expected and reference rate, over all.
        spearman_band: the same inside the band.
        auc_band: probability that a band prompt scores above one outside, by expected learnability.
        mae: mean absolute error of the expected rate.
        brier: mean squared error of the expected rate against single reference samples.
        reliability: expected against measured, in ten bins.
    """

    n: int
    n_band: int
    n_floor_in_band: int
    spearman: Figure
    spearman_band: Figure
    auc_band: Figure
    mae: Figure
    brier: Figure
    reliability: tuple[Bin, ...]


def evaluate_prior(
    prior: BetaPrior,
    reference: Rates,
    rng: np.random.Generator,
    group_size: int = 8,
    resamples: int = 1000,
) -> Calibration:
    """Compare a prior's expected rates with measured ones.

    Args:
        prior: beliefs; prompts that the reference lacks are left out.
        reference: measured rates.
        rng: for the bootstrap.
        group_size: `G` of the score and of the band.
        resamples: bootstrap draws over prompts; 0 gives intervals of NaN.

    Raises:
        MismatchError: no prompt in common.
    """
    rows = prior.rows_of(reference.prompt_id)
    shared = np.flatnonzero(rows >= 0)
    if not shared.size:
        begins = reference.prompt_id[0] if len(reference) else "nothing"
        raise MismatchError(
            f"the priors and the reference have no prompt in common (this prior begins with "
            f"{prior.prompt_id[0]!r}, the reference with {begins!r}); ids must agree"
        )
    belief = prior.take(rows[shared])
    expected, measured = belief.mean, reference.rate[shared]
    score = expected_learnability(belief.alpha, belief.beta, group_size)
    band = learnability(measured, group_size) > BAND
    figures = _Figures(expected, measured, score, band)
    values, intervals = _bootstrap(figures, rng, resamples)
    rate = expected if belief.rate is None else belief.rate
    floor = band & ((rate == 0) | (rate == 1))
    return Calibration(
        n=len(shared),
        n_band=int(band.sum()),
        n_floor_in_band=int(floor.sum()),
        reliability=_reliability(expected, measured),
        **{
            name: Figure(float(values[i]), *intervals[i])
            for i, name in enumerate(("spearman", "spearman_band", "auc_band", "mae", "brier"))
        },
    )


def known_to_all(reference: Rates, priors: Iterable[BetaPrior]) -> Rates:
    """The reference's prompts that every prior knows, so that priors are compared on the same."""
    known = np.ones(len(reference), dtype=bool)
    for prior in priors:
        known &= prior.rows_of(reference.prompt_id) >= 0
    if known.all():
        return reference
    rows = np.flatnonzero(known)
    return Rates(
        reference.prompt_id[rows],
        reference.rate[rows],
        None if reference.successes is None else reference.successes[rows],
        None if reference.trials is None else reference.trials[rows],
        {name: [values[row] for row in rows] for name, values in reference.table.items()},
    )


def group_means(reference: Rates, column: str) -> list[tuple[object, int, float]]:
    """Mean rate by a column of the reference, each with its number of prompts; nulls left out."""
    if column not in reference.table:
        raise SettingError(
            f"the reference has no column {column!r} to group by "
            f"(found: {', '.join(reference.table) or 'none'})"
        )
    by = [_label(value) for value in reference.table[column]]
    labels = sorted({v for v in by if v is not None}, key=lambda v: (str(type(v)), v))
    out = []
    for label in labels:
        members = np.array([value == label for value in by])
        out.append((label, int(members.sum()), float(reference.rate[members].mean())))
    return out


def _label(value: object) -> object:
    if value is None or value != value:
        return None
    return value if isinstance(value, (str, int, float)) else str(value)


class _Figures:
    """The five figures as functions of how often each prompt was drawn, `[P]` integer weights."""

    def __init__(
        self, expected: FloatArray, measured: FloatArray, score: FloatArray, band: BoolArray
    ) -> None:
        self._band = band.astype(float)
        self._expected, self._measured, self._score = map(_codes, (expected, measured, score))
        self._absolute = np.abs(expected - measured)
        # Over single samples: E(x − e)² = (m − e)² + m(1 − m).
        self._squared = (measured - expected) ** 2 + measured * (1 - measured)

    def __len__(self) -> int:
        return len(self._band)

    def __call__(self, weight: FloatArray) -> FloatArray:
        total = weight.sum()
        return np.array(
            [
                _spearman(self._expected, self._measured, weight),
                _spearman(self._expected, self._measured, weight * self._band),
                _auc(self._score, self._band, weight),
                (weight @ self._absolute) / total,
                (weight @ self._squared) / total,
            ]
        )


def _bootstrap(
    figures: _Figures, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, list[Interval]]:
    size = len(figures)
    values = figures(np.ones(size))
    if not resamples:
        return values, [(float("nan"), float("nan"))] * len(values)
    drawn = np.array(
        [
            figures(np.bincount(rng.integers(0, size, size), minlength=size).astype(float))
            for _ in range(resamples)
        ]
    )
    with np.errstate(invalid="ignore"):
        bounds = [_quantiles(column) for column in drawn.T]
    return values, bounds


def _quantiles(column: FloatArray) -> Interval:
    known = column[~np.isnan(column)]
    if not known.size:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _codes(values: FloatArray) -> IntArray:
    """Rank among the distinct values, `[P]`: sorted once, for every resample to use."""
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _midranks(codes: IntArray, weight: FloatArray) -> FloatArray:
    """Mean rank of each row in the sample where row i stands `weight[i]` times."""
    mass = np.bincount(codes, weights=weight)
    return (np.cumsum(mass) - mass / 2)[codes]


def _spearman(x: IntArray, y: IntArray, weight: FloatArray) -> float:
    total = weight.sum()
    if total < 2:
        return float("nan")
    rank_x, rank_y = _midranks(x, weight), _midranks(y, weight)
    dx, dy = rank_x - (weight @ rank_x) / total, rank_y - (weight @ rank_y) / total
    spread = np.sqrt((weight @ dx**2) * (weight @ dy**2))
    return float((weight @ (dx * dy)) / spread) if spread > 0 else float("nan")


def _auc(score: IntArray, positive: FloatArray, weight: FloatArray) -> float:
    inside = float(weight @ positive)
    outside = float(weight.sum()) - inside
    if not (inside and outside):
        return float("nan")
    ranks = _midranks(score, weight)
    return float((weight * positive) @ ranks - inside * inside / 2) / (inside * outside)


def _reliability(expected: FloatArray, measured: FloatArray, bins: int = 10) -> tuple[Bin, ...]:
    at = np.minimum((expected * bins).astype(np.int64), bins - 1)
    mean: Callable[[FloatArray, int], float] = lambda values, b: float(values[at == b].mean())  # noqa: E731
    return tuple(
        Bin(b / bins, (b + 1) / bins, int((at == b).sum()), mean(expected, b), mean(measured, b))
        for b in range(bins)
        if (at == b).any()
    )
