"""Trained weights as files: what a run hands out, and how an adapter is loaded again.

An adapter folder is PEFT's: `adapter_model.safetensors`, `adapter_config.json`, and a card.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from priorkit.engines.loading import load_model
from priorkit.engines.models import ModelSource, content_hash, resolve_model
from priorkit.errors import EngineError, ModelNotFoundError

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a PEFT adapter."""
    return (folder / CONFIG).is_file()


def base_name(folder: Path) -> str:
    """The model an adapter was trained on, as its configuration names it.

    Raises:
        ModelNotFoundError: the adapter is damaged, or names none.
    """
    try:
        name = json.loads((folder / CONFIG).read_text())["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as caught:
        raise ModelNotFoundError(
            f"{folder}: its {CONFIG} cannot be read ({caught}); name a folder that PEFT wrote"
        ) from caught
    if not isinstance(name, str) or not name:
        raise ModelNotFoundError(f"{folder}: its {CONFIG} does not name the model it belongs to")
    return name


def adapted_source(folder: Path, base: ModelSource) -> ModelSource:
    """What identifies a model with an adapter: the base's revision and the adapter's contents."""
    missing = [name for name in (WEIGHTS, CONFIG) if not (folder / name).is_file()]
    if missing:
        raise ModelNotFoundError(
            f"{folder}: {missing[0]} is missing; an adapter is {WEIGHTS} and {CONFIG} "
            "(pickled weights are not read)"
        )
    contents = content_hash([folder / WEIGHTS])
    return replace(base, revision=f"{base.revision}+adapter-{contents}")


def load_adapted(folder: Path, base: ModelSource, *, dtype: str, device: str) -> tuple[Any, Any]:
    """A base with an adapter's matrices added to its own, and its tokenizer.

    In float32 the sums are those a run's own rollouts are made with, bit for bit.

    Raises:
        EngineError: the adapter does not fit the base.
    """
    from peft import PeftModel

    model, tokenizer = load_model(base, dtype=dtype, device=device)  # type: ignore[arg-type]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = PeftModel.from_pretrained(model, str(folder))
            return adapted.merge_and_unload(), tokenizer
    except (RuntimeError, ValueError, KeyError) as caught:
        raise EngineError(
            f"{folder}: the adapter does not fit {base.name} "
            f"({(str(caught).splitlines() or ['?'])[0][:200]}); name the model it was trained on"
        ) from caught


def resolve_base(folder: Path, known_as: str | None = None) -> ModelSource:
    """The files of the model an adapter belongs to.

    Args:
        folder: the adapter.
        known_as: name or folder to use instead of the one its configuration gives.
    """
    return resolve_model(known_as or base_name(folder))
