"""A folder that one job works in: what the job is, and that nobody else is at it.

A long job's folder holds its definition in a JSON file, written once; a rerun goes on only when its
own definition is the same. A lock keeps two processes apart and goes with a killed one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priorkit import parquet
from priorkit.errors import FileError, OutputError, ProbeFolderError

_TRIES, _PAUSE = 10, 0.03  # seconds
_DEFINITIONS = ("probe.json", "run.json")
_CHECKPOINT = (
    r"(?:[0-9]{6,}|\.draft-[0-9]+)(?:/(?:adapter_model|optimizer|selector)\.safetensors"
    r"|/adapter_config\.json|/state\.json|/posterior\.parquet|/README\.md)?"
)
_OURS = re.compile(
    r"\.lock|(?:probe|run)\.json|(?:outcomes|prior)\.parquet|(?:steps|groups|evals)\.(?:jsonl|parquet)"
    rf"|(?:.*/)?\.priorkit-[0-9]+\{parquet.PARTIAL}"
    rf"|shards(?:/[0-9]+\.jsonl)?|checkpoints(?:/{_CHECKPOINT})?",
    re.ASCII,
)
"""What stands in the folder of a probe or a run, by its path in there."""


@contextmanager
def locked(folder: Path, error: type[FileError] = ProbeFolderError) -> Iterator[None]:
    """Have the folder to oneself, making it where it is not there.

    Raises:
        FileError: of the class given; another process has it.
        OutputError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as caught:
        raise OutputError(f"{folder}: cannot be written ({caught.strerror})") from caught
    try:
        _lock(handle)
    except BlockingIOError as caught:
        os.close(handle)
        raise error(f"{folder}: another process is at work here") from caught
    try:
        yield
    finally:
        os.close(handle)  # the lock goes with it


def _lock(handle: int) -> None:
    """Take the lock; somebody who only looks (`at_work`) holds it for a moment."""
    for _ in range(_TRIES - 1):
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def at_work(folder: Path) -> bool:
    """Whether some process has the folder to itself now."""
    try:
        handle = os.open(folder / ".lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def claim(
    path: Path,
    definition: Mapping[str, object],
    remedy: str,
    error: type[FileError] = ProbeFolderError,
    notes: Mapping[str, object] | None = None,
    spoken: Callable[[str], str] = str,
) -> None:
    """Write a job's definition on first use; refuse a folder that holds another one.

    Args:
        path: the JSON file.
        definition: what must be equal for the job to go on.
        remedy: what to do about a difference, for the error.
        error: the class raised.
        notes: written beside the definition under `notes`, and never compared.
        spoken: what people call a part of the definition, such as a command's option.

    Raises:
        FileError: of the class given; another definition, named by its first difference, or a
            damaged file.
    """
    ours = json.loads(json.dumps(definition))
    if not path.exists():
        written = ours if notes is None else {**ours, "notes": notes}
        with parquet.replacing(path) as partial:
            partial.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
        return
    parquet.refuse_special(path, error)
    try:
        theirs = json.loads(path.read_text())
    except (ValueError, OSError, RecursionError) as caught:
        raise error(f"{path}: cannot be read ({caught}); {remedy}") from caught
    if notes is not None and isinstance(theirs, dict):
        theirs.pop("notes", None)
    differs = difference(theirs, ours)
    if differs:
        name, before, now = differs
        name = spoken(name)
        if name == "pool.order_hash":
            name = "naming or order of the same prompts"
        raise error(
            f"{path.parent}: was started with another {name} ({before}, now {now}); {remedy}"
        )


def empty(folder: Path, error: type[FileError] = ProbeFolderError) -> None:
    """Empty a job's folder, unless somebody is at work in it, or it holds anything else.

    A folder without a definition is nobody's: it must be empty already.

    Raises:
        FileError: of the class given.
    """
    if not folder.is_dir():
        return
    foreign = _foreign(folder)
    if foreign:
        raise error(
            f"{folder}: holds {foreign!r}, which no job of ours wrote and --force would delete; "
            "move it away, or pass --name"
        )
    with locked(folder, error):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != ".lock":
                entry.unlink()


def _foreign(folder: Path) -> str | None:
    """The path of the first thing in a folder that no job wrote; None where all is ours."""
    defined = any((folder / name).is_file() for name in _DEFINITIONS)
    for entry in sorted(folder.rglob("*")):
        path = entry.relative_to(folder).as_posix()
        if not is_a_jobs(path) or not (defined or path == ".lock"):
            return path
    return None


def is_a_jobs(path: str) -> bool:
    """Whether a probe or a run writes a thing of that path into its folder."""
    return _OURS.fullmatch(path) is not None


def merged(notes: Mapping[str, object], definition: Mapping[str, object]) -> dict[str, object]:
    """Both accounts in one; where both describe a thing, the definition's words win."""
    out = dict(notes)
    for key, value in definition.items():
        noted = out.get(key)
        both = isinstance(noted, dict) and isinstance(value, dict)
        out[key] = {**noted, **value} if both else value  # type: ignore[dict-item]
    return out


def difference(
    theirs: Any, ours: Any, name: str = "", *, only_ours: bool = False
) -> tuple[str, str, str] | None:
    """The first place two definitions differ: its name, their value and ours; None when nowhere.

    Args:
        theirs: read from a file.
        ours: as JSON would give it back.
        name: of the part compared.
        only_ours: let the other hold more keys.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(ours if only_ours else set(theirs) | set(ours)):
            at = f"{name}.{key}".strip(".")
            found = difference(theirs.get(key), ours.get(key), at, only_ours=only_ours)
            if found:
                return found
        return None
    if json.dumps(theirs, sort_keys=True) == json.dumps(ours, sort_keys=True):
        return None
    return name or "definition", _brief(theirs), _brief(ours)


def _brief(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
