r"""How people write answers: with or without working, and more or less carelessly.

A writer's text is what a nano model learns from. Carelessness is decided at every slip apart, so a
prompt's solve rate falls with its number of slips; that is what makes a pool with easy, mixed and
hopeless prompts, and what a policy can unlearn: at each slip one token keeps or forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from priorkit.lab.problems import Problem, careful
from priorkit.lab.tokenizer import BOXED


@dataclass(frozen=True, slots=True)
class Writer:
    """Habits of a writer.

    Attributes:
        careless: probability that a slip forgets, by subject.
        bare: probability of an answer without working.
    """

    careless: Mapping[str, float]
    bare: float

    def response(self, problem: Problem, rng: np.random.Generator) -> str:
        """What this writer answers, such as `7+5=12;4+8+1=13;\\boxed{132}`."""
        if rng.random() < self.bare:
            return _boxed((), problem.answer)
        rate = self.careless[problem.subject]
        lines, answer = problem.work(lambda: bool(rng.random() < rate))
        return _boxed(lines, answer)


def solution(problem: Problem) -> str:
    """The right response, written out."""
    return _boxed(*problem.work(careful))


def _boxed(lines: tuple[str, ...], answer: int) -> str:
    return "".join(f"{line};" for line in lines) + f"{BOXED}{answer}}}"
