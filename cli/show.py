"""`priorkit show`: where a training run stands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, one_line, shown_path, table
from .progress import update_line

if TYPE_CHECKING:
    from priorkit.run_rows import StepRow
    from priorkit.run_tables import Run

HORIZONS = (10, 30, 60, 100, 200, 300)
_POLL = 1.0  # seconds
_ENDS = 10  # updates averaged at either end


def show(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Folder or name; default: the newest."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print updates as they come, until the last.")
    ] = False,
    root: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    as_json: options.AsJson = False,
) -> None:
    """Show where a run stands: silent groups, waste, reward, accuracy, and where time went.

    Example: priorkit show
    """
    from priorkit.run_tables import find_run, read_run

    folder = find_run(run, root)
    held = read_run(folder)
    if follow:
        held = _follow(held)
    emit(describe(held), story(held), as_json)


def _follow(run: Run) -> Run:
    """Print every update while somebody trains; returns the run as it then is, or at Ctrl-C."""
    from priorkit.folder import at_work
    from priorkit.run_tables import read_run

    told = len(run.steps)
    try:
        while not run.finished and at_work(run.folder):
            time.sleep(_POLL)
            run = read_run(run.folder)
            told = min(told, len(run.steps))  # a resumed run goes back to its checkpoint
            for step in run.steps[told:]:
                typer.echo(update_line(step), err=True)
            told = len(run.steps)
    except KeyboardInterrupt:
        pass
    return run


def describe(run: Run) -> dict[str, Any]:
    """A run in figures."""
    import numpy as np

    from priorkit.folder import at_work
    from priorkit.run_figures import evaluations, silent_at, waste_at

    steps = run.steps
    state = "finished" if run.finished else "running" if at_work(run.folder) else "stopped"
    ends = min(_ENDS, max(len(steps) // 2, 1))
    reached = sorted({t for t in HORIZONS if t <= len(steps)} | ({len(steps)} if steps else set()))
    tokens, responses = sum(s.n_tokens for s in steps), sum(s.n_responses for s in steps)
    spent = {
        name: sum(getattr(step, f"seconds_{name}") for step in steps)
        for name in ("generate", "verify", "update", "total")
    }
    return {
        "run": str(run.folder),
        "finished": run.finished,
        "state": state,
        "selector": run.setting("selector", "name"),
        "policy": run.setting("policy", "name"),
        "updates": len(steps),
        "updates_wanted": run.setting("settings", "updates"),
        "silent": {str(t): silent_at(run, t) for t in reached},
        "waste": {str(t): waste_at(run, t) for t in reached},
        "reward_updates": ends,
        "reward_first": _mean_reward(steps[:ends]),
        "reward_last": _mean_reward(steps[-ends:]),
        "responses": responses,
        "without_verdict": sum(step.n_no_verdict for step in steps),
        "truncated": sum(step.n_truncated for step in steps),
        "tokens": tokens,
        "tokens_per_second": tokens / spent["generate"] if spent["generate"] else None,
        "seconds": spent,
        "evaluations": [
            {
                "update": one.update,
                "prompts": one.accuracy.n_prompts,
                "accuracy": one.accuracy.mean,
                "low": one.accuracy.low,
                "high": one.accuracy.high,
                "gain": None if one.gain is None else one.gain._asdict(),
            }
            for one in evaluations(run, np.random.Generator(np.random.PCG64(0)))
        ],
    }


def _mean_reward(steps: list[StepRow]) -> float | None:
    known = [step.reward for step in steps if step.reward is not None]
    return sum(known) / len(known) if known else None


def story(run: Run) -> str:
    """A run's account for people."""
    facts = describe(run)
    state = facts["state"]
    parts = [
        f"{one_line(shown_path(run.folder), 200)}: {one_line(facts['selector'])} on "
        f"{one_line(facts['policy'], 100)}, {state}, "
        f"{facts['updates']} of {facts['updates_wanted']} updates"
    ]
    if run.steps:
        rows = [[t, f"{facts['silent'][t]:.3f}", str(facts["waste"][t])] for t in facts["silent"]]
        parts += [table(["updates", "silent@t", "waste@t"], rows), *_course(facts)]
    if facts["state"] == "stopped":
        parts.append("nobody is training it; the command that started it goes on with it")
    return "\n".join([*parts, *_accuracies(facts)])


def _course(facts: dict[str, Any]) -> list[str]:
    seconds = facts["seconds"]
    whole = max(seconds["total"], 1e-9)
    shares = ", ".join(
        f"{name} {seconds[name] / whole:.0%}" for name in ("generate", "verify", "update")
    )
    first, last = facts["reward_first"], facts["reward_last"]
    reward = "no verdicts" if first is None else f"{first:.3f} → {last:.3f}"
    rate = facts["tokens_per_second"]
    ends = facts["reward_updates"]
    lines = [
        f"reward, first and last {ends} update{'s' * (ends > 1)}: {reward}",
        f"{facts['tokens']} tokens in {facts['responses']} responses"
        + ("" if rate is None else f", {rate:.0f} tokens/s"),
        f"time: {whole:.1f} s ({shares})",
    ]
    if facts["without_verdict"]:
        lines.append(f"{facts['without_verdict']} responses without a verdict")
    if facts["truncated"]:
        lines.append(f"{facts['truncated']} responses cut at the length limit without an answer")
    return lines


def _accuracies(facts: dict[str, Any]) -> list[str]:
    if not facts["evaluations"]:
        return []
    rows = [
        [str(one["update"]), str(one["prompts"]), f"{one['accuracy']:.3f}",
         f"[{one['low']:.3f}, {one['high']:.3f}]"]
        for one in facts["evaluations"]
    ]  # fmt: skip
    lines = [table(["after update", "held out", "accuracy", "95 %"], rows)]
    gain = facts["evaluations"][-1].get("gain")
    if gain:
        lines.append(
            f"gain {gain['value']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}], paired over "
            "prompts; other seeds vary more than other prompts do"
        )
    return lines
