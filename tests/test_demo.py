"""The demo as a user runs it: a real probe and three real training runs."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from priorkit.run_tables import read_run

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "priorkit_cli", "demo"]
ARMS = ("uniform", "online-np", "thinkprior")


def test_the_demo_survives_a_kill_tells_its_story_and_repeats_it_at_once(tmp_path):
    broken = subprocess.Popen(COMMAND, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    second = tmp_path / "demo/runs/online-np-lab-policy-s0/checkpoints/000010"
    while broken.poll() is None and not second.exists():
        time.sleep(0.1)
    os.kill(broken.pid, signal.SIGKILL)
    broken.communicate()
    began = time.monotonic()
    ran = subprocess.run(
        [*COMMAND, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "nothing to train" in ran.stderr, "the first arm was finished before the kill"
    assert "going on after update 1" in ran.stderr
    facts = json.loads(ran.stdout)
    silent = {arm: facts["runs"][arm]["silent@10"] for arm in ARMS}
    assert silent["thinkprior"] < silent["online-np"] < silent["uniform"]
    for arm in ARMS:
        run = read_run(tmp_path / facts["runs"][arm]["path"])
        assert run.finished
        assert len(run.steps) == 60
        assert facts["runs"][arm]["accuracy_before"] == facts["runs"]["uniform"]["accuracy_before"]
    assert facts["runs"]["uniform"]["accuracy_after"] > facts["runs"]["uniform"]["accuracy_before"]
    first, began = time.monotonic() - began, time.monotonic()
    again = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert time.monotonic() - began < first
    assert again.stderr.count("nothing to train") == 3
    for arm in ARMS:
        assert f"{facts['runs'][arm]['silent@10']:.3f}" in again.stdout
