"""`priorkit/train.py` and `priorkit train`: a run ends the same whatever stopped it on its way."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lab_runs import call
from peft import PeftModel
from safetensors.torch import load_file, save_file
from train_child import GROUPS, SIZE, Commands, arguments, pool, write_files

from priorkit import checkpoint, grpo, parquet
from priorkit import train as loop
from priorkit.beta import expected_learnability
from priorkit.checkpoint import latest_checkpoint, newest_folder
from priorkit.engines import transformers as engine_module
from priorkit.engines.protocol import Sampling
from priorkit.errors import EngineError, OutputError, RunFolderError, SettingError
from priorkit.learner import Learner, LearnerSettings
from priorkit.outcomes import read_outcomes
from priorkit.policy import LoraSettings
from priorkit.pool import write_pool
from priorkit.prior import read_prior
from priorkit.recipe import Recipe
from priorkit.run_figures import eval_steps, silent_at
from priorkit.run_rows import StepRow
from priorkit.run_tables import Run, is_finished, read_run
from priorkit.runlog import RunLog
from priorkit.selectors import CountingSelector
from priorkit.tasks import Judged, Tasks
from priorkit.train import Training, TrainSettings
from priorkit.verify import ExactVerifier, Verdict

SETTINGS = TrainSettings(
    updates=5,
    groups=GROUPS,
    group_size=SIZE,
    sampling=Sampling(max_new_tokens=24),
    learner=LearnerSettings(learning_rate=1e-2, warmup=1),
    lora=LoraSettings(4, 8),
    seed=1,
    eval_every=3,
)
SELECTORS = ("thinkprior", "uniform")  # counts alone, and a generator


@pytest.fixture(scope="module", autouse=True)
def speed():
    """One thread suits so small a model; PEFT's model card would take as long as an update."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PeftModel, "create_or_update_model_card", lambda *_: None)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with `pool.parquet` and `prior.parquet`; read only."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def commands():
    made = Commands()
    yield made
    made.close()


@pytest.fixture
def place(files, tmp_path):
    """A fresh folder to run commands in."""
    for path in files.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


@contextmanager
def training(
    files: Path, folder: Path, selector: str = "thinkprior", save_every: int = 2, **settings: Any
) -> Iterator[Training]:
    recipe = Recipe(
        policy="lab-policy",
        settings=replace(SETTINGS, **settings),
        pool=files / "pool.parquet",
        prior=files / "prior.parquet",
        selector=selector,
        device="cpu",
        save_every=save_every,
    )
    torch.seed()  # as in a new process: what a checkpoint does not bring back would show
    with recipe.ingredients().training(folder) as made:
        yield made


def train(files: Path, folder: Path, *, stop: Callable[[], bool] = lambda: False, **changes) -> Run:
    with training(files, folder, **changes) as made:
        return made.run(should_stop=stop)


def end(folder: Path) -> dict[str, object]:
    """All that a run leaves but its times."""
    timeless = [
        {k: v for k, v in asdict(row).items() if not k.startswith("seconds")}
        for row in read_run(folder).steps
    ]
    logs = {name: (folder / name).read_bytes() for name in ("groups.parquet", "evals.parquet")}
    last = newest_folder(folder / "checkpoints")
    return {
        "steps": timeless,
        **logs,
        **{path.name: path.read_bytes() for path in sorted(last.iterdir())},
        "checkpoint": last.name,
        "left": sorted(path.name for path in folder.iterdir()),
    }


def assert_same_end(folder: Path, unbroken: Path) -> None:
    found, expected = end(folder), end(unbroken)
    assert list(found) == list(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.fixture(scope="module")
def unbroken(files, tmp_path_factory):
    """The folder of the run of that selector that nothing stopped."""
    made: dict[str, Path] = {}

    def folder(selector: str) -> Path:
        if selector not in made:
            made[selector] = tmp_path_factory.mktemp("unbroken") / selector
            run = train(files, made[selector], selector=selector)
            assert sum(row.n_used for row in run.steps) > 3, "nothing was learned"
        return made[selector]

    return folder


@pytest.fixture(scope="module")
def stopped(files, tmp_path_factory):
    """The folder of a run that was stopped after its fourth update; read only."""
    asked, folder = count(1), tmp_path_factory.mktemp("stopped")
    train(files, folder, stop=lambda: next(asked) == 4)
    return folder


# A run goes on where it was


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_run_stopped_after_every_update_ends_as_the_unbroken_one(
    files, tmp_path, unbroken, selector
):
    for stopped in range(1, 5):
        run = train(files, tmp_path, selector=selector, stop=lambda: True)
        assert (run.finished, len(run.steps)) == (False, stopped)
    assert train(files, tmp_path, selector=selector, stop=lambda: True).finished
    assert_same_end(tmp_path, unbroken(selector))


def test_a_run_stopped_once_ends_as_the_unbroken_one(files, tmp_path, unbroken):
    asked = count(1)
    run = train(files, tmp_path, stop=lambda: next(asked) == 3)
    assert len(run.steps) == 3
    assert train(files, tmp_path).finished
    assert_same_end(tmp_path, unbroken("thinkprior"))


class Broken(Exception):
    """What stops a run where nothing expects it."""


def failing(function: Callable, calls: int, *, after: bool) -> Callable:
    """The function, raising at its call number `calls`, counted from 0; before or after its work.

    A generator raises at its beginning.
    """
    numbers = count()

    def broken(*args: object, **options: object) -> object:
        last = next(numbers) == calls
        if last and not after:
            raise Broken
        result = function(*args, **options)
        if last:
            raise Broken
        return result

    return broken


MOMENTS = [
    (ExactVerifier, "check", 3, True),  # the first evaluation
    (RunLog, "append_evals", 0, True),
    (loop, "write_prior", 0, False),  # in the first checkpoint
    (engine_module.Decoding, "advance", 30, True),  # the first update
    (Learner, "step", 0, False),
    (Learner, "step", 0, True),
    (CountingSelector, "observe", 1, True),
    (RunLog, "_write", 3, False),  # the second update's groups are there, its step is not
    (loop, "write_prior", 0, True),
    (ExactVerifier, "check", 17, True),  # the third update
    (RunLog, "append_evals", 0, False),
    (RunLog, "append_evals", 0, True),
    (loop, "save_checkpoint", 0, True),
    (RunLog, "append_evals", 0, False),  # the last
    (loop, "save_checkpoint", 0, False),
    (RunLog, "finish", 0, False),
    (parquet, "write", 1, True),  # between the tables of the finished log
    (Path, "unlink", 1, True),  # between the lines they replace
]


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_run_broken_in_the_middle_of_everything_ends_as_the_unbroken_one(
    files, tmp_path, unbroken, selector, monkeypatch
):
    some = slice(None) if selector == "thinkprior" else slice(4, 14, 3)  # the generator's state
    for owner, name, calls, after in MOMENTS[some]:
        with monkeypatch.context() as patch:
            broken = failing(getattr(owner, name), calls, after=after)
            patch.setattr(owner, name, only_lines(broken) if owner is Path else broken)
            with pytest.raises(Broken):
                train(files, tmp_path, selector=selector)
    assert train(files, tmp_path, selector=selector).finished
    assert_same_end(tmp_path, unbroken(selector))


def only_lines(broken: Callable) -> Callable:
    """`Path.unlink`, broken for the log's lines alone."""
    whole = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        (broken if self.suffix == ".jsonl" else whole)(self, missing_ok)

    return unlink


def test_a_finished_run_is_cleaned_up_by_whoever_finds_it(files, tmp_path, unbroken):
    run = shutil.copytree(unbroken("thinkprior"), tmp_path / "run")
    (run / "steps.jsonl").write_text("{}\n")
    with training(files, run) as made:
        assert made.run().finished
    assert not (run / "steps.jsonl").exists()


def test_what_a_kill_left_half_written_is_cleared(files, tmp_path, stopped, unbroken):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    (tmp_path / "checkpoints" / ".draft-1").mkdir()
    (tmp_path / "checkpoints" / ".draft-1" / "state.json").write_text("{")
    (tmp_path / ".priorkit-1.partial").write_text("half")
    train(files, tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "000004",
        "000005",
    ]
    assert_same_end(tmp_path, unbroken("thinkprior"))


def test_torchs_generator_is_the_runs_own_and_the_callers_stays(files, tmp_path):
    drawn: list[list[float]] = []
    for name, stop in (("stopped", True), ("stopped", False), ("unbroken", False)):
        with training(files, tmp_path / name, updates=2, save_every=1) as made:
            before = torch.random.get_rng_state()
            # Asked before an update's checkpoint is saved.
            made.run(
                should_stop=lambda stop=stop: bool(drawn.append(torch.rand(2).tolist())) or stop
            )
            assert torch.equal(torch.random.get_rng_state(), before)
    assert drawn[:2] == drawn[2:]
    assert drawn[0] != drawn[1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def without_tensors(path: Path) -> None:
    save_file({}, path)


def in_halves(path: Path) -> None:
    save_file({name: held.half() for name, held in load_file(path).items()}, path)


def edited_state(**changes: object) -> Callable[[Path], None]:
    """Edits `state.json` as one who leaves the JSON sound."""

    def edit(path: Path) -> None:
        state = {**json.loads(path.read_text()), **changes}
        del state["sha256"]
        path.write_text(json.dumps({**state, "sha256": checkpoint._digest_of(state)}))

    return edit


DAMAGE = {
    "adapter cut": ("adapter_model.safetensors", cut),
    "adapter of another dtype": ("adapter_model.safetensors", in_halves),
    "no adapter settings": ("adapter_config.json", emptied),
    "optimizer emptied": ("optimizer.safetensors", emptied),
    "optimizer without tensors": ("optimizer.safetensors", without_tensors),
    "no selector": ("selector.safetensors", Path.unlink),
    "no beliefs": ("posterior.parquet", emptied),
    "no state": ("state.json", lambda path: path.write_text("{")),
    "a list for a state": ("state.json", lambda path: path.write_text("[]")),
    "another update": ("state.json", edited_state(update=3)),
    "an update below zero": ("state.json", edited_state(update=-1)),
    "an update without end": ("state.json", edited_state(update=float("inf"))),
    "random numbers cut": ("state.json", edited_state(random_state="00")),
    "random numbers of another type": ("state.json", edited_state(random_state=7)),
    "a selector of another type": ("state.json", edited_state(selector=[1])),
    "a selector of another kind": ("state.json", edited_state(selector={"selector": 3})),
    "no list of files": ("state.json", edited_state(files=3)),
    "no files in the list": ("state.json", edited_state(files={})),
    "one digit changed": (
        "state.json",
        lambda path: path.write_text(path.read_text().replace('"groups": 8', '"groups": 9')),
    ),
    "a pipe for a state": ("state.json", lambda path: (path.unlink(), os.mkfifo(path))),
    "a pipe for an adapter": (
        "adapter_model.safetensors",
        lambda path: (path.unlink(), os.mkfifo(path)),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_goes_on(
    files, tmp_path, stopped, unbroken, name
):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    damaged = newest_folder(tmp_path / "checkpoints")
    assert damaged.name == "000004"
    file, damage = DAMAGE[name]
    damage(damaged / file)
    with pytest.raises(RunFolderError, match=r"000004[:/]") as refusal:
        train(files, tmp_path)
    assert "remove that folder to go on" in str(refusal.value) or "pipe" in name
    shutil.rmtree(damaged)
    told: list[int] = []
    with training(files, tmp_path) as made:
        made.run(lambda row: told.append(row.step))
    assert told == [3, 4, 5]
    assert_same_end(tmp_path, unbroken("thinkprior"))


def test_what_somebody_put_among_the_checkpoints_is_none_and_stays(
    files, tmp_path, stopped, unbroken
):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    strays = [
        "000009",
        "1/mine.txt",
        "2\u00b2/mine.txt",
        ".draft-mine/mine.txt",
        ".draft-1/mine.txt",
    ]
    for stray in (tmp_path / "checkpoints" / name for name in strays):
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("years of work")
    train(files, tmp_path)
    for stray in strays:
        stood = tmp_path / "checkpoints" / stray
        assert stood.read_text() == "years of work"
        shutil.rmtree(stood.parent) if "/" in stray else stood.unlink()
    assert_same_end(tmp_path, unbroken("thinkprior"))


def test_a_run_whose_checkpoints_are_gone_does_not_begin_again_unasked(files, tmp_path, stopped):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints")
    before = (tmp_path / "steps.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match=r"no checkpoint, though .* --force to start over"):
        train(files, tmp_path)
    assert (tmp_path / "steps.jsonl").read_bytes() == before


def test_a_damaged_definition_is_refused_before_any_update(files, tmp_path, stopped):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "notes": "none"}))
    before = (tmp_path / "steps.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match=r"run\.json: notes is "):
        train(files, tmp_path)
    assert (tmp_path / "steps.jsonl").read_bytes() == before


def doubled(data: bytes) -> bytes:
    return data + data.splitlines(keepends=True)[-1]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("groups", doubled),
        ("evals", doubled),
        ("evals", lambda data: b""),
        ("evals", lambda data: b"".join(data.splitlines(keepends=True)[::2])),
    ],
)
def test_a_log_damaged_before_its_checkpoint_does_not_go_on(files, tmp_path, stopped, name, damage):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    RunLog(tmp_path).cut(4)  # to where the checkpoint is, or the damage would be cut away
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunFolderError, match="edited or damaged"):
        train(files, tmp_path)


# Kills


def wait_until(happened: Callable[[], bool], limit_s: float = 60.0) -> None:
    began = time.monotonic()
    while not happened():
        assert time.monotonic() - began < limit_s, "it never came to that"
        time.sleep(0.002)


def updates_in(run: Path) -> int:
    """Updates in the log of a run at work."""
    try:
        return (run / "steps.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


@pytest.fixture(scope="module")
def unbroken_command(commands, files, tmp_path_factory):
    """Runs a command to its end, once; the run's folder."""
    made: dict[tuple[str, ...], Path] = {}

    def folder(*command: str) -> Path:
        if command not in made:
            place = shutil.copytree(files, tmp_path_factory.mktemp("unbroken") / "place")
            status, said = commands.run(place, *command)
            assert status == 0, said
            made[command] = place / "runs" / "run"
        return made[command]

    return folder


def small(selector: str, updates: int = 6) -> list[str]:
    return arguments(updates, "--prior", "prior.parquet", "--selector", selector)


def killed_run(
    commands: Commands, place: Path, command: list[str], unbroken: Path, kills: list[int], seed: int
) -> list[str]:
    """Kill a command again and again, and see it end as the unbroken.

    Args:
        kills: each so many updates or a little more after the checkpoint it began with; one that
            comes after the command's end does not count and is tried again.

    Returns:
        Where each kill found it: the newest checkpoint, and how many later updates it lost.
    """
    run, wanted, moments = place / "runs" / "run", iter(kills), random.Random(seed)
    update_s = statistics.median(row.seconds_total for row in read_run(unbroken).steps)
    met: list[str] = []
    updates = next(wanted)
    while updates is not None:
        shutil.rmtree(run, ignore_errors=True)
        status = -signal.SIGKILL
        while status == -signal.SIGKILL:
            due = newest(run) + (updates or 0)
            process = commands.start(place, *command)
            if updates is not None:
                wait_until(lambda due=due: updates_in(run) >= due or is_finished(run))
                time.sleep(moments.uniform(0.0, update_s))
                os.kill(process, signal.SIGKILL)  # nobody's, had it ended: it is waited for below
            status = commands.wait(process)
            if updates is not None and status == -signal.SIGKILL:
                met.append(reached(run))
                updates = next(wanted, None)
        assert status == 0, (place / "said.txt").read_text()
        assert_same_end(run, unbroken)
    return met


def newest(run: Path) -> int:
    return max((int(path.name) for path in run.glob("checkpoints/[0-9]*")), default=0)


def reached(run: Path) -> str:
    return f"{newest(run):02d}+{max(updates_in(run) - newest(run), 0)}"


@pytest.mark.parametrize(("selector", "kills"), [("thinkprior", [3, 0, 1]), ("uniform", [3, 1])])
def test_a_few_kills_change_nothing(commands, place, unbroken_command, selector, kills):
    command = small(selector)
    met = killed_run(commands, place, command, unbroken_command(*command), kills, seed=11)
    assert max(met) >= "02", f"no kill met a checkpoint to go back to: {met}"


@pytest.mark.slow
@pytest.mark.parametrize("selector", SELECTORS)
def test_thirty_kills_change_nothing(commands, place, unbroken_command, selector):
    command, moments = small(selector, 12), random.Random(30)
    kills = [moments.randrange(4) for _ in range(30)]
    met = killed_run(commands, place, command, unbroken_command(*command), kills, seed=30)
    assert len(set(met)) > 6, f"the kills fell on few states: {met}"
    assert len({state[:2] for state in met}) > 3, f"the kills fell on few checkpoints: {met}"


def with_algebra(place: Path) -> None:
    """Have the pool's answers judged in a process of the verifier's own."""
    algebra = replace(pool(), verifier=np.array(["math"] * len(pool()), dtype=object))
    write_pool(place / "pool.parquet", algebra, {}, force=True)


@pytest.mark.slow
def test_kills_of_a_run_that_is_judged_by_algebra_change_nothing(commands, place):
    with_algebra(place)
    command = arguments(6)
    assert commands.run(place, *command)[0] == 0
    unbroken = (place / "runs" / "run").rename(place / "unbroken")
    killed_run(commands, place, command, unbroken, [0, 1, 2, 3, 0, 1], seed=3)


# Ctrl-C


def test_ctrl_c_finishes_the_update_and_the_same_command_goes_on(commands, place, unbroken_command):
    command, run = small("uniform"), place / "runs" / "run"
    process = commands.start(place, *command)
    wait_until(lambda: updates_in(run) > 0)
    os.kill(process, signal.SIGINT)
    assert commands.wait(process) == 130
    reached = was_told_to_go_on((place / "said.txt").read_text(), run)
    status, said = commands.run(place, *command)
    assert status == 0
    assert f"runs/run: going on after update {reached}" in said
    assert_same_end(run, unbroken_command(*command))


def was_told_to_go_on(said: str, run: Path) -> int:
    """The update after which a command says that it stopped, as is true."""
    assert "finishing this update, then saving; again to stop at once" in said
    told = re.search(r"stopped after update (\d+) of 6, saved in runs/run; run the same", said)
    assert told, said
    assert latest_checkpoint(run / "checkpoints").update == int(told[1]) == updates_in(run)
    return int(told[1])


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_the_verifiers_too_and_changes_nothing(commands, place):
    with_algebra(place)
    command, run = arguments(6), place / "runs" / "run"
    assert commands.run(place, *command, "--name", "unbroken")[0] == 0
    with subprocess.Popen(
        [sys.executable, "-m", "priorkit_cli", *command],
        cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        wait_until(lambda: updates_in(run) > 0)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    was_told_to_go_on(err, run)
    assert commands.run(place, *command)[0] == 0
    assert_same_end(run, place / "runs" / "unbroken")


def test_a_schedulers_polite_kill_is_a_ctrl_c(commands, place):
    process = commands.start(place, *small("uniform", 40))
    wait_until(lambda: updates_in(place / "runs" / "run") > 0)
    os.kill(process, signal.SIGTERM)
    assert commands.wait(process) == 130
    assert "run the same command again to go on" in (place / "said.txt").read_text()


def test_a_second_ctrl_c_stops_at_once_and_the_same_command_goes_on(
    commands, place, unbroken_command
):
    command = [*small("thinkprior", 2), "-B", "4", "-G", "16"]  # updates long enough to be hit
    run = place / "runs" / "run"
    process = commands.start(place, *command)
    wait_until(lambda: updates_in(run) == 1)
    os.kill(process, signal.SIGINT)
    wait_until(lambda: "again to stop at once" in (place / "said.txt").read_text())
    os.kill(process, signal.SIGINT)
    assert commands.wait(process) == 130
    said = (place / "said.txt").read_text()
    assert said.endswith("stopped; run the same command again to go on\n"), said
    assert updates_in(run) == 1, "it finished the update"
    assert latest_checkpoint(run / "checkpoints").update == 0
    assert commands.run(place, *command)[0] == 0
    assert_same_end(run, unbroken_command(*command))


# One folder, one run


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    """The folder where a small run was made by command; read only."""
    place = tmp_path_factory.mktemp("finished")
    for path in files.iterdir():
        shutil.copy(path, place)
    assert call(place, *arguments(3)).code == 0
    return place


@pytest.fixture
def again(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "again")


def refused(ran: Any, *words: str) -> None:
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[-1].startswith("error: ")
    assert sum(line.startswith("error: ") for line in lines) == 1
    assert "Traceback" not in ran.err
    for word in words:
        assert word in lines[-1]


def without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_args: object, **_options: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("priorkit.engines.loading.load_model", load)


def test_the_same_command_on_a_finished_run_says_so_and_loads_no_model(again, monkeypatch):
    without_models(monkeypatch)
    before = end(again / "runs" / "run")
    ran = call(again, *arguments(3, "--json"))
    assert ran.code == 0
    assert ran.err == ("runs/run: finished before, nothing to train (--force starts over)\n")
    assert json.loads(ran.out)["updates"] == 3
    assert end(again / "runs" / "run") == before


def test_the_same_command_ends_a_clean_up_that_a_kill_broke(again, monkeypatch):
    without_models(monkeypatch)
    (again / "runs" / "run" / "groups.jsonl").write_text("{}\n")
    assert call(again, *arguments(3)).code == 0
    assert not (again / "runs" / "run" / "groups.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--updates", "4"], "another --updates (3, now 4)"),
        (["--seed", "2"], "another --seed (1, now 2)"),
        (["--lr", "0.1"], "another --lr (0.01, now 0.1)"),
        (["--prior", "prior.parquet"], "another prior"),
        (["--selector", "online-np"], "another selector.name"),
        (["--instruction", "Think."], "another template.instruction"),
        (["--dtype", "float32"], "another dtype"),
        (["--policy", "lab-anchor"], "another policy.name"),
        (["--shuffle-rewards"], "another --shuffle-rewards (false, now true)"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused_by_name(again, monkeypatch, change, named):
    without_models(monkeypatch)
    before = end(again / "runs" / "run")
    refused(call(again, *arguments(3, *change)), named, "--name", "--force")
    assert end(again / "runs" / "run") == before


def test_another_pool_in_the_same_folder_is_refused(again, monkeypatch):
    without_models(monkeypatch)
    write_pool(again / "pool.parquet", pool(prompts=9), {}, force=True)
    refused(call(again, *arguments(3)), "another pool.fingerprint", "--name")
    turned = [*range(10)[::-1], *range(10, len(pool()))]
    write_pool(again / "pool.parquet", pool().take(np.array(turned)), {}, force=True)
    refused(call(again, *arguments(3)), "order of the same prompts")


def test_force_starts_over_and_a_name_starts_another(again):
    first = again / "runs" / "run"
    before = end(first)
    ran = call(again, *arguments(3, "--seed", "5", "--name", "other"))
    assert ran.code == 0
    assert end(first) == before
    other = end(again / "runs" / "other")
    assert other["groups.parquet"] != before["groups.parquet"]
    ran = call(again, *arguments(3, "--seed", "5", "--force"))
    assert (ran.code, ran.err) == (0, "")
    assert end(first) == other


def test_two_commands_never_work_in_one_folder(commands, place, unbroken_command):
    command, run = small("thinkprior"), place / "runs" / "run"
    process = commands.start(place, *command)
    wait_until(lambda: updates_in(run) > 0)
    os.kill(process, signal.SIGSTOP)  # it is at work for as long as it takes to ask
    try:
        for more in ([], ["--force"]):
            ran = call(place, *command, *more)
            refused(ran, "another process is at work here")
            assert "going on after" not in ran.err
    finally:
        os.kill(process, signal.SIGCONT)
    assert commands.wait(process) == 0, (place / "said.txt").read_text()
    assert_same_end(run, unbroken_command(*command))


# What goes wrong


def test_a_loss_that_is_not_a_number_is_one_line_and_the_run_can_go_on(
    place, finished, monkeypatch
):
    command, run = arguments(3), place / "runs" / "run"
    loss = grpo.policy_loss

    def absurd(*args: Any) -> Any:
        found, metrics = loss(*args)
        return (found * float("nan") if updates_in(run) >= 2 else found), metrics

    with monkeypatch.context() as patch:
        patch.setattr(grpo, "policy_loss", absurd)
        refused(call(place, *command), "the loss is nan", "lower the learning rate", "update ")
    assert call(place, *command).code == 0
    assert_same_end(run, finished / "runs" / "run")


def test_an_absurd_learning_rate_is_one_line_of_advice(place):
    refused(call(place, *arguments(4, "--lr", "1e30")), "not numbers")
    assert latest_checkpoint(place / "runs" / "run" / "checkpoints").update == 0


CPU_MEMORY = "DefaultCPUAllocator: can't allocate memory: you tried to allocate"


@pytest.mark.parametrize(
    ("owner", "name"), [(Learner, "_accumulate"), (engine_module.Decoding, "advance")]
)
def test_out_of_memory_is_one_line_of_advice_that_can_be_followed(
    place, finished, monkeypatch, owner, name
):
    command, run, whole = arguments(3), place / "runs" / "run", getattr(owner, name)

    def scarce(*args: Any) -> Any:
        if updates_in(run) == 2:
            raise RuntimeError(CPU_MEMORY)
        return whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, scarce)
        ran = call(place, *command)
    refused(ran, "out of memory")
    assert updates_in(run) == 2
    elsewhere = shutil.copytree(place, place / "elsewhere")
    (advised,) = re.findall(r"(--[a-z-]+)\D+(\d+)", ran.err)
    ran = call(elsewhere, *command, *advised)
    assert ran.code == 0, ran.err
    label = advised[0].removeprefix("--").replace("-", "_")
    assert f"warning: this run began with {label} = " in ran.err
    ran = call(place, *command)
    assert ran.code == 0
    assert "warning" not in ran.err
    assert_same_end(run, finished / "runs" / "run")


def test_a_disk_that_fills_is_one_line_and_the_run_can_go_on(commands, place, unbroken_command):
    command = small("uniform")
    status = commands.wait(commands.start(place, *command, largest_file=60_000))
    assert status == 1
    said = (place / "said.txt").read_text().splitlines()
    assert re.search(r"^error: .*000000: the checkpoint could not be written .*too large", said[-1])
    assert len([line for line in said if not line.startswith("warning: the prior")]) == 1
    assert not list((place / "runs" / "run" / "checkpoints").iterdir())
    assert commands.run(place, *command)[0] == 0
    assert_same_end(place / "runs" / "run", unbroken_command(*command))


def test_a_folder_that_cannot_be_written_is_named(files, tmp_path):
    (tmp_path / "file").write_text("")
    with training(files, tmp_path / "file" / "run") as made, pytest.raises(OutputError):
        made.run()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["-B", "11"], "cannot select 11 distinct prompts from 10"),
        (
            ["-B", "6", "--prior", "prior.parquet", "--selector", "prior-only"],
            "cannot select 6 distinct prompts from 5",
        ),
        (["-B", "0"], "groups must be at least 1"),
        (["--selector", "thinkprior"], "needs a prior"),
        (["--selector", "best"], "no selector is called 'best'"),
        (["--selector", "oracle"], "the oracle needs reference solve rates"),
        (["--save-every", "0"], "save_every must be at least 1"),
        (["--eval-every", "-1"], "eval_every must be 0 or more"),
        (["--updates", "0"], "updates must be at least 1"),
    ],
)
def test_what_can_be_refused_is_refused_before_a_model_is_loaded(place, monkeypatch, change, named):
    without_models(monkeypatch)
    refused(call(place, *arguments(3, *change)), named)
    assert not (place / "runs").exists()


def test_a_pool_smaller_than_an_update_is_refused_by_the_loop_too(files, tmp_path):
    with training(files, tmp_path / "run") as made:
        large = replace(made, settings=replace(SETTINGS, groups=11))
        with pytest.raises(SettingError, match=r"takes 11 prompts and the pool has only 10.*-"):
            large.run()
    assert not (tmp_path / "run").exists()


# What an update does


class Watched:
    """What passed through a run: verdicts by prompt and update, and the learner's batches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.verdicts: list[tuple[str, Verdict]] = []
        self.advantages: list[np.ndarray] = []
        judge, step = Tasks.judge, Learner.step

        def judging(tasks: Tasks, completion: Any) -> Judged:
            judged = judge(tasks, completion)
            self.verdicts.append((completion.prompt_id, judged.verdict))
            return judged

        def stepping(learner: Learner, batch: Any) -> Any:
            self.advantages.append(batch.advantages.numpy().copy().reshape(GROUPS, SIZE))
            return step(learner, batch)

        monkeypatch.setattr(Tasks, "judge", judging)
        monkeypatch.setattr(Learner, "step", stepping)

    def counts(self, prompt_id: str) -> tuple[int, int]:
        """Successes and trials among the verdicts on a prompt."""
        seen = [verdict.correct for key, verdict in self.verdicts if key == prompt_id]
        return seen.count(True), len(seen) - seen.count(None)


def observed(made: Training) -> dict[str, tuple[int, int]]:
    """Successes and trials by prompt that the selector counted."""
    state = made.selector.state_dict()
    solved, failed = state["successes"], state["failures"]
    return {
        key: (int(solved[row]), int(solved[row] + failed[row]))
        for row, key in enumerate(made.tasks.pool.prompt_id)
    }


def standardised(successes: int, trials: int) -> list[float]:
    """The advantages of a group, in ascending order, its responses without a verdict included."""
    silent = successes in (0, trials)
    rewards = np.array([0.0] * (trials - successes) + [1.0] * successes)
    spread = 1.0 if silent else rewards.std(ddof=1) + 1e-4
    found = np.zeros(trials) if silent else (rewards - rewards.mean()) / spread
    return sorted([*found, *[0.0] * (SIZE - trials)])


def test_counts_and_advantages_are_those_of_the_verdicts(files, tmp_path, monkeypatch):
    watched = Watched(monkeypatch)
    with training(files, tmp_path, eval_every=0) as made:
        run = made.run()
        for key, counted in observed(made).items():
            assert counted == watched.counts(key)
    for row in run.steps:
        groups = [group for group in run.groups if group.step == row.step]
        for group, found in zip(groups, watched.advantages[row.step - 1], strict=True):
            assert sorted(found) == pytest.approx(standardised(group.successes, group.trials))


def test_shuffled_rewards_move_within_their_group_and_the_counts_stay_true(
    files, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        plain = Watched(patch)
        train(files, tmp_path / "plain", eval_every=0, updates=1)
    with monkeypatch.context() as patch:
        shuffled = Watched(patch)
        with training(files, tmp_path / "shuffled", eval_every=0, shuffle_rewards=True) as made:
            run = made.run()
            for key, counted in observed(made).items():
                assert counted == shuffled.counts(key)
    for at, found in enumerate(shuffled.advantages):
        groups = [group for group in run.groups if group.step == at + 1]
        for group, advantages in zip(groups, found, strict=True):
            assert sorted(advantages) == pytest.approx(standardised(group.successes, group.trials))
    first, real = shuffled.advantages[0], plain.advantages[0]
    assert np.array_equal(np.sort(first, axis=1), np.sort(real, axis=1))
    orders = {tuple(advantages > 0) for found in shuffled.advantages for advantages in found}
    assert len(orders) > 2, "every group was dealt alike"
    again = Watched(monkeypatch)
    train(files, tmp_path / "again", eval_every=0, shuffle_rewards=True)
    assert np.array_equal(np.stack(again.advantages), np.stack(shuffled.advantages))
    assert [asdict(group) for group in run.groups] == (
        [asdict(group) for group in read_run(tmp_path / "again").groups]
    )


class Unsure(ExactVerifier):
    """Has no verdict on every third response, nor on any to some prompts."""

    def __init__(self, never: frozenset[str]) -> None:
        object.__setattr__(self, "asked", count())
        object.__setattr__(self, "never", never)

    def check(self, response: str, answer: Any, finish_reason: str | None = None) -> Verdict:
        if answer in self.never or next(self.asked) % 3 == 1:
            return Verdict("verifier_error")
        return super().check(response, answer, finish_reason)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_response_without_a_verdict_is_no_trial_and_teaches_nothing(
    files, tmp_path, monkeypatch, shuffled
):
    watched = Watched(monkeypatch)
    with training(files, tmp_path, eval_every=0, updates=6, shuffle_rewards=shuffled) as made:
        asked = made.tasks.pool
        never = frozenset(str(asked.answer[row]) for row in made.selector.select(1))
        renderer = Recipe("lab-policy", SETTINGS).template.renderer(made.policy.tokenizer)
        tasks = Tasks(asked, renderer, {"exact": Unsure(never)})
        run = replace(made, tasks=tasks).run()
        for key, counted in observed(made).items():
            assert counted == watched.counts(key)
    correct = np.array([verdict.correct for _, verdict in watched.verdicts], dtype=object)
    assert (correct == None).sum() == sum(row.n_no_verdict for row in run.steps) > 5  # noqa: E711
    for group in run.groups:
        assert group.trials + group.n_error == SIZE
        assert (group.fate == "silent") == (group.successes in (0, group.trials))
        found = watched.advantages[group.step - 1][group.rank]
        assert sorted(found) == pytest.approx(standardised(group.successes, group.trials))
    assert {group.trials for group in run.groups} >= {0, 2, 3}
    assert any(group.fate == "used" and group.n_error for group in run.groups)
    for row in run.steps:
        seen = [group for group in run.groups if group.step == row.step]
        trials = sum(group.trials for group in seen)
        mean = sum(group.successes for group in seen) / trials if trials else None
        assert row.reward == (mean if mean is None else pytest.approx(mean))


def test_a_responses_advantage_is_its_own_verdicts(files, tmp_path, monkeypatch):
    """In a mixed group, those above zero are the right ones, and those without a verdict zero."""
    rolled: list[Any] = []
    whole = loop.as_batch
    monkeypatch.setattr(loop, "as_batch", lambda *args: rolled.append(args) or whole(*args))
    with training(files, tmp_path, eval_every=0) as made:
        renderer = Recipe("lab-policy", SETTINGS).template.renderer(made.policy.tokenizer)
        asked = made.tasks.pool
        tasks = Tasks(asked, renderer, {"exact": Unsure(frozenset())})
        replace(made, tasks=tasks).run()
    for rollouts, advantages in rolled:
        for at in np.flatnonzero(~rollouts.silent):
            sign = np.where(rollouts.judged[at], np.where(rollouts.rewards[at] > 0, 1, -1), 0)
            assert np.sign(advantages[at].numpy()).tolist() == sign.tolist()
        batch = whole(rollouts, advantages)
        flat = [completion for group in rollouts.completions for completion in group]
        assert [tuple(one) for one in batch.responses] == [one.tokens for one in flat]
        assert all(
            sum(mask) == len(one.tokens) for mask, one in zip(batch.masks, flat, strict=True)
        )
        assert [one.sample for one in flat] == [*range(SIZE)] * GROUPS
        answers = [asked.answer[row] for row in rollouts.rows for _ in range(SIZE)]
        right = [
            judged and ExactVerifier().check(one.text, answer).correct
            for one, answer, judged in zip(flat, answers, rollouts.judged.flatten(), strict=True)
        ]
        assert right == rollouts.rewards.flatten().astype(bool).tolist()


def test_no_two_requests_of_a_run_share_a_seed_and_another_run_has_others(
    files, tmp_path, monkeypatch
):
    asked: list[Any] = []
    whole = loop.roll_out
    monkeypatch.setattr(loop, "roll_out", lambda *args: asked.extend(args[3]) or whole(*args))
    train(files, tmp_path / "one", selector="uniform", updates=3)
    seeds = [request.seed for request in asked if request.sampling.temperature > 0]
    assert len(seeds) == len(set(seeds)) == GROUPS * 3
    assert {request.n for request in asked if request.sampling.temperature > 0} == {SIZE}
    asked.clear()
    train(files, tmp_path / "two", selector="uniform", seed=2, updates=3)
    others = {request.seed for request in asked if request.sampling.temperature > 0}
    assert not others & set(seeds)


def test_the_log_counts_the_tokens_and_the_cut_responses(files, tmp_path, monkeypatch):
    rolled: list[Any] = []
    whole = loop.as_batch
    monkeypatch.setattr(loop, "as_batch", lambda *args: rolled.append(args[0]) or whole(*args))
    run = train(files, tmp_path, sampling=Sampling(max_new_tokens=12), updates=3)
    assert sum(row.n_truncated for row in run.steps) > 0
    for row, rollouts in zip(run.steps, rolled, strict=True):
        groups = [group for group in run.groups if group.step == row.step]
        for group, completions in zip(groups, rollouts.completions, strict=True):
            assert group.n_tokens == sum(len(one.tokens) for one in completions)
            cut = [one for one in completions if one.finish_reason == "length"]
            assert group.n_truncated == sum("}" not in one.text for one in cut)
        assert row.n_tokens == sum(group.n_tokens for group in groups)
        assert row.n_truncated == sum(group.n_truncated for group in groups)
        assert row.n_prompt_tokens == sum(len(one.prompt_tokens) for one in rollouts.requests)


def test_the_log_says_what_was_expected_of_each_group_when_it_was_chosen(files, tmp_path):
    prior = read_prior(files / "prior.parquet")
    place = {key: row for row, key in enumerate(prior.prompt_id)}
    solved, failed = np.zeros(len(prior)), np.zeros(len(prior))
    with training(files, tmp_path) as made:
        run = made.run()
        assert made.selector.metrics()["silent"] == silent_at(run, len(run.steps))
    for row in run.steps:
        groups = [group for group in run.groups if group.step == row.step]
        at = [place[group.prompt_id] for group in groups]
        alpha, beta = prior.alpha[at] + solved[at], prior.beta[at] + failed[at]
        expected = expected_learnability(alpha, beta, SIZE)
        assert [group.expected for group in groups] == expected.tolist()
        assert row.expected == pytest.approx(expected.mean())
        assert [group.rank for group in groups] == list(range(GROUPS))
        assert sorted(expected, reverse=True) == expected.tolist(), "not best first"
        solved[at] += [group.successes for group in groups]
        failed[at] += [group.trials - group.successes for group in groups]
    assert silent_at(run, 1) == sum(g.silent for g in run.groups if g.step == 1) / GROUPS


def test_the_reference_penalty_is_logged_and_never_below_zero(files, tmp_path):
    plain = train(files, tmp_path / "plain", eval_every=0)
    assert all(row.kl is None for row in plain.steps)
    learner = replace(SETTINGS.learner, kl=0.04)
    held = train(files, tmp_path / "held", eval_every=0, learner=learner)
    assert held.steps[0].kl == pytest.approx(0.0, abs=1e-9)  # the adapter starts at zero
    assert all(row.kl >= 0 for row in held.steps)
    assert max(row.kl for row in held.steps) > 1e-6


# Evaluations


@pytest.mark.parametrize(("every", "steps"), [(0, []), (2, [0, 2, 3]), (3, [0, 3]), (9, [0, 3])])
def test_evaluations_come_before_every_so_many_and_after_once(files, tmp_path, every, steps):
    run = train(files, tmp_path, eval_every=every, updates=3)
    assert eval_steps(run) == steps
    assert len(run.evals) == len(steps) * 6
    for step in steps:
        keys = [row.prompt_id for row in run.evals if row.step == step]
        assert keys == pool().of_split("eval").prompt_id.tolist()


def test_evaluations_sample_as_they_are_told(files, tmp_path):
    run = train(files, tmp_path, updates=1, eval_every=1, eval_samples=3, eval_temperature=0.7)
    assert {(row.trials, row.temperature) for row in run.evals} == {(3, 0.7)}


def test_a_pool_without_held_out_prompts_is_trained_on_without_evaluations(place):
    write_pool(place / "pool.parquet", pool().of_split("train"), {}, force=True)
    ran = call(place, *arguments(2, "--json"))
    assert ran.code == 0
    assert json.loads(ran.out)["evaluations"] == []
    run = read_run(place / "runs" / "run")
    assert (run.finished, run.evals, run.settings["held_out"]) == (True, [], None)


def test_the_last_evaluation_is_what_evaluate_finds(again):
    ran = call(again, "evaluate", "runs/run", "--batch-size", "64", "--device", "cpu", "--json")
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    outcomes = read_outcomes(again / facts["outcomes"])
    found = {row.prompt_id: row for row in outcomes.rows()}
    run = read_run(again / "runs" / "run")
    last = [row for row in run.evals if row.step == 3]
    assert len(last) == len(found) == 6
    for row in last:
        one = found[row.prompt_id]
        assert (row.successes, row.n_tokens) == (int(one.correct is True), one.n_tokens)
        assert row.n_truncated == (one.status == "truncated")
    assert facts["mean"] == sum(row.successes for row in last) / 6


# The posterior


def test_the_posterior_is_prior_plus_counts_and_a_prior_of_the_same_pool(files, tmp_path):
    run = train(files, tmp_path)
    prior = read_prior(files / "prior.parquet")
    found = read_prior(newest_folder(tmp_path / "checkpoints") / "posterior.parquet")
    solved = dict.fromkeys(prior.prompt_id, 0)
    failed = dict.fromkeys(prior.prompt_id, 0)
    for group in run.groups:
        solved[group.prompt_id] += group.successes
        failed[group.prompt_id] += group.trials - group.successes
    assert found.kind == "posterior"
    assert found.prompt_id.tolist() == prior.prompt_id.tolist()
    assert found.row_hash.tolist() == pool().of_split("train").row_hash.tolist()
    assert found.alpha.tolist() == (prior.alpha + list(solved.values())).tolist()
    assert found.beta.tolist() == (prior.beta + list(failed.values())).tolist()
    assert found.provenance["updates"] == len(run.steps)
    assert found.provenance["pool"] == run.settings["pool"]
    assert found.provenance["parents"] == [run.settings["prior"]]


def test_online_np_leaves_the_prior_unread_and_says_so(place):
    (place / "prior.parquet").write_bytes(b"nobody reads this")
    ran = call(place, *arguments(1, "--prior", "prior.parquet", "--selector", "online-np"))
    assert ran.code == 0, ran.err
    assert "warning: online-np starts from nothing: the prior is not used" in ran.err
    run = read_run(place / "runs" / "run")
    assert (run.settings["prior"], run.settings["notes"]["files"]["prior"]) == (None, None)
    found = read_prior(newest_folder(run.folder / "checkpoints") / "posterior.parquet")
    assert found.provenance["parents"] == []


def test_off_a_terminal_a_long_run_says_now_and_then_where_it_is(place, monkeypatch):
    assert "updates left" not in call(place, *arguments(2)).err
    monkeypatch.setattr("priorkit_cli.progress._LINE_EVERY", 0.0)
    said = call(place, *arguments(2, "--force")).err.splitlines()
    assert [line.partition(":")[0] for line in said] == ["update 1", "update 2"]
    assert said[1].endswith("s, 0 updates left")


@pytest.mark.parametrize("keep", [False, True])
def test_a_posterior_is_the_prior_of_another_run_at_kappa_or_its_own_strength(again, keep):
    posterior = newest_folder(again / "runs" / "run" / "checkpoints") / "posterior.parquet"
    own = read_prior(posterior)
    assert own.row_hash.tolist() == pool().of_split("train").row_hash.tolist()
    more = ["--keep-strength"] if keep else []
    ran = call(again, *arguments(1, "--prior", posterior, "--name", "next", *more))
    assert ran.code == 0, ran.err
    run = read_run(again / "runs" / "next")
    assert run.settings["prior"]["kind"] == "posterior"
    first = latest_checkpoint(again / "runs" / "next" / "checkpoints")
    alpha, beta = first.selector["alpha"], first.selector["beta"]
    if keep:
        assert alpha.tolist() == own.alpha.tolist()
    else:
        assert (alpha + beta).tolist() == pytest.approx([4.0 + 2e-3] * 10)
        assert (alpha - 1e-3) / 4 == pytest.approx(own.alpha / (own.alpha + own.beta))


# Settings


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        (["--seed", 2**64], 1, "below 2**63"),
        (["--lora-rank", 10**9], 1, "lower --lora-rank"),
        (["--lora-rank", 10**30], 1, "below 2**31"),
        (["--max-new-tokens", 10**30], 1, "below 2**31"),
    ],
)
def test_numbers_beyond_reason_are_refused(place, more, code, word):
    ran = call(place, *arguments(1, *more))
    assert ran.code == code
    assert word in ran.err
    assert "Traceback" not in ran.err


def test_the_settings_that_only_spare_memory_define_no_run():
    spared = replace(
        SETTINGS,
        rollout_batch=1,
        learner=replace(SETTINGS.learner, micro_tokens=7, gradient_checkpointing=True),
    )
    assert loop.definition({}, SETTINGS) == loop.definition({}, spared)
    assert loop.definition({}, SETTINGS) != loop.definition({}, replace(SETTINGS, seed=2))


@pytest.mark.parametrize(
    "setting",
    [
        {"updates": 0},
        {"groups": 0},
        {"group_size": 1},
        {"eval_samples": 0},
        {"rollout_batch": 0},
        {"eval_every": -1},
        {"eval_temperature": float("nan")},
    ],
)
def test_settings_out_of_their_domain_are_refused(setting):
    with pytest.raises(SettingError):
        TrainSettings(**setting)


def test_each_update_is_told_as_it_is_logged(files, tmp_path):
    told: list[StepRow] = []
    with training(files, tmp_path, updates=2) as made:
        run = made.run(told.append)
    assert told == run.steps
    for row in told:
        parts = row.seconds_generate + row.seconds_verify + row.seconds_update
        assert 0 < parts <= row.seconds_total


def test_an_engine_error_of_a_run_leaves_its_folder_free(files, tmp_path, monkeypatch):
    def fail(*_args: object) -> None:
        raise EngineError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "step", fail)
        with pytest.raises(EngineError):
            train(files, tmp_path)
    assert train(files, tmp_path).finished
