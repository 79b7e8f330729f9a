"""`priorkit evaluate`: how well priors foretell measured solve rates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, shown_path, table

if TYPE_CHECKING:
    from priorkit.evaluate import Calibration, Figure

FIGURES = (
    ("spearman", "Spearman, all"),
    ("spearman_band", "Spearman, band"),
    ("auc_band", "AUC of the band"),
    ("mae", "MAE"),
    ("brier", "Brier"),
)


def evaluate(
    priors: Annotated[
        list[Path], typer.Option("--prior", help="Prior file; repeat to compare several.")
    ],
    reference: Annotated[
        Path,
        typer.Option(
            "--reference",
            help="Measured rates: outcomes, a prior, or a table with rates or counts.",
        ),
    ],
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
    as_json: options.AsJson = False,
) -> None:
    """Judge priors against reference solve rates, over the pool and in the learnable band.

    The band is U(p) > 0.8 at the reference rate. Intervals are bootstrapped over prompts.

    Example: priorkit evaluate --prior priors.parquet --reference rates.csv
    """
    import numpy as np

    from priorkit.evaluate import evaluate_prior, group_means, known_to_all
    from priorkit.prior import read_prior
    from priorkit.rates import RateColumns, read_rates

    measured = read_rates(
        reference, RateColumns(id_column, rate_column, successes_column, trials_column)
    )
    held = {str(path): read_prior(path) for path in priors}
    shared = known_to_all(measured, held.values())
    judged = {
        path: evaluate_prior(
            prior,
            shared,
            np.random.Generator(np.random.PCG64(seed)),
            group_size,
            bootstrap,
        )
        for path, prior in held.items()
    }
    groups = group_means(measured, by) if by is not None else []
    result: dict[str, Any] = {
        "reference": str(reference),
        "prompts": len(shared),
        "priors": {path: asdict(calibration) for path, calibration in judged.items()},
        "by": [{"value": value, "prompts": n, "mean_rate": mean} for value, n, mean in groups],
    }
    parts = [side_by_side(judged, reference), *map(reliability, judged.items())]
    if groups:
        rows = [[str(value), str(n), f"{mean:.3f}"] for value, n, mean in groups]
        parts.append(table([str(by), "prompts", "mean rate"], rows))
    emit(result, "\n\n".join(parts), as_json)


def side_by_side(judged: dict[str, Calibration], reference: Path) -> str:
    """One row a prior."""
    header = ["prior", *(title for _, title in FIGURES)]
    rows = [
        [shown_path(path), *(_shown(getattr(calibration, name)) for name, _ in FIGURES)]
        for path, calibration in judged.items()
    ]
    first = next(iter(judged.values()))
    told = [
        f"{shown_path(path)}: {c.n_floor_in_band} prompts of the band were never or always solved "
        "in its source"
        for path, c in judged.items()
    ]
    head = (
        f"against {shown_path(reference)}: {first.n} prompts that all know, {first.n_band} of them "
        "in the learnable band"
    )
    return "\n".join([head, table(header, rows), *told])


def reliability(item: tuple[str, Calibration]) -> str:
    """The reliability table of one prior."""
    path, calibration = item
    rows = [
        [f"{b.low:.1f}-{b.high:.1f}", str(b.n), f"{b.expected:.3f}", f"{b.measured:.3f}"]
        for b in calibration.reliability
    ]
    return "\n".join(
        [shown_path(path), table(["expected", "prompts", "mean expected", "mean measured"], rows)]
    )


def _shown(figure: Figure) -> str:
    if figure.value != figure.value:
        return "–"
    if figure.low != figure.low:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
