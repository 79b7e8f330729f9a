"""A run's state after an update, on disk: enough to go on as if nothing had happened.

One folder a checkpoint, named by its update, written beside its place and then moved there:

    adapter_model.safetensors, adapter_config.json   the adapter, as PEFT reads it
    optimizer.safetensors                            moments and step of every parameter
    selector.safetensors                             the selector's arrays
    posterior.parquet                                the selector's beliefs as a prior file
    state.json                                       everything else, places kept free, and the
                                                     SHA-256 of each file above
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors import numpy as arrays_file
from safetensors.torch import load_file, save_file
from torch import Tensor

from priorkit import parquet
from priorkit.errors import OutputError, RunFolderError
from priorkit.folder import is_a_jobs
from priorkit.learner import Learner
from priorkit.selectors.protocol import Selector

AnyArray = npt.NDArray[Any]

VERSION = 1
_NAME = re.compile(r"[0-9]{6,18}", re.ASCII)
_KEPT = 2  # a damaged newest one leaves the one before
_DRAFT = ".draft-"
_STATE = "state.json"
_FILES = ("adapter_model.safetensors", "optimizer.safetensors", "selector.safetensors",
          "posterior.parquet")  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What a checkpoint holds, read back.

    Attributes:
        folder: where it stands.
        update: updates done.
        selector: the selector's state.
        adapter: the adapter's weights by PEFT's names.
        optimizer: the optimiser's tensors by name.
        random_state: torch's generator.
    """

    folder: Path
    update: int
    selector: dict[str, object]
    adapter: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    random_state: Tensor

    def restore(self, learner: Learner, selector: Selector) -> None:
        """Bring a fresh learner, a fresh selector and torch's generator to this state.

        Raises:
            RunFolderError: what is held is no state of theirs.
        """
        with _vouching(self.folder):
            learner.policy.load_state(self.adapter)
            learner.load_state(self.optimizer, self.update)
            selector.load_state_dict(self.selector)
            torch.random.set_rng_state(self.random_state)


def save_checkpoint(
    root: Path,
    learner: Learner,
    selector_state: Mapping[str, object],
    write_posterior: Callable[[Path], object],
) -> Path:
    """Write the state after `learner.updates` updates, and drop all but the newest two.

    Args:
        root: the run's `checkpoints` folder.
        learner: policy and optimiser.
        selector_state: from `Selector.state_dict`.
        write_posterior: writes the posterior to the path it is given.

    Raises:
        OutputError: the disk said no; earlier checkpoints stay.
    """
    target = root / f"{learner.updates:06d}"
    draft = root / f"{_DRAFT}{os.getpid()}"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        learner.policy.save_adapter(draft)
        save_file(learner.state(), draft / "optimizer.safetensors")
        arrays: dict[str, AnyArray] = {}
        plain = _without_arrays(dict(selector_state), arrays)
        arrays_file.save_file(arrays, draft / "selector.safetensors")
        state = {
            "version": VERSION,
            "update": learner.updates,
            "selector": plain,
            "random_state": torch.random.get_rng_state().numpy().tobytes().hex(),
            "refill": None,
            "prefix": None,
        }
        write_posterior(draft / "posterior.parquet")
        state["files"] = {file.name: _digest(file) for file in sorted(draft.iterdir())}
        (draft / _STATE).write_text(json.dumps({**state, "sha256": _digest_of(state)}))
        _put_in_place(draft, target)
    except (OSError, SafetensorError) as caught:
        reason = getattr(caught, "strerror", None) or _first_line(caught)
        kept = "earlier ones are kept, so the same command goes on from there"
        raise OutputError(
            f"{target}: the checkpoint could not be written ({reason}); "
            + (kept if _complete(root) else "make room, and start the same command again")
        ) from caught
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    for old in _complete(root)[:-_KEPT]:
        _remove(old)
    return target


def latest_checkpoint(root: Path) -> Checkpoint | None:
    """The newest checkpoint, or None where there is none.

    Raises:
        RunFolderError: it is damaged.
    """
    found = _complete(root)
    return read_checkpoint(found[-1]) if found else None


def newest_folder(root: Path) -> Path:
    """The newest checkpoint's folder.

    Raises:
        RunFolderError: there is none yet.
    """
    found = _complete(root)
    if not found:
        raise RunFolderError(f"{root}: no checkpoint yet; `priorkit train` writes them")
    return found[-1]


def read_checkpoint(folder: Path) -> Checkpoint:
    """One checkpoint, whole.

    Raises:
        RunFolderError: damaged, or of a newer version.
    """
    with _vouching(folder):
        state = _checked_state(folder)
        arrays = arrays_file.load_file(folder / "selector.safetensors")
        return Checkpoint(
            folder,
            state["update"],
            dict(_with_arrays(state["selector"], arrays)),
            load_file(folder / "adapter_model.safetensors"),
            load_file(folder / "optimizer.safetensors"),
            torch.tensor(list(bytes.fromhex(state["random_state"])), dtype=torch.uint8),
        )


def check_whole(folder: Path) -> None:
    """Refuse a checkpoint whose files are not as they were written.

    Raises:
        RunFolderError: damaged, or of a newer version.
    """
    with _vouching(folder):
        _checked_state(folder)


@contextmanager
def _vouching(folder: Path) -> Iterator[None]:
    """Whatever reading a checkpoint raises, as one error with a remedy."""
    try:
        yield
    except (RunFolderError, MemoryError, torch.OutOfMemoryError):
        raise
    # A damaged file may hold anything, and everything that takes it in has errors of its own.
    except Exception as caught:
        raise RunFolderError(
            f"{folder}: the checkpoint cannot be read ({_first_line(caught)}); "
            "remove that folder to go on from the one before"
        ) from caught


def _checked_state(folder: Path) -> dict[str, Any]:
    """`state.json`, once it, its folder's name and the other files are known to belong together."""
    parquet.refuse_special(folder / _STATE, RunFolderError)
    state: dict[str, Any] = json.loads((folder / _STATE).read_text())
    if state["version"] > VERSION:
        raise RunFolderError(
            f"{folder}: checkpoint version {state['version']} is newer than this priorkit "
            f"knows ({VERSION}); update priorkit"
        )
    if type(state["update"]) is not int or f"{state['update']:06d}" != folder.name:
        raise ValueError(f"{_STATE} says that it is of update {state['update']!r}")
    if state.pop("sha256") != _digest_of(state):
        raise ValueError(f"{_STATE} is not what was written there")
    for name in {*_FILES, *state["files"]}:
        parquet.refuse_special(folder / name, RunFolderError)
        if _digest(folder / name) != state["files"][name]:
            raise ValueError(f"{name} is not what was written there")
    return state


def _digest(file: Path) -> str:
    with file.open("rb") as held:
        return hashlib.file_digest(held, "sha256").hexdigest()


def _digest_of(state: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def clear_drafts(root: Path) -> None:
    """Remove what kills left half-written."""
    for draft in root.glob(f"{_DRAFT}*"):
        _remove(draft)


def _remove(folder: Path) -> None:
    """Remove a checkpoint or a draft of one, unless somebody put anything else there."""
    things = [folder, *folder.rglob("*")]
    if all(is_a_jobs(f"checkpoints/{thing.relative_to(folder.parent)}") for thing in things):
        shutil.rmtree(folder, ignore_errors=True)


def _complete(root: Path) -> list[Path]:
    found = (path for path in root.glob("[0-9]*") if _NAME.fullmatch(path.name) and path.is_dir())
    return sorted(found, key=lambda path: int(path.name))


def _put_in_place(draft: Path, target: Path) -> None:
    for file in draft.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def _without_arrays(value: Any, arrays: dict[str, AnyArray]) -> Any:
    """The value as JSON, its numpy arrays moved to `arrays` and named in their place.

    A mapping that would read as such a name is put into another one, under `mapping`.
    """
    if isinstance(value, Mapping):
        for key in value:
            assert isinstance(key, str), f"key {key!r} of a selector's state is no text"
        plain = {key: _without_arrays(one, arrays) for key, one in value.items()}
        return {"mapping": plain} if set(plain) in ({"array"}, {"mapping"}) else plain
    if isinstance(value, (list, tuple)):
        return [_without_arrays(one, arrays) for one in value]
    if isinstance(value, np.ndarray):
        name = f"array-{len(arrays)}"
        arrays[name] = np.asarray(value, order="C")
        return {"array": name}
    return value.item() if isinstance(value, np.generic) else value


def _with_arrays(value: Any, arrays: Mapping[str, AnyArray]) -> Any:
    if isinstance(value, list):
        return [_with_arrays(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    inner = value["mapping"] if set(value) == {"mapping"} else value
    return {key: _with_arrays(one, arrays) for key, one in inner.items()}


def _first_line(caught: BaseException) -> str:
    return (str(caught).splitlines() or [type(caught).__name__])[0][:200]
