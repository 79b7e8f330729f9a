"""What a run made, for use elsewhere: adapter, merged weights, posterior."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from priorkit import parquet
from priorkit.adapter import CONFIG, WEIGHTS, load_adapted, write_model
from priorkit.checkpoint import check_whole, newest_folder
from priorkit.engines.models import LAB_MODELS, ModelSource, hub_name, resolve_model
from priorkit.errors import (
    MismatchError,
    ModelNotFoundError,
    OutputError,
    PriorkitError,
    RunFolderError,
)
from priorkit.prior import read_prior
from priorkit.run_figures import accuracy_at, eval_steps, silent_at
from priorkit.run_tables import Run

_TAGS = "tags: [grpo, lora, priorkit]"
"""A line of every card, by which an earlier export is known."""


_WRITTEN = re.compile(
    r"README\.md|priorkit\.json|adapter_(?:model\.safetensors|config\.json)|config\.json"
    r"|generation_config\.json|model(?:-[0-9]+-of-[0-9]+)?\.safetensors"
    r"|model\.safetensors\.index\.json|tokenizer\.(?:json|model)|tokenizer_config\.json"
    r"|(?:special_tokens_map|added_tokens|vocab)\.json|chat_template\.(?:jinja|json)"
    r"|(?:merges|vocab)\.txt|(?:spiece|sentencepiece\.bpe)\.model"
)
"""The files that an export, or a tokenizer in it, consists of."""

ASKED = "priorkit.json"
"""In an export: how its prompts are put, so that `evaluate` asks them the same way."""


def export_adapter(run: Run, folder: Path, *, force: bool = False) -> Path:
    """Write the newest checkpoint's adapter as PEFT reads it, with a card.

    Its configuration names the base as other machines know it (see `base_id`).

    Raises:
        OutputError: the folder exists (without `force`) or is no earlier export, or the disk said
            no.
        RunFolderError: the run has no checkpoint, or a damaged one.
    """
    checkpoint, update = _newest(run)
    weights, config = (checkpoint / WEIGHTS).read_bytes(), (checkpoint / CONFIG).read_text()
    named = {**json.loads(config), "base_model_name_or_path": base_id(run)}
    with replacing_folder(folder, force, _is_export) as draft:
        (draft / WEIGHTS).write_bytes(weights)
        (draft / CONFIG).write_text(json.dumps(named, indent=2) + "\n")
        _describe(draft, run, card(run, update, "LoRA adapter", "peft"))
    return folder


def export_merged(run: Run, folder: Path, *, base: str | None = None, force: bool = False) -> Path:
    """Write the policy with the adapter added to its matrices: an ordinary model folder.

    Raises:
        MismatchError: the base's files here are not those the run was trained on.
        OutputError: as `export_adapter`.
    """
    checkpoint, update = _newest(run)
    source = run_base(run, base)
    with replacing_folder(folder, force, _is_export) as draft:
        model, tokenizer = load_adapted(checkpoint, source, dtype="auto", device="cpu")
        write_model(draft, model, tokenizer)
        _describe(draft, run, card(run, update, "merged weights", "transformers"))
    return folder


def export_posterior(run: Run, path: Path, *, force: bool = False) -> Path:
    """Copy the newest checkpoint's beliefs, prior plus observed counts, as a prior file.

    Raises:
        PriorFileError: the checkpoint's own is damaged.
        OutputError: as `export_adapter`.
    """
    held = _newest(run)[0] / "posterior.parquet"
    read_prior(held)
    with parquet.replacing(path, force=force) as partial:
        partial.write_bytes(held.read_bytes())
    return path


def exported_update(run: Run) -> int:
    """The update whose weights and beliefs are handed out; a running run's log may be beyond it.

    Raises:
        RunFolderError: the run has no checkpoint.
    """
    return int(newest_folder(run.folder / "checkpoints").name)


def _describe(draft: Path, run: Run, text: str) -> None:
    (draft / "README.md").write_text(text)
    asked = {
        "template": run.setting("template"),
        "max_new_tokens": run.setting("settings", "sampling", "max_new_tokens"),
        "held_out": run.setting("held_out"),
    }
    (draft / ASKED).write_text(json.dumps(asked, indent=1) + "\n")


def how_asked(folder: Path) -> dict[str, Any] | None:
    """How an exported model's prompts were put, and which were held out; None for other folders.

    Raises:
        RunFolderError: the file that says so is damaged.
    """
    try:
        text = (folder / ASKED).read_text()
    except OSError:
        return None
    try:
        found = json.loads(text)
        if {"mode", "instruction", "max_prompt_tokens"} <= set(found["template"]):
            return {name: found[name] for name in ("template", "max_new_tokens", "held_out")}
        raise KeyError("template")
    except (ValueError, KeyError, TypeError) as caught:
        raise RunFolderError(
            f"{folder / ASKED}: cannot be read ({caught}); export the run again, or remove the file"
        ) from caught


def _newest(run: Run) -> tuple[Path, int]:
    folder = newest_folder(run.folder / "checkpoints")
    check_whole(folder)
    return folder, int(folder.name)


def run_base(run: Run, base: str | None = None) -> ModelSource:
    """The files of the model a run was trained on, checked by their revision.

    Args:
        run: the run.
        base: name or folder to look in first.

    Raises:
        ModelNotFoundError: they are not here.
        MismatchError: other weights than the run's.
    """
    name, revision = run.setting("policy", "name"), run.setting("policy", "revision")
    try:
        source = resolve_model(base or _still_there(run) or base_id(run))
    except ModelNotFoundError as caught:
        raise ModelNotFoundError(
            f"{run.folder}: its policy {name} is not here; pass --base with its name or "
            f"folder ({caught})"
        ) from caught
    if source.revision != revision:
        raise MismatchError(
            f"{run.folder}: was trained on {name} at {revision}, and the files in {source.path} "
            f"are {source.revision}; pass --base with the folder of those weights"
        )
    return source


def base_id(run: Run) -> str:
    """What other machines know a run's policy by: its hub or lab name; a folder where it has none.

    A GGUF file is named by its path.
    """
    name = str(run.setting("policy", "name"))
    kept = _kept(run)
    if name in LAB_MODELS or kept is None:
        return name
    return hub_name(kept) or str(kept)


def _still_there(run: Run) -> str | None:
    """Where the policy was when the run began, if it still is."""
    kept = _kept(run)
    return None if kept is None or not kept.exists() else str(kept)


def _kept(run: Run) -> Path | None:
    """The policy's folder as the run noted it, or the GGUF file in it."""
    path = ((run.settings.get("notes") or {}).get("files") or {}).get("policy")
    if path is None:
        return None
    packed = Path(path) / f"{run.setting('policy', 'name')}.gguf"
    return packed if packed.is_file() else Path(path)


def card(run: Run, update: int, what: str, library: str) -> str:
    """A model card: what the weights after that update are and how they came about.

    Args:
        run: the run.
        update: of the checkpoint the weights are from.
        what: they are.
        library: reads them.
    """
    name, settings = run.setting("policy", "name"), run.settings
    figures = [f"- updates: {update} of {run.setting('settings', 'updates')}"]
    if 1 <= update <= len(run.steps):
        figures.append(f"- silent groups: {silent_at(run, update):.3f}")
    for step in (step for step in eval_steps(run) if step <= update):
        successes, trials = accuracy_at(run, step)
        rate = successes.sum() / max(trials.sum(), 1)
        figures.append(f"- held-out accuracy after update {step}: {rate:.3f} ({trials.sum()})")
    return "\n".join(
        [
            "---",
            f"library_name: {library}",
            f"base_model: {json.dumps(base_id(run))}",
            _TAGS,
            "---",
            "",
            f"# {name}: {what} from `{run.folder.resolve().name}`",
            "",
            "Trained with priorkit: GRPO on prompts picked by "
            f"`{run.setting('selector', 'name')}`.",
            "",
            *figures,
            "",
            "## Settings",
            "",
            "```json",
            json.dumps({k: v for k, v in settings.items() if k != "notes"}, indent=1),
            "```",
            "",
        ]
    )


@contextmanager
def replacing_folder(folder: Path, force: bool, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to fill, moved into place on success and removed on failure.

    Args:
        folder: the target.
        force: replace an existing one.
        ours: whether an existing folder is of the kind written here; any other is spared.

    Raises:
        OutputError: the target may not be replaced, or the disk said no; nothing was changed.
    """
    check_replaceable(folder, force, ours)
    place = Path(os.path.realpath(folder))
    desk: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        desk = Path(tempfile.mkdtemp(prefix=".draft-", dir=place.parent))
        draft, old = desk / "new", desk / "old"
        draft.mkdir()
        yield draft
        check_replaceable(place, force, ours)  # filling it took time, and the place is shared
        _swap(draft, place, old)
    except (OSError, SafetensorError) as caught:
        if isinstance(caught, PriorkitError):
            raise
        said = getattr(caught, "strerror", None) or str(caught)
        raise OutputError(
            f"{folder}: could not be written ({said.splitlines()[0]}); nothing was changed"
        ) from caught
    finally:
        if desk is not None:
            shutil.rmtree(desk, ignore_errors=True)


def check_replaceable(folder: Path, force: bool, ours: Callable[[Path], bool]) -> None:
    """OutputError unless the place is free, or what stands there may go; see `replacing_folder`."""
    if not os.path.lexists(folder):
        return
    if not force:
        raise OutputError(f"{folder}: already exists; pass --force to replace it")
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(f"{folder}: is no folder, cannot be replaced by one")
    if any(folder.iterdir()) and not ours(folder):
        raise OutputError(
            f"{folder}: holds something else than what is written here, and would be lost; "
            "pass --out with another folder"
        )


def _swap(draft: Path, folder: Path, old: Path) -> None:
    """Put the draft in the folder's place and the folder aside, or leave both as they were."""
    there = folder.exists()
    if there:
        folder.rename(old)
    try:
        draft.rename(folder)
    except OSError:
        if there:
            old.rename(folder)
        raise


def _is_export(folder: Path) -> bool:
    """Whether a folder holds an earlier export and nothing of anybody else."""
    try:
        tagged = _TAGS in (folder / "README.md").read_text().splitlines()
        return tagged and all(map(_may_be_exported, folder.iterdir()))
    except (OSError, ValueError):
        return False


def _may_be_exported(entry: Path) -> bool:
    plain = entry.is_file() and not entry.is_symlink()
    return plain and _WRITTEN.fullmatch(entry.name) is not None
