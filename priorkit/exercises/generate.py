"""The seeded draw of exercises: every (level, subject) cell filled alike, no prompt twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from priorkit.errors import SettingError
from priorkit.exercises import (
    algebra,
    arithmetic,
    counting,
    everyday,
    geometry,
    number_theory,
    sequences,
)
from priorkit.exercises.wording import Template

LEVELS = (1, 2, 3, 4, 5)
TEMPLATES: dict[str, dict[int, tuple[Template, ...]]] = {
    "arithmetic": arithmetic.TEMPLATES,
    "algebra": algebra.TEMPLATES,
    "number_theory": number_theory.TEMPLATES,
    "counting": counting.TEMPLATES,
    "geometry": geometry.TEMPLATES,
    "everyday": everyday.TEMPLATES,
    "sequences": sequences.TEMPLATES,
}
SUBJECTS: tuple[str, ...] = tuple(TEMPLATES)
_TRIES = 400  # draws without a new prompt before a template counts as used up


@dataclass(frozen=True, slots=True)
class Exercise:
    r"""A prompt with its one exact answer.

    Attributes:
        prompt: plain ASCII text, formulas between dollar signs; never empty.
        answer: an integer, a decimal or LaTeX such as `\frac{3}{4}`, without units.
        level: 1 (single digits) to 5 (several ideas at once).
        subject: one of `SUBJECTS`.
        template: name of the template that made it, unique over all subjects and levels.
    """

    prompt: str
    answer: str
    level: int
    subject: str
    template: str


def make_exercises(seed: int, per_cell: int) -> list[Exercise]:
    """`per_cell` exercises for each of the 35 cells, by level, then subject, then in drawn order.

    Prompts differ even when case and white space are ignored. A cell goes round its templates, so
    they are used equally often as long as none runs dry, and keeps one answer from making up much
    more than an eighth of it. The same seed gives the same exercises on every platform, and a
    larger `per_cell` only adds to each cell.

    Args:
        seed: 0 or more.
        per_cell: 1 or more; 60 can always be had.

    Raises:
        SettingError: a negative seed, or a `per_cell` below 1 or beyond what some cell can yield.
    """
    if seed < 0:
        raise SettingError(f"seed must be 0 or more, got {seed}")
    if per_cell < 1:
        raise SettingError(f"per_cell must be at least 1, got {per_cell}")
    names = [(level, subject) for level in LEVELS for subject in SUBJECTS]
    streams = np.random.SeedSequence(seed).spawn(len(names))
    cells = [
        _Cell(level, subject, np.random.Generator(np.random.PCG64(stream)))
        for (level, subject), stream in zip(names, streams, strict=True)
    ]
    seen: set[str] = set()
    # Round by round: what a cell holds after r rounds cannot depend on how many more are wanted.
    for rounds in range(per_cell):
        for cell in cells:
            if not cell.draw(seen):
                raise SettingError(
                    f"per_cell={per_cell} is more than the level {cell.level} {cell.subject} "
                    f"templates can yield with seed {seed}; ask for at most {rounds}"
                )
    return [exercise for cell in cells for exercise in cell.exercises]


@dataclass(slots=True)
class _Cell:
    level: int
    subject: str
    rng: np.random.Generator
    exercises: list[Exercise] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    waiting: list[Template] = field(init=False)  # templates not yet used up, next one first

    def __post_init__(self) -> None:
        self.waiting = list(TEMPLATES[self.subject][self.level])

    def draw(self, seen: set[str]) -> bool:
        """Add one exercise whose prompt is not in `seen`; False when there is none left."""
        while self.waiting:
            template = self.waiting.pop(0)
            exercise = self._new(template, seen)
            if exercise is not None:
                seen.add(prompt_key(exercise.prompt))
                self.answers[exercise.answer] += 1
                self.exercises.append(exercise)
                self.waiting.append(template)
                return True
        return False

    def _new(self, template: Template, seen: set[str]) -> Exercise | None:
        common = 2 + len(self.exercises) // 8
        for attempt in range(_TRIES):
            prompt, answer = template(self.rng)
            # An answer that is common in its cell has to wait, unless nothing else can be had.
            waits = self.answers[answer] >= common and attempt < _TRIES // 2
            if not waits and prompt_key(prompt) not in seen:
                return Exercise(prompt, answer, self.level, self.subject, template.__name__)
        return None


def prompt_key(prompt: str) -> str:
    """What two prompts share when they differ in case and white space only."""
    return " ".join(prompt.lower().split())
