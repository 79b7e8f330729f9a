"""Loading a model and its tokenizer: dtype and device, GGUF, and quiet.

The library reads a GGUF file three times over, entry by entry in Python, which takes half a minute
for a 135M model whatever the disk. So a GGUF file up to 512 MiB is unpacked once to a float32
safetensors copy with the same weights bit for bit, in `~/.cache/priorkit/gguf/<sha256>/<library
versions>/` (under `$XDG_CACHE_HOME` where that is set), and later loads take about a second. The
copy may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from logging import ERROR
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from priorkit.engines.models import ModelSource
from priorkit.errors import EngineError, MissingExtraError, SettingError

DtypeName = Literal["auto", "float32", "bfloat16"]
DeviceName = Literal["auto", "cpu", "cuda"]

_COPIED_UP_TO = 512 * 2**20
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_model(source: ModelSource, *, dtype: DtypeName, device: DeviceName) -> tuple[Any, Any]:
    """A causal language model ready for inference, and its tokenizer.

    Args:
        source: from `resolve_model`.
        dtype: `auto` is bfloat16 on a GPU and float32 on a CPU.
        device: `auto` is the GPU when there is one.

    Raises:
        SettingError: an unknown dtype or device.
        EngineError: no GPU although asked for, or files the library cannot load.
        MissingExtraError: a GGUF file without the `gguf` package.
    """
    place = choose_device(device)
    precision = choose_dtype(dtype, place)
    try:
        with _quiet():
            model, tokenizer = _load(source, precision)
            return model.to(place).eval(), tokenizer
    except EngineError:
        raise
    except Exception as error:  # what a broken or unknown model raises is for the library to choose
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EngineError(
            f"model {source.name!r} in {source.path} cannot be loaded: {said}"
        ) from error


def choose_device(device: str) -> torch.device:
    """The device a setting stands for here."""
    if device not in ("auto", "cpu", "cuda"):
        raise SettingError(f"device must be auto, cpu or cuda, got {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise EngineError("device cuda was asked for, but torch finds no GPU; use --device cpu")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The dtype a setting stands for on a device."""
    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if dtype not in _DTYPES:
        raise SettingError(f"dtype must be auto, float32 or bfloat16, got {dtype!r}")
    return _DTYPES[dtype]


def _load(source: ModelSource, dtype: torch.dtype) -> tuple[Any, Any]:
    if source.gguf_file is None:
        return _from_folder(source.path, dtype)
    file = source.path / source.gguf_file
    if file.stat().st_size > _COPIED_UP_TO:
        return _from_gguf(file, dtype)
    copy = gguf_copy(file)
    if copy.is_dir():
        return _from_folder(copy, dtype)
    model, tokenizer = _from_gguf(file, torch.float32)
    _write_copy(copy, model, tokenizer)
    return model.to(dtype), tokenizer


def _from_folder(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    local = {"local_files_only": True, "trust_remote_code": False}
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True, **local)
    return model, AutoTokenizer.from_pretrained(folder, **local)


def _from_gguf(file: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    local: dict[str, Any] = {
        "gguf_file": file.name,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **local)
    except ImportError as error:
        raise MissingExtraError(
            f"{file.name} needs the gguf package: pip install 'priorkit[train]'"
        ) from error
    # Packed weights would be multiplied by whatever kernel a machine has; dense ones always alike.
    if hasattr(transformers, "GgufConfig"):  # releases without it know dense weights only
        local["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with contextlib.redirect_stderr(io.StringIO()):  # this reader's progress bar obeys no switch
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=dtype, **local)
    return model, tokenizer


def gguf_copy(file: Path) -> Path:
    """Where the unpacked copy of a GGUF file belongs; the folder exists only when it is whole.

    Named by the library versions too, since they decide how blocks are unpacked.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    versions = f"transformers-{version('transformers')}-gguf-{version('gguf')}"
    return root / "priorkit" / "gguf" / digest / versions


def _write_copy(copy: Path, model: Any, tokenizer: Any) -> None:
    """Write beside the target, then move into place; do without a cache that cannot be written."""
    with contextlib.suppress(OSError):
        copy.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=copy.parent))
        try:
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            draft.rename(copy)  # fails when another process was first: its copy is as good
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars, warnings or log lines while loading; everything as before afterwards."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub_bars_off = are_progress_bars_disabled()
    logging.set_verbosity(ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        if hub_bars_off:
            disable_progress_bars()
