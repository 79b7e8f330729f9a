"""`python -m priorkit.exercises FILE` writes the bundled exercises, 36 a cell to train on, 8 not.

The file is a pool of its own, the source `priorkit pool make` samples from.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from priorkit.exercises import Exercise, make_exercises
from priorkit.pool import Pool, pool_from_columns, write_pool

SEED, TRAIN, EVAL = 0, 36, 8


def exercise_pool(seed: int, train: int, held_out: int) -> Pool:
    """Exercises of every cell as a pool: the first of a cell to train on, the last to test."""
    number: Counter[tuple[int, str]] = Counter()
    rows: list[tuple[str, Exercise, str]] = []
    for exercise in make_exercises(seed, train + held_out):
        cell = (exercise.level, exercise.subject)
        at = number[cell]
        number[cell] += 1
        name = exercise.subject.lower().replace(" & ", "-").replace(" ", "-")
        split = "train" if at < train else "eval"
        rows.append((f"{name}-{exercise.level}-{at:03d}", exercise, split))
    return pool_from_columns(
        {
            "prompt_id": [key for key, _, _ in rows],
            "prompt": [exercise.prompt for _, exercise, _ in rows],
            "answer": [exercise.answer for _, exercise, _ in rows],
            "level": [exercise.level for _, exercise, _ in rows],
            "subject": [exercise.subject for _, exercise, _ in rows],
            "source": [f"priorkit/{exercise.template}" for _, exercise, _ in rows],
            "split": [split for _, _, split in rows],
        },
        "exercises",
    )


def main(path: str) -> None:
    """Write the file from the seed it is always made from."""
    pool = exercise_pool(SEED, TRAIN, EVAL)
    assert np.unique(pool.prompt).size == len(pool)
    provenance = {"source": "priorkit.exercises", "seed": SEED, "train": TRAIN, "eval": EVAL}
    write_pool(path, pool, provenance, force=True)


if __name__ == "__main__":
    main(sys.argv[1])
