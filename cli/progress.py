"""Live progress of a probe on a terminal; silent elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .output import rate_bins

if TYPE_CHECKING:
    from rich.console import RenderableType

    from priorkit.outcomes import Outcome


class ProbeProgress:
    """Counts outcomes as they come and draws them four times a second."""

    def __init__(self, total: int, held: Sequence[Outcome], samples: int) -> None:
        self._total, self._held, self._samples = total, len(held), samples
        self._new = self._tokens = 0
        self._tally: dict[str, list[int]] = {}
        self._rates: list[float] = []
        self._start = time.monotonic()
        for row in held:
            self._count(row)

    def __call__(self, row: Outcome) -> None:
        """Count one new outcome."""
        self._new += 1
        self._tokens += row.n_tokens
        self._count(row)

    def _count(self, row: Outcome) -> None:
        tally = self._tally.setdefault(row.prompt_id, [0, 0])
        tally[0] += row.correct is True
        tally[1] += 1
        if tally[1] == self._samples:
            self._rates.append(tally[0] / tally[1])

    def render(self) -> RenderableType:
        """What stands on the terminal now; fits 80 columns."""
        from rich.text import Text

        elapsed = max(time.monotonic() - self._start, 1e-9)
        done, rate = self._held + self._new, self._new / elapsed
        left = (self._total - done) / rate if rate else float("inf")
        eta = f"{int(left // 60)}:{int(left % 60):02d}" if left < 1e6 else "–"
        filled = 40 * done // max(self._total, 1)
        return Text(
            f"{'━' * filled}{'╌' * (40 - filled)} {done}/{self._total} samples, "
            f"{len(self._rates)} prompts\n"
            f"{rate:.1f} samples/s   {self._tokens / elapsed:.0f} tokens/s   ETA {eta}\n"
            f"{self._histogram()}"
        )

    def _histogram(self) -> str:
        counts = rate_bins(self._rates)
        peak = max([*counts, 1])
        bars = "▁▂▃▄▅▆▇█"
        shown = [bars[(8 * count - 1) // peak] * 4 if count else "    " for count in counts]
        return f"solve rate 0 ▕{' '.join(shown)}▏ 1"


@contextmanager
def probe_progress(total: int, held: Sequence[Outcome], samples: int) -> Iterator[ProbeProgress]:
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
