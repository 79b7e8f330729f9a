"""A run's state after an update, on disk: enough to go on as if nothing had happened.

One folder a checkpoint, named by its update, written beside its place and then moved there:

    adapter_model.safetensors, adapter_config.json   the adapter, as PEFT reads it
    optimizer.safetensors                            moments and step of every parameter
    selector.safetensors                             the selector's arrays
    state.json                                       everything else, and places kept free
    posterior.parquet                                the selector's beliefs as a prior file
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
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

from priorkit.errors import OutputError, RunFolderError
from priorkit.learner import Learner

AnyArray = npt.NDArray[Any]

VERSION = 1
_KEPT = 2  # a damaged newest one leaves the one before
_DRAFT = ".draft-"

#: What reading a damaged file raises: of the disk, of either format, or of what is missing in it.
_DAMAGE = (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError)


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

    def restore(self, learner: Learner) -> None:
        """Bring a fresh learner to this state."""
        learner.policy.load_state(self.adapter)
        learner.load_state(self.optimizer, self.update)
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
        (draft / "state.json").write_text(json.dumps(state))
        write_posterior(draft / "posterior.parquet")
        _put_in_place(draft, target)
    except (OSError, SafetensorError) as caught:
        reason = getattr(caught, "strerror", None) or _first_line(caught)
        raise OutputError(
            f"{target}: the checkpoint could not be written ({reason}); earlier ones are kept, so "
            "the same command goes on from there"
        ) from caught
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    for old in _complete(root)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
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
    try:
        state = json.loads((folder / "state.json").read_text())
        if state["version"] > VERSION:
            raise RunFolderError(
                f"{folder}: checkpoint version {state['version']} is newer than this priorkit "
                f"knows ({VERSION}); update priorkit"
            )
        arrays = arrays_file.load_file(folder / "selector.safetensors")
        return Checkpoint(
            folder,
            int(state["update"]),
            dict(_with_arrays(state["selector"], arrays)),
            load_file(folder / "adapter_model.safetensors"),
            load_file(folder / "optimizer.safetensors"),
            torch.tensor(list(bytes.fromhex(state["random_state"])), dtype=torch.uint8),
        )
    except RunFolderError:
        raise
    except _DAMAGE as caught:
        raise RunFolderError(
            f"{folder}: the checkpoint cannot be read ({_first_line(caught)}); "
            "remove that folder to go on from the one before"
        ) from caught


def clear_drafts(root: Path) -> None:
    """Remove what kills left half-written."""
    for draft in root.glob(f"{_DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _complete(root: Path) -> list[Path]:
    return sorted(path for path in root.glob("[0-9]*") if path.name.isdigit())


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
