"""What the lab's trials come to: figures by arm, with the seeds and the command that made them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from priorkit.accuracy import mean_interval, welch_interval
from priorkit.run_figures import accuracy_at, eval_steps, silent_at, waste_at
from priorkit.run_tables import Run, read_run

if TYPE_CHECKING:
    from lab_trials import Trial

DROP = 0.10  # peak to end, as in the paper's appendix D


def write_figures(root: Path, trials: Sequence[Trial]) -> None:
    """Read every run and write `figures.json` and `figures.md`."""
    measured = [measure(root, trial) for trial in trials]
    horizon = any(trial.updates > 60 for trial in trials)
    table = horizon_figures(measured) if horizon else comparison(measured)
    said = [root.name if word == str(root) else word for word in sys.argv[1:]]
    command = " ".join(["python benchmarks/lab_trials.py", *said])
    document = {"command": command, "runs": measured, "figures": table}
    lines = json.dumps(document).replace("}, {", "},\n{")
    (root / "figures.json").write_text(lines + "\n")
    text = horizon_text(table) if horizon else comparison_text(table)
    (root / "figures.md").write_text(text + "\n")
    print(text)


def measure(root: Path, trial: Trial) -> dict[str, Any]:
    """The figures of one run."""
    run = read_run(root / "runs" / trial.name)
    before = json.loads((root / f"before-{trial.task_seed}.json").read_text())["avg@4"]
    after = json.loads((run.folder / "after.json").read_text())["avg@4"]
    greedy = [float(_rate(run, step)) for step in eval_steps(run)]
    last = len(run.steps)
    return {
        "arm": trial.arm, "task_seed": trial.task_seed, "seed": trial.seed, "kl": trial.kl,
        **{f"silent@{t}": silent_at(run, t) for t in (10, 30, 60, last)},
        **{f"waste@{t}": waste_at(run, t) for t in (30, last)},
        "prompts": len({group.prompt_id for group in run.groups}),
        "greedy": greedy,
        "greedy_gain": greedy[-1] - greedy[0],
        "sampled_gain": after - before,
        "sampled": [before, after],
        "seconds": sum(step.seconds_total for step in run.steps),
    }  # fmt: skip


def _rate(run: Run, step: int) -> float:
    successes, trials = accuracy_at(run, step)
    return float(successes.sum() / trials.sum())


def comparison(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Means with 95 % intervals over runs, ranges, and differences between arms."""
    arms = list(dict.fromkeys(run["arm"] for run in measured))
    names = ("silent@10", "silent@30", "silent@60", "waste@30", "waste@60", "prompts",
             "greedy_gain", "sampled_gain")  # fmt: skip

    def of(arm: str, name: str, task: int | None = None) -> list[float]:
        return [
            run[name] for run in measured if run["arm"] == arm and task in (None, run["task_seed"])
        ]

    tasks = sorted({run["task_seed"] for run in measured})
    figures = {arm: {name: _summary(of(arm, name)) for name in names} for arm in arms}
    return {
        "runs_an_arm": len(of(arms[0], "seed")),
        "task_seeds": tasks,
        "seeds": sorted({run["seed"] for run in measured}),
        "arms": figures,
        "by_task": {
            str(task): {
                arm: {name: float(np.mean(of(arm, name, task))) for name in names} for arm in arms
            }
            for task in tasks
        },
        "differences": _differences(arms, of),
    }


def _differences(
    arms: list[str], of: Callable[[str, str], list[float]]
) -> dict[str, dict[str, Any]]:
    pairs = {
        "thinkprior − online-np": ("thinkprior", "online-np"),
        "thinkprior − uniform": ("thinkprior", "uniform"),
        "online-np − uniform": ("online-np", "uniform"),
        "uniform − shuffled": ("uniform", "shuffled"),
    }
    out: dict[str, dict[str, Any]] = {}
    for title, (a, b) in pairs.items():
        if a not in arms or b not in arms:
            continue
        out[title] = {}
        for name in ("silent@10", "silent@30", "silent@60", "greedy_gain", "sampled_gain"):
            difference, low, high = welch_interval(of(a, name), of(b, name))
            base = float(np.mean(of(b, name)))
            relative = difference / base if base else None
            out[title][name] = {
                "difference": difference, "low": low, "high": high, "relative": relative,
            }  # fmt: skip
    return out


def _summary(values: list[float]) -> dict[str, float]:
    mean, low, high = mean_interval(values)
    return {"mean": mean, "low": low, "high": high, "min": min(values), "max": max(values)}


def comparison_text(table: dict[str, Any]) -> str:
    """Tables for people."""
    names = ("silent@10", "silent@30", "silent@60", "waste@30", "greedy_gain", "sampled_gain")
    lines = [
        f"{table['runs_an_arm']} runs an arm: task seeds {table['task_seeds']}, training seeds "
        f"{table['seeds']}. Mean [95 % interval over runs] (lowest–highest).",
        "",
        "| arm | " + " | ".join(names) + " | prompts seen |",
        "|---" * (len(names) + 2) + "|",
    ]
    for arm, figures in table["arms"].items():
        cells = [_cell(figures[name], name.startswith("waste")) for name in names]
        seen = f"{figures['prompts']['mean']:.0f}"
        lines.append(f"| {arm} | " + " | ".join([*cells, seen]) + " |")
    lines += [
        "",
        "| difference | silent@10 | relative | greedy gain | sampled gain |",
        "|---" * 5 + "|",
    ]
    for title, found in table["differences"].items():
        relative = found["silent@10"]["relative"]
        lines.append(
            f"| {title} | {_change(found['silent@10'])} | "
            f"{'–' if relative is None else f'{relative:+.0%}'} | "
            f"{_change(found['greedy_gain'])} | {_change(found['sampled_gain'])} |"
        )
    lines += [
        "",
        "| task seed | arm | silent@10 | silent@60 | greedy gain | sampled gain |",
        "|---" * 6 + "|",
    ]
    for task, arms in table["by_task"].items():
        for arm, one in arms.items():
            lines.append(
                f"| {task} | {arm} | {one['silent@10']:.3f} | {one['silent@60']:.3f} | "
                f"{one['greedy_gain']:+.3f} | {one['sampled_gain']:+.3f} |"
            )
    return "\n".join(lines)


def _cell(figure: dict[str, float], whole: bool) -> str:
    if whole:
        return f"{figure['mean']:.0f} ({figure['min']:.0f}–{figure['max']:.0f})"
    return (
        f"{figure['mean']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}] "
        f"({figure['min']:.3f}–{figure['max']:.3f})"
    )


def _change(found: dict[str, float]) -> str:
    return f"{found['difference']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"


def horizon_figures(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Events of a drop over ten points from peak to end, by arm and KL."""
    out: dict[str, Any] = {}
    for kl in sorted({run["kl"] for run in measured}):
        for arm in dict.fromkeys(run["arm"] for run in measured):
            runs = [run for run in measured if run["arm"] == arm and run["kl"] == kl]
            drops = [max(run["greedy"]) - run["greedy"][-1] for run in runs]
            last = max(int(name[7:]) for name in runs[0] if name.startswith("silent@"))
            out[f"{arm}, KL {kl:g}"] = {
                "runs": len(runs),
                "seeds": [run["seed"] for run in runs],
                "events": sum(drop > DROP for drop in drops),
                "drops": drops,
                "start": [run["greedy"][0] for run in runs],
                "peak": [max(run["greedy"]) for run in runs],
                "end": [run["greedy"][-1] for run in runs],
                "silent": float(np.mean([run[f"silent@{last}"] for run in runs])),
            }
    return out


def horizon_text(table: dict[str, Any]) -> str:
    """One row an arm."""
    lines = [
        "| arm | runs | drops over 10 points | start | peak, each | end, each | silent@300 |",
        "|---" * 7 + "|",
    ]
    for title, one in table.items():
        peaks, ends = (", ".join(f"{v:.3f}" for v in one[key]) for key in ("peak", "end"))
        lines.append(
            f"| {title} | {one['runs']} | {one['events']} | {one['start'][0]:.3f} | {peaks} | "
            f"{ends} | {one['silent']:.3f} |"
        )
    return "\n".join(lines)
