"""`priorkit demo`: the whole story on this machine's CPU: probe, prior, three runs, a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, note, rate_histogram, shown_path, table
from .prior import choices, describe
from .probe import FinishedProbe, publish, run_probe, write_results
from .train import run_training

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior
    from priorkit.pool import Pool
    from priorkit.rank import Choice
    from priorkit.recipe import Recipe
    from priorkit.run_tables import Run

SAMPLES = 16
ARMS = ("uniform", "online-np", "thinkprior")


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("demo"),
    seed: options.Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Start the demo over.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Probe graded problems, rank them, and train a nano policy three ways, on the CPU.

    Everything is real and small: models of 0.14 and 0.45 million parameters, made for this. One
    thread does the arithmetic, so the figures do not hang on the number of cores.

    Example: priorkit demo
    """
    from priorkit.extras import TRAINING, require

    require("the demo", *TRAINING)
    import torch

    from priorkit.lab.settings import NEW_TOKENS, lab_settings
    from priorkit.rank import first_choices

    torch.set_num_threads(1)
    pool = _tasks(folder / "pool.parquet")
    _stage("1/4 lab-anchor answers the prompts")
    done = _probe(folder, pool, NEW_TOKENS, force, as_json)
    prior = write_results(done, 4.0, 1e-3, "refuse")
    published = folder / "priors.parquet"
    publish(done.prior_path, published, prior)
    runs = {}
    for at, arm in enumerate(ARMS, 2):
        _stage(f"{at}/4 lab-policy is trained on prompts picked by {arm}")
        recipe = _recipe(folder, arm, lab_settings(seed))
        runs[arm] = run_training(recipe, folder / "runs", None, force, as_json)
    best = first_choices(prior, 5)
    result = {
        "prior": {**describe(prior), "path": str(published), "top": best},
        "runs": {arm: arm_figures(run) for arm, run in runs.items()},
    }
    emit(result, story(done, pool, prior, best, runs, published), as_json)


def _stage(text: str) -> None:
    """Progress, so on a terminal only."""
    if sys.stderr.isatty():
        note(text)


def _tasks(path: Path) -> Pool:
    """The lab's tasks of task seed 0, written where the demo works."""
    from priorkit.lab.pools import lab_pool
    from priorkit.pool import read_pool, write_pool

    pool = lab_pool(0)
    mine = not path.exists() or read_pool(path, None).fingerprint == pool.fingerprint
    write_pool(path, pool, {"source": "priorkit lab", "task_seed": 0}, force=mine)
    return pool.of_split("train")


def _probe(folder: Path, pool: Pool, new_tokens: int, force: bool, as_json: bool) -> FinishedProbe:
    from priorkit.engines.protocol import Sampling
    from priorkit.engines.template import DEFAULT_INSTRUCTION
    from priorkit.probe import ProbeSettings

    settings = ProbeSettings(SAMPLES, Sampling(max_new_tokens=new_tokens))
    model = {"dtype": "float32", "device": "cpu", "batch_size": 256}
    shape = {"mode": "auto", "instruction": DEFAULT_INSTRUCTION, "max_prompt_tokens": 384}
    return run_probe(
        "lab-anchor", pool, settings, "transformers", model, shape,
        folder / "probes", None, force, as_json,
    )  # fmt: skip


def _recipe(folder: Path, arm: str, settings: Any) -> Recipe:
    from priorkit.recipe import Recipe

    return Recipe(
        policy="lab-policy",
        settings=settings,
        pool=folder / "pool.parquet",
        prior=None if arm == "online-np" else folder / "priors.parquet",
        selector=arm,
        dtype="float32",
        device="cpu",
    )


def arm_figures(run: Run) -> dict[str, Any]:
    """What the table says of one run."""
    from priorkit.run_figures import accuracy_at, silent_at, waste_at

    last = len(run.steps)
    accuracy = {}
    for step in (0, last):
        successes, trials = accuracy_at(run, step)
        accuracy[step] = float(successes.sum() / trials.sum())
    return {
        "silent@10": silent_at(run, 10),
        f"silent@{last}": silent_at(run, last),
        "waste@30": waste_at(run, 30),
        "accuracy_before": accuracy[0],
        "accuracy_after": accuracy[last],
        "prompts_seen": len({group.prompt_id for group in run.groups}),
        "path": str(run.folder),
    }


def story(
    done: FinishedProbe, pool: Pool, prior: BetaPrior, best: list[Choice],
    runs: dict[str, Run], published: Path,
) -> str:  # fmt: skip
    """The account printed at the end."""
    rate = prior.measured
    extreme = int(((rate == 0) | (rate == 1)).sum())
    solved = int(done.result.counts.successes.sum())
    facts = {arm: arm_figures(run) for arm, run in runs.items()}
    columns = [name for name in next(iter(facts.values())) if name != "path"]
    rows = [
        [arm, *(f"{one[c]:.3f}" if isinstance(one[c], float) else str(one[c]) for c in columns)]
        for arm, one in facts.items()
    ]
    folder = runs["thinkprior"].folder
    return "\n".join(
        [
            f"1. lab-anchor answered {len(pool)} arithmetic problems, {SAMPLES} times each, "
            f"{solved} of {len(done.result.outcomes)} correctly.",
            "   Solve rate, prompts:",
            rate_histogram(rate),
            "2. Each rate became a Beta prior: alpha = 4·rate + .001, beta = 4·(1 − rate) + .001.",
            f"   {extreme} prompts were never or always solved: 8 rollouts of one would most "
            "likely agree, and teach nothing.",
            "   Highest E[U] first, the probability that 8 rollouts disagree:",
            choices(best, pool.prompt, prior),
            f"3. lab-policy was trained {len(runs)} times with GRPO, 8 prompts × 8 rollouts an "
            "update; only the choice of prompts differs:",
            table(["picked by", *(name.replace("_", " ") for name in columns)], rows),
            "   A silent group's rollouts agree: that share of the work is wasted. Accuracy also",
            "   wants many different prompts, and here uniform sampling sees the most of them.",
            "   This is one seed an arm; data/README.md has 24 runs an arm, with intervals.",
            "4. Where to look:",
            f"   {shown_path(published)}",
            *(f"   {shown_path(run.folder)}" for run in runs.values()),
            f"   `priorkit show {shown_path(folder)}` tells how a run went.",
            "Next: `priorkit probe --anchor MODEL` probes the bundled pool with a model of yours.",
        ]
    )
