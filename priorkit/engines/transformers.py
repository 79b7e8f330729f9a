"""Batched generation with a Hugging Face model on one device.

A batch's distinct contexts (prompt and replayed prefix) are left-padded and read once; the cache is
then spread over the samples, and every sample draws from its own stream. Rows end at an end token
or their own limit and leave the batch when under three quarters of it are alive. All of it is a
function of the batch alone, so on a CPU in float32, with as many threads, runs repeat bit for bit.

A model's `generation_config` is asked for its end tokens only: its own temperature, top-k or
repetition penalty would make the samples come from another distribution than a file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import torch

from priorkit.engines.decoding import Decoder, Decoding
from priorkit.engines.loading import DeviceName, DtypeName, load_model
from priorkit.engines.models import ModelSource
from priorkit.engines.protocol import Completion, Request
from priorkit.errors import SettingError
from priorkit.memory import memory_advice


class TransformersEngine:
    """Generates with a model held in memory; a `BatchedEngine`.

    Args:
        model: a decoder-only language model with a key-value cache, plain or with an adapter.
        tokenizer: its tokenizer.
        source: where it came from, for the provenance.
        batch_size: sequences generated at once; a request for more samples is a batch alone.
        size_flag: what the command calls `batch_size`, for advice when memory runs out.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        source: ModelSource | None = None,
        *,
        batch_size: int = 64,
        size_flag: str = "--batch-size",
    ) -> None:
        if batch_size < 1:
            raise SettingError(f"batch_size must be at least 1, got {batch_size}")
        self.model = model
        self.tokenizer = tokenizer
        self.source = source
        self.batch_size = batch_size
        self._size_flag = size_flag
        self.end_tokens = _end_tokens(model, tokenizer)
        self._decoder = Decoder(model)

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
        """The job cut into batches: one temperature and nucleus each, contexts of like length.

        A function of the requests and `batch_size`; cutting a batch again gives that batch.
        """
        alike: dict[tuple[float, float], list[Request]] = {}
        for request in requests:
            sampling = request.sampling
            alike.setdefault((sampling.temperature, sampling.top_p), []).append(request)
        groups = (sorted(group, key=_length) for group in alike.values())
        return [batch for group in groups for batch in self._cut(group)]

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
            decoding = Decoding(self._decoder, self.tokenizer, self.end_tokens, batch)
            while decoding.alive:
                with memory_advice(
                    f"while generating {self.batch_size} sequences at once",
                    f"try a smaller {self._size_flag}, such as {max(self.batch_size // 2, 1)}",
                ):
                    ended = decoding.advance()
                yield from ended


def _length(request: Request) -> int:
    return len(request.prompt_tokens) + len(request.prefix_tokens)


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    listed = configured if isinstance(configured, list) else [configured]
    return frozenset(int(token) for token in [*listed, tokenizer.eos_token_id] if token is not None)
