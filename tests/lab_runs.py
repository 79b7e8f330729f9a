"""A tiny real run in the lab, for tests that need one, and the command line in this process."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from priorkit.lab.pools import lab_pool
from priorkit.pool import Pool, write_pool

UPDATES, TRAIN, HELD_OUT = 3, 10, 12
#: So high a learning rate that three updates can be told from none.
TRAINING = (
    "train", "--policy", "lab-policy", "--pool", "pool.parquet", "--updates", UPDATES, "-B", 2,
    "-G", 4, "--max-new-tokens", 24, "--lr", 1e-2, "--warmup", 0, "--lora-rank", 4,
    "--lora-alpha", 8, "--eval-every", UPDATES, "--save-every", 1, "--device", "cpu",
)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


def call(folder: Path, *arguments: object) -> Ran:
    """Run one command in that folder, in this process."""
    from priorkit_cli.main import main

    out, err = io.StringIO(), io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["priorkit", *map(str, arguments)]
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    return Ran(code, out.getvalue(), err.getvalue())


def small_pool() -> Pool:
    """Short prompts of the lab in both splits, of which the policy solves a part."""
    pool = lab_pool(5)
    assert pool.level is not None
    train = np.flatnonzero((pool.level == 2) & (pool.split == "train"))[:TRAIN]
    held_out = np.flatnonzero((pool.level <= 2) & (pool.split == "eval"))[:HELD_OUT]
    return pool.take(np.concatenate([train, held_out]))


def train(folder: Path) -> Path:
    """Train the tiny run in that folder; returns the run's own."""
    write_pool(folder / "pool.parquet", small_pool(), {})
    ran = call(folder, *TRAINING)
    assert ran.code == 0, ran.err
    return folder / "runs" / "uniform-lab-policy-s0"
