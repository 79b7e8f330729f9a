"""One gradient step on a real nano policy: micro-batches, adapter arithmetic, optimiser state."""

import copy
import math

import numpy as np
import pytest
import torch

from priorkit import grpo
from priorkit.errors import EngineError, SettingError
from priorkit.lab.nano import POLICY, nano_config, untrained
from priorkit.lab.tokenizer import lab_tokenizer
from priorkit.learner import Batch, Learner, LearnerSettings
from priorkit.policy import LoraSettings, Policy


@pytest.fixture
def policy():
    """A nano policy whose adapter is not at its zero start."""
    made = Policy(untrained(POLICY, 3), lab_tokenizer(), None, LoraSettings(4, 8), seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in made.parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    made.refresh()
    return made


def a_batch(n=6, seed=0, prefixed=False):
    """Sequences of unlike lengths, the odd ones with a replayed start."""
    rng = np.random.default_rng(seed)
    prompts = [tuple(rng.integers(4, 20, rng.integers(2, 7)).tolist()) for _ in range(n)]
    responses = [tuple(rng.integers(4, 20, rng.integers(3, 12)).tolist()) for _ in range(n)]
    masks = [
        (0,) * (2 if prefixed and i % 2 else 0) + (1,) * (len(r) - (2 if prefixed and i % 2 else 0))
        for i, r in enumerate(responses)
    ]
    advantages = torch.tensor(rng.normal(size=n), dtype=torch.float32)
    return Batch(prompts, responses, masks, advantages)


def gradients(policy, settings, batch):
    learner = Learner(policy, settings, 16)
    loss, kl = learner._accumulate(batch)
    return loss, kl, torch.cat([p.grad.flatten() for p in policy.parameters])


def literal_gradients(policy, settings, batch):
    """Each sequence alone, without padding, in float64, straight from the design's formula."""
    model = copy.deepcopy(policy.model).double()
    for parameter in model.parameters():
        parameter.grad = None
    lengths = [sum(mask) for mask in batch.masks]
    loss = torch.zeros((), dtype=torch.float64)
    for prompt, response, mask, advantage, length in zip(
        batch.prompts, batch.responses, batch.masks, batch.advantages, lengths, strict=True
    ):
        ids = torch.tensor([prompt + response])
        scores = model(input_ids=ids).logits[0].log_softmax(-1)
        chosen = scores[len(prompt) - 1 : -1].gather(-1, torch.tensor(response)[:, None])[:, 0]
        with torch.no_grad(), model.disable_adapter():
            base = model(input_ids=ids).logits[0].log_softmax(-1)
            fixed = base[len(prompt) - 1 : -1].gather(-1, torch.tensor(response)[:, None])[:, 0]
        counted = torch.tensor(mask, dtype=torch.float64)
        divisor = {
            "response": length, "token": sum(lengths) / len(lengths), "constant": 16,
        }[settings.loss_length]  # fmt: skip
        ratio = torch.exp(fixed - chosen)
        penalty = settings.kl * (ratio - torch.log(ratio) - 1)
        each = -advantage.double() * chosen + penalty
        loss = loss + (each * counted).sum() / divisor / len(lengths)
    loss.backward()
    named = dict(model.named_parameters())
    order = [n for n, p in policy.model.named_parameters() if p.requires_grad]
    return float(loss.detach()), torch.cat([named[n].grad.flatten() for n in order])


@pytest.mark.parametrize("kl", [0.0, 0.04])
@pytest.mark.parametrize("loss_length", grpo.LENGTHS)
def test_loss_and_gradient_are_those_of_the_formula_sequence_by_sequence(policy, loss_length, kl):
    settings = LearnerSettings(loss_length=loss_length, kl=kl, micro_tokens=40)
    batch = a_batch(prefixed=True)
    loss, _, ours = gradients(policy, settings, batch)
    expected, theirs = literal_gradients(policy, settings, batch)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-5


@pytest.mark.parametrize("kl", [0.0, 0.04])
@pytest.mark.parametrize("micro_tokens", [1, 25, 60])
def test_micro_batches_equal_the_whole_batch(policy, micro_tokens, kl):
    batch = a_batch(10)
    whole = gradients(policy, LearnerSettings(micro_tokens=10_000, kl=kl), batch)
    parts = gradients(policy, LearnerSettings(micro_tokens=micro_tokens, kl=kl), batch)
    assert parts[0] == pytest.approx(whole[0], rel=1e-5)
    assert float((parts[2] - whole[2]).norm() / whole[2].norm()) < 1e-5
    if kl:
        assert parts[1] == pytest.approx(whole[1], rel=1e-4)


def test_silent_sequences_are_left_out_of_the_arithmetic_and_not_of_the_denominator(policy):
    batch = a_batch(8)
    batch.advantages[::2] = 0
    settings = LearnerSettings(loss_length="response")
    _, _, ours = gradients(policy, settings, batch)
    _, theirs = literal_gradients(policy, settings, batch)
    assert float((ours - theirs).norm() / theirs.norm()) < 1e-5


def test_an_update_of_silent_groups_has_no_gradient_and_is_an_update(policy):
    batch = a_batch()
    batch.advantages.zero_()
    before = policy.state()
    learner = Learner(policy, LearnerSettings(), 16)
    result = learner.step(batch)
    assert (result.loss, result.grad_norm, learner.updates) == (0.0, 0.0, 1)
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())


def test_gradients_above_the_limit_are_scaled_to_it(policy):
    batch = a_batch()
    batch.advantages.mul_(1e4)
    learner = Learner(policy, LearnerSettings(clip=0.5), 16)
    learner.optimizer.step = lambda: None  # keeps the gradients to look at
    learner.optimizer.zero_grad = lambda set_to_none=True: None
    result = learner.step(batch)
    assert result.grad_norm > 0.5
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in policy.parameters))
    assert norm == pytest.approx(0.5, rel=1e-4)


def test_the_learning_rate_warms_up_and_stays(policy):
    learner = Learner(policy, LearnerSettings(learning_rate=4e-3, warmup=3), 16)
    rates = [learner.step(a_batch(seed=i)).learning_rate for i in range(6)]
    assert rates == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3, 4e-3, 4e-3])


def test_a_loss_that_is_not_a_number_is_refused_and_changes_nothing(policy):
    batch = a_batch()
    batch.advantages[0] = float("nan")
    before = policy.state()
    learner = Learner(policy, LearnerSettings(), 16)
    with pytest.raises(EngineError, match=r"update 1: .*lower the learning rate"):
        learner.step(batch)
    assert learner.updates == 0
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_out_of_memory_comes_with_advice(policy, error, monkeypatch):
    learner = Learner(policy, LearnerSettings(micro_tokens=512), 16)

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(policy.model, "forward", fail)
    with pytest.raises(EngineError, match="--micro-tokens 256"):
        learner.step(a_batch())


def test_an_optimiser_read_back_steps_as_the_one_that_was_saved():
    def fresh():
        made = Policy(untrained(POLICY, 3), lab_tokenizer(), None, LoraSettings(4, 8), seed=1)
        return Learner(made, LearnerSettings(learning_rate=1e-3), 16)

    unbroken = fresh()
    for i in range(3):
        unbroken.step(a_batch(seed=i))
    state, weights = unbroken.state(), unbroken.policy.state()
    resumed = fresh()
    resumed.policy.load_state(weights)
    resumed.load_state(state, 3)
    for i in (7, 8):
        unbroken.step(a_batch(seed=i))
        resumed.step(a_batch(seed=i))
    for name, tensor in unbroken.policy.state().items():
        assert torch.equal(tensor, resumed.policy.state()[name]), name
    assert resumed.learning_rate() == unbroken.learning_rate()


@pytest.mark.parametrize(
    "setting",
    [
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"clip": 0.0},
        {"kl": -1.0},
        {"warmup": -1},
        {"micro_tokens": 0},
        {"loss_length": "words"},
    ],
)
def test_settings_out_of_their_domain_are_refused(setting):
    with pytest.raises(SettingError):
        LearnerSettings(**setting)


def test_gradient_checkpointing_changes_no_gradient():
    batch = a_batch(8)

    def of(checkpointing):
        made = Policy(untrained(POLICY, 3), lab_tokenizer(), None, LoraSettings(4, 8), seed=1)
        return gradients(made, LearnerSettings(gradient_checkpointing=checkpointing), batch)

    plain, saving = of(False), of(True)
    assert saving[0] == pytest.approx(plain[0], rel=1e-6)
    assert torch.allclose(saving[2], plain[2], rtol=1e-5, atol=1e-9)


def test_a_policy_with_dropout_learns_from_the_model_that_rolled_out():
    from transformers import LlamaForCausalLM

    config = nano_config(POLICY)
    config.attention_dropout = 0.5
    torch.manual_seed(0)
    made = Policy(LlamaForCausalLM(config), lab_tokenizer(), None, LoraSettings(4, 8), seed=1)
    first, again = (gradients(made, LearnerSettings(), a_batch()) for _ in range(2))
    assert first[0] == again[0]
    assert torch.equal(first[2], again[2])
