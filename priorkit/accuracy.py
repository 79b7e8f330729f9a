r"""How accurate a model is on a pool, and how far that can be trusted.

`P` prompts, `n` samples a prompt, `c` of them correct. Prompts are the units that are drawn:
samples of one prompt resemble each other, so an interval over samples would be too narrow.
Arrays in, values out; nothing here knows a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from priorkit.columns import FloatArray, IntArray, as_counts
from priorkit.errors import SettingError

if TYPE_CHECKING:
    from priorkit.outcomes import Counts

LEVEL = 0.95
RESAMPLES = 10_000

_BLOCK = 1 << 18  # prompts drawn at once: 2 MB of row numbers, whatever the pool


class Estimate(NamedTuple):
    """One number with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How a model did on a pool.

    Attributes:
        n_prompts: prompts asked about.
        n_unjudged: of them, those without a single verdict; every figure leaves them out.
        n_samples: samples of each prompt, errors included; None when prompts differ in it.
        mean: avg@n, the mean over prompts of each one's share of correct verdicts.
        low: lower end of its 95 % interval.
        high: upper end.
        interval: "wilson" when every judged prompt has exactly one verdict, or when all samples
            of all prompts went alike; else "bootstrap".
        pass_at: (value, low, high) of pass@k for k = 1, 2, 4, … up to `n`, and `n` itself; `n` is
            the smallest number of samples any sampled prompt has. A k that no prompt has verdicts
            enough for is left out. Where every prompt's pass@k is 0, or every one's is 1, a
            bootstrap would have no width; there the interval is Wilson's, a prompt a trial.
        pass_prompts: how many prompts each pass@k rests on: those with at least k verdicts.
        n_truncated: samples cut at the length limit; they count as wrong.
        n_error: samples without a verdict; they count as nothing.
    """

    n_prompts: int
    n_unjudged: int
    n_samples: int | None
    mean: float
    low: float
    high: float
    interval: Literal["wilson", "bootstrap"]
    pass_at: dict[int, Estimate]
    pass_prompts: dict[int, int]
    n_truncated: int
    n_error: int


def accuracy(counts: Counts, rng: np.random.Generator, resamples: int = RESAMPLES) -> Accuracy:
    """The accuracy that these counts show, as avg@n and pass@k.

    Leaving out prompts whose verifier failed is fair only where failures have nothing to do with
    being right: read `n_error` and `pass_prompts` before comparing two models.

    Args:
        counts: `[P]` what the samples of each prompt came to.
        rng: for the bootstrap.
        resamples: bootstrap draws over prompts.

    Raises:
        SettingError: no prompt has a verdict.
    """
    judged = counts.trials > 0
    if not judged.any():
        raise SettingError(
            f"accuracy needs a verdict, but none of {len(judged)} prompts has one "
            f"({int(counts.n_error.sum())} samples ended in an error); see the outcomes' "
            "`status`, and run the same command again to repeat engine errors"
        )
    successes, trials = counts.successes[judged], counts.trials[judged]
    samples = counts.trials + counts.n_error
    samples = samples[samples > 0]
    n = int(samples.min())
    enough = {k: trials >= k for k in _ladder(n)}
    pass_at = {
        k: _pass_estimate(successes[rows], trials[rows], k, rng, resamples)
        for k, rows in enough.items()
        if rows.any()
    }
    mean, low, high = pass_at[1]  # pass@1 is the mean, on the same prompts
    return Accuracy(
        n_prompts=len(judged),
        n_unjudged=int((~judged).sum()),
        n_samples=n if n == samples.max() else None,
        mean=mean,
        low=low,
        high=high,
        interval="wilson" if _is_wilsons(successes / trials, trials) else "bootstrap",
        pass_at=pass_at,
        pass_prompts={k: int(enough[k].sum()) for k in pass_at},
        n_truncated=int(counts.n_truncated.sum()),
        n_error=int(counts.n_error.sum()),
    )


def wilson_interval(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    r"""Where a rate may lie after `c` successes in `n` independent trials.

    $$ \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n} $$

    Wilson (1927), without continuity correction: coverage is `level` on average over rates, and
    less at some. Computed through the product of the two roots, p̂²/(1 + z²/n), so that no success
    gives exactly 0, no failure exactly 1, and swapping them mirrors the interval.

    Raises:
        SettingError: no trials, or successes outside of them.

    >>> [round(end, 3) for end in wilson_interval(0, 10)]
    [0.0, 0.278]
    """
    c, n = as_counts([successes, trials], "successes and trials").tolist()
    if not n >= 1:
        raise SettingError(f"an interval of a rate needs at least 1 trial, got {n}")
    if not 0 <= c <= n:
        raise SettingError(f"successes must lie between 0 and the {n} trials, got {c}")
    z = -float(ndtri(_tail(level)))
    return _lower_root(c, n, z), 1 - _lower_root(n - c, n, z)


def pass_at_k(successes: npt.ArrayLike, trials: npt.ArrayLike, k: int) -> FloatArray:
    r"""Probability that one of `k` samples is correct, estimated without bias from `n` ≥ `k`.

    $$ 1 - \binom{n-c}{k} \Big/ \binom{n}{k}
       = \sum_{j<k} \frac{c}{n-j} \prod_{i<j} \frac{n-c-i}{n-i} $$

    Chen et al. (arXiv 2107.03374), eq. 1. Summed over the draw that first succeeds rather than as
    printed: nothing cancels, and k = 1 is c/n exactly. 1 − (1 − c/n)^k would be too low.

    Args:
        successes: `[P]` correct samples.
        trials: `[P]` samples, at least `k`.
        k: samples a prompt may take, at least 1.

    Returns:
        `[P]` probabilities in [0, 1]; exactly 1 where fewer than `k` samples failed.

    Raises:
        SettingError: counts that are none, or too few trials; names the first row.

    >>> pass_at_k([0, 1, 3], [4, 4, 4], k=2)
    array([0. , 0.5, 1. ])
    """
    c, n = _counts_at_least(successes, trials, k)
    missed, total = np.ones(len(n)), np.zeros(len(n))
    for j in range(k):
        total += missed * (c / (n - j))
        missed *= np.maximum(n - c - j, 0) / (n - j)
    return np.where(n - c < k, 1.0, np.minimum(total, 1.0))


def bootstrap_mean(
    values: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """A mean over prompts with its percentile interval, prompts drawn with replacement.

    The interval is about other prompts of this kind, and holds the noise of sampling each one. It
    is narrow on few prompts (95 % covers about 94 on 30 prompts, 91 on 10), and has no width where
    all values are equal, as with one prompt or a pool that was never solved: that is no certainty
    (`accuracy` takes Wilson's interval there).

    Args:
        values: `[P]` one finite number a prompt, such as its solve rate.
        rng: for the draws.
        resamples: how many, at least 1.
        level: of the interval.

    Raises:
        SettingError: no values, or one that is not finite.
    """
    held = _finite(values, "values", 1)
    tail = _tail(level)
    if not resamples >= 1:
        raise SettingError(f"a bootstrap needs at least 1 resample, got {resamples}")
    origin = held[0]  # measured from a value, equal values have a mean without rounding
    centred = held - origin
    means = origin + _resampled_means(centred, rng, resamples)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Estimate(float(origin + centred.mean()), float(low), float(high))


def paired_difference(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """Mean of `after − before` over the same prompts, as `bootstrap_mean`.

    Where all `P` differences are the same, resampling would claim certainty. The interval then
    allows a share of the prompts to go all the way either way: the largest share of which `P`
    draws show none with probability (1 − level) / 2, as Clopper and Pearson have it for zero of P.

    Pairing takes out what prompts differ in, which is most of what rates differ by. Two runs of
    one model differ as well: this interval knows the prompts, not the training seeds.

    Args:
        before: `[P]` one finite number a prompt.
        after: `[P]` of the same prompts in the same order.
        rng: for the draws.
        resamples: how many.
        level: of the interval.

    Raises:
        SettingError: lengths differ, nothing to compare, or a value that is not finite.
    """
    old, new = _finite(before, "before", 1), _finite(after, "after", 1)
    if len(old) != len(new):
        raise SettingError(
            f"paired values need the same prompts, found {len(old)} before and {len(new)} after"
        )
    change = new - old
    if np.ptp(change):
        return bootstrap_mean(change, rng, resamples, level)
    same = float(change[0])
    unseen = 1.0 - ((1.0 - level) / 2) ** (1.0 / len(change))
    return Estimate(same, same - unseen * (same + 1.0), same + unseen * (1.0 - same))


def mean_interval(values: npt.ArrayLike, level: float = LEVEL) -> Estimate:
    """Mean of independent figures, one a run, with Student's t interval.

    Raises:
        SettingError: fewer than two values, or one that is not finite.
    """
    held = _finite(values, "values", 2)
    mean, variance = _mean_and_its_variance(held)
    return _t_estimate(mean, variance, len(held) - 1, level)


def welch_interval(a: npt.ArrayLike, b: npt.ArrayLike, level: float = LEVEL) -> Estimate:
    r"""mean(a) − mean(b) of independent figures, one a run, whose variances may differ.

    Student's t at Welch–Satterthwaite degrees of freedom,
    $(v_a + v_b)^2 / (v_a^2/(n_a-1) + v_b^2/(n_b-1))$ with $v = s^2/n$.
    Where neither side varies the interval has no width.

    Raises:
        SettingError: fewer than two values in either, or one that is not finite.
    """
    left, right = _finite(a, "a", 2), _finite(b, "b", 2)
    (mean_a, var_a), (mean_b, var_b) = map(_mean_and_its_variance, (left, right))
    variance = var_a + var_b
    share = var_a / variance if variance else 0.5  # a ratio: tiny variances squared would vanish
    freedom = 1 / (share**2 / (len(left) - 1) + (1 - share) ** 2 / (len(right) - 1))
    return _t_estimate(mean_a - mean_b, variance, freedom, level)


def _ladder(n: int) -> list[int]:
    return sorted({1 << i for i in range(n.bit_length())} | {n})


def _pass_estimate(
    successes: IntArray, trials: IntArray, k: int, rng: np.random.Generator, resamples: int
) -> Estimate:
    rates = pass_at_k(successes, trials, k)
    if _is_wilsons(rates, trials):
        low, high = wilson_interval(round(rates.sum()), len(trials))
        return Estimate(float(rates.mean()), low, high)
    return bootstrap_mean(rates, rng, resamples)


def _is_wilsons(rates: FloatArray, trials: IntArray) -> bool:
    """Whether a prompt is one trial: one verdict each, or all of them never or always solved."""
    return bool((trials == 1).all() or (rates == 0).all() or (rates == 1).all())


def _resampled_means(values: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Means of `P` values drawn with replacement, `[resamples]`."""
    size = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if 20 * len(distinct) < size:  # rates of few samples: drawing how often each one comes is cheap
        return np.asarray(rng.multinomial(size, counts / size, resamples) @ distinct / size)
    means = np.empty(resamples)
    step = max(1, _BLOCK // size)
    for start in range(0, resamples, step):
        block = means[start : start + step]
        block[:] = values[rng.integers(0, size, (len(block), size))].mean(axis=1)
    return means


def _lower_root(hits: int, trials: int, z: float) -> float:
    if not hits:
        return 0.0
    rate, pull = hits / trials, z * z / (2 * trials)
    return rate**2 / (rate + pull + sqrt(2 * pull * rate * (1 - rate) + pull**2))


def _mean_and_its_variance(values: FloatArray) -> tuple[float, float]:
    centred = values - values[0]  # exact zeros where nothing varies
    return float(values[0] + centred.mean()), float(centred.var(ddof=1) / len(values))


def _t_estimate(value: float, variance: float, freedom: float, level: float) -> Estimate:
    half = -float(stdtrit(freedom, _tail(level))) * sqrt(variance)
    return Estimate(value, value - half, value + half)


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise SettingError(f"an interval's level must lie between 0 and 1, got {level}")
    return (1 - level) / 2


def _finite(values: npt.ArrayLike, name: str, least: int) -> FloatArray:
    held = np.asarray(values, dtype=float)
    if held.ndim != 1 or len(held) < least:
        raise SettingError(
            f"{name} must be a list of at least {least} numbers, found shape {held.shape}"
        )
    bad = ~np.isfinite(held)
    if bad.any():
        raise SettingError(
            f"{name} must be finite, but {int(bad.sum())} of {len(held)} are not (first: row "
            f"{int(bad.argmax())}, {held[bad.argmax()]}); leave out prompts without a verdict"
        )
    return held


def _counts_at_least(
    successes: npt.ArrayLike, trials: npt.ArrayLike, k: int
) -> tuple[IntArray, IntArray]:
    c, n = as_counts(successes, "successes"), as_counts(trials, "trials")
    if c.ndim != 1 or c.shape != n.shape:
        raise SettingError(
            f"successes and trials must be lists of one length, found {c.shape} and {n.shape}"
        )
    if not k >= 1:
        raise SettingError(f"pass@k needs k of at least 1, got {k}")
    for bad, rule in (
        (n < k, f"pass@{k} needs {k} trials a prompt"),
        ((c < 0) | (c > n), "successes must lie between 0 and the trials"),
    ):
        if bad.any():
            row = int(bad.argmax())
            raise SettingError(
                f"{rule}, but {int(bad.sum())} of {len(n)} prompts break that "
                f"(first: row {row}, {c[row]} successes in {n[row]} trials)"
            )
    return c, n
