"""What a run made, for use elsewhere: adapter, merged weights, posterior."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priorkit import parquet
from priorkit.adapter import CONFIG, WEIGHTS, load_adapted
from priorkit.checkpoint import newest_folder
from priorkit.engines.models import ModelSource, resolve_model
from priorkit.errors import MismatchError, OutputError
from priorkit.run_figures import accuracy_at, eval_steps, silent_at
from priorkit.run_tables import Run


def export_adapter(run: Run, folder: Path, *, force: bool = False) -> Path:
    """Write the newest checkpoint's adapter as PEFT reads it, with a card.

    Raises:
        OutputError: the folder exists (without `force`), or the disk said no.
        RunFolderError: the run has no checkpoint.
    """
    checkpoint = newest_folder(run.folder / "checkpoints")
    with _replacing_folder(folder, force) as draft:
        for name in (WEIGHTS, CONFIG):
            shutil.copyfile(checkpoint / name, draft / name)
        (draft / "README.md").write_text(card(run, "LoRA adapter"))
    return folder


def export_merged(run: Run, folder: Path, *, base: str | None = None, force: bool = False) -> Path:
    """Write the policy with the adapter added to its matrices: an ordinary model folder.

    Raises:
        MismatchError: the base's files here are not those the run was trained on.
        OutputError: as `export_adapter`.
    """
    checkpoint = newest_folder(run.folder / "checkpoints")
    source = run_base(run, base)
    model, tokenizer = load_adapted(checkpoint, source, dtype="auto", device="cpu")
    with _replacing_folder(folder, force) as draft:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        (draft / "README.md").write_text(card(run, "merged weights"))
    return folder


def export_posterior(run: Run, path: Path, *, force: bool = False) -> Path:
    """Copy the newest checkpoint's beliefs, prior plus observed counts, as a prior file."""
    held = newest_folder(run.folder / "checkpoints") / "posterior.parquet"
    with parquet.replacing(path, force=force) as partial:
        partial.write_bytes(held.read_bytes())
    return path


def run_base(run: Run, base: str | None = None) -> ModelSource:
    """The files of the model a run was trained on, checked by their revision.

    Args:
        run: the run.
        base: name or folder to look in first.

    Raises:
        MismatchError: other weights than the run's.
    """
    named = run.settings["policy"]
    kept = run.settings.get("notes", {}).get("files", {}).get("policy")
    source = resolve_model(base or _still_there(kept) or named["name"])
    if source.revision != named["revision"]:
        raise MismatchError(
            f"{run.folder}: was trained on {named['name']} at {named['revision']}, and the files "
            f"here are {source.revision}; pass --base with the folder of those weights"
        )
    return source


def _still_there(path: object) -> str | None:
    return path if isinstance(path, str) and Path(path).exists() else None


def card(run: Run, what: str) -> str:
    """A model card: what these weights are and how they came about."""
    settings = run.settings
    training = settings["settings"]
    figures = [f"- updates: {len(run.steps)} of {training['updates']}"]
    if run.steps:
        figures.append(f"- silent groups: {silent_at(run, len(run.steps)):.3f}")
    for step in eval_steps(run):
        successes, trials = accuracy_at(run, step)
        rate = successes.sum() / max(trials.sum(), 1)
        figures.append(f"- held-out accuracy after update {step}: {rate:.3f} ({trials.sum()})")
    return "\n".join(
        [
            "---",
            "library_name: peft",
            f"base_model: {settings['policy']['name']}",
            "tags: [grpo, lora, priorkit]",
            "---",
            "",
            f"# {settings['policy']['name']}: {what} from `{run.folder.resolve().name}`",
            "",
            f"Trained with priorkit: GRPO on prompts picked by `{settings['selector']['name']}`.",
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
def _replacing_folder(folder: Path, force: bool) -> Iterator[Path]:
    """A folder to fill, moved into place on success and removed on failure."""
    if folder.exists() and not force:
        raise OutputError(f"{folder}: already exists; pass --force to replace it")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is no folder, cannot be replaced by one")
    draft: Any = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
        draft.chmod(0o755)
        yield draft
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    except OSError as caught:
        raise OutputError(
            f"{folder}: could not be written ({caught.strerror or caught})"
        ) from caught
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
