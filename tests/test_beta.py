"""`priorkit/beta.py`: ThinkPrior's Propositions 1–3 and Lemma 1, exactness and symmetry."""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from priorkit.beta import BetaPrior, expected_learnability, flat_prior, learnability
from priorkit.errors import PriorFileError, SettingError

counts = st.floats(min_value=1e-3, max_value=1e6, allow_nan=False)
rates = st.floats(min_value=0.0, max_value=1.0, allow_nan=False)
inner_rates = st.floats(min_value=1e-6, max_value=1 - 1e-6)
groups = st.integers(min_value=2, max_value=64)


def exact_expected(alpha: float, beta: float, group_size: int) -> Fraction:
    """Equation 3 as printed, in rational arithmetic."""
    a, b = Fraction(alpha), Fraction(beta)

    def rising(x: Fraction) -> Fraction:
        return prod((x + j for j in range(group_size)), start=Fraction(1))

    return 1 - (rising(a) + rising(b)) / rising(a + b)


def exact_learnability(p: float, group_size: int) -> Fraction:
    q = Fraction(p)
    return 1 - q**group_size - (1 - q) ** group_size


@given(alpha=counts, beta=counts, group_size=groups)
@settings(max_examples=400, deadline=None)
def test_expected_learnability_is_exact_to_nine_digits(alpha, beta, group_size):
    exact = exact_expected(alpha, beta, group_size)
    found = Fraction(float(expected_learnability([alpha], [beta], group_size)[0]))
    assert abs(found - exact) <= exact * Fraction(1, 10**9)


@pytest.mark.parametrize("group_size", [2, 8, 64])
def test_the_corners_of_the_domain_are_exact_to_nine_digits(group_size):
    corners = [1e-3, 1e-3 + 1e-9, 1.0, 4.001, 1e6]
    for alpha in corners:
        for beta in corners:
            exact = exact_expected(alpha, beta, group_size)
            found = Fraction(float(expected_learnability([alpha], [beta], group_size)[0]))
            assert abs(found - exact) <= exact * Fraction(1, 10**9), (alpha, beta)


@given(alpha=counts, beta=counts, group_size=groups)
def test_exchanging_solves_and_failures_changes_no_bit(alpha, beta, group_size):
    one = expected_learnability([alpha], [beta], group_size)
    other = expected_learnability([beta], [alpha], group_size)
    assert one.tobytes() == other.tobytes()


@given(alpha=counts, beta=counts)
def test_a_pair_of_rollouts_is_mixed_with_twice_the_variance_of_one(alpha, beta):
    # P(one solve, one failure) = E[2p(1-p)], whatever the belief.
    total = alpha + beta
    assert expected_learnability([alpha], [beta], group_size=2)[0] == pytest.approx(
        2 * alpha * beta / (total * (total + 1)), rel=1e-9
    )


@given(p=rates, group_size=groups)
def test_learnability_is_exact_to_nine_digits(p, group_size):
    exact = exact_learnability(p, group_size)
    found = Fraction(float(learnability([p], group_size)[0]))
    # Rounding 1 − p loses at most half an ulp of 1 beside p: absolute where p is that close to 1.
    assert abs(found - exact) <= exact * Fraction(1, 10**9) + Fraction(group_size, 2**53)


# Proposition 1


@given(p=rates, group_size=st.integers(2, 12))
def test_a_group_is_mixed_with_the_probability_of_neither_extreme(p, group_size):
    binomial = sum(comb(group_size, c) * p**c * (1 - p) ** (group_size - c)
                   for c in range(1, group_size))  # fmt: skip
    assert learnability([p], group_size)[0] == pytest.approx(binomial, rel=1e-9, abs=1e-15)


@given(p=inner_rates, q=inner_rates, weight=st.floats(0.1, 0.9), group_size=groups)
def test_learnability_is_concave(p, q, weight, group_size):
    between = learnability([weight * p + (1 - weight) * q], group_size)[0]
    ends = learnability([p, q], group_size)
    chord = weight * ends[0] + (1 - weight) * ends[1]
    assert between >= chord - 1e-12
    if abs(p - q) > 0.05 and group_size < 9:
        assert between > chord


@given(p=st.floats(0, 0.5), q=st.floats(0, 0.5), group_size=groups)
def test_learnability_never_rises_with_the_distance_from_one_half(p, q, group_size):
    near, far = max(p, q), min(p, q)
    values = learnability([far, near], group_size)
    assert values[0] <= values[1] + 1e-15
    assert learnability([1 - far], group_size)[0] == pytest.approx(values[0], abs=1e-14)


@pytest.mark.parametrize("group_size", [2, 3, 8, 64])
def test_learnability_peaks_at_one_half_and_vanishes_only_at_the_ends(group_size):
    assert learnability([0.5], group_size)[0] == 1 - 2.0 ** (1 - group_size)
    assert learnability([0.0, 1.0], group_size).tolist() == [0.0, 0.0]
    assert (learnability([1e-12, 1 - 1e-12], group_size) > 0).all()


def test_the_papers_two_worked_values():
    assert learnability([0.5, 0.05, 0.95], 8).round(3).tolist() == [0.992, 0.337, 0.337]


def advantages(successes: int, group_size: int, epsilon: float) -> np.ndarray:
    """Equation 1, with the sample standard deviation."""
    rewards = np.array([1.0] * successes + [0.0] * (group_size - successes))
    return (rewards - rewards.mean()) / (rewards.std(ddof=1) + epsilon)


@pytest.mark.parametrize("group_size", [2, 5, 8, 16])
def test_every_mixed_group_has_the_same_squared_advantage_sum(group_size):
    for c in range(1, group_size):
        assert (advantages(c, group_size, 0.0) ** 2).sum() == pytest.approx(group_size - 1)


def test_the_squared_advantage_sum_reads_6_996_at_the_papers_epsilon():
    for c in (1, 7):
        found = (advantages(c, 8, 1e-4) ** 2).sum()
        assert found == pytest.approx(7 * (1 + 1e-4 * np.sqrt(8)) ** -2, rel=1e-12)
        assert round(found, 3) == 6.996


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_the_expected_squared_advantage_sum_is_g_minus_one_times_learnability(p):
    group_size, draws = 8, 200_000
    exact = sum(
        comb(group_size, c) * p**c * (1 - p) ** (group_size - c) * (group_size - 1)
        for c in range(1, group_size)
    )
    assert exact == pytest.approx((group_size - 1) * learnability([p], group_size)[0])
    rng = np.random.default_rng(1)
    rewards = (rng.random((draws, group_size)) < p).astype(float)
    deviation = rewards.std(axis=1, ddof=1, keepdims=True)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    sums = (np.divide(centred, deviation, where=deviation > 0, out=centred * 0) ** 2).sum(axis=1)
    assert abs(sums.mean() - exact) < 5 * sums.std() / np.sqrt(draws)


# Lemma 1 and Proposition 2


@given(alpha=st.floats(0.05, 50), beta=st.floats(0.05, 50), group_size=st.integers(2, 12))
@example(alpha=0.95, beta=0.05, group_size=2)
@settings(max_examples=100, deadline=None)
def test_expected_learnability_is_the_beta_average_of_learnability(alpha, beta, group_size):
    from scipy.special import roots_jacobi

    # Gauss-Jacobi nodes for the Beta weight integrate a polynomial of degree G exactly.
    with np.errstate(invalid="ignore"):  # scipy divides 0 by 0 at alpha + beta = 1, and drops it
        nodes, weights = roots_jacobi(group_size, beta - 1, alpha - 1)
    average = weights @ learnability((1 + nodes) / 2, group_size) / weights.sum()
    found = expected_learnability([alpha], [beta], group_size)[0]
    assert found == pytest.approx(average, rel=1e-8)


@given(
    mean=st.floats(0.01, 0.99),
    mass=st.floats(0.05, 1e4),
    factor=st.floats(1.05, 50.0),
    group_size=st.integers(2, 32),
)
def test_certainty_at_the_same_mean_raises_expected_learnability(mean, mass, factor, group_size):
    less = expected_learnability([mean * mass], [(1 - mean) * mass], group_size)[0]
    more = expected_learnability([mean * mass * factor], [(1 - mean) * mass * factor], group_size)[
        0
    ]
    plain = learnability([mean], group_size)[0]
    assert less <= more * (1 + 1e-12)
    assert more <= plain * (1 + 1e-12)
    if mass < 100 and group_size < 9:
        assert less < more < plain


@given(mean=st.floats(0.01, 0.99), group_size=st.integers(2, 32))
def test_no_mass_means_no_learnability_and_all_mass_the_plain_one(mean, group_size):
    tiny, huge = 1e-9, 1e12
    assert expected_learnability([mean * tiny], [(1 - mean) * tiny], group_size)[0] < 1e-7
    assert expected_learnability([mean * huge], [(1 - mean) * huge], group_size)[
        0
    ] == pytest.approx(learnability([mean], group_size)[0], rel=1e-6)


# Proposition 3


@pytest.mark.parametrize("group_size", [2, 3, 8, 64])
def test_a_flat_prior_scores_every_prompt_alike(group_size):
    prior = flat_prior(["a", "b", "c"])
    scores = expected_learnability(prior.alpha, prior.beta, group_size)
    assert scores == pytest.approx([1 - 2 / (group_size + 1)] * 3, rel=1e-14)
    assert len(set(scores)) == 1


# The prior of equation 6


def test_sixteen_samples_at_kappa_four_have_exactly_nine_initial_scores():
    prior = BetaPrior.from_counts([f"p{c}" for c in range(17)], np.arange(17), np.full(17, 16))
    scores = expected_learnability(prior.alpha, prior.beta, 8)
    assert len(set(scores.tolist())) == 9
    assert scores.tolist() == scores[::-1].tolist()


@given(k=st.integers(1, 200), data=st.data(), kappa=st.floats(0.1, 100))
def test_mirrored_counts_have_mirrored_beliefs_to_the_bit(k, data, kappa):
    c = data.draw(st.integers(0, k))
    prior = BetaPrior.from_counts(["a", "b"], [c, k - c], [k, k], kappa=kappa)
    assert prior.alpha[0] == prior.beta[1]
    assert prior.beta[0] == prior.alpha[1]


def test_rates_with_whole_counts_are_read_as_counts():
    by_rate = BetaPrior.from_rates(["a", "b"], [0.3, 0.7], trials=10)
    assert by_rate.successes is not None
    assert by_rate.successes.tolist() == [3, 7]
    assert by_rate.alpha[0] == by_rate.beta[1]


def test_the_paper_s_prior_is_reproduced():
    prior = BetaPrior.from_rates(["a", "b", "c"], [0.0, 0.25, 1.0])
    assert prior.alpha == pytest.approx([0.001, 1.001, 4.001])
    assert prior.beta == pytest.approx([4.001, 3.001, 0.001])


def test_rescaling_keeps_means_and_sets_the_mass():
    prior = BetaPrior.from_counts(["a", "b"], [30, 1], [40, 40]).updated([4, 0], [4, 8])
    small = prior.rescaled(4.0, epsilon=1e-9)
    assert small.mean == pytest.approx(prior.mean)
    assert (small.alpha + small.beta) == pytest.approx([4.0, 4.0])


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: BetaPrior.from_rates(["a"], [1.5]), SettingError, "lie in"),
        (lambda: BetaPrior.from_rates(["a"], [float("nan")]), SettingError, "lie in"),
        (lambda: BetaPrior.from_rates(["a"], [0.5, 0.5]), SettingError, "shape"),
        (lambda: BetaPrior.from_rates(["a"], [0.5], kappa=0.0), SettingError, "kappa"),
        (lambda: BetaPrior.from_counts(["a"], [0], [0]), SettingError, "at least 1"),
        (lambda: BetaPrior.from_counts(["a"], [3], [2]), SettingError, "0..trials"),
        (lambda: BetaPrior.from_counts(["a", "a"], [1, 1], [2, 2]), PriorFileError, "unique"),
        (lambda: BetaPrior.from_counts(["a", ""], [1, 1], [2, 2]), PriorFileError, "non-empty"),
        (lambda: BetaPrior.from_counts([], [], []), PriorFileError, "at least one"),
        (lambda: expected_learnability([1.0], [1.0], 1), SettingError, "at least 2"),
        (lambda: expected_learnability([0.0], [1.0], 8), SettingError, "above zero"),
        (lambda: expected_learnability([float("nan")], [1.0], 8), SettingError, "above zero"),
        (lambda: learnability([-0.1], 8), SettingError, "lie in"),
        (lambda: expected_learnability([1.0], [1.0], 1075), SettingError, "at most 512"),
        (lambda: expected_learnability([float("inf")], [1.0], 8), SettingError, "at most"),
        (lambda: expected_learnability([1e308], [1e308], 8), SettingError, "at most"),
        (lambda: BetaPrior.from_counts(["a"], [3.7], [8]), SettingError, "whole numbers"),
        (lambda: BetaPrior.from_rates(["a"], [0.5], trials=16.9), SettingError, "whole numbers"),
    ],
)
def test_what_makes_no_belief_is_refused(make, error, word):
    with pytest.raises(error, match=word):
        make()


@pytest.mark.parametrize("group_size", [2, 64, 100, 512])
def test_scores_are_probabilities_at_every_group_size(group_size):
    alpha = np.array([1e-3, 1.0, 1e6, 1e9])
    scores = expected_learnability(alpha, alpha[::-1], group_size)
    assert ((scores > 0) & (scores <= 1)).all()
    assert (learnability(np.linspace(0, 1, 101), group_size) <= 1).all()
