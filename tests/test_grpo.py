"""Advantages and losses against a literal float64 transcription, gradients included."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from priorkit import grpo
from priorkit.errors import SettingError


def literal_advantage(rewards, judged, epsilon=1e-4):
    """ThinkPrior eq. 1, one group at a time, over the judged rewards."""
    seen = [r for r, ok in zip(rewards, judged, strict=True) if ok]
    if len(seen) < 2 or len(set(seen)) == 1:
        return [0.0] * len(rewards)
    mean = sum(seen) / len(seen)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in seen) / (len(seen) - 1))
    return [
        (r - mean) / (deviation + epsilon) if ok else 0.0
        for r, ok in zip(rewards, judged, strict=True)
    ]


def literal_loss(logprobs, masks, advantages, loss_length, limit):
    """−(1/BG) Σ A_i (1/L_i) Σ_t log π, as the design's table prints it, in Python floats."""
    lengths = [sum(mask) for mask in masks]
    total = 0.0
    for logprob, mask, advantage, length in zip(logprobs, masks, advantages, lengths, strict=True):
        divisor = {
            "response": max(length, 1),
            "token": max(sum(lengths) / len(lengths), 1),
            "constant": limit,
        }[loss_length]
        summed = sum(lp for lp, m in zip(logprob, mask, strict=True) if m)
        total += advantage * summed / divisor
    return -total / len(masks)


groups = st.integers(1, 5).flatmap(
    lambda b: st.integers(2, 9).flatmap(
        lambda g: st.tuples(
            st.lists(st.lists(st.booleans(), min_size=g, max_size=g), min_size=b, max_size=b),
            st.lists(st.lists(st.booleans(), min_size=g, max_size=g), min_size=b, max_size=b),
        )
    )
)


@given(groups)
def test_advantages_are_the_papers_formula_over_the_judged_rewards(drawn):
    rewards, judged = drawn
    ours = grpo.group_advantages(
        torch.tensor(rewards, dtype=torch.float64), torch.tensor(judged)
    ).tolist()
    theirs = [literal_advantage(r, j) for r, j in zip(rewards, judged, strict=True)]
    assert np.allclose(ours, theirs, rtol=1e-12, atol=0)


@given(groups)
def test_a_silent_group_and_a_sample_without_verdict_get_exact_zeros(drawn):
    rewards, judged = drawn
    ours = grpo.group_advantages(torch.tensor(rewards).float(), torch.tensor(judged))
    for row, (reward, seen) in enumerate(zip(rewards, judged, strict=True)):
        known = {r for r, ok in zip(reward, seen, strict=True) if ok}
        for i, ok in enumerate(seen):
            assert (ours[row, i] == 0) == (len(known) < 2 or not ok)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7, 1e-3, 1e6])
@pytest.mark.parametrize("size", [3, 7, 8, 11])
def test_equal_rewards_whose_float_mean_is_another_number_are_silent(value, size):
    assert not grpo.group_advantages(torch.full((1, size), value)).any()


def test_unjudged_rewards_may_hold_anything():
    rewards = torch.tensor([[1.0, 0.0, float("nan"), float("inf")]])
    judged = torch.tensor([[True, True, False, False]])
    ours = grpo.group_advantages(rewards, judged)
    assert ours[0].tolist() == pytest.approx([0.70700682, -0.70700682, 0, 0], rel=1e-5)


@st.composite
def batches(draw):
    b, g = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    s, t = b * g, draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, t + 1, s)
    prefix = rng.integers(0, lengths + 1)  # replayed tokens: in the response, not in the loss
    places = np.arange(t)
    mask = (places >= prefix[:, None]) & (places < lengths[:, None])
    rewards = rng.integers(0, 2, (b, g))
    advantages = np.array([literal_advantage(r, [True] * g) for r in rewards.tolist()]).ravel()
    logprobs = -rng.exponential(2.0, (s, t))
    return logprobs, mask.astype(float), advantages


@given(batches(), st.sampled_from(grpo.LENGTHS), st.integers(1, 64))
@settings(max_examples=300)
def test_the_loss_and_its_gradient_are_those_of_the_literal_formula(batch, loss_length, limit):
    logprobs, mask, advantages = batch
    held = torch.tensor(logprobs, requires_grad=True)
    weights = grpo.sequence_weights(torch.tensor(mask.sum(axis=1)), len(mask), loss_length, limit)
    loss, metrics = grpo.policy_loss(held, torch.tensor(mask), torch.tensor(advantages), weights)
    loss.backward()
    expected = literal_loss(logprobs, mask, advantages, loss_length, limit)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert metrics["policy_loss"] == float(loss.detach())
    gradient = held.grad.numpy()
    step = 1e-6
    for i, t in np.ndindex(*logprobs.shape):
        moved = logprobs.copy()
        moved[i, t] += step
        # The formula is linear in each log-likelihood, so the quotient is its gradient.
        quotient = (literal_loss(moved, mask, advantages, loss_length, limit) - expected) / step
        assert gradient[i, t] == pytest.approx(quotient, rel=1e-4, abs=1e-8)
        assert mask[i, t] or gradient[i, t] == 0


@given(batches(), st.sampled_from(grpo.LENGTHS))
def test_micro_batches_add_up_to_the_whole(batch, loss_length):
    logprobs, mask, advantages = (torch.tensor(part) for part in batch)
    weights = grpo.sequence_weights(mask.sum(dim=1), len(mask), loss_length, 16)
    whole, _ = grpo.policy_loss(logprobs, mask, advantages, weights)
    cut = len(mask) // 2
    parts = [
        grpo.policy_loss(logprobs[s], mask[s], advantages[s], weights[s])[0]
        for s in (slice(None, cut), slice(cut, None))
    ]
    assert float(sum(parts)) == pytest.approx(float(whole), rel=1e-12, abs=1e-15)


def test_what_no_mask_counts_cannot_reach_the_loss():
    logprobs = torch.tensor([[-1.0, float("nan"), float("-inf")]], requires_grad=True)
    mask, weights = torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1)
    loss, _ = grpo.policy_loss(logprobs, mask, torch.ones(1), weights)
    penalty, _ = grpo.kl_penalty(logprobs, torch.zeros(1, 3), mask, weights)
    (loss + penalty).backward()
    assert loss == 1.0
    assert torch.isfinite(logprobs.grad).all()


@given(st.integers(0, 2**32 - 1))
def test_the_kl_estimate_is_that_of_the_paper_never_negative_and_zero_when_equal(seed):
    rng = np.random.default_rng(seed)
    policy, reference = torch.tensor(-rng.exponential(2.0, (2, 3, 4)))
    mask = torch.tensor(rng.integers(0, 2, (3, 4))).double()
    weights = torch.tensor(rng.random(3))
    loss, metrics = grpo.kl_penalty(policy, reference, mask, weights)
    ratio = torch.exp(reference - policy)
    each = (ratio - torch.log(ratio) - 1) * mask
    assert float(loss) == pytest.approx(float((weights * each.sum(1)).sum()), rel=1e-9, abs=1e-12)
    assert float(loss) >= 0
    assert metrics["kl"] == pytest.approx(float(each.sum() / mask.sum().clamp(min=1)), abs=1e-12)
    assert float(grpo.kl_penalty(policy, policy, mask, weights)[0]) == 0


def test_the_kl_estimate_has_the_kl_divergence_as_its_mean():
    rng = np.random.default_rng(5)
    logits, others = torch.tensor(rng.normal(size=(2, 6)))
    policy, reference = logits.log_softmax(-1), others.log_softmax(-1)
    exact = float((policy.exp() * (policy - reference)).sum())
    each = torch.expm1(reference - policy) - (reference - policy)
    assert float((policy.exp() * each).sum()) == pytest.approx(exact, rel=1e-9)


def test_token_logprobs_are_those_of_a_softmax():
    rng = np.random.default_rng(1)
    logits = torch.tensor(rng.normal(size=(2, 3, 5)) * 4)
    tokens = torch.tensor(rng.integers(0, 5, (2, 3)))
    expected = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    assert torch.allclose(grpo.token_logprobs(logits, tokens).double(), expected, atol=1e-5)


def test_an_unknown_length_is_refused():
    with pytest.raises(SettingError, match="response, token, constant"):
        grpo.sequence_weights(torch.tensor([1]), 1, "tokens", 8)  # type: ignore[arg-type]
