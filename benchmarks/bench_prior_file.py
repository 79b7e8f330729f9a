"""A million-row prior with random 24-character ids: write, read with checks, fit to its pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.columns import as_ids
from priorkit.pool import Pool
from priorkit.prior import fit_to_pool, read_prior, write_prior

ROWS = 1_000_000
SECONDS, BYTES = 1.5, 40e6
ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))


def test_a_million_row_prior(benchmark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = ALPHABET[rng.integers(0, len(ALPHABET), (ROWS, 24))]
    ids = as_ids(["".join(row) for row in letters])
    hashes = as_ids([f"{value:016x}" for value in rng.integers(0, 2**63, ROWS)])
    zeros = np.zeros(ROWS, dtype=np.int64)
    prior = BetaPrior.from_counts(
        ids,
        rng.integers(0, 17, ROWS),
        np.full(ROWS, 16),
        row_hash=hashes,
        n_truncated=zeros,
        n_error=zeros,
        kind="anchor",
    )
    pool = _pool(ids, hashes)
    path = tmp_path / "prior.parquet"

    def write_read_check() -> None:
        write_prior(path, prior, force=True)
        fitted = fit_to_pool(read_prior(path), pool)
        assert fitted.n_missing == 0

    benchmark.pedantic(write_read_check, rounds=7, warmup_rounds=1)
    assert path.stat().st_size <= BYTES
    assert benchmark.stats.stats.median <= SECONDS


def _pool(ids: Any, hashes: Any) -> Pool:
    """A pool whose row hashes are given: hashing a million texts is the pool's cost, not ours."""
    blank = as_ids([""] * ROWS)
    pool = Pool(ids, blank, blank, blank, blank)
    pool.__dict__["row_hash"] = hashes
    return pool
