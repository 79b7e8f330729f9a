"""The Hugging Face hub and its local cache: the files a causal language model needs, no others.

`huggingface_hub` is imported where it is used: resolving a local folder needs none of it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from priorkit.errors import EngineError

MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "model*.safetensors",
    "model.safetensors.index.json",
)
"""The files a causal language model needs; nothing else is fetched or hashed."""

_HUB_SECONDS = 5.0


class HubError(Exception):
    """Why the hub did not give a model, in words that fit inside a sentence."""


def has_config(folder: Path) -> bool:
    """Whether a folder claims to hold a model."""
    return (folder / "config.json").is_file()


def missing_files(folder: Path) -> str:
    """What a model folder lacks, in words; empty when it is whole."""
    if (folder / "adapter_config.json").is_file() and not has_config(folder):
        return "it holds an adapter without its base model"
    if not has_config(folder):
        return "it holds no config.json"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        absent = [shard for shard in shards if not (folder / shard).is_file()]
        found = f"{len(absent)} of its {len(shards)} weight files are absent"
        return f"{found} (first: {absent[0]})" if absent else ""
    return "" if any(folder.glob("model*.safetensors")) else "it holds no model*.safetensors"


def cached_snapshot(name: str) -> Path | None:
    """A whole copy in the local hub cache, or None; asks nobody."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    wanted = list(MODEL_FILES)
    try:
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns=wanted))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    return None if missing_files(folder) else folder


def download_snapshot(name: str) -> Path:
    """Fetch a model into the local hub cache.

    Raises:
        HubError: the hub cannot or will not give it.
        EngineError: it was fetched, and is not what a causal language model needs.
    """
    from huggingface_hub import HfApi, constants, snapshot_download

    if constants.HF_HUB_OFFLINE:
        raise HubError("HF_HUB_OFFLINE is set")
    # Asked first and within a bound: a download would retry, and a name look-up can hang for long.
    refusal = _within(_HUB_SECONDS, lambda: HfApi().model_info(name, timeout=_HUB_SECONDS))
    if refusal is not None:
        raise HubError(_reason(refusal)) from refusal
    try:
        with _quiet_unless_terminal():
            folder = Path(snapshot_download(name, allow_patterns=list(MODEL_FILES)))
    except Exception as error:  # the hub's HTTP library, and so its errors, differ between releases
        raise HubError(_reason(error, otherwise="the download failed")) from error
    missing = missing_files(folder)
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


def _reason(error: Exception, otherwise: str = "the hub cannot be reached") -> str:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
    )

    if isinstance(error, GatedRepoError):
        return "it is gated: accept its terms on the hub, then log in with `hf auth login`"
    if isinstance(error, RepositoryNotFoundError):
        return "the hub has no such model, or it is private and needs `hf auth login`"
    if isinstance(error, HFValidationError):
        return "the hub allows no such name"
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, HfHubHTTPError):
        return f"the hub refused: {said}"
    return f"{otherwise}: {said}"


@contextlib.contextmanager
def _quiet_unless_terminal() -> Iterator[None]:
    from huggingface_hub.utils.tqdm import (
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
