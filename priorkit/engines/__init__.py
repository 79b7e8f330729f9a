"""Engines: what turns token ids into sampled responses.

Importing this package loads no model library; `make_engine` does, when an engine is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from priorkit.engines.protocol import (
    BatchedEngine,
    Completion,
    Engine,
    FinishReason,
    Request,
    Sampling,
    request_seed,
)
from priorkit.errors import SettingError
from priorkit.extras import require

if TYPE_CHECKING:
    from priorkit.engines.models import ModelSource
    from priorkit.engines.transformers import TransformersEngine

__all__ = [
    "BatchedEngine",
    "Completion",
    "Engine",
    "FinishReason",
    "Request",
    "Sampling",
    "make_engine",
    "request_seed",
]


def make_engine(kind: str, source: ModelSource, **settings: Any) -> TransformersEngine:
    """An engine of a kind, its model loaded.

    Args:
        kind: `transformers`, or `auto`, which is the same for now.
        source: from `priorkit.engines.models.resolve_model`.
        settings: as `TransformersEngine.load` takes them.

    Raises:
        SettingError: an unknown kind or setting value.
        MissingExtraError: a library the engine needs is not installed.
        EngineError: the model cannot be loaded here.
    """
    if kind not in ("auto", "transformers"):
        raise SettingError(f"engine must be auto or transformers, got {kind!r}")
    needed = ["torch", "transformers", *(["gguf"] if source.gguf_file else [])]
    require(f"running {source.name!r}", *needed)
    from priorkit.engines.transformers import TransformersEngine

    return TransformersEngine.load(source, **settings)
