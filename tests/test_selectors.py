"""`priorkit/selectors`: ranking, ties, updates, state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorkit.beta import BetaPrior, expected_learnability, flat_prior, learnability
from priorkit.errors import MismatchError, SettingError
from priorkit.selectors import SELECTOR_NAMES, make_selector
from priorkit.selectors.ranking import Ranking


def prior_of(successes, k=16):
    ids = [f"p{i:04d}" for i in range(len(successes))]
    return BetaPrior.from_counts(ids, successes, np.full(len(successes), k))


def options_of(name, prior):
    return {"reference_rate": prior.mean} if name == "oracle" else {}


@given(
    scores=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=700),
    data=st.data(),
)
@settings(max_examples=200, deadline=None)
def test_the_ranking_agrees_with_a_stable_sort_after_any_updates(scores, data):
    held = np.array(scores)
    ranking = Ranking(held)
    for _ in range(3):
        n = data.draw(st.integers(1, len(held)))
        expected = np.argsort(-held, kind="stable")[:n]
        assert ranking.top(n).tolist() == expected.tolist()
        places = st.lists(st.integers(0, len(held) - 1), max_size=20, unique=True)
        rows = np.array(data.draw(places), dtype=np.int64)
        fresh = np.array([data.draw(st.sampled_from([0.0, 0.3, 0.5, 0.9])) for _ in rows])
        if rows.size:
            held = held.copy()
            held[rows] = fresh
            ranking.update(rows, fresh)


@pytest.mark.parametrize("pool", [1, 63, 64, 65, 1000, 5000])
def test_thinkprior_matches_the_algorithm_box_step_by_step(pool):
    rng = np.random.default_rng(pool)
    prior = prior_of(rng.integers(0, 17, pool))
    selector = make_selector("thinkprior", prior, group_size=8)
    alpha, beta = prior.alpha.copy(), prior.beta.copy()
    truth = rng.random(pool)
    batch = min(8, pool)
    for _ in range(30):
        scores = expected_learnability(alpha, beta, 8)
        expected = np.argsort(-scores, kind="stable")[:batch]
        rows = selector.select(batch)
        assert rows.tolist() == expected.tolist()
        solved = rng.binomial(8, truth[rows])
        selector.observe(rows, solved, np.full(batch, 8))
        alpha[rows] += solved
        beta[rows] += 8 - solved
    posterior = selector.posterior()
    assert posterior.alpha == pytest.approx(alpha, rel=1e-15)
    assert posterior.beta == pytest.approx(beta, rel=1e-15)


@given(c=st.integers(0, 16), groups=st.lists(st.integers(0, 8), max_size=30))
def test_mirror_ties_stay_ties_after_updates(c, groups):
    selector = make_selector("thinkprior", prior_of([c, 16 - c]), group_size=8)
    for solved in groups:
        selector.observe(np.array([0, 1]), np.array([solved, 8 - solved]), np.array([8, 8]))
        scores = selector.scores()
        assert scores[0] == scores[1]
        assert selector.select(2).tolist() == [0, 1]


def test_the_order_of_the_updates_does_not_matter():
    prior = prior_of([3, 9, 12])
    one, other = (make_selector("thinkprior", prior) for _ in range(2))
    steps = [(np.array([i % 3]), np.array([i % 9]), np.array([8])) for i in range(50)]
    for step in steps:
        one.observe(*step)
    for step in reversed(steps):
        other.observe(*step)
    assert one.scores().tobytes() == other.scores().tobytes()


def test_online_np_begins_in_pool_order_whatever_the_prior_says():
    selector = make_selector("online-np", prior_of([0, 16, 8, 8]))
    assert selector.select(3).tolist() == [0, 1, 2]
    assert selector.posterior().alpha.tolist() == [1.0] * 4


def test_prior_only_draws_from_the_fixed_top_half_and_learns_nothing():
    prior = prior_of([0, 8, 16, 7, 1, 9])
    selector = make_selector("prior-only", prior, seed=3)
    top_half = {1, 3, 5}
    for _ in range(20):
        rows = selector.select(2)
        assert set(rows.tolist()) <= top_half
        assert len(set(rows.tolist())) == 2
        selector.observe(rows, np.array([0, 0]), np.array([8, 8]))
    with pytest.raises(SettingError, match="distinct"):
        selector.select(4)


def test_the_oracle_ranks_by_learnability_at_the_reference():
    reference = np.array([0.0, 0.5, 0.9, 0.4, 0.5])
    selector = make_selector("oracle", flat_prior(list("abcde")), reference_rate=reference)
    assert selector.select(3).tolist() == [1, 4, 3]
    best = np.argsort(-learnability(reference, 8), kind="stable")
    assert selector.select(5).tolist() == best.tolist()


def test_uniform_sampling_takes_every_prompt_equally_often():
    selector = make_selector("uniform", flat_prior([str(i) for i in range(50)]), seed=7)
    drawn = np.bincount(np.concatenate([selector.select(5) for _ in range(4000)]), minlength=50)
    # 20,000 draws over 50 prompts: chi-square with 49 degrees of freedom below its 99.9 % point.
    assert ((drawn - 400) ** 2 / 400).sum() < 85.4


@pytest.mark.parametrize("name", SELECTOR_NAMES)
def test_a_restored_selector_goes_on_like_the_unbroken_one(name):
    rng = np.random.default_rng(5)
    prior = prior_of(rng.integers(0, 17, 40))
    truth = rng.random(40)

    def step(selector, solved_rng):
        rows = selector.select(6)
        selector.observe(rows, solved_rng.binomial(8, truth[rows]), np.full(6, 8))
        return rows.tolist()

    unbroken = make_selector(name, prior, seed=1, **options_of(name, prior))
    draws = np.random.default_rng(2)
    for _ in range(5):
        step(unbroken, draws)
    state = unbroken.state_dict()
    resumed = make_selector(name, prior, seed=99, **options_of(name, prior))
    resumed.load_state_dict(state)
    draws_again = np.random.default_rng()
    draws_again.bit_generator.state = draws.bit_generator.state
    for _ in range(5):
        assert step(resumed, draws_again) == step(unbroken, draws)
    assert resumed.posterior().alpha.tobytes() == unbroken.posterior().alpha.tobytes()
    assert resumed.metrics() == unbroken.metrics()


def test_state_of_another_pool_order_or_prior_is_refused():
    prior = prior_of([1, 2, 3])
    state = make_selector("thinkprior", prior).state_dict()
    order = prior.take(np.array([1, 0, 2]))
    for other in (order, prior_of([1, 2, 4]), prior_of([1, 2, 3, 4])):
        with pytest.raises(MismatchError):
            make_selector("thinkprior", other).load_state_dict(state)
    with pytest.raises(MismatchError, match="selector"):
        make_selector("uniform", prior).load_state_dict(state)
    with pytest.raises(MismatchError, match="group_size"):
        make_selector("thinkprior", prior, group_size=4).load_state_dict(state)


def test_a_group_without_trials_teaches_nothing():
    prior = prior_of([4, 4])
    selector = make_selector("thinkprior", prior)
    before = selector.scores().tolist()
    selector.observe(np.array([0]), np.array([0]), np.array([0]))
    assert selector.scores().tolist() == before


@pytest.mark.parametrize("name", SELECTOR_NAMES)
@pytest.mark.parametrize("n", [0, -1, 5])
def test_a_batch_outside_the_pool_is_refused(name, n):
    prior = prior_of([1, 2, 3, 4])
    with pytest.raises(SettingError, match="distinct prompts"):
        make_selector(name, prior, **options_of(name, prior)).select(n)


@pytest.mark.parametrize(
    ("rows", "successes", "trials"),
    [([4], [1], [8]), ([-1], [1], [8]), ([0], [9], [8]), ([0], [-1], [8]), ([0, 1], [1], [8])],
)
def test_impossible_observations_are_refused(rows, successes, trials):
    selector = make_selector("thinkprior", prior_of([1, 2, 3, 4]))
    with pytest.raises(SettingError):
        selector.observe(np.array(rows), np.array(successes), np.array(trials))


def test_unknown_selectors_and_options_are_named():
    prior = prior_of([1])
    with pytest.raises(SettingError, match="thinkprior, online-np"):
        make_selector("best", prior)
    with pytest.raises(SettingError, match="no option 'decay'"):
        make_selector("thinkprior", prior, decay=0.5)
    with pytest.raises(SettingError, match="at least 2"):
        make_selector("thinkprior", prior, group_size=1)
    with pytest.raises(SettingError, match="reference_rate"):
        make_selector("oracle", prior)


def test_a_prompt_costs_at_most_forty_bytes_besides_its_id():
    import tracemalloc

    pool = 200_000
    ids = np.array([str(i) for i in range(pool)], dtype=object)
    counts = np.arange(pool) % 17
    tracemalloc.start()
    selector = make_selector("thinkprior", BetaPrior.from_counts(ids, counts, np.full(pool, 16)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    pointers = 8 * pool  # the object array of ids is the ids' own cost
    assert len(selector.select(8)) == 8
    assert (held - pointers) / pool <= 40


def test_counts_never_wrap_round():
    selector = make_selector("uniform", prior_of([1, 2]))
    with pytest.raises(SettingError, match=r"2\*\*31"):
        selector.observe(np.array([0]), np.array([2**32 + 5]), np.array([2**32 + 5]))
    big = np.array([2**30])
    selector.observe(np.array([0]), big, big)
    before = selector.posterior().alpha.tolist()
    with pytest.raises(SettingError, match="cannot be counted"):
        selector.observe(np.array([0]), big, big)
    assert selector.posterior().alpha.tolist() == before


def test_a_group_without_trials_is_not_a_silent_group():
    selector = make_selector("uniform", prior_of([1, 2]))
    selector.observe(np.array([0, 1]), np.array([0, 8]), np.array([0, 8]))
    assert selector.metrics()["groups"] == 1
    assert selector.metrics()["silent"] == 1.0


def test_a_state_that_is_not_whole_is_refused():
    selector = make_selector("thinkprior", prior_of([1, 2]))
    state = selector.state_dict()
    with pytest.raises(MismatchError, match="lacks 'alpha'"):
        selector.load_state_dict({k: v for k, v in state.items() if k != "alpha"})
    with pytest.raises(MismatchError, match="counts of 2 prompts"):
        selector.load_state_dict({**state, "successes": np.zeros(1)})
    with pytest.raises(SettingError, match="negative"):
        make_selector("uniform", prior_of([1]), seed=-1)


def test_changing_a_saved_state_changes_no_selector():
    selector = make_selector("thinkprior", prior_of([1, 2]))
    state = selector.state_dict()
    state["alpha"][0] = 99.0
    assert selector.posterior().alpha[0] != 99.0


def test_the_ranking_follows_scores_up_and_down_in_a_pool_of_many_blocks():
    rng = np.random.default_rng(0)
    held = rng.integers(0, 50, 20_000) / 64
    ranking = Ranking(held)
    for _ in range(200):
        rows = rng.choice(len(held), 7, replace=False)
        held[rows] = rng.integers(0, 64, 7) / 64
        ranking.update(rows, held[rows])
        expected = np.argsort(-held, kind="stable")[:5]
        assert ranking.top(5).tolist() == expected.tolist()
