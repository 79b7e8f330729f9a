"""A small training run, and `priorkit` commands in processes that start at once, to be killed.

python train_child.py: loads everything a run needs, then reads a JSON object a line and answers
with a number a line, the first when all is loaded:

    {"start": [ARGUMENTS], "folder": PATH, "largest_file": BYTES or null}
                    forks a `priorkit ARGUMENTS` there; its process id
    {"wait": ID}    its exit status, below zero for a signal

What a command says goes to `said.txt` in its folder.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.lab.pools import lab_pool
from priorkit.pool import Pool, write_pool
from priorkit.prior import write_prior

GROUPS, SIZE, NEW_TOKENS = 2, 4, 24


def pool(prompts: int = 10, held_out: int = 6) -> Pool:
    """Problems that the lab's policy solves now and then, within few tokens."""
    whole = lab_pool(0, 60, 60)
    easy = np.flatnonzero(whole.level == 2)
    train, held = (easy[whole.split[easy] == split] for split in ("train", "eval"))
    return whole.take(np.concatenate([train[:prompts], held[:held_out]]))


def write_files(folder: Path) -> None:
    """`pool.parquet`, and `prior.parquet` with beliefs of unlike strength about it."""
    write_pool(folder / "pool.parquet", pool(), {"source": "priorkit lab"})
    asked = pool().of_split("train")
    solved = np.arange(len(asked)) * 7 % 17
    prior = BetaPrior.from_counts(
        asked.prompt_id, solved, 16, row_hash=asked.row_hash, kind="anchor"
    )
    write_prior(folder / "prior.parquet", prior)


def arguments(updates: int, *more: object) -> list[str]:
    """Of a small `priorkit train` beside those files, in `runs/run`."""
    return [
        "train", "--policy", "lab-policy", "--pool", "pool.parquet", "--device", "cpu",
        "--name", "run", "--updates", str(updates), "-B", str(GROUPS), "-G", str(SIZE),
        "--max-new-tokens", str(NEW_TOKENS), "--lr", "1e-2", "--warmup", "1", "--seed", "1",
        "--lora-rank", "4", "--lora-alpha", "8", "--eval-every", "3", "--save-every", "2",
        *map(str, more),
    ]  # fmt: skip


class Commands:
    """Starts `priorkit` commands; a context that ends them all."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # a fork must inherit no thread pool
        )
        self._answer()  # everything is loaded

    def start(self, folder: Path, *command: str, largest_file: int | None = None) -> int:
        return self._ask({"start": command, "folder": str(folder), "largest_file": largest_file})

    def wait(self, pid: int) -> int:
        return self._ask({"wait": pid})

    def run(self, folder: Path, *command: str) -> tuple[int, str]:
        """Exit status and everything said."""
        status = self.wait(self.start(folder, *command))
        return status, (folder / "said.txt").read_text()

    def close(self) -> None:
        self._server.communicate()

    def _ask(self, question: dict[str, object]) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(question) + "\n")
        self._server.stdin.flush()
        return self._answer()

    def _answer(self) -> int:
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())


def serve() -> None:
    from priorkit_cli import demo, show, train  # noqa: F401
    from priorkit_cli.main import main

    load_everything()
    print(0, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            _, status = os.waitpid(question["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                become(question, main)
        print(answer, flush=True)


def load_everything() -> None:
    """Whatever a run would import, in this process."""
    import torch

    from priorkit import checkpoint, train  # noqa: F401
    from priorkit.engines.loading import load_model
    from priorkit.engines.models import resolve_model
    from priorkit.policy import LoraSettings, Policy

    source = resolve_model("lab-policy")
    with torch.random.fork_rng(devices=[]):  # a command begins as in a process of its own
        Policy(*load_model(source, dtype="float32", device="cpu"), source, LoraSettings(4, 8), 0)


def become(question: dict[str, Any], main: Callable[[], None]) -> None:
    """Be that command, from here to the end of the process."""
    os.chdir(question["folder"])
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(said, stream)
    if question["largest_file"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (question["largest_file"],) * 2)
    sys.argv = ["priorkit", *question["start"]]
    code = 70
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
