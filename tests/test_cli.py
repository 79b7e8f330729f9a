"""`cli/`: the command contract. Results on stdout, one `error:` line, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_files import columns_of, small_pool, small_prior, tampered

from priorkit import parquet, schema
from priorkit.beta import BetaPrior
from priorkit.pool import read_pool, write_pool
from priorkit.prior import read_prior, write_prior
from priorkit.probe import folder_name


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    """Run one command in an empty folder, in this process."""
    from priorkit_cli.main import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["priorkit", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        found = capsys.readouterr()
        return Ran(code, found.out, found.err)

    return run


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refused(ran: Ran, *words: str) -> None:
    assert ran.code == 1, ran.out + ran.err
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


# What works


def test_the_bundled_pool_has_250_prompts_over_five_levels_and_seven_subjects(cli):
    ran = cli("pool", "show", "--json")
    facts = json.loads(ran.out)
    assert ran.code == 0
    assert facts["prompts"] == {"eval": 280, "train": 250}
    assert len(facts["subjects"]) == 7
    assert list(facts["levels"]) == ["1", "2", "3", "4", "5"]
    assert "fingerprint" in cli("pool", "show").out


def test_making_the_default_pool_again_gives_the_bundled_one(cli):
    from priorkit.pool import bundled_pool

    assert cli("pool", "make", "--size", 250).code == 0
    made, bundled = read_pool("pool.parquet", split=None), read_pool(bundled_pool(), split=None)
    assert made.fingerprint == bundled.fingerprint
    assert made.order_hash == bundled.order_hash


def test_the_bundled_exercises_come_from_their_seed():
    from priorkit.exercises.__main__ import EVAL, SEED, TRAIN, exercise_pool
    from priorkit.pool import bundled_exercises

    bundled = read_pool(bundled_exercises(), split=None)
    fresh = exercise_pool(SEED, TRAIN, EVAL)
    assert fresh.fingerprint == bundled.fingerprint
    assert fresh.order_hash == bundled.order_hash
    assert (bundled.split == "train").sum() >= 1200
    assert len(set(bundled.prompt)) == len(bundled)


def test_a_prior_is_imported_shown_checked_and_exported(cli, tmp_path):
    (tmp_path / "rates.csv").write_text("id,pass_rate\na,0.5\nb,0.0\nc,1.0\n")
    ran = cli("prior", "import", "rates.csv", "--trials-column", 16, "--anchor", "some-model")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == ("priors.parquet: 3 prompts, mean rate 0.500, 1 never and 1 always solved\n")
    shown = json.loads(cli("prior", "show", "--json").out)
    assert shown["top"][0]["prompt_id"] == "a"
    assert shown["provenance"]["verifier"] == "unknown"
    assert "8/16" in cli("prior", "show").out
    assert json.loads(cli("prior", "check", "--json").out)["sound"] is True
    assert cli("prior", "export", "--format", "json").out == '{"a": 0.5, "b": 0.0, "c": 1.0}\n'
    assert cli("prior", "export", "--out", "p.csv").code == 0
    assert (tmp_path / "p.csv").read_text().startswith("prompt_id,alpha,beta,rate")
    refused(cli("prior", "import", "rates.csv"), "priors.parquet", "--force")


def test_a_prior_is_checked_against_its_pool_in_words(cli, tmp_path):
    pool = small_pool()
    write_pool(tmp_path / "pool.parquet", pool, {})
    write_prior(tmp_path / "priors.parquet", small_prior(pool))
    ran = cli("prior", "check", "--pool", "pool.parquet")
    assert ran.code == 0
    assert "serves pool.parquet: 4 prompts compared by text, answer and verifier" in ran.out
    assert "What is 3 + 1?" in cli("prior", "show", "--pool", "pool.parquet").out


def test_priors_are_judged_side_by_side(cli, tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"p{i}" for i in range(200)]
    truth = rng.random(200)
    good = BetaPrior.from_counts(ids, rng.binomial(16, truth), np.full(200, 16))
    bad = BetaPrior.from_rates(ids, rng.permutation(truth))
    write_prior(tmp_path / "good.parquet", good)
    write_prior(tmp_path / "bad.parquet", bad)
    rows = "".join(
        f"{key},{rng.binomial(64, p)},64,{'low' if p < 0.5 else 'high'}\n"
        for key, p in zip(ids, truth, strict=True)
    )
    (tmp_path / "ref.csv").write_text("prompt_id,successes,trials,half\n" + rows)
    ran = cli("evaluate", "--prior", "good.parquet", "--prior", "bad.parquet",
              "--reference", "ref.csv", "--by", "half", "--json")  # fmt: skip
    result = json.loads(ran.out)
    first, second = result["priors"].values()
    assert first["spearman"]["value"] > 0.9
    assert abs(second["spearman"]["value"]) < 0.3
    assert first["spearman"]["low"] < first["spearman"]["value"] < first["spearman"]["high"]
    assert first["mae"]["value"] < second["mae"]["value"]
    assert {row["value"] for row in result["by"]} == {"low", "high"}
    text = cli("evaluate", "--prior", "good.parquet", "--reference", "ref.csv").out
    assert "Spearman, band" in text
    assert "mean measured" in text
    refused(
        cli("evaluate", "--prior", "good.parquet", "--reference", "ref.csv", "--by", "x"), "'x'"
    )


COMMANDS = (
    ["demo"], ["probe"], ["train"], ["show"], ["export"], ["evaluate"], ["pool", "show"],
    ["pool", "make"], ["prior", "show"], ["prior", "check"], ["prior", "import"],
    ["prior", "export"], ["lab", "build"], ["lab", "tasks"],
)  # fmt: skip


def test_the_list_of_commands_is_the_list_of_commands():
    from priorkit_cli.main import app

    single = [[command.name] for command in app.registered_commands]
    grouped = [
        [group.name, command.name]
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ]
    assert sorted(COMMANDS) == sorted(single + grouped)


def test_help_is_shown_with_an_example_for_every_command(cli):
    for command in COMMANDS:
        ran = cli(*command, "--help")
        assert ran.code == 0
        assert f"Example: priorkit {' '.join(command)}" in " ".join(ran.out.split())


def test_help_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from priorkit_cli.main import main\n"
        f"for command in {[[], *COMMANDS]}:\n"
        "    sys.argv = ['priorkit', *command, '--help']\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'peft', 'pandas', 'sklearn', 'numpy', 'pyarrow', "
        "'scipy', 'sympy'}\n"
        "print('loaded', sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.endswith("loaded []\n")


def test_importing_the_package_loads_no_heavy_library():
    code = "import sys, priorkit; print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_every_public_name_is_there():
    import priorkit

    for name in priorkit.__all__:
        assert getattr(priorkit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = priorkit.nonsense


# Wrong usage: exit code 2, before anything is done


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["probe", "--k", "many"],
        ["prior", "show", "--nonsense"],
        ["evaluate", "--nonsense"],
    ],
)
def test_wrong_usage_is_exit_code_two(cli, tmp_path, arguments):
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert files(tmp_path) == []


# Bad input: one line, exit code 1, nothing half-written


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (columns_of(prompt_id=None), "prompt_id"),
        (columns_of(prompt_id=["a", "a"]), "rows 0 and 1"),
        (columns_of(prompt_id=["a", ""]), "row 1"),
        (columns_of(prompt_id=[], prompt=[], answer=[]), "empty"),
        (columns_of(answer=["2", None]), "no answer"),
    ],
)
@pytest.mark.parametrize("command", [["probe", "--pool"], ["pool", "make"], ["pool", "show"]])
def test_a_bad_pool_stops_every_command_that_reads_it(cli, tmp_path, columns, word, command):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused(cli(*command, "bad.jsonl"), "bad.jsonl", word)
    assert files(tmp_path) == ["bad.jsonl"]


def broken_priors(folder: Path) -> dict[str, tuple[Path, str]]:
    import pyarrow as pa

    made: dict[str, tuple[Path, str]] = {}

    def keep(name: str, word: str, **changes: object) -> None:
        path = tampered(folder, **changes).rename(folder / f"{name}.parquet")
        made[name] = (path, word)

    keep("nan", "'alpha' must be above zero", alpha=pa.array([1.0, float("nan"), 1.0, 1.0]))
    keep("zero", "'beta' must be above zero", beta=pa.array([1.0, 0.0, 1.0, 1.0]))
    keep("newer", "newer than this priorkit knows", version=99)
    whole = write_prior(folder / "whole.parquet", small_prior(small_pool()))
    cut = folder / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-40])
    made["cut"] = (cut, "not a readable Parquet file")
    text = folder / "json.parquet"
    text.write_text('{"alpha": 1}')
    made["json"] = (text, "not a readable Parquet file")
    made["absent"] = (folder / "absent.parquet", "no such file")
    return made


@pytest.mark.parametrize("name", ["nan", "zero", "newer", "cut", "json", "absent"])
def test_a_bad_prior_stops_every_command_that_reads_it(cli, tmp_path, name):
    path, word = broken_priors(tmp_path)[name]
    before = files(tmp_path)
    refused(cli("prior", "show", path), path.name, word)
    refused(cli("prior", "check", path), path.name, word)
    refused(cli("prior", "export", path, "--out", "x.csv"), path.name, word)
    refused(cli("evaluate", "--prior", path, "--reference", path), path.name, word)
    assert files(tmp_path) == before


def test_a_prior_of_another_pool_or_an_edited_prompt_is_not_fit(cli, tmp_path):
    pool = small_pool()
    write_prior(tmp_path / "priors.parquet", small_prior(pool))
    refused(cli("prior", "check", "--pool", "absent.jsonl"), "absent.jsonl", "no such file")
    rows = [
        {"prompt_id": key, "prompt": text, "answer": gold}
        for key, text, gold in zip(pool.prompt_id, pool.prompt, pool.answer, strict=True)
    ]
    rows[2]["answer"] = "33"
    (tmp_path / "edited.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused(cli("prior", "check", "--pool", "edited.jsonl"), "row 2", "'p2'")
    from priorkit.pool import bundled_pool

    refused(cli("prior", "check", "--pool", bundled_pool()), "another pool")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("id,successes,trials\na,0,0\n", "whole numbers from 1"),
        ("id,rate\na,nan\n", "must be a number"),
        ("id,rate\n", "at least one"),
    ],
)
def test_zero_trials_and_no_rates_are_refused(cli, tmp_path, text, word):
    (tmp_path / "rates.csv").write_text(text)
    refused(cli("prior", "import", "rates.csv"), "rates.csv", word)
    assert files(tmp_path) == ["rates.csv"]


def test_settings_outside_their_domain_are_refused(cli, tmp_path):
    write_prior(tmp_path / "priors.parquet", small_prior(small_pool()))
    refused(cli("prior", "show", "--group-size", 1), "group size must be at least 2")
    refused(cli("pool", "make", "--size", 10**6), "cannot take 1000000")
    refused(cli("pool", "make", "--size", 0), "cannot take 0")
    refused(cli("probe", "--k", 0), "at least 1")
    refused(cli("probe", "--temperature", -1), "temperature")
    refused(cli("probe", "--max-new-tokens", 0), "max_new_tokens")
    refused(cli("probe", "--limit", 0), "--limit")
    refused(cli("prior", "export", "--format", "xml"), "csv, jsonl or json")
    assert files(tmp_path) == ["priors.parquet"]


@pytest.mark.parametrize("model", ["Qwen2.5-3B-Instruct", "no-such-org/no-such-model", "./nowhere"])
def test_a_model_that_is_not_here_is_named_with_a_command_that_works(
    cli, tmp_path, monkeypatch, model
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    ran = cli("probe", "--anchor", model)
    refused(ran, model)
    if not model.startswith("."):
        assert "smollm2" in ran.err
    assert files(tmp_path) == []


def test_an_unwritable_place_is_named(cli, tmp_path):
    (tmp_path / "file").write_text("")
    for target in ("file/pool.parquet", "/proc/nowhere/pool.parquet"):
        refused(cli("pool", "make", "--size", 5, "--out", target), target, "could not be written")
    assert files(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="needs a file size limit")
def test_a_full_disk_leaves_nothing_behind(tmp_path):
    command = f"ulimit -f 4; exec {sys.executable} -m priorkit_cli pool make --out pool.parquet"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    refused(Ran(ran.returncode, ran.stdout, ran.stderr), "pool.parquet", "file too large")
    assert files(tmp_path) == []


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    command = f"{sys.executable} -m priorkit_cli pool show --json | true"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in ran.stderr


def test_hostile_ids_and_texts_stay_on_their_line(cli, tmp_path):
    rows = [
        {"id": "a\nb\x1b[31m", "prompt": "x\x1b[2J\r\ny" * 50, "answer": "1"},
        {"id": "é" * 300, "prompt": "[bold]no[/bold]", "answer": "2"},
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "r.json").write_text(json.dumps({row["id"]: 0.5 for row in rows}))
    assert cli("prior", "import", "r.json", "--pool", "p.jsonl").code == 0
    for extra in ([], ["--pool", "p.jsonl"]):
        out = cli("prior", "show", *extra).out
        assert "\x1b" not in out
        assert all(len(line) < 200 for line in out.splitlines())
    assert "[bold]no[/bold]" in out


# Real counts: priors of a real model against its own 128 samples


def test_real_counts_give_the_known_level_means_and_a_sharp_prior(cli, tmp_path, shared_data):
    table = shared_data / "rates" / "deepscaler_qwen25math7b_k128.parquet"
    assert cli("prior", "import", table, "--out", "k128.parquet").code == 0
    full = pq.read_table(table, columns=["prompt_id", "successes", "trials"])
    rate = full["successes"].to_numpy() / full["trials"].to_numpy()
    drawn = np.random.default_rng(0).binomial(16, rate)
    ids = full["prompt_id"].to_pylist()
    write_prior(tmp_path / "k16.parquet", BetaPrior.from_counts(ids, drawn, np.full(len(ids), 16)))
    ran = cli("evaluate", "--prior", "k128.parquet", "--prior", "k16.parquet", "--reference", table,
              "--by", "linked_level", "--bootstrap", 20, "--json")  # fmt: skip
    result = json.loads(ran.out)
    means = {row["value"]: row["mean_rate"] for row in result["by"]}
    # The means SOURCES.md names for MATH, from the whole set; this file holds four fifths of it.
    for level, known in {1: 0.92, 2: 0.88, 3: 0.84, 4: 0.76, 5: 0.56}.items():
        assert means[level] == pytest.approx(known, abs=0.01)
    k128, k16 = result["priors"]["k128.parquet"], result["priors"]["k16.parquet"]
    assert k128["spearman"]["value"] > 0.9999
    assert k128["mae"]["value"] < 0.001
    assert 0.96 < k16["spearman"]["value"] < 0.98
    assert 0.84 < k16["spearman_band"]["value"] < 0.87
    assert 0.95 < k16["auc_band"]["value"] < 0.97


# Packaging


def test_the_list_of_packages_is_the_list_of_folders():
    import tomllib

    root = Path(__file__).parents[1]
    setup = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    names = {"priorkit": "priorkit", "cli": "priorkit_cli", "data": "priorkit_data"}
    folders = {
        ".".join([names[top], *path.relative_to(root / top).parts[:-1]])
        for top in names
        for path in (root / top).rglob("__init__.py")
    }
    assert sorted(folders) == sorted(setup["packages"])


def test_the_files_of_a_probe_can_be_opened_without_priorkit(tmp_path):
    path = write_prior(tmp_path / "p.parquet", small_prior(small_pool()))
    import pandas as pd

    frame = pd.read_parquet(path)
    assert frame.columns.tolist() == [column.name for column in schema.PRIOR.columns]
    assert read_prior(path).alpha.tolist() == frame["alpha"].tolist()
    assert parquet.footer_of(path, ValueError)["version"] == 1  # type: ignore[arg-type,index]


# What a newcomer stumbled over


def pool_file(folder: Path) -> Path:
    rows = [
        {"id": f"m{i:02d}", "prompt": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(9)
    ]
    rows[8]["prompt"] = [
        {"role": "system", "content": "You are a terse calculator."},
        {"role": "user", "content": "What is 8 + 8?"},
    ]
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_prompts_filled_by_rule_have_no_rate_and_are_counted(cli, tmp_path):
    pool_file(tmp_path)
    (tmp_path / "part.csv").write_text("id,pass_rate\nm00,0.5\nm01,0.2\nmXX,0.3\nm02,\n")
    ran = cli("prior", "import", "part.csv", "--pool", "mine.jsonl", "--missing", "mean")
    assert ran.code == 0
    assert "mean rate 0.350, 0 never and 0 always solved" in ran.out
    assert "1 of 3 rates are of prompts that the pool does not have" in ran.err
    assert "1 rows have no rate" in ran.err
    assert "7 prompts have no rate and got the rule --missing mean" in ran.err
    shown = cli("prior", "show", "--pool", "mine.jsonl")
    assert shown.code == 0
    assert "7 of them without" in shown.out
    assert json.loads(cli("prior", "show", "--json").out)["without_rate"] == 7
    prior = read_prior("priors.parquet")
    assert prior.rate is not None
    assert np.isnan(prior.rate).sum() == 7
    assert cli("prior", "export", "--format", "csv").code == 0


def test_an_exported_prior_keeps_its_beliefs_and_its_prompts_identity(cli, tmp_path):
    pool_file(tmp_path)
    (tmp_path / "all.csv").write_text(
        "id,pass_rate\n" + "".join(f"m{i:02d},{i / 16}\n" for i in range(9))
    )
    import_ = ["prior", "import", "all.csv", "--pool", "mine.jsonl", "--kappa", 10]
    assert cli(*import_, "--trials-column", 16).code == 0
    assert cli("prior", "export", "--out", "p.csv").code == 0
    assert cli("prior", "import", "p.csv", "--out", "again.parquet").code == 0
    one, other = read_prior("priors.parquet"), read_prior("again.parquet")
    assert one.alpha.tolist() == other.alpha.tolist()
    assert one.row_hash is not None
    assert other.row_hash is not None
    assert one.row_hash.tolist() == other.row_hash.tolist()
    edited = (tmp_path / "mine.jsonl").read_text().replace("What is 1 + 1", "What is 1 plus 1")
    (tmp_path / "mine2.jsonl").write_text(edited)
    refused(cli("prior", "import", "p.csv", "--pool", "mine2.jsonl", "-o", "bad.parquet"), "'m01'")
    said = cli("prior", "check", "--pool", "mine.jsonl").out
    assert "by text, answer and verifier since its import, by id" in said


def test_an_export_follows_the_ending_of_its_file(cli, tmp_path):
    write_prior(tmp_path / "priors.parquet", small_prior(small_pool()))
    assert cli("prior", "export", "--out", "x.json").code == 0
    assert json.loads((tmp_path / "x.json").read_text())["p1"] == 1 / 16
    refused(cli("prior", "export", "--out", "x.txt"), "csv, jsonl or json")


def test_chat_prompts_are_shown_by_what_their_user_asks(cli, tmp_path):
    pool_file(tmp_path)
    (tmp_path / "map.json").write_text(json.dumps({f"m{i:02d}": 0.5 for i in range(9)}))
    assert cli("prior", "import", "map.json", "--pool", "mine.jsonl").code == 0
    shown = cli("prior", "show", "--pool", "mine.jsonl").out
    assert "What is 8 + 8?" in shown
    assert "terse" not in shown


def test_priors_of_different_sizes_are_compared_on_what_all_know(cli, tmp_path):
    (tmp_path / "ref.csv").write_text("id,rate\na,0.1\nb,0.5\nc,0.9\nd,0.4\n")
    (tmp_path / "few.csv").write_text("id,rate\na,0.2\nb,0.5\n")
    for name in ("ref", "few"):
        cli("prior", "import", f"{name}.csv", "--out", f"{name}.parquet")
    ran = cli("evaluate", "--prior", "ref.parquet", "--prior", "few.parquet",
              "--reference", "ref.csv", "--bootstrap", 0, "--json")  # fmt: skip
    result = json.loads(ran.out)
    assert result["prompts"] == 2
    assert {calibration["n"] for calibration in result["priors"].values()} == {2}


def test_mean_rewards_are_not_taken_for_counts():
    from priorkit import make_selector
    from priorkit.errors import SettingError

    selector = make_selector("thinkprior", small_prior(small_pool()))
    with pytest.raises(SettingError, match="not mean rewards"):
        selector.observe(np.array([0]), np.array([0.5]), np.array([8]))
    selector.observe([0], [4.0], [8])  # type: ignore[arg-type]
    assert selector.posterior().alpha[0] == pytest.approx(4.001)


# What an attacker found


def test_force_throws_nothing_away_before_the_new_probe_can_start(cli, tmp_path, monkeypatch):
    folder = tmp_path / "probes" / "x" / "anchor"
    folder.mkdir(parents=True)
    (folder / "outcomes.parquet").write_text("precious")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused(cli("probe", "--anchor", "no-such-org/none", "--force", "--name", "anchor"), "none")
    assert (folder / "outcomes.parquet").read_text() == "precious"
    refused(cli("probe", "--kappa", 0), "kappa")
    refused(cli("probe", "--missing", "bogus"), "bogus")


def test_the_demo_never_replaces_a_pool_of_somebody_else(cli, tmp_path):
    assert cli("pool", "make", "--size", 7).code == 0
    before = (tmp_path / "pool.parquet").read_bytes()
    refused(cli("demo", "--out", "."), "pool.parquet", "--force")
    assert (tmp_path / "pool.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [
        (">&-", 1, "error: output: the standard output is closed\n"),
        (">&- 2>&-", 1, ""),
        ("2>&-", 0, ""),
    ],
)
def test_ends_closed_from_the_start_are_no_crash(tmp_path, closed, code, said):
    command = f"{sys.executable} -m priorkit_cli pool show {closed}"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (code, said)
    assert bool(ran.stdout) == (code == 0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Qwen/Qwen2.5-3B-Instruct", "Qwen2.5-3B-Instruct"),
        ("../../x/..", "x"),
        ("a b\n", "a-b"),
        ("..", "anchor"),
        ("ψ" * 200, "ψ" * 50),
        ("a" + "字" * 200, "a" + "字" * 33),
    ],
)
def test_a_folder_is_named_within_what_file_systems_take(given, expected):
    assert folder_name(given) == expected


@pytest.mark.parametrize("command", ["pool show", "prior show", "prior show --json"])
def test_a_closed_or_full_output_is_one_line(tmp_path, command):
    write_prior(tmp_path / "priors.parquet", small_prior(small_pool()))
    full = f"{sys.executable} -m priorkit_cli {command} > /dev/full"
    ran = subprocess.run(["bash", "-c", full], cwd=tmp_path, capture_output=True, text=True)
    refused(Ran(ran.returncode, ran.stdout, ran.stderr), "o space left")


def test_names_too_long_or_of_no_encoding_are_one_line(cli, tmp_path):
    refused(cli("pool", "show", "x" * 300 + ".jsonl"), "ile name too long")
    refused(cli("pool", "make", "--size", 5, "--out", "x" * 300), "ile name too long")
    assert cli("pool", "make", "--size", 5, "--out", os.fsdecode(b"\xff.parquet")).code == 0


@pytest.mark.parametrize(
    "arguments", [["pool", "make", "--seed", "-1"], ["evaluate", "--bootstrap", "-5"]]
)
def test_negative_seeds_and_draws_are_wrong_usage(cli, arguments):
    assert cli(*arguments).code == 2


def test_a_reference_without_any_verdict_is_refused(cli, tmp_path):
    from test_files import outcome

    from priorkit.outcomes import write_outcomes

    write_prior(tmp_path / "priors.parquet", small_prior(small_pool()))
    write_outcomes(tmp_path / "o.parquet", [outcome("p0", 0, "engine_error")], {})
    refused(cli("evaluate", "--prior", "priors.parquet", "--reference", "o.parquet"), "in common")
