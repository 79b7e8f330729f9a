"""The lab's prompt pools: one a task seed, train and eval split without a question in common."""

from __future__ import annotations

import numpy as np

from priorkit.lab.problems import LEVELS, SUBJECTS, Problem, draw_problem
from priorkit.pool import Pool, pool_from_columns

PROMPTS, HELD_OUT = 250, 500

#: Of the draws by level: the easiest and the hardest half again as often as those between.
#: A question drawn again is dropped, which takes a fifth of level 1, whose questions are few.
_LEVEL_SHARE = np.array([3, 2, 2, 2, 3]) / 12


def lab_pool(task_seed: int, prompts: int = PROMPTS, held_out: int = HELD_OUT) -> Pool:
    """Random problems over every level and subject, no question twice; answers judged exactly.

    Task seed 0 is for tuning the lab itself; comparisons use others.

    Args:
        task_seed: decides every problem.
        prompts: size of the train split.
        held_out: size of the eval split.
    """
    rng = np.random.Generator(np.random.PCG64([20260930, task_seed]))
    subjects = list(SUBJECTS)
    drawn: dict[str, tuple[int, Problem]] = {}
    while len(drawn) < prompts + held_out:
        level = LEVELS[int(rng.choice(len(LEVELS), p=_LEVEL_SHARE))]
        problem = draw_problem(subjects[int(rng.integers(len(subjects)))], level, rng)
        drawn.setdefault(problem.question, (level, problem))
    rows = list(drawn.values())
    return pool_from_columns(
        {
            "prompt_id": [f"lab{task_seed}/{at:04d}" for at in range(len(rows))],
            "prompt": [problem.question for _, problem in rows],
            "answer": [str(problem.answer) for _, problem in rows],
            "level": [level for level, _ in rows],
            "subject": [problem.subject for _, problem in rows],
            "source": ["priorkit lab"] * len(rows),
            "verifier": ["exact"] * len(rows),
            "split": ["train"] * prompts + ["eval"] * held_out,
        },
        "the lab's pool",
    )
