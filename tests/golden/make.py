"""Writes the golden files of the current format versions; run once a version, then never again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.outcomes import Outcome, write_outcomes
from priorkit.pool import pool_from_columns, write_pool
from priorkit.prior import write_prior

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


if __name__ == "__main__":
    main()
