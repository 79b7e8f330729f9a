"""Live progress of a probe on a terminal; silent elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .output import RATE_BINS, rate_bins

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from priorkit.outcomes import Outcome


class ProbeProgress:
    """Counts outcomes as they come and draws them four times a second."""

    def __init__(self, total: int, held: int, samples: int) -> None:
        self._total, self._held, self._samples = total, held, samples
        self._new = self._tokens = self._full = 0
        self._tally: dict[str, list[int]] = {}
        self._rates: list[float] = []
        self._start = time.monotonic()
        self._on_change: Callable[[], None] | None = None

    def __call__(self, row: Outcome) -> None:
        """Count one outcome."""
        self._new += 1
        self._tokens += row.n_tokens
        tally = self._tally.setdefault(row.prompt_id, [0, 0])
        tally[0] += row.correct is True
        tally[1] += 1
        if tally[1] == self._samples:
            self._full += 1
            self._rates.append(tally[0] / tally[1])

    def render(self) -> RenderableType:
        """What stands on the terminal now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        elapsed = max(time.monotonic() - self._start, 1e-9)
        done, rate = self._held + self._new, self._new / elapsed
        left = (self._total - done) / rate if rate else float("inf")
        eta = f"{int(left // 60)}:{int(left % 60):02d}" if left < 1e6 else "–"
        head = (
            f"{done}/{self._total} samples   {self._full} prompts this session   "
            f"{rate:.1f} samples/s   {self._tokens / elapsed:.0f} tokens/s   ETA {eta}"
        )
        return Group(
            Text(head),
            ProgressBar(total=max(self._total, 1), completed=done, width=60),
            Text(self._histogram()),
        )

    def _histogram(self) -> str:
        counts = rate_bins(self._rates)
        peak = max([*counts, 1])
        bars = "▁▂▃▄▅▆▇█"
        shown = (bars[(8 * count - 1) // peak if count else 0] for count in counts)
        cells = (
            f"{label} {bar if count else ' '}"
            for label, bar, count in zip(RATE_BINS, shown, counts, strict=True)
        )
        return "solve rates  " + "   ".join(cells)


@contextmanager
def probe_progress(total: int, held: int, samples: int) -> Iterator[ProbeProgress]:
    """A progress display for `total` samples of which `held` are there already."""
    progress = ProbeProgress(total, held, samples)
    if not sys.stderr.isatty():
        yield progress
        return
    from rich.console import Console
    from rich.live import Live

    with Live(
        get_renderable=progress.render,
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
    ):
        yield progress
