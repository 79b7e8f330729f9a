"""The log of a run: what is written is read, whatever kills it, and no other log is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from priorkit import parquet, run_tables
from priorkit.errors import OutputError, RunFolderError, SettingError
from priorkit.run_figures import accuracy_at, eval_steps, silent_at, waste_at
from priorkit.run_rows import FATES, KINDS, EvalRow, GroupRow, Row, StepRow, json_line, tally
from priorkit.run_tables import Run, read_run
from priorkit.runlog import RunLog

HERE = Path(__file__).parent
NAMES = ("steps", "groups", "evals")
PATH_REPLACE, PATH_UNLINK = Path.replace, Path.unlink


def group(step: int, prompt_id: str, successes: int = 1, trials: int = 4, **more) -> GroupRow:
    silent = successes in (0, trials)
    row = GroupRow(
        step=step, round=1, rank=0, prompt_id=prompt_id, successes=successes, trials=trials,
        n_error=0, n_truncated=0, fate="silent" if silent else "used", expected=0.5,
        prefix_kind=None, prefix_tokens=0, node_id=None, n_tokens=40, n_replayed=0,
    )  # fmt: skip
    return replace(row, **more)


def step_of(step: int, groups: list[GroupRow], **more) -> StepRow:
    row = StepRow(
        step=step, loss=-0.1 / step, kl=None, grad_norm=0.3, learning_rate=1e-4, reward=None,
        n_used=1, n_no_verdict=0, n_truncated=0, n_tokens=40, n_replayed=0, n_prompt_tokens=7,
        expected=0.5, seconds_generate=1.0, seconds_verify=0.1, seconds_update=0.2,
        seconds_total=1.3, **tally(groups),
    )  # fmt: skip
    return replace(row, **more)


def evaluation(step: int) -> list[EvalRow]:
    return [EvalRow(step, f"e{i}", i % 2, 1, 0, 0, 9, 0.0) for i in range(3)]


#: Groups of three updates: silent at 0, at all and without a trial; mixed; surplus.
GROUPS = {
    1: [group(1, "a"), group(1, "b", 0), group(1, "c", 4), group(1, "d", 3, fate="surplus")],
    2: [group(2, "a"), group(2, "c", 0, 0, n_error=4)],
    3: [group(3, "b", 2, 3, n_error=1), group(3, "line\u2028end\n🙂", 3)],
}
EVALS = [*evaluation(0), *evaluation(2)]
STEPS = [step_of(step, rows) for step, rows in GROUPS.items()]


def write_log(folder: Path, steps: int = 3) -> Path:
    """A run of three updates evaluated at 0 and 2, or the beginning of it."""
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text('{"seed": 7}\n')
    log = RunLog(folder)
    log.append_evals(evaluation(0))
    for step in STEPS[:steps]:
        log.append(step, GROUPS[step.step])
        if step.step == 2:
            log.append_evals(evaluation(2))
    log.close()
    return folder


def rows_of(run: Run) -> tuple[list[StepRow], list[GroupRow], list[EvalRow]]:
    return run.steps, run.groups, run.evals


def expected_rows(last: int = 3) -> tuple[list[StepRow], list[GroupRow], list[EvalRow]]:
    groups = [row for step in range(1, last + 1) for row in GROUPS[step]]
    return STEPS[:last], groups, [row for row in EVALS if row.step <= last]


def lines_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.jsonl").read_bytes() for name in NAMES}


@pytest.fixture
def run_folder(tmp_path) -> Path:
    return write_log(tmp_path / "run")


# What is written is read


@pytest.mark.parametrize("row_type", KINDS)
def test_columns_are_named_as_the_fields_of_their_row(row_type):
    assert [c.name for c in KINDS[row_type].columns] == [f.name for f in fields(row_type)]
    nullable = {c.name for c in KINDS[row_type].columns if c.nullable}
    assert nullable == {f.name for f in fields(row_type) if "None" in f.type}


def test_a_running_run_reads_as_it_was_written(run_folder):
    run = read_run(run_folder)
    assert rows_of(run) == expected_rows()
    assert run.settings == {"seed": 7}
    assert not run.finished


def test_a_finished_run_holds_the_rows_of_the_running_one(run_folder):
    RunLog(run_folder).finish({"policy": "m"})
    assert sorted(p.name for p in run_folder.iterdir()) == [
        "evals.parquet",
        "groups.parquet",
        "run.json",
        "steps.parquet",
    ]
    run = read_run(str(run_folder))
    assert run.finished
    assert rows_of(run) == expected_rows()
    footer = parquet.footer_of(run_folder / "groups.parquet", RunFolderError)
    assert footer == {"kind": "groups", "version": 1, "provenance": {"policy": "m"}}


def test_a_run_that_has_not_begun_is_empty(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    assert rows_of(read_run(tmp_path)) == ([], [], [])
    RunLog(tmp_path).cut(0)
    RunLog(tmp_path).finish({})
    assert rows_of(read_run(tmp_path)) == ([], [], [])


def test_a_log_is_lines_of_json_in_ascii(run_folder):
    for data in lines_of(run_folder).values():
        assert all(isinstance(json.loads(line), dict) for line in data.decode("ascii").splitlines())


def test_the_golden_run_reads(tmp_path):
    for name in NAMES:
        shutil.copy(HERE / "golden" / f"{name}-v1.parquet", tmp_path / f"{name}.parquet")
    (tmp_path / "run.json").write_text("{}")
    run = read_run(tmp_path)
    assert [(s.step, s.loss, s.kl, s.reward, s.expected) for s in run.steps] == [
        (1, 0.125, None, 2 / 7, 0.625),
        (2, -0.5, 0.01, None, None),
    ]
    assert run.steps[1].n_replayed == 12
    assert [
        (g.step, g.prompt_id, g.successes, g.trials, g.fate, g.node_id) for g in run.groups
    ] == [
        (1, "g0", 2, 4, "used", None),
        (1, "g1", 0, 3, "silent", None),
        (2, "g1", 1, 4, "used", "g1/0"),
    ]
    assert run.evals[1] == EvalRow(0, "g3", 0, 1, 1, 1, 8, 0.6)
    assert silent_at(run, 2) == pytest.approx(1 / 3)


# Figures


def test_silent_counts_groups_and_waste_their_responses(run_folder):
    run = read_run(run_folder)
    assert [silent_at(run, t) for t in (1, 2, 3)] == [2 / 4, 3 / 6, 3 / 8]
    assert [waste_at(run, t) for t in (1, 2, 3)] == [8, 12, 12]


@pytest.mark.parametrize("t", [1, 2, 3])
def test_the_groups_and_the_steps_give_the_same_figures(run_folder, t):
    run = read_run(run_folder)
    first = run.steps[:t]
    assert silent_at(run, t) == sum(s.n_silent for s in first) / sum(s.n_groups for s in first)
    assert waste_at(run, t) == sum(s.n_wasted for s in first)


@pytest.mark.parametrize("figure", [silent_at, waste_at])
@pytest.mark.parametrize("t", [0, 4])
def test_a_figure_beyond_the_run_is_refused(run_folder, figure, t):
    with pytest.raises(SettingError, match=f"1 to the 3 updates this run has, found {t}"):
        figure(read_run(run_folder), t)


def test_accuracy_is_counted_prompt_by_prompt(run_folder):
    run = read_run(run_folder)
    assert eval_steps(run) == [0, 2]
    successes, trials = accuracy_at(run, 2)
    assert (successes.tolist(), trials.tolist()) == ([0, 1, 0], [1, 1, 1])
    assert successes.dtype == trials.dtype == np.int64
    with pytest.raises(SettingError, match=r"no evaluation at step 3 \(there are: 0, 2\)"):
        accuracy_at(run, 3)


# Kills


def test_an_update_torn_at_any_byte_never_was_and_is_written_again(tmp_path):
    before = lines_of(write_log(tmp_path / "before", steps=2))
    torn = write_log(tmp_path / "torn")
    whole = lines_of(torn)
    for name in ("steps", "groups"):  # written last, torn first
        first, end = len(before[name]), len(whole[name])
        for at in range(end - 1, first - 1, -1):
            os.truncate(torn / f"{name}.jsonl", at)
            assert rows_of(read_run(torn)) == expected_rows(2)
            if at in (end - 1, (first + end) // 2, first):
                again = shutil.copytree(torn, tmp_path / f"{name}-{at}")
                log = RunLog(again)
                log.append(STEPS[2], GROUPS[3])
                log.close()
                assert lines_of(again) == whole
    assert lines_of(torn) == before


@pytest.mark.parametrize("name", ["steps", "evals"])
def test_a_file_torn_at_any_byte_gives_its_whole_lines(run_folder, name):
    path = run_folder / f"{name}.jsonl"
    data = path.read_bytes()
    for at in range(len(data) - 1, -1, -1):
        os.truncate(path, at)
        run = read_run(run_folder)
        assert len(getattr(run, name)) == data[:at].count(b"\n")
        assert {g.step for g in run.groups} == {s.step for s in run.steps}
        assert all(row.step <= len(run.steps) for row in run.evals)


class Killed(BaseException):
    """Not an error anybody catches, as a kill."""


def kill_at(monkeypatch, count: int) -> None:
    """Let that many moves and removals of files happen, and none after."""
    left = [count]

    def counted(call):
        def do(*args, **kwargs):
            if not left[0]:
                raise Killed
            left[0] -= 1
            return call(*args, **kwargs)

        return do

    monkeypatch.setattr(Path, "replace", counted(PATH_REPLACE))
    monkeypatch.setattr(Path, "unlink", counted(PATH_UNLINK))


def kill_points(monkeypatch, tmp_path, work):
    """Folders left by killing `work` after its first, second … move or removal."""
    for count in range(100):
        folder = write_log(tmp_path / str(count))
        with monkeypatch.context() as patch:
            kill_at(patch, count)
            try:
                work(RunLog(folder))
            except Killed:
                pass
            else:
                return
        yield folder


def test_finishing_survives_a_kill_anywhere(monkeypatch, tmp_path):
    states = set()
    for folder in kill_points(monkeypatch, tmp_path, lambda log: log.finish({})):
        run = read_run(folder)
        states.add(run.finished)
        assert rows_of(run) == expected_rows()
        if not run.finished:
            again = shutil.copytree(folder, tmp_path / f"{folder.name}-resumed")
            log = RunLog(again)
            log.cut(2)
            assert rows_of(read_run(again)) == expected_rows(2)
            log.finish({})
            assert rows_of(read_run(again)) == expected_rows(2)
        RunLog(folder).finish({})
        assert rows_of(read_run(folder)) == expected_rows()
        assert not list(folder.glob("*.jsonl"))
    assert states == {True, False}


def test_cutting_survives_a_kill_anywhere(monkeypatch, tmp_path):
    lasts = set()
    for folder in kill_points(monkeypatch, tmp_path, lambda log: log.cut(1)):
        run = read_run(folder)
        last = len(run.steps)
        lasts.add(last)
        assert (run.steps, run.groups) == expected_rows(last)[:2]
        assert run.evals in (expected_rows(1)[2], expected_rows(2)[2])
        (folder / ".priorkit-1.partial").write_text("of another process that was killed")
        RunLog(folder).cut(1)
        assert rows_of(read_run(folder)) == expected_rows(1)
        assert lines_of(folder) == lines_of(write_log(tmp_path / "one", steps=1))
        assert not list(folder.glob(".*"))
        shutil.rmtree(tmp_path / "one")
    assert lasts == {1, 3}


def test_a_run_that_finishes_while_it_is_read_reads_finished(monkeypatch, run_folder):
    def slow(folder):
        RunLog(folder).finish({})
        return run_tables.Tables([], [], [])

    with monkeypatch.context() as patch:
        patch.setattr(run_tables, "running_tables", slow)
        run = read_run(run_folder)
    assert run.finished
    assert rows_of(run) == expected_rows()


def test_a_full_disk_keeps_the_steps_before(tmp_path):
    code = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
from test_runlog import *
folder = write_log(Path({str(tmp_path)!r}))
log = RunLog(folder)
groups = [group(4, "a" * 300), group(4, "b" * 300)]
much = [EvalRow(3, str(i) * 999, 0, 1, 0, 0, 9, 0.0) for i in range(3)]
limit = (folder / "groups.jsonl").stat().st_size + 700
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
for work in (
    lambda: log.append(step_of(4, groups), groups),  # one of two groups, and a part
    lambda: log.append_evals(much),
    lambda: log.finish({{"note": "x" * limit}}),
    lambda: log.append(step_of(4, groups), groups),
):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
    try:
        work()
    except OutputError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert rows_of(read_run(folder)) == expected_rows()
log.append(step_of(4, groups), groups)
log.append_evals(much)
log.close()
run = read_run(folder)
assert run.groups[-2:] == groups and run.evals[-3:] == much
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, third, fourth = found.stdout.splitlines()
    assert "step 4 could not be written (File too large)" in first
    assert "evals.jsonl: could not be written (file too large)" in second
    assert "steps.parquet: could not be written" in third
    assert fourth == first


# Going back


@pytest.mark.parametrize("step", [-1, 0, 1, 2, 3])
def test_a_cut_run_goes_on_as_if_unbroken(run_folder, step):
    whole = lines_of(run_folder)
    log = RunLog(run_folder)
    log.cut(step)
    last = max(step, 0)
    run = read_run(run_folder)
    assert (run.steps, run.groups) == expected_rows(last)[:2]
    assert eval_steps(run) == [at for at in (0, 2) if at <= step]
    if step < 0:
        log.append_evals(evaluation(0))
    for later in STEPS[last:]:
        log.append(later, GROUPS[later.step])
        if later.step == 2:
            log.append_evals(evaluation(2))
    log.close()
    assert lines_of(run_folder) == whole


def test_a_cut_does_not_mind_damage_that_it_removes(run_folder):
    for name in ("steps", "groups"):
        with (run_folder / f"{name}.jsonl").open("ab") as handle:
            handle.write(b"\0\0\0\n")
    with pytest.raises(RunFolderError, match=r"steps\.jsonl: line 4 is no row of steps"):
        read_run(run_folder)
    RunLog(run_folder).cut(2)
    assert rows_of(read_run(run_folder)) == expected_rows(2)


def test_a_log_that_ends_before_its_checkpoint_is_refused(run_folder):
    before = lines_of(run_folder)
    with pytest.raises(RunFolderError, match=r"steps\.jsonl: expected the 5 steps .* found 3"):
        RunLog(run_folder).cut(5)
    assert lines_of(run_folder) == before


def test_a_finished_log_takes_no_more(run_folder):
    log = RunLog(run_folder)
    log.finish({})
    for work in (
        lambda: log.cut(1),
        lambda: log.append(step_of(4, []), []),
        lambda: log.append_evals(evaluation(3)),
    ):
        with pytest.raises(RunFolderError, match="this run is finished"):
            work()
    assert rows_of(read_run(run_folder)) == expected_rows()


# Our own mistakes


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (step_of(4, GROUPS[1], loss=float("nan")), "loss is nan, expected a finite number"),
        (step_of(4, GROUPS[1], kl=float("inf")), "kl is inf"),
        (
            step_of(4, GROUPS[1], n_tokens=np.int64(3)),
            r"n_tokens is np.int64\(3\), expected an int",
        ),
        (step_of(4, GROUPS[1], n_tokens=2**63), r"below 2\*\*63"),
        (step_of(4, GROUPS[1], n_used=True), "n_used is True"),
        (step_of(4, GROUPS[1], n_used=5), "n_used is 5, more than n_groups = 4"),
        (group(1, "a", round=0), "round is 0, expected an integer from 1"),
        (group(1, "a", 5, fate="used"), "successes is 5, more than trials = 4"),
        (group(1, "a", fate="lost"), "fate is 'lost', expected one of used, silent, surplus"),
        (group(1, "a", fate="silent"), "'silent', but 1 of 4 trials"),
        (group(1, "\ud800"), "expected valid Unicode text"),
        (group(1, None), "prompt_id is None"),
        (EvalRow(0, "a", 0, 1, 0, 0, 0, float("nan")), "temperature is nan"),
    ],
)
def test_a_row_that_no_reader_takes_is_not_written(row: Row, word):
    with pytest.raises(AssertionError, match=word):
        json_line(row)


def test_every_fate_and_every_number_a_file_holds_can_be_written():
    for fate in FATES:
        assert json_line(group(1, "a", 0, fate=fate))
    row = step_of(1, GROUPS[1], loss=np.float64(0.1), kl=0, n_tokens=2**63 - 1)
    assert StepRow(**json.loads(json_line(row))) == row


def test_steps_follow_each_other_and_agree_with_their_groups(run_folder):
    log = RunLog(run_folder)
    before = lines_of(run_folder)
    groups = [group(4, "a"), group(4, "b", 0)]
    for row, of_it, word in (
        (step_of(3, groups), groups, "step 3 cannot follow step 3"),
        (step_of(5, groups), groups, "step 5 cannot follow step 3"),
        (step_of(4, GROUPS[3]), GROUPS[3], "a group of step 3 came with step 4"),
        (step_of(4, groups, n_silent=0), groups, "n_silent = 0, its groups 1"),
        (step_of(4, groups, n_wasted=3), groups, "n_wasted = 3, its groups 4"),
    ):
        with pytest.raises(AssertionError, match=word):
            log.append(row, of_it)
    for rows, word in (
        (evaluation(4), "evaluation of step 4 at step 3"),
        (evaluation(1), "evaluation of step 1 at step 3"),
        (evaluation(2), "'e0' is evaluated twice"),
        (evaluation(3) * 2, "'e0' is evaluated twice|evaluation of"),
    ):
        with pytest.raises(AssertionError, match=word):
            log.append_evals(rows)
    assert lines_of(run_folder) == before


# Refusals: one error, naming the file and the place


def edited(path: Path, line: int, **changes: object) -> None:
    rows = path.read_bytes().splitlines()
    rows[line] = json.dumps({**json.loads(rows[line]), **changes}).encode()
    path.write_bytes(b"\n".join(rows) + b"\n")


@pytest.mark.parametrize(
    ("name", "line", "changes", "word"),
    [
        ("steps", 1, {"step": 3}, "line 2 has step 3, expected 2"),
        ("steps", 2, {"step": 2}, "line 3 has step 2, expected 3"),
        ("steps", 0, {"loss": float("nan")}, "line 1 is no row of steps .*loss is nan"),
        ("steps", 0, {"loss": None}, "loss is None, expected a finite number"),
        ("steps", 0, {"loss": 10**400}, "expected a finite number"),
        ("steps", 0, {"colour": 1}, "line 1 .*colour"),
        ("steps", 1, {"n_silent": 2}, "says n_silent = 2 of step 2, but .*groups.jsonl come to 1"),
        ("groups", 4, {"step": 1}, "line 1 says n_groups = 4 of step 1, but .* come to 5"),
        ("groups", 5, {"step": 1}, "groups.jsonl: line 6 has step 1 after step 2"),
        ("groups", 0, {"fate": "x"}, "groups.jsonl: line 1 .*fate is 'x'"),
        ("groups", 0, {"successes": -1}, "successes is -1, expected an integer from 0"),
        ("groups", 0, {"trials": 0}, "successes is 1, more than trials = 0"),
        ("groups", 0, {"trials": "4"}, "trials is '4'"),
        ("evals", 4, {"prompt_id": "e0"}, "line 5 has prompt 'e0' at step 2 for the second time"),
        ("evals", 4, {"step": 0}, "line 5 has step 0 after step 2"),
    ],
)
def test_an_edited_log_is_refused(run_folder, name, line, changes, word):
    edited(run_folder / f"{name}.jsonl", line, **changes)
    with pytest.raises(RunFolderError, match=rf"{name}\.jsonl|steps\.jsonl") as caught:
        read_run(run_folder)
    assert caught.match(word)
    assert caught.match("restore it from a copy, or start the run anew")
    with pytest.raises(RunFolderError):
        RunLog(run_folder).finish({})
    assert not list(run_folder.glob("*.parquet"))


@pytest.mark.parametrize("line", [b"", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_a_line_that_is_no_row_is_refused(run_folder, line):
    path = run_folder / "groups.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())
    with pytest.raises(
        RunFolderError, match=r"groups\.jsonl: line 1 is no row of groups"
    ) as caught:
        read_run(run_folder)
    assert len(str(caught.value)) < 500 + len(str(path))


def test_a_missing_groups_file_is_noticed(run_folder):
    (run_folder / "groups.jsonl").unlink()
    with pytest.raises(RunFolderError, match="says n_groups = 4 of step 1"):
        read_run(run_folder)


@pytest.mark.parametrize(
    ("row_type", "row", "changes", "word"),
    [
        (StepRow, 1, {"step": 3}, r"steps\.parquet: row 1 has step 3, expected 2"),
        (StepRow, 2, {"reward": float("nan")}, "row 2: reward is nan"),
        (GroupRow, 0, {"fate": "x"}, r"groups\.parquet: row 0: fate is 'x'"),
        (GroupRow, 7, {"step": 4}, r"groups\.parquet: row 7 has step 4, but the steps end with 3"),
        (EvalRow, 5, {"step": 4}, r"evals\.parquet: row 5 has step 4"),
        (EvalRow, 5, {"prompt_id": "e1"}, "row 5 has prompt 'e1' at step 2 for the second time"),
    ],
)
def test_an_edited_finished_run_is_refused(run_folder, row_type, row, changes, word):
    RunLog(run_folder).finish({})
    kind = KINDS[row_type]
    path = run_folder / f"{kind.name}.parquet"
    columns = parquet.read(path, kind, RunFolderError)[0].to_pydict()
    for name, value in changes.items():
        columns[name][row] = value
    parquet.write(path, kind, columns, {}, force=True)
    with pytest.raises(RunFolderError, match=word):
        read_run(run_folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_finished_run_that_lost_a_file_is_no_empty_one(run_folder, name):
    RunLog(run_folder).finish({})
    (run_folder / f"{name}.parquet").unlink()
    with pytest.raises(RunFolderError, match=rf"{name}\.parquet: (no such file|is missing)"):
        read_run(run_folder)


def test_what_is_no_run_says_how_to_make_one(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RunFolderError, match=r"no run here.*`priorkit train` makes one"):
            read_run(folder)
    for text, word in (("[]", "expected a JSON object"), ("{", "cannot be read"), ("\0", "cannot")):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(RunFolderError, match=rf"run\.json: {word}"):
            read_run(tmp_path)


def test_a_pipe_or_a_folder_in_place_of_a_file_is_refused(run_folder):
    (run_folder / "evals.jsonl").unlink()
    os.mkfifo(run_folder / "evals.jsonl")
    with pytest.raises(RunFolderError, match=r"evals\.jsonl: not a regular file"):
        read_run(run_folder)
    (run_folder / "evals.jsonl").unlink()
    (run_folder / "evals.jsonl").mkdir()
    with pytest.raises(RunFolderError, match=r"evals\.jsonl: cannot be read"):
        read_run(run_folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((OutputError, RunFolderError), match="file"):
        RunLog(tmp_path / "file" / "run").append(STEPS[0], GROUPS[1])
