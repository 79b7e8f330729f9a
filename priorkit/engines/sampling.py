"""Drawing tokens: one uniform a token, one stream a sample, and no row that sees another.

`torch.multinomial` takes its randomness from a generator shared by the batch, so a row's token
would hang on its batch mates. Here a sample owns the stream `(seed, sample)` and each token is the
inverse of its own row's distribution function.

Shapes: `N` rows, `V` vocabulary.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from priorkit.errors import EngineError

_CHUNK = 256  # wide enough that chunk totals are few, narrow enough that the final search is cheap
_WORD = 2**64


def uniforms(seed: int, sample: int, n: int) -> npt.NDArray[np.float64]:
    """The first `n` uniforms of the stream `(seed, sample)`, `[n]` in [0, 1).

    Philox is counter-based and takes both numbers as its key, so streams need no spacing out. A
    longer request starts with the shorter one.

    >>> bool((uniforms(7, 3, 2) == uniforms(7, 3, 5)[:2]).all())
    True
    """
    key = np.array([seed % _WORD, sample % _WORD], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key)).random(n)


def draw(logits: Tensor, uniforms: Tensor, temperature: float, top_p: float = 1.0) -> Tensor:
    """One token a row by inverting its distribution function at the row's uniform.

    The token is the number of entries of the distribution function that are ≤ u · total. Sums run
    in float64: in float32 a vocabulary of 150k loses its tail.

    Args:
        logits: `[N, V]`.
        uniforms: `[N]` float64 in [0, 1), on the same device; unused when greedy.
        temperature: 0 takes the most likely token, the lowest id among equals.
        top_p: nucleus mass in (0, 1].

    Returns:
        `[N]` token ids, int64.

    Raises:
        EngineError: a row holds no distribution (NaN, or no finite logit).
    """
    if temperature == 0:
        tokens = logits.argmax(dim=-1)
        _check(logits.gather(-1, tokens[:, None]))
        return tokens
    # The largest logit goes first: at a temperature near 0 the quotient would run to infinity.
    shifted = logits.float() - logits.amax(dim=-1, keepdim=True)
    probabilities = torch.softmax(shifted / temperature, dim=-1)
    if top_p < 1:
        probabilities = nucleus(probabilities, top_p)
    return _invert(probabilities, uniforms)


def nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """`[N, V]` with everything outside the smallest set of mass ≥ `top_p` at zero.

    Tokens enter by falling probability, equals by rising id; at least one always stays.
    """
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    through = ranked.cumsum(dim=-1, dtype=torch.float64)
    before = torch.nn.functional.pad(through[:, :-1], (1, 0))  # subtracting would round once more
    return torch.zeros_like(probabilities).scatter_(-1, order, ranked * (before < top_p))


def token_statistics(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each row's token and entropy of its row, `[N]` each.

    In nats, at temperature 1, over the full vocabulary: not the temperature and nucleus that drew
    the token.
    """
    # Shifted by the maximum, so the entropy is a sum of positive terms; the floor keeps a masked
    # (minus infinite) logit from making 0 times infinity.
    shifted = (logits.float() - logits.amax(dim=-1, keepdim=True)).clamp_(min=-1e4)
    log_total = shifted.logsumexp(dim=-1)
    weights = torch.exp(shifted - log_total[:, None])
    entropy = log_total - torch.linalg.vecdot(weights, shifted)
    logprob = shifted.gather(-1, tokens[:, None]).squeeze(-1) - log_total
    return logprob, entropy


def _invert(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Two searches, over chunk totals and inside one chunk, in place of a `[N, V]` float64 sum."""
    rows, vocabulary = probabilities.shape
    padded = torch.nn.functional.pad(probabilities, (0, -vocabulary % _CHUNK))
    chunks = padded.view(rows, -1, _CHUNK)
    through = chunks.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)  # [N, chunks]
    _check(through[:, -1])
    target = uniforms[:, None] * through[:, -1:]
    chunk = _first_above(through, target)
    before = torch.where(chunk > 0, through.gather(-1, (chunk - 1).clamp(min=0)), 0.0)
    inside = chunks.gather(1, chunk[:, :, None].expand(-1, -1, _CHUNK)).squeeze(1)
    within = _first_above(inside.cumsum(dim=-1, dtype=torch.float64), target - before)
    return (chunk * _CHUNK + within).squeeze(-1)


def _first_above(cumulative: Tensor, target: Tensor) -> Tensor:
    """`[N, 1]` first place above the target, but never past the last entry with any mass.

    The two sums round differently, so a target can land on a chunk's very end.
    """
    last = (cumulative < cumulative[:, -1:]).sum(dim=-1, keepdim=True)
    return (cumulative <= target).sum(dim=-1, keepdim=True).minimum(last)


def _check(values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise EngineError(
            "the model returned logits that are not numbers, so there is nothing to draw from; "
            "try float32 instead of a 16-bit dtype, a lower learning rate if it was just trained, "
            "and check that the weights are whole"
        )
