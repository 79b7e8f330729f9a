"""`priorkit/probe.py`: resumable to the sample, whatever stops it."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fakes import CharRenderer, RateEngine
from probe_child import PROMPTS, SAMPLES, pool, probe, rates, run

from priorkit.errors import OutputError, ProbeFolderError, SettingError
from priorkit.outcomes import OutcomeLog, read_outcomes
from priorkit.probe import Probe, ProbeSettings
from priorkit.verify import make_verifier

HERE = Path(__file__).parent
EXACT = {"exact": make_verifier("exact")}


def engine(**changes: object) -> RateEngine:
    answers = {f"p{i:02d}": str(100 + i) for i in range(PROMPTS)}
    return RateEngine(rates(), answers, **changes)  # type: ignore[arg-type]


def wait_for(path: Path, worker: threading.Thread) -> None:
    while not path.exists():
        assert worker.is_alive(), "the probe ended before it could be met"
        time.sleep(0.005)


def test_a_probe_finds_the_rates_it_was_given(tmp_path):
    result = run(tmp_path, "plain")
    assert len(result.outcomes) == PROMPTS * SAMPLES
    found = result.counts.successes / result.counts.trials
    truth = np.array([min(rate, 0.95) for rate in rates().values()])
    # A sample at p is binomial; five standard errors over twenty samples, at the worst.
    assert np.abs(found - truth).max() < 5 * np.sqrt(0.25 / SAMPLES)
    assert set(result.outcomes.status) == {"correct", "wrong", "no_answer", "truncated"}
    assert not (tmp_path / "shards").exists()


def killed_after(seconds: float, folder: Path, kind: str) -> tuple[list[str], int]:
    """What a probe reported until it was killed, and how it ended."""
    command = [sys.executable, str(HERE / "probe_child.py"), str(folder), kind, "0.012"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        killer = threading.Timer(seconds, child.send_signal, [signal.SIGKILL])
        killer.start()
        lines = child.stdout.read().splitlines()
        killer.cancel()
    return lines, child.returncode


@pytest.mark.parametrize("kind", ["plain", "batched"])
def test_twenty_kills_lose_and_double_nothing(tmp_path, kind):
    unbroken = tmp_path / "unbroken"
    run(unbroken, kind)
    broken = tmp_path / "broken"
    moments = random.Random(20)
    reported: set[tuple[str, int]] = set()
    kills = 0
    while kills < 20:
        lines, ended = killed_after(moments.uniform(0.0, 0.35), broken, kind)
        if ended == 0:
            break  # finished before the moment came
        kills += 1
        keys = [(line.split()[0], int(line.split()[1])) for line in lines if line.count(" ") == 1]
        assert not reported & set(keys), "a finished sample was generated again"
        reported |= set(keys)
        if not (broken / "outcomes.parquet").is_file():
            held = OutcomeLog(broken / "shards").read()
            assert reported <= set(held), "a finished sample was lost"
    assert kills == 20, "the probe ended before it was killed often enough"
    run(broken, kind)
    assert not (broken / "shards").exists()
    assert (broken / "outcomes.parquet").read_bytes() == (
        unbroken / "outcomes.parquet"
    ).read_bytes()


def test_a_finished_probe_is_not_done_twice(tmp_path):
    run(tmp_path, "plain")
    again = engine()
    result = probe(tmp_path).run(again, EXACT, CharRenderer())
    assert again.generated == []
    assert result.n_generated == 0
    finished = probe(tmp_path).finished()
    assert finished is not None
    assert finished.counts.trials.tolist() == [SAMPLES] * PROMPTS


def test_more_samples_top_a_finished_probe_up_and_repeat_none(tmp_path):
    run(tmp_path, "plain")
    first = read_outcomes(tmp_path / "outcomes.parquet")
    more = engine()
    result = probe(tmp_path, samples=40).run(more, EXACT, CharRenderer())
    assert result.n_generated == PROMPTS * 20
    texts = [(row.prompt_id, row.response) for row in result.outcomes.rows()]
    assert len(set(texts)) == len(texts), "a top-up repeated a finished sample"
    kept = {(row.prompt_id, row.sample): row for row in result.outcomes.rows()}
    assert all(kept[row.prompt_id, row.sample] == row for row in first.rows())


def test_fewer_samples_read_a_part_of_a_finished_probe(tmp_path):
    whole = run(tmp_path, "plain")
    part = probe(tmp_path, samples=5).finished()
    assert part is not None
    assert part.counts.trials.tolist() == [5] * PROMPTS
    assert len(read_outcomes(tmp_path / "outcomes.parquet")) == len(whole.outcomes)


def test_engine_errors_are_no_trials_and_are_regenerated(tmp_path):
    broken = frozenset({("p03", 2), ("p07", 0)})
    result = probe(tmp_path).run(engine(fail=broken), EXACT, CharRenderer())
    assert result.n_engine_errors == 2
    assert result.counts.trials.tolist() == [
        SAMPLES - (f"p{i:02d}" in ("p03", "p07")) for i in range(PROMPTS)
    ]
    assert probe(tmp_path).finished() is None
    again = probe(tmp_path).run(engine(), EXACT, CharRenderer())
    assert again.n_generated == 2
    clean = run(tmp_path / "clean", "plain")
    assert list(again.outcomes.rows()) == list(clean.outcomes.rows())


def test_another_definition_is_refused_and_named(tmp_path):
    run(tmp_path, "plain")
    other = Probe(
        tmp_path,
        pool(),
        "fake",
        ProbeSettings(seed=1),
        {"anchor": {"name": "fake", "revision": "1"}},
    )
    with pytest.raises(ProbeFolderError, match=r"another sampling\.seed \(0, now 1\).*--name"):
        other.finished()
    anchor = Probe(
        tmp_path, pool(), "fake", ProbeSettings(), {"anchor": {"name": "fake", "revision": "2"}}
    )
    with pytest.raises(ProbeFolderError, match=r"anchor\.revision"):
        anchor.run(engine(), EXACT, CharRenderer())


def test_two_probes_never_work_in_one_folder(tmp_path):
    slow = threading.Thread(target=run, args=(tmp_path, "plain", 0.003))
    slow.start()
    wait_for(tmp_path / "shards", slow)
    with pytest.raises(ProbeFolderError, match="another process is at work"):
        run(tmp_path, "plain")
    slow.join()
    assert len(read_outcomes(tmp_path / "outcomes.parquet")) == PROMPTS * SAMPLES


def test_starting_over_empties_the_folder_but_never_under_another_probe(tmp_path):
    run(tmp_path, "plain")
    probe(tmp_path).start_over()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    slow = threading.Thread(target=run, args=(tmp_path, "plain", 0.003))
    slow.start()
    wait_for(tmp_path / "shards", slow)
    with pytest.raises(ProbeFolderError, match="another process is at work"):
        probe(tmp_path).start_over()
    slow.join()
    assert len(read_outcomes(tmp_path / "outcomes.parquet")) == PROMPTS * SAMPLES


def test_a_kill_between_compaction_and_clean_up_is_mended(tmp_path):
    run(tmp_path, "plain")
    whole = (tmp_path / "outcomes.parquet").read_bytes()
    log = OutcomeLog(tmp_path / "shards")
    log.append(next(iter(read_outcomes(tmp_path / "outcomes.parquet").rows())))
    log.close()
    assert probe(tmp_path).finished() is None
    assert run(tmp_path, "plain").n_generated == 0
    assert (tmp_path / "outcomes.parquet").read_bytes() == whole
    assert not (tmp_path / "shards").exists()


def test_a_damaged_shard_or_definition_is_named(tmp_path):
    def stop(row: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "plain", 0.0, stop)
    shard = tmp_path / "shards" / "000001.jsonl"
    shard.write_text('{"prompt_id": "p00"}\n' + shard.read_text())
    with pytest.raises(ProbeFolderError, match="line 1 is not an outcome"):
        run(tmp_path, "plain")
    (tmp_path / "probe.json").write_text("{")
    with pytest.raises(ProbeFolderError, match=r"probe\.json"):
        run(tmp_path, "plain")


def test_a_missing_verifier_is_named(tmp_path):
    with pytest.raises(SettingError, match="'exact'"):
        probe(tmp_path).run(engine(), {}, CharRenderer())


def test_hostile_text_is_stored_as_valid_unicode(tmp_path):
    class Hostile(RateEngine):
        def generate(self, requests):  # type: ignore[no-untyped-def]
            from priorkit.engines.protocol import Completion

            for request in requests:
                for i in range(request.n):
                    text = "\ud800\x00\u2028\n\\boxed{\udfff1}"
                    yield Completion(
                        request.prompt_id, request.first_sample + i, (1,), text, "stop"
                    )

    result = probe(tmp_path).run(Hostile({}, {}), EXACT, CharRenderer())
    assert result.outcomes.response[0] == "?\x00\u2028\n\\boxed{?1}"
    json.dumps([row.response for row in result.outcomes.rows()])


def test_a_disk_that_fills_keeps_what_was_finished(tmp_path):
    code = f"""
import resource, sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from probe_child import run
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
from priorkit.errors import OutputError
try:
    run(Path({str(tmp_path)!r}), "plain")
except OutputError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "a finished sample could not be written (File too large)" in found.stdout
    held = OutcomeLog(tmp_path / "shards").read()
    assert 5 < len(held) < PROMPTS * SAMPLES
    result = run(tmp_path, "plain")
    assert result.n_generated == PROMPTS * SAMPLES - len(held)
    run(tmp_path / "clean", "plain")
    assert (tmp_path / "outcomes.parquet").read_bytes() == (
        tmp_path / "clean" / "outcomes.parquet"
    ).read_bytes()


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        run(tmp_path / "file" / "probe", "plain")


# What an attacker found


def test_a_folder_without_its_definition_or_with_foreign_outcomes_is_refused(tmp_path):
    run(tmp_path / "one", "plain")
    (tmp_path / "one" / "probe.json").unlink()
    with pytest.raises(ProbeFolderError, match=r"probe\.json: is missing"):
        probe(tmp_path / "one").finished()
    other = Probe(
        tmp_path / "two",
        pool(),
        "other",
        ProbeSettings(samples=SAMPLES, seed=9),
        {"anchor": {"name": "other", "revision": "1"}},
    )
    other.run(engine(), EXACT, CharRenderer())
    run(tmp_path / "three", "plain")
    shutil.copy(other.outcomes_path, tmp_path / "three" / "outcomes.parquet")
    with pytest.raises(ProbeFolderError, match=r"is of another probe, its anchor\.name"):
        probe(tmp_path / "three").finished()


@pytest.mark.parametrize(
    "change",
    [
        {"status": "bogus"},
        {"status": "wrong", "correct": True},
        {"sample": -1},
        {"sample": "3"},
        {"sample": 30.5},
        {"sample": 2**40},
        {"n_tokens": None},
        {"prompt_id": ["p00"]},
        {"model": None},
        {"response": 5},
        {"response": "\ud800"},
        {"prompt_id": "foreign"},
    ],
)
def test_a_bad_row_in_a_shard_is_refused_and_nothing_is_thrown_away(tmp_path, change):
    run(tmp_path, "plain")
    rows = list(read_outcomes(tmp_path / "outcomes.parquet").rows())
    (tmp_path / "outcomes.parquet").unlink()
    (tmp_path / "shards").mkdir()
    lines = [dataclasses.asdict(row) for row in rows]
    shard = tmp_path / "shards" / "000001.jsonl"
    shard.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {**lines[0], **change}]))
    before = shard.read_bytes()
    with pytest.raises(ProbeFolderError):
        run(tmp_path, "plain")
    assert shard.read_bytes() == before
    assert not (tmp_path / "outcomes.parquet").exists()


def test_a_smaller_k_counts_only_its_own_samples_and_errors(tmp_path):
    broken = frozenset({("p03", 19)})
    probe(tmp_path).run(engine(fail=broken), EXACT, CharRenderer())
    part = probe(tmp_path, samples=4).finished()
    assert part is not None
    assert part.n_engine_errors == 0
    assert part.counts.n_error.sum() == 0


def test_a_prompt_that_cannot_be_rendered_is_named(tmp_path):
    class Refusing(CharRenderer):
        def render(self, prompt):  # type: ignore[no-untyped-def]
            raise SettingError("the template alone is too long")

    with pytest.raises(SettingError, match="prompt 'p00': the template"):
        probe(tmp_path / "new").run(engine(), EXACT, Refusing())
    assert not (tmp_path / "new").exists()


def test_what_a_broken_write_left_is_cleared_away(tmp_path):
    tmp_path.joinpath(".priorkit-123.partial").write_text("half")
    run(tmp_path, "plain")
    assert not list(tmp_path.glob(".*partial"))
