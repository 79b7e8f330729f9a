"""What a selector would take first from a prior, with the figures that decide it."""

from __future__ import annotations

from typing import TypedDict

from priorkit.beta import BetaPrior, expected_learnability
from priorkit.selectors.ranking import Ranking


class Choice(TypedDict):
    """One prompt of a ranking."""

    row: int
    prompt_id: str
    successes: int | None
    trials: int | None
    alpha: float
    beta: float
    score: float


def first_choices(prior: BetaPrior, n: int, group_size: int = 8) -> list[Choice]:
    """The `n` prompts of highest expected learnability, best first, ties by the prior's order."""
    scores = expected_learnability(prior.alpha, prior.beta, group_size)
    return [
        Choice(
            row=int(row),
            prompt_id=str(prior.prompt_id[row]),
            successes=None if prior.successes is None else int(prior.successes[row]),
            trials=None if prior.trials is None else int(prior.trials[row]),
            alpha=float(prior.alpha[row]),
            beta=float(prior.beta[row]),
            score=float(scores[row]),
        )
        for row in (Ranking(scores).top(n) if n else [])
    ]
