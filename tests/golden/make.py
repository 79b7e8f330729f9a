"""Writes the golden files of the current format versions; run once a version, then never again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.outcomes import Outcome, write_outcomes
from priorkit.pool import pool_from_columns, write_pool
from priorkit.prior import write_prior
from priorkit.run_rows import EvalRow, GroupRow, StepRow
from priorkit.runlog import RunLog

HERE = Path(__file__).parent


def main() -> None:
    pool = pool_from_columns(
        {
            "prompt_id": ["g0", "g1", "g2"],
            "prompt": ["What is 1 + 1?", "What is 2 · 3?", "What is 10 / 4?"],
            "answer": ["2", ["6", "six"], "5/2"],
            "level": [1, 2, None],
            "subject": ["sums", "products", "quotients"],
            "split": ["train", "train", "eval"],
        },
        "golden",
    )
    write_pool(HERE / "pool-v1.parquet", pool, {"source": "golden"})
    common = {"model": "golden-model", "think_tokens": None, "finish_reason": "stop"}
    rows = [
        Outcome("g0", 0, status="correct", correct=True, n_tokens=4, extracted="2",
                response="\\boxed{2}", **common),
        Outcome("g0", 1, status="wrong", correct=False, n_tokens=4, extracted="3",
                response="\\boxed{3}", **common),
        Outcome("g1", 0, status="truncated", correct=False, n_tokens=9, extracted=None,
                response="It is", **{**common, "finish_reason": "length"}),
        Outcome("g1", 1, status="verifier_timeout", correct=None, n_tokens=5, extracted="9!!",
                response=None, **common),
    ]  # fmt: skip
    write_outcomes(HERE / "outcomes-v1.parquet", rows, {"k": 2, "anchor": {"name": "golden-model"}})
    prior = BetaPrior.from_counts(
        ["g0", "g1"],
        np.array([1, 0]),
        np.array([2, 1]),
        row_hash=pool.row_hash[:2],
        n_truncated=np.array([0, 1]),
        n_error=np.array([0, 1]),
        kind="anchor",
        provenance={"anchor": {"name": "golden-model", "revision": "unknown"}},
    )
    write_prior(HERE / "prior-v1.parquet", prior)
    run()


def run() -> None:
    plain = {"prefix_kind": None, "prefix_tokens": 0, "node_id": None, "n_replayed": 0}
    grown = {"prefix_kind": "tree", "prefix_tokens": 3, "node_id": "g1/0", "n_replayed": 12}
    groups = [
        GroupRow(1, 1, 0, "g0", 2, 4, 0, 1, "used", 0.75, n_tokens=40, **plain),
        GroupRow(1, 1, 1, "g1", 0, 3, 1, 0, "silent", 0.5, n_tokens=30, **plain),
        GroupRow(2, 1, 0, "g1", 1, 4, 0, 0, "used", None, n_tokens=20, **grown),
    ]
    common = {"grad_norm": 0.5, "learning_rate": 0.001, "n_used": 1, "n_prompt_tokens": 9}
    seconds = {"seconds_generate": 1.0, "seconds_verify": 0.25, "seconds_update": 0.5,
               "seconds_total": 2.0}  # fmt: skip
    steps = [
        StepRow(1, 0.125, None, reward=2 / 7, n_groups=2, n_silent=1, n_responses=8, n_wasted=4,
                n_no_verdict=1, n_truncated=1, n_tokens=70, n_replayed=0, expected=0.625,
                **common, **seconds),
        StepRow(2, -0.5, 0.01, reward=None, n_groups=1, n_silent=0, n_responses=4, n_wasted=0,
                n_no_verdict=0, n_truncated=0, n_tokens=20, n_replayed=12, expected=None,
                **common, **seconds),
    ]  # fmt: skip
    with TemporaryDirectory() as folder:
        log = RunLog(Path(folder))
        log.append_evals(
            [EvalRow(0, "g2", 1, 2, 0, 0, 9, 0.6), EvalRow(0, "g3", 0, 1, 1, 1, 8, 0.6)]
        )
        for step in steps:
            log.append(step, [group for group in groups if group.step == step.step])
        log.append_evals([EvalRow(2, "g2", 1, 1, 0, 0, 7, 0.0)])
        log.finish({"source": "golden"})
        for name in ("steps", "groups", "evals"):
            written = (Path(folder) / f"{name}.parquet").read_bytes()
            (HERE / f"{name}-v1.parquet").write_bytes(written)


if __name__ == "__main__":
    main()
