"""`priorkit evaluate`: how accurate a model is, or how well priors foretell measured rates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from priorkit.engines.template import DEFAULT_INSTRUCTION

from . import options


def evaluate(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|MODEL|ADAPTER]",
            help="Run folder or name, model, or adapter folder; default: the newest run.",
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="FILE", help="A pool file, of which every row is asked.")
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="FILE|ORG/NAME", help="A pool, of which the eval split is asked."),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Responses a prompt; 1 is greedy, more are drawn at 0.9.")
    ] = 1,
    temperature: Annotated[
        float | None, typer.Option(help="Instead of 0 for one sample and 0.9 for several.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(help="Tokens generated at most; default: the run's, or 512.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The model an adapter belongs to.")
    ] = None,
    template: Annotated[
        str, typer.Option(metavar="auto|chat|plain", help="For a model; a run brings its own.")
    ] = "auto",
    instruction: Annotated[
        str, typer.Option(help="For a model; a run brings its own.")
    ] = DEFAULT_INSTRUCTION,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 64,
    name: Annotated[str | None, typer.Option(help="Folder name of the responses.")] = None,
    root: Annotated[Path, typer.Option(help="Folder of all evaluations.")] = Path("evals"),
    runs: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    priors: Annotated[
        list[Path] | None,
        typer.Option("--prior", help="Judge this prior file instead; repeat to compare several."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            help="Rates to judge priors against: outcomes, a prior, or a table with rates.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Also mean reference rates by this column.")
    ] = None,
    id_column: options.IdColumn = None,
    rate_column: options.RateColumn = None,
    successes_column: options.SuccessesColumn = None,
    trials_column: options.TrialsColumn = None,
    group_size: options.GroupSize = 8,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for intervals; 0: none.")] = 1000,
    seed: options.Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Start this evaluation over.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure a run's, a model's or an adapter's accuracy on held-out prompts.

    One greedy response a prompt gives accuracy with a Wilson interval; --samples n gives avg@n and
    pass@k with intervals bootstrapped over prompts. With --prior and --reference, judge priors
    instead: over the pool and in the learnable band, U(p) > 0.8 at the reference rate.

    Example: priorkit evaluate

    Example: priorkit evaluate --prior priors.parquet --reference rates.csv
    """
    from priorkit.errors import SettingError
    from priorkit.rates import RateColumns

    if priors or reference is not None:
        if not priors or reference is None:
            raise SettingError("priors are judged with both --prior and --reference")
        if target is not None:
            raise SettingError(f"either {target!r} or --prior is evaluated, not both")
        from .evaluate_prior import evaluate_priors

        columns = RateColumns(id_column, rate_column, successes_column, trials_column)
        evaluate_priors(priors, reference, columns, by, group_size, bootstrap, seed, as_json)
        return
    from .evaluate_model import Question, evaluate_model

    question = Question(
        suite=suite,
        pool=pool,
        samples=samples,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        base=base,
        template=template,
        instruction=instruction,
        model={"dtype": dtype, "device": device, "batch_size": batch_size},
        seed=seed,
    )
    evaluate_model(target, question, root, runs, name, force, as_json)
