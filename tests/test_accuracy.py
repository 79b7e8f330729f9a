"""`priorkit/accuracy.py`: intervals against scipy and enumeration, pass@k against every subset."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from priorkit.accuracy import (
    Estimate,
    _resampled_means,
    accuracy,
    bootstrap_mean,
    mean_interval,
    paired_difference,
    pass_at_k,
    welch_interval,
    wilson_interval,
)
from priorkit.columns import as_ids
from priorkit.errors import SettingError
from priorkit.outcomes import Counts

levels = st.floats(0.5, 0.999)
counted = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
figures = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=12)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def counts(successes, trials, n_truncated=None, n_error=None) -> Counts:
    columns = [
        np.zeros(len(trials), dtype=np.int64) if column is None else np.array(column)
        for column in (successes, trials, n_truncated, n_error)
    ]
    return Counts(as_ids([f"p{i}" for i in range(len(trials))]), *columns)


@given(counted, levels)
def test_wilson_holds_the_rate_and_mirrors_it(case, level):
    c, n = case
    low, high = wilson_interval(c, n, level)
    assert 0 <= low <= c / n <= high <= 1
    assert wilson_interval(n - c, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-15)
    assert (low == 0) == (c == 0)
    assert (high == 1) == (c == n)


@given(counted, levels)
def test_wilson_is_scipys(case, level):
    c, n = case
    theirs = stats.binomtest(c, n).proportion_ci(level, method="wilson")
    assert wilson_interval(c, n, level) == pytest.approx(tuple(theirs), abs=1e-12)


def test_wilson_covers_as_often_as_it_says_on_average():
    n, rates = 50, np.linspace(0.005, 0.995, 199)
    ends = np.array([wilson_interval(c, n) for c in range(n + 1)])
    holds = (ends[:, :1] <= rates) & (rates <= ends[:, 1:])  # [n + 1, rates]
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    coverage = (holds * chance).sum(axis=0)
    assert 0.93 < coverage.mean() < 0.97
    assert coverage.min() > 0.83  # a score interval dips near the ends, and no further


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_success(samples, data):
    k = data.draw(st.integers(1, len(samples)))
    subsets = list(combinations(samples, k))
    share = sum(map(any, subsets)) / len(subsets)
    assert pass_at_k([sum(samples)], [len(samples)], k)[0] == pytest.approx(share, abs=1e-12)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(*[st.integers(0, n)] * 2, st.just(n))))
@settings(max_examples=60)
def test_pass_at_k_is_exact_for_many_samples(case):
    c, k, n = case
    k = max(k, 1)
    exact = 1 - Fraction(comb(n - c, k), comb(n, k))
    found = pass_at_k([c], [n], k)[0]
    assert found == pytest.approx(float(exact), rel=1e-12)
    assert (found == 1) >= (n - c < k)


@given(st.lists(counted.filter(lambda case: case[1] >= 12), min_size=1, max_size=8))
def test_pass_at_one_is_the_rate_and_more_tries_never_lose(cases):
    c, n = np.array(cases).T
    ladder = np.array([pass_at_k(c, n, k) for k in range(1, 13)])  # [K, P]
    assert np.array_equal(ladder[0], c / n)
    assert (np.diff(ladder, axis=0) >= 0).all()
    assert (ladder <= 1).all()


def test_pass_at_k_never_exceeds_certainty_by_rounding():
    c = np.arange(201)
    assert all((pass_at_k(c, np.full(201, 200), k) <= 1).all() for k in range(1, 201))


@pytest.mark.parametrize(
    ("successes", "trials", "k", "found"),
    [
        ([1, 1, 0], [4, 3, 2], 4, r"pass@4 needs 4 trials.* 2 of 3 .*row 1, 1 successes in 3"),
        ([1, 5], [4, 4], 1, "row 1, 5 successes in 4"),
        ([-1], [4], 1, "row 0, -1 successes"),
        ([1], [4], 0, "at least 1, got 0"),
        ([1], [4, 4], 1, "one length"),
        ([0.5], [4], 1, "whole numbers"),
    ],
)
def test_pass_at_k_says_what_was_wrong_with_the_counts(successes, trials, k, found):
    with pytest.raises(SettingError, match=found):
        pass_at_k(successes, trials, k)


def test_the_same_generator_gives_the_same_bootstrap():
    values = seeded(5).random(40)
    one, other = (bootstrap_mean(values, seeded(1), 500) for _ in range(2))
    assert one == other
    assert bootstrap_mean(values, seeded(2), 500) != one
    assert one.low < one.value < one.high


@pytest.mark.parametrize("decimals", [1, 17], ids=["by distinct value", "by prompt"])
def test_resampled_means_have_the_mean_and_spread_of_the_bootstrap(decimals):
    values = np.round(seeded(3).beta(0.5, 1.5, 400), decimals)
    means = _resampled_means(values, seeded(4), 20_000)
    spread = values.std() / 20  # √400
    # Standard errors: spread/√20000 of the mean, 0.5 % of the deviation; four of each.
    assert means.mean() == pytest.approx(values.mean(), abs=4 * spread / 20_000**0.5)
    assert means.std() == pytest.approx(spread, rel=0.02)
    assert stats.skew(means) == pytest.approx(stats.skew(values) / 20, abs=4 * (6 / 20_000) ** 0.5)


def test_the_bootstrap_covers_the_populations_mean_at_its_level():
    rng, inside = seeded(6), 0
    for _ in range(400):
        rates = rng.beta(0.6, 0.9, 100)  # mean 0.4
        found = bootstrap_mean(rng.binomial(4, rates) / 4, rng, 400)
        inside += found.low <= 0.4 <= found.high
    # Standard error of 400 trials at 95 %: 1.1 points; three of them, and one for 100 prompts.
    assert 0.907 <= inside / 400 <= 0.983


def test_a_large_pools_bootstrap_takes_little_memory():
    values = seeded().random(5000)
    tracemalloc.start()
    try:
        bootstrap_mean(values, seeded(), 1000)
        assert tracemalloc.get_traced_memory()[1] < 16e6  # all draws at once: 40 MB and more
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("values", [[0.1], [0.1] * 3, [0.1] * 100])
def test_equal_values_leave_the_bootstrap_no_width(values):
    assert bootstrap_mean(values, seeded(), 50) == (0.1, 0.1, 0.1)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.0, 1.0), (0.25, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize("prompts", [1, 12, 300])
def test_equal_changes_leave_room_for_the_prompts_not_seen(before, after, prompts):
    found = paired_difference([before] * prompts, [after] * prompts, seeded())
    share = stats.beta.ppf(0.975, 1, prompts)  # Clopper and Pearson, none of so many
    change = after - before
    assert found == pytest.approx(
        (change, change - share * (change + 1), change + share * (1 - change))
    )


def test_a_paired_difference_is_the_mean_of_the_differences_and_forgets_the_prompts():
    before = seeded(7).random(60)
    after = before + seeded(8).normal(0.05, 0.02, 60)
    found = paired_difference(before, after, seeded(1), 2000)
    assert found.value == pytest.approx((after - before).mean())
    assert found == bootstrap_mean(after - before, seeded(1), 2000)
    assert found.low > 0  # as an unpaired comparison could not tell
    assert found.high - found.low < 0.1 * (before.std() / 60**0.5) * 4


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # scipy's, on equal values
@given(figures, figures, levels)
def test_welch_is_scipys(a, b, level):
    found = welch_interval(a, b, level)
    assert found.value == pytest.approx(np.mean(a) - np.mean(b), abs=1e-9)
    if len(set(a)) > 1 or len(set(b)) > 1:
        theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
        assert (found.low, found.high) == pytest.approx(tuple(theirs), rel=1e-9, abs=1e-9)
    else:
        assert found.low == found.value == found.high == a[0] - b[0]


@given(figures, levels)
def test_a_mean_interval_is_scipys(values, level):
    found = mean_interval(values, level)
    if len(set(values)) > 1:
        theirs = stats.ttest_1samp(values, 0).confidence_interval(level)
        assert (found.low, found.high) == pytest.approx(tuple(theirs), rel=1e-9, abs=1e-9)
    else:
        assert found == (values[0],) * 3


def test_welch_takes_figures_too_small_to_square():
    small = welch_interval([0.0, 1e-90], [0.0, 3e-90])
    same = welch_interval([0.0, 1.0], [0.0, 3.0])
    assert small.high / 1e-90 == pytest.approx(same.high)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: wilson_interval(0, 0), "at least 1 trial"),
        (lambda: wilson_interval(3, 2), "got 3"),
        (lambda: wilson_interval(-1, 2), "got -1"),
        (lambda: wilson_interval(1, 2, level=95), "between 0 and 1, got 95"),
        (lambda: wilson_interval(1, 2, level=float("nan")), "got nan"),
        (lambda: bootstrap_mean([], seeded()), "at least 1 numbers"),
        (lambda: bootstrap_mean([1.0, float("nan")], seeded()), "1 of 2 .*row 1, nan"),
        (lambda: bootstrap_mean([[1.0]], seeded()), r"shape \(1, 1\)"),
        (lambda: bootstrap_mean([1.0], seeded(), 0), "at least 1 resample, got 0"),
        (lambda: paired_difference([1.0], [1.0, 2.0], seeded()), "1 before and 2 after"),
        (lambda: mean_interval([1.0]), "values .*at least 2"),
        (lambda: welch_interval([1.0, 2.0], [1.0]), "b .*at least 2"),
        (lambda: accuracy(counts([0, 0], [0, 0], n_error=[1, 2]), seeded()), r"2 prompts.*3 sam"),
    ],
)
def test_what_has_no_interval_is_refused_with_the_reason(call, found):
    with pytest.raises(SettingError, match=found):
        call()


def test_one_verdict_a_prompt_has_wilsons_interval():
    found = accuracy(counts([1, 0, 1, 1], [1] * 4, n_truncated=[0, 1, 0, 0]), seeded())
    assert found.interval == "wilson"
    assert (found.low, found.high) == wilson_interval(3, 4)
    assert found.pass_at == {1: (0.75, found.low, found.high)}
    assert (found.n_prompts, found.n_samples, found.n_truncated) == (4, 1, 1)


def test_several_verdicts_a_prompt_are_resampled_by_prompt():
    successes, trials = seeded(9).binomial(12, 0.3, 80), np.full(80, 12)
    found = accuracy(counts(successes, trials), seeded(), 500)
    assert found.interval == "bootstrap"
    assert list(found.pass_at) == [1, 2, 4, 8, 12]
    assert found.pass_at[1] == (found.mean, found.low, found.high)
    assert found.mean == pytest.approx((successes / 12).mean())
    assert found.pass_at[12].value == pytest.approx((successes > 0).mean())
    assert isinstance(found.pass_at[8], Estimate)
    assert found == accuracy(counts(successes, trials), seeded(), 500)


@pytest.mark.parametrize("solved", [0, 8])
def test_a_pool_never_or_always_solved_has_wilsons_interval_over_prompts(solved):
    found = accuracy(counts([solved] * 30, [8] * 30), seeded(), 50)
    assert found.interval == "wilson"
    assert (found.low, found.high) == wilson_interval(30 if solved else 0, 30)
    assert found.high - found.low > 0.1
    assert list(found.pass_at) == [1, 2, 4, 8]
    assert set(found.pass_at.values()) == {(solved / 8, found.low, found.high)}


def test_a_pass_at_k_that_is_certain_has_wilsons_interval_though_the_mean_is_resampled():
    found = accuracy(counts([1, 2, 3, 3] * 10, [4] * 40), seeded(), 200)
    assert found.interval == "bootstrap"
    assert found.low < found.mean < found.high < 1
    assert found.pass_at[2].high < 1
    assert found.pass_at[4] == (1.0, *wilson_interval(40, 40))


def test_prompts_of_one_rate_between_are_left_to_the_bootstrap():
    found = accuracy(counts([2] * 5, [4] * 5), seeded(), 50)
    assert found.interval == "bootstrap"
    assert found.pass_at[1] == (0.5, 0.5, 0.5)


def test_every_prompt_weighs_the_same_whatever_its_trials():
    found = accuracy(counts([8, 0], [8, 2]), seeded(), 50)
    assert found.mean == 0.5
    assert found.n_samples is None
    assert list(found.pass_at) == [1, 2]  # up to the fewest samples of a prompt


def test_samples_without_a_verdict_count_as_nothing_and_are_told():
    found = accuracy(
        counts([4, 1, 0, 0, 0], [4, 3, 0, 0, 0], n_error=[0, 1, 4, 0, 0]), seeded(), 50
    )
    assert (found.n_prompts, found.n_unjudged, found.n_error) == (5, 3, 5)
    assert found.n_samples == 4
    assert found.mean == pytest.approx((1 + 1 / 3) / 2)
    assert found.pass_prompts == {1: 2, 2: 2, 4: 1}
    assert found.pass_at[4] == (1, *wilson_interval(1, 1))


def test_a_k_that_no_prompt_has_verdicts_for_is_left_out():
    found = accuracy(counts([1, 2], [3, 3], n_error=[1, 1]), seeded(), 50)
    assert list(found.pass_at) == list(found.pass_prompts) == [1, 2]
    assert found.n_samples == 4
