"""`priorkit/evaluate.py`: the figures against scipy and scikit-learn, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from priorkit.beta import BetaPrior, expected_learnability, learnability
from priorkit.columns import as_ids
from priorkit.errors import MismatchError, SettingError
from priorkit.evaluate import _auc, _codes, _spearman, evaluate_prior, group_means, known_to_all
from priorkit.rates import Rates


def pair(size: int, seed: int = 0, k: int = 4) -> tuple[BetaPrior, Rates]:
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.6, 0.6, size)
    ids = [f"p{i}" for i in range(size)]
    solved = rng.binomial(32, truth)
    prior = BetaPrior.from_counts(ids, rng.binomial(k, truth), np.full(size, k))
    return prior, Rates(as_ids(ids), solved / 32, solved, np.full(size, 32), {})


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_agrees_with_the_libraries_on_tied_data(seed):
    prior, reference = pair(120, seed)
    found = evaluate_prior(prior, reference, np.random.default_rng(0), resamples=0)
    band = learnability(reference.rate, 8) > 0.8
    score = expected_learnability(prior.alpha, prior.beta, 8)
    mean, rate = prior.mean, reference.rate
    assert found.spearman.value == pytest.approx(spearmanr(mean, rate)[0])
    assert found.spearman_band.value == pytest.approx(spearmanr(mean[band], rate[band])[0])
    assert found.auc_band.value == pytest.approx(roc_auc_score(band, score))
    assert found.mae.value == pytest.approx(np.abs(mean - rate).mean())
    singles = [(1 - m) ** 2 * r + m**2 * (1 - r) for m, r in zip(mean, rate, strict=True)]
    assert found.brier.value == pytest.approx(np.mean(singles))
    assert sum(row.n for row in found.reliability) == found.n == 120
    assert found.n_band == band.sum()


@given(
    x=st.lists(st.integers(0, 4), min_size=3, max_size=30),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_a_weighted_figure_is_the_figure_of_the_repeated_rows(x, data):
    size = len(x)
    y = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    rows = np.repeat(np.arange(size), weight)
    left, right = np.array(x, dtype=float), np.array(y, dtype=float)
    found = _spearman(_codes(left), _codes(right), weight.astype(float))
    if len(set(left[rows])) > 1 and len(set(right[rows])) > 1:
        assert found == pytest.approx(spearmanr(left[rows], right[rows])[0], abs=1e-12)
    else:
        assert np.isnan(found)
    positive = right > 2
    area = _auc(_codes(left), positive.astype(float), weight.astype(float))
    if len(set(positive[rows])) == 2:
        assert area == pytest.approx(roc_auc_score(positive[rows], left[rows]))
    else:
        assert np.isnan(area)


def test_the_interval_covers_the_whole_pools_figure_at_its_level():
    population, reference = pair(20_000, 1)
    whole = evaluate_prior(population, reference, np.random.default_rng(0), resamples=0)
    inside = 0
    for seed in range(60):
        rows = np.random.default_rng(seed).choice(20_000, 150, replace=False)
        part = Rates(reference.prompt_id[rows], reference.rate[rows], None, None, {})
        found = evaluate_prior(population, part, np.random.default_rng(seed), resamples=200)
        inside += found.mae.low <= whole.mae.value <= found.mae.high
    # 60 trials at 95 %: fewer than 50 would have probability below 0.001.
    assert inside >= 50


def test_the_same_seed_gives_the_same_intervals():
    prior, reference = pair(80)
    one, other = (
        evaluate_prior(prior, reference, np.random.default_rng(3), resamples=50) for _ in range(2)
    )
    assert one == other


def test_degenerate_inputs_have_no_figure_rather_than_a_wrong_one():
    prior = BetaPrior.from_rates(["a", "b"], [0.5, 0.5])
    reference = Rates(as_ids(["a", "b"]), np.array([0.5, 0.5]), None, None, {})
    found = evaluate_prior(prior, reference, np.random.default_rng(0), resamples=10)
    assert np.isnan(found.spearman.value)
    assert np.isnan(found.auc_band.value)
    assert found.mae.value == pytest.approx(0.0, abs=1e-3)
    with pytest.raises(MismatchError, match="in common"):
        evaluate_prior(BetaPrior.from_rates(["x"], [0.5]), reference, np.random.default_rng(0))


def test_priors_are_compared_on_what_all_know_and_groups_leave_nulls_out():
    table = {"level": [1, None, 2, 1]}
    rate = np.array([0.0, 0.5, 1.0, 0.5])
    reference = Rates(as_ids(list("abcd")), rate, None, None, table)
    shared = known_to_all(reference, [BetaPrior.from_rates(list("dac"), [0.1, 0.2, 0.3])])
    assert shared.prompt_id.tolist() == ["a", "c", "d"]
    assert shared.table["level"] == [1, 2, 1]
    assert group_means(reference, "level") == [(1, 2, 0.25), (2, 1, 1.0)]
    with pytest.raises(SettingError, match="'subject'"):
        group_means(reference, "subject")
