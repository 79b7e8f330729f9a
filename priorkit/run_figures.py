"""What the log of a run comes to: silent@t, waste@t, and accuracy by evaluation.

`P` prompts of an evaluation. Every generated group counts, filtered and surplus ones included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from priorkit.accuracy import Accuracy, Estimate, accuracy, paired_difference
from priorkit.columns import IntArray, as_ids
from priorkit.errors import SettingError
from priorkit.outcomes import Counts
from priorkit.run_rows import GroupRow
from priorkit.run_tables import Run


def silent_at(run: Run, t: int) -> float:
    """silent@t: silent candidate groups / all candidate groups of the first `t` updates.

    Raises:
        SettingError: `t` is below 1 or beyond the run.
    """
    silent = [group.silent for group in _first(run, t)]
    return sum(silent) / len(silent)


def waste_at(run: Run, t: int) -> int:
    """waste@t: responses in silent candidate groups through update `t`; errors as `silent_at`."""
    return sum(group.n_responses for group in _first(run, t) if group.silent)


def accuracy_at(run: Run, step: int) -> tuple[IntArray, IntArray]:
    """Successes and trials, `[P]` each in file order, of the evaluation after that update.

    Raises:
        SettingError: there was none.
    """
    rows = [row for row in run.evals if row.step == step]
    if not rows:
        there = ", ".join(map(str, eval_steps(run))) or "none"
        raise SettingError(f"{run.folder}: no evaluation at step {step} (there are: {there})")
    successes = np.array([row.successes for row in rows], dtype=np.int64)
    return successes, np.array([row.trials for row in rows], dtype=np.int64)


def eval_steps(run: Run) -> list[int]:
    """The steps with an evaluation, in order; 0 is before training."""
    return list(dict.fromkeys(row.step for row in run.evals))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of a run.

    Attributes:
        update: after which it took place; 0 is before training.
        accuracy: how the held-out prompts went.
        gain: change of the mean since the first evaluation, paired over prompts with verdicts in
            both; None for the first.
    """

    update: int
    accuracy: Accuracy
    gain: Estimate | None


def evaluations(run: Run, rng: np.random.Generator) -> list[Evaluation]:
    """Every evaluation with its interval; `rng` is for the bootstrap where one is needed."""
    found: list[Evaluation] = []
    first: Counts | None = None
    for step in eval_steps(run):
        counts = counts_at(run, step)
        if not counts.trials.any():
            continue
        change = None if first is None else gain(first, counts, rng)
        first = first or counts
        found.append(Evaluation(step, accuracy(counts, rng), change))
    return found


def counts_at(run: Run, step: int) -> Counts:
    """What one evaluation counted, a row a held-out prompt."""
    rows = [row for row in run.evals if row.step == step]
    columns = {
        name: np.array([getattr(row, name) for row in rows], dtype=np.int64)
        for name in ("successes", "trials", "n_truncated", "n_error")
    }
    return Counts(prompt_id=as_ids([row.prompt_id for row in rows]), **columns)


def gain(first: Counts, last: Counts, rng: np.random.Generator) -> Estimate | None:
    """Change of the mean rate, paired over prompts with verdicts in both; None without any."""
    if not np.array_equal(first.prompt_id, last.prompt_id):
        return None
    both = (first.trials > 0) & (last.trials > 0)
    if not both.any():
        return None
    before, after = (counts.successes[both] / counts.trials[both] for counts in (first, last))
    return paired_difference(before, after, rng)


def _first(run: Run, t: int) -> Iterator[GroupRow]:
    """Groups of the first `t` updates."""
    if not 1 <= t <= len(run.steps):
        raise SettingError(
            f"{run.folder}: t must be from 1 to the {len(run.steps)} updates this run has, "
            f"found {t}"
        )
    return (group for group in run.groups if group.step <= t)
