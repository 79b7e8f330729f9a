"""Options that several commands share: one spelling, one help text, one default each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
PoolSource = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="FILE|ORG/NAME",
        help="Prompt pool: .parquet, .jsonl, .csv, or a data set on the hub. "
        "Default: the bundled pool.",
    ),
]
PoolToFit = Annotated[
    str | None,
    typer.Option("--pool", metavar="FILE|ORG/NAME", help="Prompt pool the prior is about."),
]
GroupSize = Annotated[int, typer.Option("--group-size", "-G", help="Rollouts in a group.")]
Kappa = Annotated[float, typer.Option("--kappa", help="Weight of a rate, in pseudo-rollouts.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Added to both pseudo-counts.")]
MissingRule = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="refuse|mean|beta11",
        help="What a prompt that has no rate gets: the mean rate, or Beta(1, 1).",
    ),
]
IdColumn = Annotated[str | None, typer.Option("--id-column", help="Column of the prompt ids.")]
RateColumn = Annotated[str | None, typer.Option("--rate-column", help="Column of the solve rates.")]
SuccessesColumn = Annotated[
    str | None, typer.Option("--successes-column", help="Column of correct counts.")
]
TrialsColumn = Annotated[
    str | None,
    typer.Option("--trials-column", help="Column of sample counts, or one number for all rows."),
]
OutFile = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
Dtype = Annotated[
    str, typer.Option(metavar="auto|float32|bfloat16", help="auto: bfloat16 on a GPU.")
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where it runs.")]
BatchSize = Annotated[int, typer.Option(help="Sequences decoded together.")]
TemplateMode = Annotated[
    str,
    typer.Option(
        "--template", metavar="auto|chat|plain", help="auto: chat when the tokenizer has one."
    ),
]
Instruction = Annotated[str, typer.Option(help="Appended to every prompt.")]
MaxPromptTokens = Annotated[int, typer.Option(help="Longer prompts lose the left of their text.")]
