"""Live progress on a terminal; a line now and then elsewhere, as a job's log wants it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .output import note, rate_bins

if TYPE_CHECKING:
    from rich.console import RenderableType

    from priorkit.outcomes import Outcome
    from priorkit.run_rows import StepRow


_LINE_EVERY = 30.0  # seconds


class _Lines:
    """Whether it is time for a line of text, which is never on a terminal."""

    def __init__(self) -> None:
        self._told, self._drawn = time.monotonic(), sys.stderr.isatty()

    def due(self) -> bool:
        """True once in so many seconds."""
        now = time.monotonic()
        if self._drawn or now - self._told < _LINE_EVERY:
            return False
        self._told = now
        return True


class ProbeProgress:
    """Counts outcomes as they come and draws them four times a second."""

    def __init__(self, total: int, held: Sequence[Outcome], samples: int) -> None:
        self._total, self._held, self._samples = total, len(held), samples
        self._new = self._tokens = 0
        self._tally: dict[str, list[int]] = {}
        self._rates: list[float] = []
        self._start, self._lines = time.monotonic(), _Lines()
        for row in held:
            self._count(row)

    def __call__(self, row: Outcome) -> None:
        """Count one new outcome."""
        self._new += 1
        self._tokens += row.n_tokens
        self._count(row)
        if self._lines.due():
            note(self._speed())

    def _count(self, row: Outcome) -> None:
        tally = self._tally.setdefault(row.prompt_id, [0, 0])
        tally[0] += row.correct is True
        tally[1] += 1
        if tally[1] == self._samples:
            self._rates.append(tally[0] / tally[1])

    def render(self) -> RenderableType:
        """What stands on the terminal now; fits 80 columns."""
        from rich.text import Text

        filled = 40 * (self._held + self._new) // max(self._total, 1)
        counts, _, speed = self._speed().partition("   ")
        return Text(f"{'━' * filled}{'╌' * (40 - filled)} {counts}\n{speed}\n{self._histogram()}")

    def _speed(self) -> str:
        elapsed = max(time.monotonic() - self._start, 1e-9)
        done, rate = self._held + self._new, self._new / elapsed
        left = (self._total - done) / rate if rate else float("inf")
        return (
            f"{done}/{self._total} samples, {len(self._rates)} prompts   "
            f"{rate:.1f} samples/s   {self._tokens / elapsed:.0f} tokens/s   ETA {_clock(left)}"
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
    with _live(progress.render):
        yield progress


def update_line(step: StepRow) -> str:
    """One update on one line."""
    reward = "–" if step.reward is None else f"{step.reward:.3f}"
    return (
        f"update {step.step}: reward {reward}, silent {step.n_silent}/{step.n_groups}, "
        f"loss {step.loss:+.4f}, {step.n_tokens / max(step.seconds_generate, 1e-9):.0f} tokens/s, "
        f"{step.seconds_total:.1f} s"
    )


class TrainProgress:
    """The updates of a training run as they come."""

    def __init__(self, updates: int) -> None:
        self._updates = updates
        self._steps: list[StepRow] = []
        self._start, self._lines = time.monotonic(), _Lines()

    def __call__(self, step: StepRow) -> None:
        """Take in one update."""
        self._steps.append(step)
        if self._lines.due():
            note(f"{update_line(step)}, {self._updates - step.step} updates left")

    def render(self) -> RenderableType:
        """What stands on the terminal now; fits 80 columns."""
        from rich.text import Text

        if not self._steps:
            return Text("starting")
        done, recent = self._steps[-1].step, self._steps[-10:]
        left = (self._updates - done) * (time.monotonic() - self._start) / len(self._steps)
        filled = min(40 * done // max(self._updates, 1), 40)
        groups = sum(step.n_groups for step in recent)
        silent = sum(step.n_silent for step in recent) / max(groups, 1)
        wasted = sum(step.n_wasted for step in self._steps)
        rewards = [step.reward for step in recent if step.reward is not None]
        reward = f"{sum(rewards) / len(rewards):.3f}" if rewards else "–"
        speed = sum(s.n_tokens for s in recent) / max(sum(s.seconds_generate for s in recent), 1e-9)
        return Text(
            f"{'━' * filled}{'╌' * (40 - filled)} {done}/{self._updates} updates   "
            f"ETA {_clock(left)}\n"
            f"last 10: reward {reward}   silent {silent:.2f}   {_amount(speed)} tokens/s\n"
            f"time: {_shares(recent)}   wasted {_amount(wasted)} responses"
        )


def _shares(steps: Sequence[StepRow]) -> str:
    """Where the time went; a clock that was set back may not make a share of more than all."""
    whole = max(sum(step.seconds_total for step in steps), 1e-9)
    spent = {
        name: sum(getattr(step, f"seconds_{name}") for step in steps)
        for name in ("generate", "verify", "update")
    }
    return ", ".join(f"{name} {min(part / whole, 1):.0%}" for name, part in spent.items())


def _clock(seconds: float) -> str:
    left = max(seconds, 0)
    return f"{int(left // 60)}:{int(left % 60):02d}" if left < 1e6 else "–"


def _amount(number: float) -> str:
    return f"{number:.0f}" if number < 1e6 else f"{number:.1e}"


@contextmanager
def train_progress(updates: int) -> Iterator[TrainProgress]:
    """A progress display for a run of so many updates."""
    progress = TrainProgress(updates)
    with _live(progress.render):
        yield progress


@contextmanager
def _live(render: Callable[[], RenderableType]) -> Iterator[None]:
    """Draw four times a second on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(
        get_renderable=render,
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
    ):
        yield
