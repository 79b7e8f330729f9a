"""`priorkit evaluate --prior`: how well priors foretell measured solve rates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import emit, shown_path, table

if TYPE_CHECKING:
    from priorkit.evaluate import Calibration, Figure
    from priorkit.rates import RateColumns

FIGURES = (
    ("spearman", "Spearman, all"),
    ("spearman_band", "Spearman, band"),
    ("auc_band", "AUC of the band"),
    ("mae", "MAE"),
    ("brier", "Brier"),
)


def evaluate_priors(
    priors: list[Path], reference: Path, columns: RateColumns, by: str | None, group_size: int,
    bootstrap: int, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Judge priors against reference solve rates, over the pool and in the learnable band."""
    import numpy as np

    from priorkit.evaluate import evaluate_prior, group_means, known_to_all
    from priorkit.prior import read_prior
    from priorkit.rates import read_rates

    measured = read_rates(reference, columns)
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
