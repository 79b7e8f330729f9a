"""Trained weights as files: how a model is written, and how an adapter is loaded again.

An adapter folder is PEFT's: `adapter_model.safetensors`, `adapter_config.json`, and a card.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers.utils import logging

from priorkit.engines.loading import load_model
from priorkit.engines.models import ModelSource, content_hash, resolve_model
from priorkit.errors import EngineError, ModelNotFoundError

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"

#: Of an adapter's configuration, what says where it came from and not what it computes.
_ORIGIN = ("base_model_name_or_path", "peft_version", "revision", "auto_mapping", "inference_mode")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a PEFT adapter."""
    return (folder / CONFIG).is_file()


def base_name(folder: Path) -> str:
    """The model an adapter was trained on, as its configuration names it.

    Raises:
        ModelNotFoundError: the adapter is damaged, or names none.
    """
    name = _config(folder).get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise ModelNotFoundError(
            f"{folder}: its {CONFIG} does not name the model it belongs to; pass --base MODEL"
        )
    return name


def adapted_source(folder: Path, base: ModelSource) -> ModelSource:
    """What identifies a model with an adapter: the base's revision and the adapter's contents.

    Raises:
        ModelNotFoundError: the adapter lacks a file, or its configuration is damaged.
    """
    missing = [name for name in (WEIGHTS, CONFIG) if not (folder / name).is_file()]
    if missing:
        raise ModelNotFoundError(
            f"{folder}: {missing[0]} is missing; an adapter is {WEIGHTS} and {CONFIG} "
            "(pickled weights are not read)"
        )
    shape = {key: value for key, value in _config(folder).items() if key not in _ORIGIN}
    modules = shape.get("target_modules")
    if isinstance(modules, list):
        shape["target_modules"] = sorted(map(str, modules))  # PEFT writes a set, in any order
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode())
    digest.update(content_hash([folder / WEIGHTS]).encode())
    return replace(base, revision=f"{base.revision}+adapter-sha256:{digest.hexdigest()[:16]}")


def load_adapted(folder: Path, base: ModelSource, *, dtype: str, device: str) -> tuple[Any, Any]:
    """A base with an adapter's matrices added to its own, and its tokenizer.

    In float32 the sums are those a run's own rollouts are made with, bit for bit.

    Raises:
        EngineError: the adapter is damaged, or does not fit the base.
    """
    from peft import PeftModel

    model, tokenizer = load_model(base, dtype=dtype, device=device)  # type: ignore[arg-type]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = PeftModel.from_pretrained(model, str(folder))
            _check_every_matrix(folder, adapted)
            return adapted.merge_and_unload(), tokenizer
    except (RuntimeError, ValueError, KeyError, TypeError, SafetensorError) as caught:
        said = str(caught).split(":\n\t")[-1].strip()  # torch puts the place on a second line
        raise EngineError(
            f"{folder}: the adapter does not fit {base.name} "
            f"({(said.splitlines() or ['?'])[0][:200]}); name the model it was trained on"
        ) from caught


def _check_every_matrix(folder: Path, adapted: Any) -> None:
    """ValueError unless file and model have the same matrices: PEFT only warns of that."""
    from peft.utils import get_peft_model_state_dict

    with safe_open(folder / WEIGHTS, framework="pt") as file:
        held = {name for name in file.keys() if "lora_" in name}  # noqa: SIM118  # no mapping
    wanted = {name for name in get_peft_model_state_dict(adapted) if "lora_" in name}
    if held != wanted:
        raise ValueError(f"{min(held ^ wanted)!r} is in only one of them")


def resolve_base(folder: Path, known_as: str | None = None) -> ModelSource:
    """The files of the model an adapter belongs to.

    Args:
        folder: the adapter.
        known_as: name or folder to use instead of the one its configuration gives.

    Raises:
        ModelNotFoundError: it is not here, or the adapter's configuration is damaged.
    """
    if known_as is not None:
        return resolve_model(known_as)
    name = base_name(folder)
    try:
        return resolve_model(name)
    except ModelNotFoundError as caught:
        raise ModelNotFoundError(
            f"{folder}: its base {name!r} is not here; pass --base with its name or folder "
            f"({caught})"
        ) from caught


def write_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write a model and its tokenizer as any tool reads them, without a progress bar."""
    with _without_bars():
        model.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):
        weights.chmod(0o644)
    tokenizer.save_pretrained(folder)
    named = folder / "tokenizer_config.json"
    described = json.loads(named.read_text())
    if described.get("tokenizer_class") == "TokenizersBackend":
        # The name that releases before transformers 5 know as well.
        described["tokenizer_class"] = "PreTrainedTokenizerFast"
        named.write_text(json.dumps(described, indent=2) + "\n")


@contextmanager
def _without_bars() -> Iterator[None]:
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError, RecursionError) as caught:
        raise ModelNotFoundError(
            f"{folder}: its {CONFIG} cannot be read ({caught}); name a folder that PEFT wrote"
        ) from caught
    if not isinstance(config, dict):
        raise ModelNotFoundError(
            f"{folder}: its {CONFIG} is no JSON object; name a folder that PEFT wrote"
        )
    return config
