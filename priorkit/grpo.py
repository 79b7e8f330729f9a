r"""Group-relative policy optimisation: advantages and losses over tensors and masks.

`B` groups an update, `G` rollouts a group, `S` sequences in a (micro-)batch, `T` response tokens.
No model, no tokenizer and no prior in here. The objective is the papers' (ThinkPrior, arXiv
2609.09075, eq. 1 and app. F): policy gradient on the untempered log-likelihood, no importance
ratio, no clipping, one inner iteration,

$$ L = -\frac{1}{BG} \sum_i A_i \frac{1}{L_i} \sum_t \log \pi(y_{i,t}), $$

with the optional reference penalty $+\beta\,\mathrm{KL}$ under the same weights. The papers leave
the length $L_i$ open; see `LENGTHS`.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from priorkit.errors import SettingError

LossLength = Literal["response", "token", "constant"]
LENGTHS: tuple[LossLength, ...] = get_args(LossLength)
"""What a sequence's summed log-likelihood is divided by.

`response`: its own number of response tokens (GRPO as published); every response weighs alike, so
a token of a long one weighs less. `token`: the mean length over the batch (DAPO's token level);
every token weighs alike. `constant`: the limit of new tokens (Dr. GRPO, arXiv 2503.20783); as
`token`, but an update's size no longer depends on how long its responses happen to be.
"""


def group_advantages(
    rewards: Tensor, judged: Tensor | None = None, epsilon: float = 1e-4
) -> Tensor:
    r"""Rewards standardised within their group, `[B, G]`; ThinkPrior eq. 1.

    $$ A_i = (r_i - \bar r) / (s + \epsilon), \quad s \text{ the sample deviation} $$

    A group whose judged rewards agree gets exact zeros, and so does a response without a verdict:
    it is left out of mean and deviation. A group with fewer than two verdicts is all zeros.

    Args:
        rewards: `[B, G]`; any value where not judged.
        judged: `[B, G]` whether there is a verdict; None for all.
        epsilon: added to the deviation.

    >>> group_advantages(torch.tensor([[1.0, 0.0], [1.0, 1.0]])).round(decimals=3)
    tensor([[ 0.7070, -0.7070],
            [ 0.0000,  0.0000]])
    """
    seen = torch.ones_like(rewards, dtype=torch.bool) if judged is None else judged
    kept = torch.where(seen, rewards, 0.0)
    trials = seen.sum(dim=1, keepdim=True)
    mean = kept.sum(dim=1, keepdim=True) / trials.clamp(min=1)
    centred = torch.where(seen, rewards - mean, 0.0)
    deviation = (centred.square().sum(dim=1, keepdim=True) / (trials - 1).clamp(min=1)).sqrt()
    # The mean of equal rewards need not be their value to the last bit, so zero is decided here.
    return torch.where(mixed(rewards, seen)[:, None], centred / (deviation + epsilon), 0.0)


def mixed(rewards: Tensor, judged: Tensor) -> Tensor:
    """Whether a group's judged rewards differ, `[B]`; the others are silent."""
    low = torch.where(judged, rewards, torch.inf).amin(dim=1)
    high = torch.where(judged, rewards, -torch.inf).amax(dim=1)
    return low < high


def sequence_weights(
    lengths: Tensor, total: int, loss_length: LossLength, max_new_tokens: int
) -> Tensor:
    r"""$1 / (BG \cdot L_i)$ for every sequence of the whole update, `[S]`.

    Taken once over the update, never over a micro-batch: so micro-batches add up to the same loss.

    Args:
        lengths: `[S]` response tokens that count in the loss, of all the update's sequences.
        total: `B`·`G`, silent groups included.
        loss_length: see `LENGTHS`.
        max_new_tokens: the length that `constant` stands for.

    Raises:
        SettingError: an unknown `loss_length`.
    """
    counted = lengths if lengths.is_floating_point() else lengths.float()
    if loss_length == "response":
        length = counted.clamp(min=1)
    elif loss_length == "token":
        length = (counted.sum() / max(total, 1)).clamp(min=1).expand_as(counted)
    elif loss_length == "constant":
        length = torch.full_like(counted, max_new_tokens)
    else:
        raise SettingError(f"loss length must be one of {', '.join(LENGTHS)}, got {loss_length!r}")
    return 1.0 / (total * length)


def policy_loss(
    logprobs: Tensor, mask: Tensor, advantages: Tensor, weights: Tensor
) -> tuple[Tensor, dict[str, float]]:
    """The policy-gradient part of the loss over some of an update's sequences.

    Args:
        logprobs: `[S, T]` log-likelihood of each response token at temperature 1.
        mask: `[S, T]` 1 where a token counts: replayed, observed and padding tokens do not.
        advantages: `[S]`.
        weights: `[S]` from `sequence_weights`.

    Returns:
        The sum over these sequences, and its `policy_loss` and mean `logprob` as metrics.
    """
    # Where a token does not count, its log-likelihood may be anything, even not a number.
    kept = torch.where(mask.bool(), logprobs, 0.0)
    loss = -(advantages * weights * kept.sum(dim=1)).sum()
    counted = mask.sum().clamp(min=1)
    return loss, {
        "policy_loss": float(loss.detach()),
        "logprob": float(kept.detach().sum() / counted),
    }


def kl_penalty(
    logprobs: Tensor, reference: Tensor, mask: Tensor, weights: Tensor
) -> tuple[Tensor, dict[str, float]]:
    r"""$\mathrm{KL}(\pi \Vert \pi_\mathrm{ref})$ on the sampled tokens, weighted as the loss.

    $$ e^{d} - d - 1, \qquad d = \log \pi_\mathrm{ref}(y) - \log \pi(y) $$

    the low-variance estimator of GRPO (arXiv 2402.03300, eq. 4): never negative, zero when equal.

    Args:
        logprobs: `[S, T]` under the policy.
        reference: `[S, T]` under the reference, without gradient.
        mask: `[S, T]` 1 where a token counts.
        weights: `[S]` from `sequence_weights`.

    Returns:
        The weighted sum, and the mean over counted tokens as the metric `kl`.
    """
    difference = torch.where(mask.bool(), reference - logprobs, 0.0)
    each = torch.expm1(difference) - difference
    loss = (weights * each.sum(dim=1)).sum()
    return loss, {"kl": float(each.detach().sum() / mask.sum().clamp(min=1))}


def token_logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-likelihood of each token, `[S, T]`, from the logits `[S, T, V]` before it.

    In float32, or in float64 where the logits are.
    """
    wide = logits if logits.dtype == torch.float64 else logits.float()
    flat = torch.nn.functional.cross_entropy(wide.flatten(0, 1), tokens.flatten(), reduction="none")
    return -flat.view_as(tokens)
