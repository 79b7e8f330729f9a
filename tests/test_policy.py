"""The adapter and the plain model that rolls out with it."""

import numpy as np
import pytest
import torch

from priorkit.errors import EngineError, SettingError
from priorkit.lab.nano import ANCHOR, untrained
from priorkit.lab.tokenizer import lab_tokenizer
from priorkit.policy import LoraSettings, Policy


def a_policy(seed=0, dtype=torch.float32):
    model = untrained(ANCHOR, 0).to(dtype)
    return Policy(model, lab_tokenizer(), None, LoraSettings(4, 8), seed=seed)


def moved(policy, seed=3):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    policy.refresh()
    return policy


IDS = torch.tensor(np.random.default_rng(0).integers(4, 20, (2, 9)))


def test_the_rollout_model_computes_what_the_adapter_does():
    policy = moved(a_policy())
    plain = policy.engine(4).model
    assert plain is not policy.model
    assert torch.allclose(plain(IDS).logits, policy.model(IDS).logits, atol=1e-5)
    with policy.reference() as reference:
        base = reference(IDS).logits
    assert not torch.allclose(plain(IDS).logits, base, atol=1e-2)


def test_a_fresh_adapter_changes_nothing_to_the_bit():
    policy = a_policy()
    policy.refresh()
    expected = untrained(ANCHOR, 0)(IDS).logits
    assert torch.equal(policy.engine(4).model(IDS).logits, expected)


def test_the_base_is_never_changed_and_is_the_reference():
    policy = moved(a_policy())
    with policy.reference() as reference:
        assert torch.allclose(reference(IDS).logits, untrained(ANCHOR, 0)(IDS).logits, atol=1e-6)
    assert torch.allclose(policy.engine(4).model(IDS).logits, policy.model(IDS).logits, atol=1e-5)


def test_the_rollout_model_shares_whatever_the_adapter_leaves_alone():
    policy = a_policy()
    plain, base = policy.engine(4).model, policy.model.get_base_model()
    assert plain.model.embed_tokens.weight is base.model.embed_tokens.weight
    assert plain.lm_head.weight is plain.model.embed_tokens.weight
    own = sum(p.numel() for _, p in policy._pairs)
    assert own < sum(p.numel() for p in plain.parameters())


def test_sixteen_bits_roll_out_through_the_adapter():
    policy = a_policy(dtype=torch.bfloat16)
    assert policy.engine(4).model is policy.model
    assert all(p.dtype == torch.float32 for p in policy.parameters)


def test_the_seed_decides_the_adapters_start_and_leaves_torchs_generator_alone():
    torch.manual_seed(9)
    before = torch.random.get_rng_state()
    one, same, other = a_policy(1).state(), a_policy(1).state(), a_policy(2).state()
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_saved_adapter_is_read_back_to_the_bit():
    policy, fresh = moved(a_policy()), a_policy(5)
    fresh.load_state(policy.state())
    assert torch.equal(fresh.engine(4).model(IDS).logits, policy.engine(4).model(IDS).logits)


def test_another_models_adapter_is_refused():
    other = Policy(untrained(ANCHOR, 0), lab_tokenizer(), None, LoraSettings(8, 8), seed=0)
    with pytest.raises(EngineError, match="does not fit"):
        a_policy().load_state(other.state())


def test_a_rank_of_zero_is_refused():
    with pytest.raises(SettingError):
        LoraSettings(rank=0)
