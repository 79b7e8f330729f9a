"""`priorkit/checkpoint.py`: what goes in comes out, whole or not at all."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from safetensors.torch import load_file, save_file

from priorkit.checkpoint import (
    clear_drafts,
    latest_checkpoint,
    newest_folder,
    read_checkpoint,
    save_checkpoint,
)
from priorkit.errors import OutputError, RunFolderError


class StubLearner:
    """As much of a learner as a checkpoint needs: weights, optimiser tensors, a count."""

    def __init__(self, updates: int = 1, weights: int = 3, moments: int = 3) -> None:
        self.updates = updates
        self.policy = self
        self.weights, self.moments = weights, moments

    def save_adapter(self, folder: Path) -> None:
        tensors = {"lora": torch.full((self.weights,), float(self.updates))}
        save_file(tensors, folder / "adapter_model.safetensors")

    def state(self) -> dict[str, torch.Tensor]:
        return {"lora:exp_avg": torch.full((self.moments,), float(self.updates))}


def posterior(size: int = 10):
    return lambda path: path.write_bytes(b"p" * size)


def save(root: Path, updates: int = 1, state=None, **sizes: int) -> Path:
    return save_checkpoint(root, StubLearner(updates, **sizes), state or {}, posterior())


def same(found: object, expected: object) -> bool:
    """Equal in every part; arrays to their dtype, shape and last bit, NaN included."""
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and found.dtype == expected.dtype
            and found.shape == expected.shape
            and found.tobytes() == expected.tobytes()
        )
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(same(found[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(same, found, expected))
        )
    if isinstance(expected, float) and expected != expected:
        return isinstance(found, float) and found != found
    return type(found) is type(expected) and found == expected


keys = st.sampled_from(["array", "mapping", "random", "", "a.b/c", "ψ"]) | st.text(max_size=5)
arrays = st_numpy.arrays(
    st.sampled_from(["?", "i1", "i4", "i8", "u1", "u4", "u8", "f4", "f8"]),
    st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
) | st.just(np.asfortranarray(np.arange(6.0).reshape(2, 3))[:, ::2])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**130), 2**130)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
values = st.recursive(
    scalars | arrays,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=st.dictionaries(keys, values, max_size=4))
def test_any_nesting_of_numbers_text_and_arrays_comes_back_as_it_was(tmp_path, state):
    folder = save(tmp_path, state=state)
    assert same(read_checkpoint(folder).selector, state)


def test_numpys_scalars_come_back_as_pythons(tmp_path):
    state = {"at": [np.int64(3), np.float64(0.1), np.bool_(True)], "best": np.float32(0.5)}
    found = read_checkpoint(save(tmp_path, state=state)).selector
    assert same(found, {"at": [3, 0.1, True], "best": 0.5})


def test_a_state_whose_keys_are_no_text_is_our_own_mistake(tmp_path):
    with pytest.raises(AssertionError, match="key 3"):
        save(tmp_path, state={"counts": {3: 1}})


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_a_generators_state_goes_on_where_it_was(tmp_path, kind):
    def fresh(seed):
        return np.random.Generator(getattr(np.random, kind)(seed))

    drawing, resumed = fresh(5), fresh(6)
    drawing.random(7)
    drawing.integers(0, 9, 3, dtype=np.int32)  # leaves half a word over
    saved = {"random": drawing.bit_generator.state}
    found = read_checkpoint(save(tmp_path, state=saved)).selector
    resumed.bit_generator.state = found["random"]
    assert resumed.integers(0, 9, 5, dtype=np.int32).tolist() == (
        drawing.integers(0, 9, 5, dtype=np.int32).tolist()
    )
    assert resumed.random(9).tolist() == drawing.random(9).tolist()


def test_what_was_saved_is_read_back(tmp_path):
    torch.manual_seed(4)
    torch.rand(3)
    at_save = torch.random.get_rng_state()
    save(tmp_path, 7)
    torch.rand(3)
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found.update == 7
    assert found.folder == newest_folder(tmp_path) == tmp_path / "000007"
    assert found.adapter["lora"].tolist() == [7.0] * 3
    assert found.optimizer["lora:exp_avg"].tolist() == [7.0] * 3
    assert torch.equal(found.random_state, at_save)
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "adapter_model.safetensors",
        "optimizer.safetensors",
        "posterior.parquet",
        "selector.safetensors",
        "state.json",
    ]


def test_the_newest_two_are_kept(tmp_path):
    for updates in (0, 2, 4, 10, 100):
        save(tmp_path, updates)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000010", "000100"]
    assert latest_checkpoint(tmp_path).update == 100


def test_a_folder_without_a_checkpoint_has_none(tmp_path):
    assert latest_checkpoint(tmp_path / "not there") is None
    (tmp_path / "notes").mkdir()
    (tmp_path / ".draft-12").mkdir()
    assert latest_checkpoint(tmp_path) is None
    with pytest.raises(RunFolderError, match="no checkpoint yet"):
        newest_folder(tmp_path)


def test_drafts_are_no_checkpoints_and_are_cleared(tmp_path):
    kept = save(tmp_path, 3)
    for pid in (1, 99999):
        draft = tmp_path / f".draft-{pid}"
        draft.mkdir()
        (draft / "adapter_model.safetensors").write_bytes(b"half")
    assert latest_checkpoint(tmp_path).update == 3
    clear_drafts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
    clear_drafts(tmp_path / "not there")


@contextmanager
def a_disk_that_fills(largest: int) -> Iterator[None]:
    """No file may grow beyond so many bytes inside."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_at_the_first_checkpoint_promises_no_earlier_one(tmp_path):
    with a_disk_that_fills(20_000), pytest.raises(OutputError, match="make room, and start"):
        save(tmp_path, weights=40_000)


@pytest.mark.parametrize("big", ["adapter", "optimizer", "selector", "state", "posterior"])
def test_a_full_disk_leaves_the_earlier_checkpoints_and_no_draft(tmp_path, big):
    save(tmp_path, 1)
    save(tmp_path, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    much = 40_000
    learner = StubLearner(
        3, weights=much if big == "adapter" else 3, moments=much if big == "optimizer" else 3
    )
    state = {"selector": {"counts": np.zeros(much)}, "state": {"text": "x" * much}}.get(big, {})
    write = posterior(much if big == "posterior" else 10)
    with (
        a_disk_that_fills(20_000),
        pytest.raises(OutputError, match=r"000003: .*[Ff]ile too large.*the same command goes on"),
    ):
        save_checkpoint(tmp_path, learner, state, write)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001", "000002"]
    save_checkpoint(tmp_path, learner, state, write)
    assert latest_checkpoint(tmp_path).update == 3


@pytest.mark.parametrize("error", [OutputError("no space"), KeyboardInterrupt(), MemoryError()])
def test_whatever_breaks_a_save_leaves_the_earlier_checkpoints_and_no_draft(tmp_path, error):
    save(tmp_path, 1)

    def fail(path: Path) -> None:
        raise error

    with pytest.raises(type(error)):
        save_checkpoint(tmp_path, StubLearner(2), {}, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["000001"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file.*could not be written"):
        save(tmp_path / "file" / "checkpoints")


def test_a_newer_version_is_refused(tmp_path):
    folder = save(tmp_path, 4)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "version": 2}))
    with pytest.raises(RunFolderError, match=r"000004: checkpoint version 2 is newer.*update"):
        latest_checkpoint(tmp_path)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


DAMAGE = {
    "cut short": cut_short,
    "emptied": lambda path: path.write_bytes(b""),
    "garbled": lambda path: path.write_bytes(b"\xff" * 40),
    "lost": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "name",
    [
        "adapter_model.safetensors",
        "optimizer.safetensors",
        "selector.safetensors",
        "state.json",
    ],
)
def test_a_damaged_file_is_refused_with_the_remedy(tmp_path, name, damage):
    save(tmp_path, 1)
    folder = save(tmp_path, 2, {"counts": np.arange(4)})
    DAMAGE[damage](folder / name)
    with pytest.raises(RunFolderError, match=r"000002: .*remove that folder to go on from the one"):
        latest_checkpoint(tmp_path)
    assert read_checkpoint(tmp_path / "000001").update == 1


@pytest.mark.parametrize(
    "change",
    [
        {"version": "one"},
        {"update": None},
        {"selector": {"counts": {"array": "array-9"}}},
        {"selector": [1]},
        {"random_state": "zz"},
    ],
)
def test_a_state_that_makes_no_sense_is_refused_with_the_remedy(tmp_path, change):
    folder = save(tmp_path, 2)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, **change}))
    with pytest.raises(RunFolderError, match=r"000002: .*remove that folder"):
        latest_checkpoint(tmp_path)


def test_a_state_of_deep_nesting_or_no_object_is_refused(tmp_path):
    folder = save(tmp_path, 2)
    for text in ("[" * 100_000, "[]", "null"):
        (folder / "state.json").write_text(text)
        with pytest.raises(RunFolderError, match="remove that folder"):
            latest_checkpoint(tmp_path)


def test_the_weights_are_a_file_that_peft_and_anybody_can_open(tmp_path):
    folder = save(tmp_path, 5)
    assert load_file(folder / "adapter_model.safetensors")["lora"].tolist() == [5.0] * 3
