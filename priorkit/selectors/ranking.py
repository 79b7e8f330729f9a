"""The best rows of a long score column, kept ready while a few rows change.

`P` scores stand in blocks of 64 with the best of each block beside them. The top `n` rows all lie
in the first `n` blocks, when blocks are ordered by their best score and then by position: a block
left out is preceded by `n` blocks that each hold a row ranked before anything in it. So a step
reads `P/64` block maxima and `64·n` scores instead of `P`.
"""

from __future__ import annotations

import numpy as np

from priorkit.columns import FloatArray, IntArray

_WIDTH = 64


class Ranking:
    """Scores by row, answering "the top `n`"; ties go to the earlier row, exactly."""

    def __init__(self, scores: FloatArray) -> None:
        self._size = len(scores)
        blocks = -(-self._size // _WIDTH)
        self._scores = np.full((blocks, _WIDTH), -np.inf)
        self._scores.ravel()[: self._size] = scores
        self._best = self._scores.max(axis=1)

    @property
    def scores(self) -> FloatArray:
        """`[P]` current scores, a view."""
        return self._scores.ravel()[: self._size]

    def update(self, rows: IntArray, scores: FloatArray) -> None:
        """New scores for a few rows."""
        self._scores.ravel()[rows] = scores
        blocks = np.unique(rows // _WIDTH)
        self._best[blocks] = self._scores[blocks].max(axis=1)

    def top(self, n: int) -> IntArray:
        """The `n` best rows, best first."""
        blocks = _leading(self._best, n)
        rows = (blocks[:, None] * _WIDTH + np.arange(_WIDTH)).ravel()
        scores = self._scores[blocks].ravel()
        chosen = _leading(scores, n)
        order = np.argsort(-scores[chosen], kind="stable")
        return rows[chosen[order]]


def _leading(values: FloatArray, n: int) -> IntArray:
    """Positions of the `n` largest, ties to the earlier, in ascending position."""
    if n >= len(values):
        return np.arange(len(values))
    threshold = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > threshold)
    level = np.flatnonzero(values == threshold)[: n - len(above)]
    return np.sort(np.concatenate([above, level]))
