"""Spread sampling: a small pool that covers levels and subjects as evenly as its source allows.

The paper's 250 prompts are sampled over MATH's five levels and seven subjects (ThinkPrior,
arXiv 2609.09075, app. B); how ties between cells are broken is our choice: by a seeded draw.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from priorkit.columns import IntArray, TextArray, as_ids
from priorkit.errors import SettingError
from priorkit.pool import Pool

Cell = tuple[int, str]


def make_pool(source: Pool, size: int | None, eval_size: int | None, seed: int) -> Pool:
    """A shuffled pool of `size` training prompts, and a disjoint eval split after them.

    Args:
        source: rows of both splits. Without eval rows of its own, the eval split is spread-sampled
            from the training rows that were not taken.
        size: training prompts; None takes them all.
        eval_size: eval prompts; None takes the source's own, or 200 of what is left, or fewer.
        seed: of the shuffle and of ties between cells.

    Raises:
        SettingError: more prompts are wanted than there are.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    train = np.flatnonzero(source.split == "train")
    held_out = np.flatnonzero(source.split == "eval")
    wanted = len(train) if size is None else size
    chosen = spread(_cells(source, train), train, wanted, rng)
    pool = source.take(chosen)
    own = len(held_out) > 0
    texts = {_plain(prompt) for prompt in pool.prompt}
    left = held_out if own else np.setdiff1d(train, chosen)
    held_out = left[[_plain(source.prompt[row]) not in texts for row in left]]
    if not own and eval_size is None:
        eval_size = min(200, len(held_out))
    wanted_eval = len(held_out) if eval_size is None else eval_size
    tested = (
        spread(_cells(source, held_out), held_out, wanted_eval, rng) if wanted_eval else chosen[:0]
    )
    both = source.take(np.concatenate([chosen, tested]))
    split = as_ids(["train"] * len(chosen) + ["eval"] * len(tested))
    return replace(both, split=split)


def spread(cells: list[Cell], rows: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """`size` of the rows, as even over cells as their sizes allow, in shuffled order.

    Args:
        cells: `[len(rows)]` the cell of each row.
        rows: candidates.
        size: how many.
        rng: breaks ties between cells, chooses within them, and shuffles.
    """
    if not 1 <= size <= len(rows):
        raise SettingError(f"cannot take {size} prompts of {len(rows)}")
    members: dict[Cell, list[int]] = defaultdict(list)
    for cell, row in zip(cells, rows.tolist(), strict=True):
        members[cell].append(row)
    shares = _even_shares([len(members[cell]) for cell in sorted(members)], size, rng)
    taken: list[int] = []
    for cell, share in zip(sorted(members), shares, strict=True):
        taken.extend(rng.permutation(members[cell])[:share].tolist())
    return np.asarray(rng.permutation(taken), dtype=np.int64)


def _even_shares(sizes: list[int], total: int, rng: np.random.Generator) -> list[int]:
    """How many each cell gives: all the same, but for cells that have no more to give."""
    shares = [0] * len(sizes)
    while total:
        open_cells = [i for i, size in enumerate(sizes) if shares[i] < size]
        each = total // len(open_cells)
        if each == 0:
            for i in rng.permutation(open_cells)[:total].tolist():
                shares[i] += 1
            return shares
        for i in open_cells:
            given = min(each, sizes[i] - shares[i])
            shares[i] += given
            total -= given
    return shares


def _cells(pool: Pool, rows: IntArray) -> list[Cell]:
    level = pool.level if pool.level is not None else np.full(len(pool), -1)
    subject: TextArray = pool.subject if pool.subject is not None else as_ids([""] * len(pool))
    return [(int(level[row]), str(subject[row])) for row in rows]


def _plain(prompt: object) -> str:
    text = prompt if isinstance(prompt, str) else str(prompt)
    return " ".join(text.lower().split())
