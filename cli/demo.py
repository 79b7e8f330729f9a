"""`priorkit demo`: the whole thread on this machine's CPU, with a small model that comes along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .output import emit, rate_histogram, shown_path
from .prior import choices, describe
from .probe import FinishedProbe, publish, run_probe, write_results

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior
    from priorkit.pool import Pool
    from priorkit.rank import Choice

PROMPTS, SAMPLES = 36, 8
SUBJECTS = ("arithmetic", "everyday", "sequences")
# What suits so small a model: few tokens, a cool temperature, an answer in words.
NEW_TOKENS, TEMPERATURE = 64, 0.5
INSTRUCTION = "Think step by step, then say: The answer is"


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("demo"),
    anchor: Annotated[str, typer.Option(help="Model that answers.")] = "smollm2",
    force: Annotated[bool, typer.Option("--force", help="Start the demo over.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Probe bundled prompts with a small model on the CPU, and rank them.

    Example: priorkit demo
    """
    from priorkit.engines.protocol import Sampling
    from priorkit.probe import ProbeSettings
    from priorkit.rank import first_choices

    pool = demo_pool(folder / "pool.parquet")
    settings = ProbeSettings(SAMPLES, Sampling(TEMPERATURE, max_new_tokens=NEW_TOKENS))
    model = {"dtype": "float32", "device": "cpu", "batch_size": 64}
    shape = {"mode": "auto", "instruction": INSTRUCTION, "max_prompt_tokens": 384}
    done = run_probe(
        anchor,
        pool,
        settings,
        "transformers",
        model,
        shape,
        folder / "probes",
        None,
        force,
        as_json,
    )
    prior = write_results(done, 4.0, 1e-3, "refuse")
    target = folder / "priors.parquet"
    publish(done.prior_path, target, prior)
    best = first_choices(prior, 10)
    paths = [folder / "pool.parquet", done.probe.outcomes_path, done.prior_path, target]
    result = {"paths": [str(path) for path in paths], **describe(prior), "top": best}
    emit(result, story(done, pool, prior, best, paths), as_json)


def demo_pool(path: Path) -> Pool:
    """A sample of the easiest bundled exercises, written where the demo works."""
    import numpy as np

    from priorkit.pool import bundled_exercises, read_pool, write_pool
    from priorkit.spread import make_pool

    exercises = read_pool(bundled_exercises())
    assert exercises.level is not None
    assert exercises.subject is not None
    easy = (exercises.level == 1) & np.isin(exercises.subject.astype(str), SUBJECTS)
    pool = make_pool(exercises.take(np.flatnonzero(easy)), PROMPTS, 0, seed=0)
    mine = not path.exists() or read_pool(path).fingerprint == pool.fingerprint
    write_pool(path, pool, {"source": "priorkit exercises, level 1", "seed": 0}, force=mine)
    return pool


def story(
    done: FinishedProbe, pool: Pool, prior: BetaPrior, best: list[Choice], paths: list[Path]
) -> str:
    """The account printed at the end."""
    rate = prior.measured
    extreme = int(((rate == 0) | (rate == 1)).sum())
    outcomes = done.result.outcomes
    truncated = int((outcomes.status == "truncated").sum())
    solved = int(done.result.counts.successes.sum())
    return "\n".join(
        [
            f"1. {done.probe.model} answered {len(pool)} prompts, {SAMPLES} times each.",
            f"   The verifier found {solved} of {len(outcomes)} correct; {truncated} ended at the "
            "length limit without an answer.",
            "   Solve rate, prompts:",
            rate_histogram(rate),
            "2. Each rate became a Beta prior: alpha = 4·rate + .001, beta = 4·(1 − rate) + .001.",
            f"   {extreme} prompts were never or always solved: 8 rollouts of one would most "
            "likely agree, and teach nothing.",
            "3. A selector takes the highest E[U] first, the probability that 8 rollouts disagree:",
            choices(best, pool.prompt, prior),
            "4. Written:",
            *(f"   {shown_path(path)}" for path in paths),
            "Next: `priorkit probe --anchor MODEL` probes the bundled pool with a model of yours.",
        ]
    )
