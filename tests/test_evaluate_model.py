"""`evaluate`, `show` and `lab` from the command line, on a run that three real updates made."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_runs import HELD_OUT, TRAINING, UPDATES, call, small_pool, train
from test_export import full_disk
from test_lab import contents, tiny

from priorkit.accuracy import accuracy, wilson_interval
from priorkit.engines.models import resolve_model
from priorkit.folder import at_work
from priorkit.lab import nano
from priorkit.lab.pools import lab_pool
from priorkit.outcomes import read_outcomes
from priorkit.pool import read_pool, write_pool
from priorkit.run_rows import StepRow, checked
from priorkit.run_tables import read_run
from priorkit.runlog import RunLog

MODEL = ("lab-policy", "--max-new-tokens", 24, "--device", "cpu", "--dtype", "float32")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a finished run and its pool; read only."""
    folder = tmp_path_factory.mktemp("home")
    train(folder)
    return folder


@pytest.fixture
def desk(home, tmp_path):
    """A copy of that folder, its run noting the copied pool."""
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    edit_run(tmp_path, lambda run: run["notes"]["files"].update(pool=f"{tmp_path}/pool.parquet"))
    return tmp_path


NO_GAIN = "no gain is shown: before training the run did not ask at this temperature and length"


def run_folder(desk):
    return desk / "runs" / "uniform-lab-policy-s0"


def edit_run(desk, change):
    path = run_folder(desk) / "run.json"
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))


def evaluated(desk, *arguments):
    """The JSON object of an evaluation, and what was said beside it."""
    ran = call(desk, "evaluate", *arguments, "--json")
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    return json.loads(ran.out), ran.err


def refused(desk, *arguments):
    """The one error line of a command that is refused."""
    before = sorted(desk.rglob("*.parquet"))
    ran = call(desk, *arguments)
    assert (ran.code, ran.out) == (1, ""), ran.out + ran.err
    assert len(ran.err.splitlines()) == 1, ran.err
    assert ran.err.startswith("error: ")
    assert sorted(desk.rglob("*.parquet")) == before
    return ran.err


# Whom one may ask


def test_the_newest_run_is_asked_its_own_held_out_prompts_as_it_was_before(desk):
    found, said = evaluated(desk)
    assert said == ""
    assert found["model"] == "uniform-lab-policy-s0"
    assert found["pool"] == small_pool().of_split("eval").fingerprint
    assert (found["temperature"], found["generated"]) == (0.0, HELD_OUT)
    run = read_run(run_folder(desk))
    rows = [row for row in run.evals if row.step == UPDATES]
    outcomes = read_outcomes(desk / found["outcomes"])
    assert outcomes.prompt_id.tolist() == [row.prompt_id for row in rows]
    # The run's own last evaluation went through the same weights.
    assert (outcomes.status == "correct").tolist() == [bool(row.successes) for row in rows]
    assert outcomes.n_tokens.tolist() == [row.n_tokens for row in rows]


def test_the_newest_run_is_the_one_written_last(desk):
    older = shutil.copytree(run_folder(desk), desk / "runs" / "older")
    for file in older.iterdir():
        os.utime(file, (1e9, 1e9))
    assert evaluated(desk)[0]["model"] == "uniform-lab-policy-s0"
    assert evaluated(desk, "runs/older")[0]["model"] == "older"


def test_a_run_its_checkpoint_and_its_exported_adapter_answer_alike(desk):
    assert call(desk, "export", "--out", "mine").code == 0
    by_run, _ = evaluated(desk)
    how = ("--pool", "pool.parquet", *MODEL[1:])
    last = run_folder(desk) / "checkpoints" / f"{UPDATES:06d}"
    for adapter in ("mine", last):
        found, _ = evaluated(desk, adapter, *how)
        assert found["model"] == (adapter if adapter == "mine" else last.name)
        one, other = (read_outcomes(desk / facts["outcomes"]) for facts in (by_run, found))
        assert one.response.tolist() == other.response.tolist()
        assert found["gain"] is None
    assert "does not fit lab-anchor" in refused(
        desk, "evaluate", "mine", "--base", "lab-anchor", "--pool", "pool.parquet", "--name", "x"
    )


def test_a_plain_model_answers_as_the_run_did_before_training(desk):
    found, _ = evaluated(desk, *MODEL, "--pool", "pool.parquet")
    assert (found["model"], found["gain"]) == ("lab-policy", None)
    before = [row for row in read_run(run_folder(desk)).evals if row.step == 0]
    outcomes = read_outcomes(desk / found["outcomes"])
    assert (outcomes.status == "correct").tolist() == [bool(row.successes) for row in before]
    assert outcomes.n_tokens.tolist() == [row.n_tokens for row in before]


def test_a_run_without_its_last_updates_says_how_far_it_is(desk):
    run = run_folder(desk)
    shutil.rmtree(run / "checkpoints" / f"{UPDATES:06d}")
    for name in ("steps", "groups", "evals"):
        (run / f"{name}.parquet").unlink()
    _, said = evaluated(desk)
    assert f"is not finished: this is update {UPDATES - 1}" in said
    shutil.rmtree(run / "checkpoints")
    assert "no checkpoint yet" in refused(desk, "evaluate")


def test_a_run_that_went_on_is_another_model_than_it_was(desk):
    last = run_folder(desk) / "checkpoints" / f"{UPDATES:06d}"
    last.rename(desk / "later")
    evaluated(desk)
    (desk / "later").rename(last)
    said = refused(desk, "evaluate")
    assert "was started with another anchor.revision" in said
    assert "--name" in said
    assert evaluated(desk, "--force")[0]["generated"] == HELD_OUT


def test_where_there_is_no_run_the_error_says_what_makes_one(tmp_path):
    for command in ("evaluate", "show", "export"):
        assert "runs: no run here; `priorkit train` makes one" in refused(tmp_path, command)


def test_a_model_that_is_not_here_is_refused_before_anything_is_written(desk, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "./nowhere" in refused(desk, "evaluate", "./nowhere", "--pool", "pool.parquet")
    assert not (desk / "evals").exists()


# Figures


def test_one_greedy_response_a_prompt_has_wilsons_interval_and_the_gain(desk):
    found, _ = evaluated(desk)
    rows = [row for row in read_run(run_folder(desk)).evals if row.step == UPDATES]
    solved = sum(row.successes for row in rows)
    assert (found["n_prompts"], found["n_samples"], found["n_error"]) == (HELD_OUT, 1, 0)
    assert found["mean"] == solved / HELD_OUT
    assert [found["low"], found["high"]] == list(wilson_interval(solved, HELD_OUT))
    assert found["interval"] == "wilson"
    assert list(found["pass_at"]) == ["1"]
    before = sum(row.successes for row in read_run(run_folder(desk)).evals if row.step == 0)
    assert found["gain"]["value"] == pytest.approx((solved - before) / HELD_OUT)
    text = call(desk, "evaluate").out
    assert f"on {HELD_OUT} prompts of pool.parquet, 1 response each, greedy" in text
    assert f"accuracy  {found['mean']:.3f}  [{found['low']:.3f}, {found['high']:.3f}]" in text
    assert f"since before training  {found['gain']['value']:+.3f}" in text
    assert "pass@" not in text


def test_several_samples_give_avg_at_n_and_pass_at_k_by_bootstrap(desk):
    found, _ = evaluated(desk, "--samples", 4)
    outcomes = read_outcomes(desk / found["outcomes"])
    by_prompt = (outcomes.status == "correct").reshape(HELD_OUT, 4)
    assert found["temperature"] == 0.9
    assert found["mean"] == pytest.approx(by_prompt.mean())
    assert found["interval"] == "bootstrap"
    assert list(found["pass_at"]) == ["1", "2", "4"]
    assert found["pass_at"]["4"][0] == pytest.approx(by_prompt.any(axis=1).mean())
    assert found["pass_prompts"] == {"1": HELD_OUT, "2": HELD_OUT, "4": HELD_OUT}
    counted = outcomes.counts(small_pool().of_split("eval").prompt_id, 4)
    again = accuracy(counted, np.random.Generator(np.random.PCG64(0)))
    assert found["pass_at"]["2"] == pytest.approx(list(again.pass_at[2]))
    assert found["gain"] is None  # the run itself was asked greedily
    text = call(desk, "evaluate", "--samples", 4).out
    assert "4 responses each, temperature 0.9" in text
    assert "(bootstrap)" in text
    for k in (1, 2, 4):
        assert f"pass@{k}  {found['pass_at'][str(k)][0]:.3f}" in text


def test_a_rerun_says_finished_more_samples_are_topped_up_and_force_repeats(desk):
    first, _ = evaluated(desk, "--samples", 2)
    again, said = evaluated(desk, "--samples", 2)
    assert "finished before, nothing to generate (--force repeats)" in said
    assert again == {**first, "generated": 0}
    more, _ = evaluated(desk, "--samples", 3)
    assert (more["generated"], more["outcomes"]) == (HELD_OUT, first["outcomes"])
    repeated, said = evaluated(desk, "--samples", 2, "--force")
    assert repeated == first
    assert said.splitlines() == [NO_GAIN]
    elsewhere, _ = evaluated(desk, "--samples", 2, "--name", "other/../evil")
    assert elsewhere["outcomes"] == f"evals/{first['pool'][:8]}/evil/outcomes.parquet"


def test_greedy_sampling_may_be_asked_for_and_heat_too(desk):
    warm, _ = evaluated(desk, "--temperature", 0.5)
    assert (warm["temperature"], warm["n_samples"]) == (0.5, 1)
    assert warm["gain"] is None
    short, _ = evaluated(desk, "--max-new-tokens", 2, "--name", "short")
    assert (short["mean"], short["n_truncated"]) == (0.0, HELD_OUT)
    assert short["gain"] is None  # a shorter limit is another question
    text = call(desk, "evaluate", "--max-new-tokens", 2, "--name", "short").out
    assert f"{HELD_OUT} responses were cut at the length limit" in text


def test_another_question_in_the_same_folder_is_refused(desk):
    evaluated(desk)
    said = refused(desk, "evaluate", "--max-new-tokens", 8)
    assert "sampling.max_new_tokens (24, now 8)" in said
    assert "--name" in said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--samples", 0), "at least 1"),
        (("--max-new-tokens", 0), "max_new_tokens"),
        (("--temperature", -1), "temperature"),
        (("--batch-size", 0), "batch"),
        (("--device", "tpu"), "auto, cpu or cuda"),
    ],
)
def test_settings_outside_their_domain_are_refused(desk, arguments, word):
    assert word in refused(desk, "evaluate", *arguments)


# What is asked


def test_a_suite_is_asked_every_row(desk):
    found, _ = evaluated(desk, "--suite", "pool.parquet")
    assert found["n_prompts"] == len(small_pool())
    assert found["gain"] is None
    rows = [{"id": f"s{i}", "prompt": f"{i}+2", "answer": str(i + 2)} for i in range(1, 5)]
    (desk / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, _ = evaluated(desk, *MODEL, "--suite", "mine.jsonl")
    assert (found["n_prompts"], found["n_error"]) == (4, 0)
    assert found["mean"] == 1.0


def test_the_same_ids_of_another_suite_give_no_gain(desk):
    pool = small_pool().of_split("eval")
    write_pool(desk / "other.parquet", replace(pool, prompt=pool.prompt[::-1]), {})
    assert evaluated(desk, "--suite", "other.parquet")[0]["gain"] is None


def test_a_suite_and_a_pool_at_once_are_refused(desk):
    said = refused(desk, "evaluate", "--suite", "pool.parquet", "--pool", "pool.parquet")
    assert "--suite (every row) or --pool (its eval split), not both" in said


def test_a_run_whose_pool_was_changed_is_refused_and_the_old_pool_mends_it(desk):
    held = small_pool()
    write_pool(desk / "kept.parquet", held, {})
    answers = held.answer.copy()
    answers[-1] = "42"
    write_pool(desk / "pool.parquet", replace(held, answer=answers), {}, force=True)
    said = refused(desk, "evaluate")
    assert "pool.parquet: its eval split is not the one" in said
    assert "--pool" in said
    found, _ = evaluated(desk, "--pool", "kept.parquet")
    assert found["gain"] is not None
    (desk / "pool.parquet").unlink()
    assert "pool.parquet: no such file" in refused(desk, "evaluate")


def test_a_pool_without_an_eval_split_is_refused_with_what_helps(desk):
    write_pool(desk / "train.parquet", small_pool().of_split("train"), {})
    said = refused(desk, "evaluate", *MODEL, "--pool", "train.parquet")
    assert "train.parquet: no row belongs to split 'eval'" in said
    edit_run(desk, lambda run: run.update(held_out=None))
    assert "its pool has no eval split; pass --suite FILE" in refused(desk, "evaluate")


def test_a_run_whose_base_was_changed_is_refused_and_base_mends_it(desk):
    base = shutil.copytree(resolve_model("lab-anchor").path, desk / "mine")
    edit_run(desk, lambda run: run["notes"]["files"].update(policy=str(base)))
    said = refused(desk, "evaluate")
    assert "was trained on lab-policy at sha256:" in said
    assert evaluated(desk, "--base", "lab-policy")[0]["generated"] == HELD_OUT


@pytest.mark.parametrize("arguments", [("--prior", "p"), ("--reference", "r")])
def test_a_prior_without_a_reference_is_refused_and_the_other_way_round(tmp_path, arguments):
    assert "both --prior and --reference" in refused(tmp_path, "evaluate", *arguments)


def test_a_model_beside_a_prior_is_refused(tmp_path):
    said = refused(tmp_path, "evaluate", "m", "--prior", "p", "--reference", "r")
    assert "either 'm' or --prior is evaluated, not both" in said


# Where a run stands


def test_a_finished_run_is_shown_in_figures_and_in_words(desk):
    run = read_run(run_folder(desk))
    ran = call(desk, "show", "--json")
    facts = json.loads(ran.out)
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert (facts["finished"], facts["updates"], facts["updates_wanted"]) == (True, UPDATES, 3)
    assert (facts["selector"], facts["policy"]) == ("uniform", "lab-policy")
    silent = [group.silent for group in run.groups]
    assert facts["silent"] == {"3": sum(silent) / len(silent)}
    assert facts["waste"] == {"3": 4 * sum(silent)}
    assert facts["responses"] == 3 * 2 * 4
    assert facts["reward_updates"] == 1
    assert facts["reward_first"] == pytest.approx(run.steps[0].reward)
    assert facts["reward_last"] == pytest.approx(run.steps[-1].reward)
    assert [one["update"] for one in facts["evaluations"]] == [0, UPDATES]
    solved = sum(row.successes for row in run.evals if row.step == UPDATES)
    assert facts["evaluations"][1]["accuracy"] == solved / HELD_OUT
    text = call(desk, "show", run_folder(desk)).out
    assert "uniform on lab-policy, finished, 3 of 3 updates" in text
    assert ["3", f"{facts['silent']['3']:.3f}", str(facts["waste"]["3"])] in [
        line.split() for line in text.splitlines()
    ]
    assert f"{facts['tokens']} tokens in 24 responses" in text
    assert "gain" in text


def test_a_run_under_way_and_one_that_has_not_begun_are_shown(desk):
    run = run_folder(desk)
    held = read_run(run)
    for name in ("steps", "groups", "evals"):
        (run / f"{name}.parquet").unlink()
    for updates in (0, 2):
        log = RunLog(run)
        log.cut(-1)
        for step in held.steps[:updates]:
            log.append(step, [group for group in held.groups if group.step == step.step])
        log.close()
        text = call(desk, "show").out
        assert f"uniform on lab-policy, stopped, {updates} of 3 updates" in text
        facts = json.loads(call(desk, "show", "--json").out)
        assert (facts["finished"], facts["updates"]) == (False, updates)
        assert list(facts["silent"]) == (["2"] if updates else [])
        assert (facts["reward_first"] is None) == (updates == 0)
        assert facts["evaluations"] == []


@pytest.mark.parametrize("missing", ["selector", "policy", "settings"])
def test_a_damaged_definition_is_one_error_line(desk, missing):
    edit_run(desk, lambda run: run.pop(missing))
    for command in ("show", "evaluate"):
        if (command, missing) != ("evaluate", "selector"):
            assert f"run.json: has no {missing}." in refused(desk, command)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["notes"], [1]),
        (["notes", "files"], "here"),
        (["notes", "files", "pool"], 3),
        (["notes", "files", "policy"], ["a"]),
        (["policy", "name"], "\udcff"),
        (["policy", "name"], None),
        (["policy"], "lab-policy"),
        (["settings", "updates"], "3"),
        (["settings", "sampling", "max_new_tokens"], 24.0),
        (["template", "instruction"], 1),
        (["held_out"], "all"),
    ],
)
def test_a_definition_with_values_of_another_type_is_one_error_line(desk, keys, value):
    def change(settings):
        for key in keys[:-1]:
            settings = settings[key]
        settings[keys[-1]] = value

    edit_run(desk, change)
    for command in ("show", "evaluate", "export"):
        assert f"run.json: {'.'.join(keys)} is " in refused(desk, command)


def test_control_characters_of_a_definition_reach_no_terminal(desk):
    edit_run(desk, lambda run: run["policy"].update(name="\x1b[31mred\x07", revision="\x1b"))
    shown = call(desk, "show").out
    assert "\\x1b[31mred\\x07" in shown
    assert not set(shown + refused(desk, "evaluate")) & set("\x1b\x07")


def test_a_run_is_named_as_well_as_pointed_at(desk):
    run = run_folder(desk)
    assert call(desk, "show", run.name) == call(desk, "show", run)
    elsewhere = run.parent.rename(desk / "mine").name
    assert call(desk, "show", run.name, "--root", elsewhere).code == 0
    assert call(desk, "export", run.name, "--root", elsewhere).code == 0
    assert call(desk, "evaluate", run.name, "--runs", elsewhere).code == 0


def test_a_run_that_another_process_finishes_is_followed_to_its_end(tmp_path, monkeypatch):
    import priorkit_cli.show
    import priorkit_cli.train

    write_pool(tmp_path / "pool.parquet", small_pool(), {})
    with monkeypatch.context() as patched:  # stop politely after the first update
        patched.setattr(priorkit_cli.train, "polite_stop", stopping_at_once)
        assert call(tmp_path, *TRAINING).code == 130
    folder = tmp_path / "runs" / "uniform-lab-policy-s0"
    assert not at_work(folder)
    ran = call(tmp_path, "show", "--follow")  # ends at once
    assert "uniform on lab-policy, stopped, 1 of 3 updates" in ran.out
    assert "the command that started it goes on with it" in ran.out
    monkeypatch.setattr(priorkit_cli.show, "_POLL", 0.02)
    command = [sys.executable, "-m", "priorkit_cli", *map(str, TRAINING)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as other:
        while not at_work(folder):
            assert other.poll() is None
            time.sleep(0.01)
        assert "running" in call(tmp_path, "show").out
        ran = call(tmp_path, "show", "--follow")
        code = other.wait(60)
    assert (ran.code, code) == (0, 0)
    told = [line.split(":")[0] for line in ran.err.splitlines()]
    assert told == ["update 2", "update 3"]
    assert "uniform on lab-policy, finished, 3 of 3 updates" in ran.out


def stopping_at_once():
    return contextlib.nullcontext(lambda: True)


def test_a_finished_run_is_not_waited_for(desk):
    ran = call(desk, "show", "--follow", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["finished"] is True


# The lab's own commands


def test_lab_tasks_writes_the_pool_of_its_seed(tmp_path):
    assert call(tmp_path, "lab", "tasks", "--task-seed", 2).code == 0
    held = read_pool(tmp_path / "lab.parquet", None)
    assert held.identity() == lab_pool(2).identity()
    assert held.level.tolist() == lab_pool(2).level.tolist()
    assert "already exists" in refused(tmp_path, "lab", "tasks")
    ran = call(tmp_path, "lab", "tasks", "--force", "--json")
    assert json.loads(ran.out) == {"pool": "lab.parquet", "task_seed": 0}
    assert read_pool(tmp_path / "lab.parquet", None).identity() == lab_pool(0).identity()


@pytest.fixture
def quick(monkeypatch):
    """Nano models that take a second to build."""
    monkeypatch.setattr(nano, "NANO", {"anchor": tiny(), "policy": tiny(steps=7)})


def test_lab_build_makes_models_and_tasks_from_its_seeds(tmp_path, quick):
    ran = call(tmp_path, "lab", "build", "--seed", 3, "--task-seed", 2, "--json")
    assert ran.code == 0, ran.err
    assert [line.split(",")[0] for line in ran.err.splitlines()] == [
        "anchor: 6 of 6 updates", "policy: 7 of 7 updates",
    ]  # fmt: skip
    facts = json.loads(ran.out)
    assert facts["paths"] == ["lab/anchor", "lab/policy", "lab/tasks.parquet"]
    assert set(facts["loss"]) == {"anchor", "policy"}
    nano.build_nano(tmp_path / "again", tiny(), 3)
    assert contents(tmp_path / "lab" / "anchor") == contents(tmp_path / "again")
    assert read_pool(tmp_path / "lab" / "tasks.parquet", None).identity() == lab_pool(2).identity()


def test_lab_build_replaces_a_nano_model_with_force_and_nothing_else(tmp_path, quick):
    assert call(tmp_path, "lab", "build").code == 0
    assert "lab/anchor: already exists" in refused(tmp_path, "lab", "build")
    before = contents(tmp_path / "lab" / "policy")
    assert call(tmp_path, "lab", "build", "--force").code == 0
    assert contents(tmp_path / "lab" / "policy") == before
    (tmp_path / "lab" / "policy" / "notes.d").mkdir()
    assert "lab/policy: holds something else" in refused(tmp_path, "lab", "build", "--force")
    shutil.rmtree(tmp_path / "lab" / "policy")
    (tmp_path / "lab" / "anchor" / "thesis.txt").write_text("mine")
    assert "lab/anchor: holds something else" in refused(tmp_path, "lab", "build", "--force")
    (tmp_path / "lab" / "anchor" / "thesis.txt").unlink()
    (tmp_path / "lab" / "anchor" / "chat_template.jinja").write_text("another model's")
    assert "lab/anchor: holds something else" in refused(tmp_path, "lab", "build", "--force")


def test_lab_build_on_a_full_disk_leaves_no_half_model(tmp_path, quick):
    (tmp_path / "lab").mkdir()
    write_pool(tmp_path / "lab" / "tasks.parquet", lab_pool(0), {})
    with full_disk(12_000):
        ran = call(tmp_path, "lab", "build", "--force")
    assert ran.code == 1
    assert ran.err.splitlines()[-1].startswith("error: lab/anchor: could not be written")
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["tasks.parquet"]


# The display of a training run


def columns_of_80(progress):
    text = progress.render().plain
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert "nan" not in text
    return text


counts = st.integers(0, 2**31 - 1)
seconds = st.floats(0, 1e6)
fractions = st.floats(0, 1)


@st.composite
def step_rows(draw):
    """Updates as a log may hold them, in order of step."""
    first = draw(st.integers(1, 10**6))
    held = []
    for step in range(first, first + draw(st.integers(1, 13))):
        n_groups, n_responses = draw(st.integers(1, 10**6)), draw(counts)
        part = st.integers(0, n_groups)
        values = {
            "step": step, "loss": draw(st.floats(-1e9, 1e9)), "kl": None, "grad_norm": 0.0,
            "learning_rate": 1e-5, "reward": draw(st.none() | fractions), "n_groups": n_groups,
            "n_silent": draw(part), "n_used": draw(part), "n_responses": n_responses,
            "n_wasted": draw(st.integers(0, n_responses)), "n_no_verdict": 0, "n_truncated": 0,
            "n_tokens": draw(counts), "n_replayed": 0, "n_prompt_tokens": 0, "expected": None,
            **{f"seconds_{name}": draw(seconds)
               for name in ("generate", "verify", "update", "total")},
        }  # fmt: skip
        assert set(values) == {field.name for field in fields(StepRow)}
        held.append(checked(StepRow(**values)))
    return held


@given(step_rows(), st.integers(0, 10**6))
def test_the_display_of_any_updates_fits_80_columns(rows, updates):
    from priorkit_cli.progress import TrainProgress

    progress = TrainProgress(updates)
    assert columns_of_80(progress) == "starting"
    for row in rows:
        progress(row)
        text = columns_of_80(progress)
    assert f" {rows[-1].step}/{updates} updates " in text
    assert text.splitlines()[0][:40].strip("━╌") == ""


def test_the_display_shows_numbers_beyond_reason_shortly(home, monkeypatch):
    from priorkit_cli import progress

    first = read_run(run_folder(home)).steps[0]
    huge = checked(replace(first, n_tokens=2**40, n_responses=2**30, n_wasted=2**30))
    slow = progress.TrainProgress(UPDATES)
    slow(replace(huge, seconds_generate=0.0))
    began = time.monotonic()
    monkeypatch.setattr(progress.time, "monotonic", lambda: began + 1e6)
    text = columns_of_80(slow)
    assert "ETA –" in text
    assert "1.1e+21 tokens/s" in text
    assert "wasted 1.1e+09 responses" in text


def test_the_display_tells_what_the_updates_were(home):
    from priorkit_cli.progress import TrainProgress

    run = read_run(run_folder(home))
    progress = TrainProgress(UPDATES)
    for row in run.steps:
        progress(row)
    text = columns_of_80(progress)
    silent = sum(step.n_silent for step in run.steps) / 6
    reward = np.mean([step.reward for step in run.steps])
    wasted = sum(step.n_wasted for step in run.steps)
    assert text.startswith("━" * 40 + " 3/3 updates   ETA 0:00\n")
    assert f"reward {reward:.3f}   silent {silent:.2f}" in text
    assert f"wasted {wasted} responses" in text
