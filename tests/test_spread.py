"""`priorkit/spread.py`: even over cells, as far as they reach."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorkit.errors import SettingError
from priorkit.pool import Pool, pool_from_columns
from priorkit.spread import make_pool, spread


def source(sizes: dict[tuple[int, str], int]) -> Pool:
    rows = [(level, subject, i) for (level, subject), n in sizes.items() for i in range(n)]
    return pool_from_columns(
        {
            "prompt_id": [f"{level}-{subject}-{i}" for level, subject, i in rows],
            "prompt": [f"Level {level}, {subject}, number {i}?" for level, subject, i in rows],
            "answer": ["1"] * len(rows),
            "level": [level for level, _, _ in rows],
            "subject": [subject for _, subject, _ in rows],
        },
        "memory",
    )


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    data=st.data(),
)
def test_no_cell_gives_two_more_than_another_that_has_more_to_give(sizes, data):
    cells = [(level, "s") for level, n in enumerate(sizes) for _ in range(n)]
    total = data.draw(st.integers(1, len(cells)))
    taken = spread(cells, np.arange(len(cells)), total, np.random.default_rng(0))
    assert len(set(taken.tolist())) == total
    given_by = Counter(cells[row] for row in taken)
    for level, n in enumerate(sizes):
        here = given_by[level, "s"]
        assert here <= n
        if here < n:
            assert max(given_by.values()) - here <= 1


def test_the_same_seed_makes_the_same_pool_and_another_another():
    held = source({(level, subject): 9 for level in (1, 2, 3) for subject in "ab"})
    one, other = (make_pool(held, 20, 10, seed=4) for _ in range(2))
    assert one.order_hash == other.order_hash
    assert make_pool(held, 20, 10, seed=5).order_hash != one.order_hash


def test_the_eval_split_is_disjoint_and_even_too():
    held = source({(level, subject): 9 for level in (1, 2, 3) for subject in "ab"})
    pool = make_pool(held, 20, None, seed=0)
    train, tested = pool.of_split("train"), pool.of_split("eval")
    assert (len(train), len(tested)) == (20, 34)
    assert not set(train.prompt) & set(tested.prompt)
    with pytest.raises(SettingError, match="cannot take 55"):
        make_pool(held, 55, None, seed=0)


def test_the_order_is_shuffled_over_cells():
    held = source({(level, "a"): 20 for level in (1, 2, 3)})
    pool = make_pool(held, 60, 0, seed=0)
    assert pool.level is not None
    assert pool.level.tolist() != sorted(pool.level.tolist())
