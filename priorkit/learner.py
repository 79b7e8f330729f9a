"""One gradient step on one update's rollouts: micro-batches, loss, clipping, optimiser.

`S` sequences, `T` tokens. Sequences are right-padded, so causal attention needs no mask; those that
cannot move the policy (advantage 0, no reference penalty) are left out of the arithmetic and stay
in the loss's denominator.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from priorkit import grpo
from priorkit.errors import EngineError, SettingError
from priorkit.memory import memory_advice
from priorkit.policy import Policy


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """The optimiser and the loss. Defaults: ThinkPrior, app. F; ours where it is silent."""

    learning_rate: float = 3e-5
    """Of AdamW, constant after the warm-up."""
    warmup: int = 3
    """Updates `u` = 1 … `warmup` use u / (warmup + 1) of the learning rate (our choice)."""
    clip: float = 1.0
    """Gradient norm above which gradients are scaled down."""
    loss_length: grpo.LossLength = "token"
    """What a response's log-likelihood is divided by; see `priorkit.grpo.LENGTHS` (our choice)."""
    kl: float = 0.0
    """Weight β of the reference penalty; the paper's is 0.04 when on."""
    micro_tokens: int = 4096
    """Padded tokens in a forward pass at most; a single longer sequence still goes alone. Four
    times the default took more than 24 GB with SmolLM2-135M in float32."""
    gradient_checkpointing: bool = False
    """Compute activations again in the backward pass: less memory, about a third more time."""

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise SettingError(
                f"learning_rate must be above 0 and finite, got {self.learning_rate}"
            )
        if not self.clip > 0:
            raise SettingError(f"clip must be above 0, got {self.clip}")
        if not 0 <= self.kl < math.inf:
            raise SettingError(f"kl must be 0 or more, got {self.kl}")
        for name, least in (("warmup", 0), ("micro_tokens", 1)):
            if getattr(self, name) < least:
                raise SettingError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.loss_length not in grpo.LENGTHS:
            raise SettingError(
                f"loss length must be one of {', '.join(grpo.LENGTHS)}, got {self.loss_length!r}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """An update's rollouts.

    Attributes:
        prompts: `[S]` token ids of each prompt.
        responses: `[S]` token ids of each response, replayed tokens included.
        masks: `[S]` as long as the response: 1 where the policy itself chose the token.
        advantages: `[S]`, exact zeros for silent groups and responses without a verdict.
    """

    prompts: Sequence[Sequence[int]]
    responses: Sequence[Sequence[int]]
    masks: Sequence[Sequence[int]]
    advantages: Tensor


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one gradient step reports."""

    loss: float
    kl: float | None
    grad_norm: float
    learning_rate: float


class Learner:
    """A policy with its optimiser.

    Args:
        policy: what is trained.
        settings: how.
        max_new_tokens: the length that `loss_length="constant"` stands for.
    """

    def __init__(self, policy: Policy, settings: LearnerSettings, max_new_tokens: int) -> None:
        self.policy = policy
        self.settings = settings
        self.updates = 0
        self._max_new_tokens = max_new_tokens
        self._forward = _Forward(policy.model)
        if settings.gradient_checkpointing:
            policy.save_memory()
        self.optimizer = torch.optim.AdamW(
            policy.parameters,
            lr=settings.learning_rate,
            weight_decay=0.0,
            fused=True,
        )

    def learning_rate(self) -> float:
        """Of the next update."""
        ramp = (self.updates + 1) / (self.settings.warmup + 1)
        return self.settings.learning_rate * min(1.0, ramp)

    def step(self, batch: Batch) -> StepResult:
        """Take one optimiser step; the policy's rollout weights follow.

        Raises:
            EngineError: a loss or gradient that is not a number; the weights are unchanged.
            EngineError: out of memory.
        """
        micro = self.settings.micro_tokens
        with memory_advice(
            f"in the gradient step with {micro} tokens at once",
            f"try --micro-tokens {max(micro // 2, 1)} or --gradient-checkpointing",
        ):
            loss, kl = self._accumulate(batch)
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters, self.settings.clip))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self.optimizer.zero_grad(set_to_none=True)
            raise EngineError(
                f"update {self.updates + 1}: the loss is {loss} and the gradient norm {norm}; "
                "lower the learning rate, or train in float32 instead of 16 bits"
            )
        rate = self.learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        self.policy.refresh()
        return StepResult(loss, kl, norm, rate)

    def state(self) -> dict[str, Tensor]:
        """The optimiser's tensors, named by parameter and role."""
        held = {}
        for name, parameter in self._named():
            for role, value in self.optimizer.state.get(parameter, {}).items():
                held[f"{name}:{role}"] = value.detach().cpu().contiguous()
        return held

    def load_state(self, state: Mapping[str, Tensor], updates: int) -> None:
        """Go on from a saved optimiser after so many updates."""
        self.updates = updates
        self.optimizer.state.clear()
        named = dict(self._named())
        for key, value in state.items():
            name, _, role = key.rpartition(":")
            self.optimizer.state[named[name]][role] = value.to(named[name].device, copy=True)

    def _named(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(n, p) for n, p in self.policy.model.named_parameters() if p.requires_grad]

    def _accumulate(self, batch: Batch) -> tuple[float, float | None]:
        """Gradients of the whole update's loss; the loss, and the mean KL a token."""
        lengths = torch.tensor([sum(mask) for mask in batch.masks])
        weights = grpo.sequence_weights(
            lengths, len(batch.masks), self.settings.loss_length, self._max_new_tokens
        )
        self.policy.model.train()
        self._zero()
        loss, kl, tokens = 0.0, 0.0, 0
        for rows in self._micro_batches(batch):
            part, parts_kl, counted = self._part(batch, rows, weights[rows])
            part.backward()  # type: ignore[no-untyped-call]
            loss, tokens = loss + float(part.detach()), tokens + counted
            kl += parts_kl * counted
        return loss, kl / max(tokens, 1) if self.settings.kl else None

    def _zero(self) -> None:
        """Gradients of zero, not None: an update without any signal is still an update."""
        for parameter in self.policy.parameters:
            parameter.grad = torch.zeros_like(parameter)

    def _part(
        self, batch: Batch, rows: Sequence[int], weights: Tensor
    ) -> tuple[Tensor, float, int]:
        """Loss, mean KL and counted tokens of some of the update's sequences."""
        padded = _padded(batch, rows, self.policy.device)
        advantages = batch.advantages[list(rows)].to(self.policy.device)
        weights = weights.to(self.policy.device)
        logprobs = self._forward(self.policy.model, padded)
        loss, _ = grpo.policy_loss(logprobs, padded.mask, advantages, weights)
        if not self.settings.kl:
            return loss, 0.0, int(padded.mask.sum())
        with self.policy.reference() as reference:
            fixed = self._forward(reference, padded)
        penalty, metrics = grpo.kl_penalty(logprobs, fixed, padded.mask, weights)
        return loss + self.settings.kl * penalty, metrics["kl"], int(padded.mask.sum())

    def _micro_batches(self, batch: Batch) -> Iterator[list[int]]:
        """Rows in order of length, cut so that rows × longest stays within the token budget."""
        moved = range(len(batch.masks))
        if not self.settings.kl:
            moved = [row for row in moved if batch.advantages[row] != 0]  # type: ignore[assignment]
        total = {row: len(batch.prompts[row]) + len(batch.responses[row]) for row in moved}
        rows: list[int] = []
        for row in sorted(total, key=total.__getitem__):
            if rows and (len(rows) + 1) * total[row] > self.settings.micro_tokens:
                yield rows
                rows = []
            rows.append(row)
        if rows:
            yield rows


@dataclass(frozen=True, slots=True, eq=False)
class _Padded:
    """Right-padded sequences; `first` is the place from which targets are scored.

    `ids` `[S, T]`, `mask` `[S, T − first]`: 1 where the token at `first + t` counts.
    """

    ids: Tensor
    mask: Tensor
    first: int


def _padded(batch: Batch, rows: Sequence[int], device: torch.device) -> _Padded:
    longest = max(len(batch.prompts[row]) + len(batch.responses[row]) for row in rows)
    first = min(len(batch.prompts[row]) for row in rows)
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros((len(rows), longest))
    for at, row in enumerate(rows):
        start, end = len(batch.prompts[row]), len(batch.prompts[row]) + len(batch.responses[row])
        ids[at, :start] = torch.tensor(batch.prompts[row])
        ids[at, start:end] = torch.tensor(batch.responses[row])
        mask[at, start:end] = torch.tensor(batch.masks[row], dtype=mask.dtype)
    return _Padded(ids.to(device), mask[:, first:].to(device), first)


class _Forward:
    """Log-likelihoods of the tokens from `first` on, with no more logits than that takes."""

    def __init__(self, model: Any) -> None:
        base = model.get_base_model()
        self._keeps = "logits_to_keep" in inspect.signature(base.forward).parameters

    def __call__(self, model: Any, padded: _Padded) -> Tensor:
        """`[S, T − first]` in float32."""
        scored = padded.ids.shape[1] - padded.first
        options = {"logits_to_keep": scored + 1} if self._keeps else {}
        logits = model(input_ids=padded.ids, use_cache=False, **options).logits
        return grpo.token_logprobs(logits[:, -scored - 1 : -1], padded.ids[:, padded.first :])
