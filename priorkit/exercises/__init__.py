"""Seeded mathematics exercises in five levels and seven subjects, each with an exact answer.

The source of the bundled prompt pool. Levels run from sums of digits to problems that take several
ideas; subjects are equally represented at every level. Needs numpy only.
"""

from __future__ import annotations

from priorkit.exercises.generate import LEVELS, SUBJECTS, Exercise, make_exercises

__all__ = ["LEVELS", "SUBJECTS", "Exercise", "make_exercises"]
