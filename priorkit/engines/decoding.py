"""One batch under way: contexts read once, then a token a row until every row has ended.

Shapes: `C` distinct contexts, `N` rows (samples still in the batch), `V` vocabulary.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from priorkit.engines.kv_cache import make_cache, take_rows
from priorkit.engines.protocol import Completion, FinishReason, Request
from priorkit.engines.sampling import draw, token_statistics, uniforms
from priorkit.errors import EngineError

_COMPACT_BELOW = 0.75  # a dead row costs little, dropping it costs a copy of the cache


class Decoder:
    """A causal language model as a function from new tokens and a cache to next-token logits.

    Raises:
        EngineError: the model takes no key-value cache.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        named = frozenset(inspect.signature(base.forward).parameters)
        self._cache_name = "cache" if "cache" in named else "past_key_values"  # renamed in 5.x
        self._takes_positions = "position_ids" in named
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in named else {}
        if self._cache_name not in named:
            raise EngineError(
                f"{type(base).__name__} takes no key-value cache, so it is no decoder-only "
                "language model that this engine can run"
            )

    def __call__(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Tensor:
        """Logits `[N, V]` of the token after `ids` `[N, new]`, which join the cache.

        Args:
            ids: token ids; any id where masked.
            mask: `[N, held + new]`, 1 for a real token and 0 for padding.
            positions: `[N, new]`, counted from the first real token.
            cache: from `make_cache`.
        """
        options = {self._cache_name: cache, **self._last_only}
        if self._takes_positions:
            options["position_ids"] = positions
        output = self.model(input_ids=ids, attention_mask=mask, use_cache=True, **options)
        logits: Tensor = output.logits[:, -1]
        return logits


@dataclass(slots=True)
class _Row:
    request: Request
    sample: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    alive: bool = True


class Decoding:
    """A batch of requests with one temperature and nucleus; `advance` generates a token a row.

    Args:
        decoder: the model.
        tokenizer: for the text of completions.
        end_tokens: ids that end a response.
        batch: the requests.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Any,
        end_tokens: frozenset[int],
        batch: tuple[Request, ...],
    ) -> None:
        self._decoder = decoder
        self._tokenizer = tokenizer
        self._end_tokens = end_tokens
        self._device = decoder.model.device
        self._sampling = batch[0].sampling
        self._rows = [
            _Row(request, request.first_sample + i) for request in batch for i in range(request.n)
        ]
        self._entropy_wanted = any(request.want_entropy for request in batch)
        self._uniforms = self._streams()
        self._cache = make_cache(decoder.model.config)
        self._step = 0

    @property
    def alive(self) -> bool:
        """Whether any row has still to end."""
        return any(row.alive for row in self._rows)

    @torch.inference_mode()
    def advance(self) -> list[Completion]:
        """Draw one token for every row, and return the rows that ended with it."""
        logits = self._read_contexts() if self._step == 0 else self._read_tokens()
        sampling = self._sampling
        tokens = draw(logits, self._uniforms[:, self._step], sampling.temperature, sampling.top_p)
        self._step += 1
        ended = self._record(tokens, logits)
        self._tokens = tokens[:, None]
        if sum(row.alive for row in self._rows) < _COMPACT_BELOW * len(self._rows):
            self._compact()
        return ended

    def _streams(self) -> Tensor:
        """`[N, longest]` uniforms, each row's stream as long as its own limit."""
        longest = max(row.request.sampling.max_new_tokens for row in self._rows)
        drawn = np.zeros((len(self._rows), longest))
        for i, row in enumerate(self._rows):
            limit = row.request.sampling.max_new_tokens
            drawn[i, :limit] = uniforms(row.request.seed, row.sample, limit)
        return torch.from_numpy(drawn).to(self._device)

    def _read_contexts(self) -> Tensor:
        """Read each distinct context once and spread the result over the rows, `[N, V]`."""
        numbers: dict[tuple[int, ...], int] = {}
        of_row = [numbers.setdefault(_context(row.request), len(numbers)) for row in self._rows]
        width = max(map(len, numbers))
        ids = torch.zeros((len(numbers), width), dtype=torch.long)  # any id will do where masked
        mask = torch.zeros((len(numbers), width + self._uniforms.shape[1]), dtype=torch.long)
        for context, i in numbers.items():
            ids[i, width - len(context) :] = torch.tensor(context)
            mask[i, width - len(context) :] = 1  # the columns beyond `width` await the new tokens
        ids, mask = ids.to(self._device), mask.to(self._device)
        positions = (mask[:, :width].cumsum(dim=-1) - 1).clamp(min=0)
        logits = self._decoder(ids, mask[:, :width], positions, self._cache)
        rows = torch.tensor(of_row, device=self._device)
        take_rows(self._cache, rows)
        self._width, self._mask, self._positions = width, mask[rows], positions[rows, -1:]
        return logits[rows]

    def _read_tokens(self) -> Tensor:
        """Read the tokens drawn last, `[N, V]`."""
        # A row that has ended stays where it is: positions past its limit may not exist.
        living = [row.alive for row in self._rows]
        self._positions = self._positions + torch.tensor(living, device=self._device)[:, None]
        mask = self._mask[:, : self._width + self._step]
        return self._decoder(self._tokens, mask, self._positions, self._cache)

    def _record(self, tokens: Tensor, logits: Tensor) -> list[Completion]:
        measured = None
        if self._entropy_wanted:
            measured = [values.tolist() for values in token_statistics(logits, tokens)]
        ended = []
        for i, (row, token) in enumerate(zip(self._rows, tokens.tolist(), strict=True)):
            if not row.alive:
                continue
            row.tokens.append(token)
            if measured:
                row.logprobs.append(measured[0][i])
                row.entropy.append(measured[1][i])
            reason = self._end(row)
            if reason:
                row.alive = False
                ended.append(self._completion(row, reason))
        return ended

    def _end(self, row: _Row) -> FinishReason | None:
        if row.tokens[-1] in self._end_tokens:
            return "stop"
        return "length" if len(row.tokens) >= row.request.sampling.max_new_tokens else None

    def _completion(self, row: _Row, reason: FinishReason) -> Completion:
        request = row.request
        text = self._tokenizer.decode(
            [*request.prefix_tokens, *row.tokens],
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        return Completion(
            prompt_id=request.prompt_id,
            sample=row.sample,
            tokens=tuple(row.tokens),
            text=text,
            finish_reason=reason,
            logprobs=tuple(row.logprobs) if request.want_entropy else None,
            entropy=tuple(row.entropy) if request.want_entropy else None,
        )

    def _compact(self) -> None:
        living = [i for i, row in enumerate(self._rows) if row.alive]
        if not living:
            return
        kept = torch.tensor(living, device=self._device)
        self._rows = [self._rows[i] for i in living]
        take_rows(self._cache, kept)
        self._uniforms, self._mask = self._uniforms[kept], self._mask[kept]
        self._positions, self._tokens = self._positions[kept], self._tokens[kept]


def _context(request: Request) -> tuple[int, ...]:
    return request.prompt_tokens + request.prefix_tokens
