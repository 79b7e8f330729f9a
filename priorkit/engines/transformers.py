"""Batched generation with a Hugging Face model on one device.

A batch's distinct contexts (prompt and replayed prefix) are left-padded and read once; the cache is
then spread over the samples, and every sample draws from its own stream. Rows end at an end token
or their own limit and leave the batch when under three quarters of it are alive. All of it is a
function of the batch alone, so on a CPU in float32, with as many threads, runs repeat bit for bit.

A model's `generation_config` is asked for its end tokens only: its own temperature, top-k or
repetition penalty would make the samples come from another distribution than a file says.

Shapes: `C` contexts, `N` rows (samples still in the batch), `L` tokens held, `V` vocabulary.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from priorkit.engines.kv_cache import make_cache, take_rows
from priorkit.engines.loading import DeviceName, DtypeName, load_model
from priorkit.engines.models import ModelSource
from priorkit.engines.protocol import Completion, FinishReason, Request
from priorkit.engines.sampling import draw, token_statistics, uniforms
from priorkit.errors import EngineError, SettingError

_COMPACT_BELOW = 0.75  # a row more costs little, moving the cache costs a copy of it


class TransformersEngine:
    """Generates with a model held in memory; a `BatchedEngine`.

    Args:
        model: a decoder-only language model with a key-value cache, plain or with an adapter.
        tokenizer: its tokenizer.
        source: where it came from, for the provenance.
        batch_size: sequences generated at once; a request for more samples is a batch alone.
    """

    def __init__(
        self, model: Any, tokenizer: Any, source: ModelSource | None = None, *, batch_size: int = 64
    ) -> None:
        if batch_size < 1:
            raise SettingError(f"batch_size must be at least 1, got {batch_size}")
        self.model = model
        self.tokenizer = tokenizer
        self.source = source
        self.batch_size = batch_size
        self.end_tokens = _end_tokens(model, tokenizer)
        self._accepts = _forward_arguments(model)

    @classmethod
    def load(
        cls,
        source: ModelSource,
        *,
        dtype: DtypeName = "auto",
        device: DeviceName = "auto",
        batch_size: int = 64,
    ) -> TransformersEngine:
        """Load a model: bfloat16 on a GPU and float32 on a CPU, unless told otherwise.

        Raises:
            SettingError: an unknown dtype or device.
            EngineError: the model cannot be loaded here.
        """
        model, tokenizer = load_model(source, dtype=dtype, device=device)
        return cls(model, tokenizer, source, batch_size=batch_size)

    def settings(self) -> dict[str, object]:
        """What decides the arithmetic, for a file's provenance."""
        return {
            "engine": "transformers",
            "model": self.source.name if self.source else "unknown",
            "revision": self.source.revision if self.source else "unknown",
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": self.model.device.type,
            "batch_size": self.batch_size,
            "threads": torch.get_num_threads(),
            "attention": str(getattr(self.model.config, "_attn_implementation", None)),
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }

    def batches(self, requests: Sequence[Request]) -> list[tuple[Request, ...]]:
        """The job cut into batches of one temperature and nucleus, contexts of like length together.

        A function of the requests and `batch_size`; cutting a batch again gives that batch.
        """
        alike: dict[tuple[float, float], list[Request]] = {}
        for request in requests:
            sampling = request.sampling
            alike.setdefault((sampling.temperature, sampling.top_p), []).append(request)
        return [batch for group in alike.values() for batch in self._cut(sorted(group, key=_length))]

    def _cut(self, requests: list[Request]) -> Iterator[tuple[Request, ...]]:
        batch: list[Request] = []
        for request in requests:
            if batch and sum(r.n for r in batch) + request.n > self.batch_size:
                yield tuple(batch)
                batch = []
            batch.append(request)
        if batch:
            yield tuple(batch)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Completions, each as soon as its row ends; leaves the model in evaluation mode.

        Raises:
            EngineError: out of memory, or logits that are not numbers.
        """
        for batch in self.batches(list(requests)):
            self.model.eval()
            decoding = _Decoding(self, batch)
            while decoding.alive:
                with _memory_advice(self.batch_size):
                    ended = decoding.advance()
                yield from ended

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Tensor:
        """Next-token logits `[N, V]` after `ids` `[N, new]`, which join the cache."""
        offered = {
            "cache": cache,
            "past_key_values": cache,
            "position_ids": positions,
            "logits_to_keep": 1,
        }
        accepted = {name: value for name, value in offered.items() if name in self._accepts}
        output = self.model(input_ids=ids, attention_mask=mask, use_cache=True, **accepted)
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


class _Decoding:
    """One batch under way. `advance` generates one token a row."""

    def __init__(self, engine: TransformersEngine, batch: tuple[Request, ...]) -> None:
        self._engine = engine
        self._device = engine.model.device
        self._sampling = batch[0].sampling
        self._rows = [
            _Row(request, request.first_sample + i) for request in batch for i in range(request.n)
        ]
        self._entropy_wanted = any(request.want_entropy for request in batch)
        self._uniforms = self._streams()
        self._cache = make_cache(engine.model.config)
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
        logits = self._engine.forward(ids, mask[:, :width], positions, self._cache)
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
        return self._engine.forward(self._tokens, mask, self._positions, self._cache)

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
        if row.tokens[-1] in self._engine.end_tokens:
            return "stop"
        return "length" if len(row.tokens) >= row.request.sampling.max_new_tokens else None

    def _completion(self, row: _Row, reason: FinishReason) -> Completion:
        request = row.request
        text = self._engine.tokenizer.decode(
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


def _length(request: Request) -> int:
    return len(request.prompt_tokens) + len(request.prefix_tokens)


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    listed = configured if isinstance(configured, list) else [configured]
    return frozenset(int(token) for token in [*listed, tokenizer.eos_token_id] if token is not None)


def _forward_arguments(model: Any) -> frozenset[str]:
    """Which optional inputs the model takes; the cache has had two names in the library."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    named = frozenset(inspect.signature(base.forward).parameters)
    cache = "cache" if "cache" in named else "past_key_values"
    if cache not in named:
        raise EngineError(
            f"{type(base).__name__} takes no key-value cache, so it is no decoder-only language "
            "model that this engine can run"
        )
    return named & {cache, "position_ids", "logits_to_keep"}


@contextlib.contextmanager
def _memory_advice(batch_size: int) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        wanted = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if wanted or "allocate memory" in str(error):  # the CPU allocator raises a bare RuntimeError
            raise EngineError(
                f"out of memory while generating {batch_size} sequences at once; "
                f"try a smaller --batch-size, such as {max(batch_size // 2, 1)}"
            ) from error
        raise
