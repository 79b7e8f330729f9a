"""`priorkit prior`: look at a prior, check it, bring one in, take one out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, one_line, rate_histogram, shown_path, table

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior
    from priorkit.rank import Choice

app = typer.Typer(help="Show, check, import or export a prior file.", no_args_is_help=True)

PriorFile = Annotated[Path, typer.Argument(metavar="[PRIOR]", help="Prior file.")]
DEFAULT = Path("priors.parquet")


@app.command("show")
def show(
    path: PriorFile = DEFAULT,
    pool: options.PoolSource = None,
    top: Annotated[int, typer.Option(help="How many of the best prompts to list.")] = 10,
    group_size: options.GroupSize = 8,
    as_json: options.AsJson = False,
) -> None:
    """Summarise a prior: its origin, its rates, and what a selector would take first.

    Example: priorkit prior show priors.parquet
    """
    from priorkit.pool import read_pool
    from priorkit.prior import fit_to_pool, read_prior
    from priorkit.rank import first_choices

    prior = read_prior(path)
    texts = None
    if pool is not None:
        held = read_pool(pool)
        prior, texts = fit_to_pool(prior, held).prior, held.prompt
    best = first_choices(prior, min(max(top, 0), len(prior)), group_size)
    summary = {"file": str(path), **describe(prior), "top": best}
    emit(summary, "\n".join([origin(path, prior), choices(best, texts, prior)]), as_json)


def describe(prior: BetaPrior) -> dict[str, Any]:
    """A prior in figures."""
    rate = prior.mean if prior.rate is None else prior.rate
    return {
        "kind": prior.kind,
        "prompts": len(prior),
        "mean_rate": float(rate.mean()),
        "never_solved": int((rate == 0).sum()),
        "always_solved": int((rate == 1).sum()),
        "provenance": dict(prior.provenance),
    }


def origin(path: Path, prior: BetaPrior) -> str:
    """Where a prior comes from, and its rates, for people."""
    facts = describe(prior)
    told = [
        f"{name:<9} {one_line(value, 100)}"
        for name, value in sorted(prior.provenance.items())
        if not isinstance(value, dict)
    ]
    told += [
        f"{name:<9} " + ", ".join(f"{k} {one_line(v, 40)}" for k, v in sorted(value.items()))
        for name, value in sorted(prior.provenance.items())
        if isinstance(value, dict)
    ]
    return "\n".join(
        [
            f"{shown_path(path)}: {facts['kind']} prior of {facts['prompts']} prompts, mean rate "
            f"{facts['mean_rate']:.3f}",
            *told,
            "solve rate, prompts",
            rate_histogram(prior.mean if prior.rate is None else prior.rate),
        ]
    )


def choices(best: list[Choice], texts: Any, prior: BetaPrior) -> str:
    """The prompts a selector would take first, and why."""
    if not best:
        return ""
    rows = []
    for one in best:
        counts = "" if one["trials"] is None else f"{one['successes']}/{one['trials']}"
        label = one_line(one["prompt_id"] if texts is None else texts[one["row"]], 64)
        rows.append(
            [label, counts, f"{one['alpha']:.3f}", f"{one['beta']:.3f}", f"{one['score']:.3f}"]
        )
    header = ["taken first", "solved", "alpha", "beta", "E[U]"]
    ties = sum(one["score"] == best[-1]["score"] for one in best)
    told = f"\n  the last {ties} of them score alike and stand in pool order" if ties > 1 else ""
    return table(header, rows) + told


@app.command("check")
def check(
    path: PriorFile = DEFAULT,
    pool: options.PoolSource = None,
    missing: options.MissingRule = "refuse",
    as_json: options.AsJson = False,
) -> None:
    """Say whether a prior is sound, and whether it serves a pool.

    Without --pool only the file itself is checked. Exit code 1 means that it is not fit.

    Example: priorkit prior check priors.parquet --pool pool.parquet
    """
    from priorkit.pool import read_pool
    from priorkit.prior import fit_to_pool, read_prior

    prior = read_prior(path)
    verdict: dict[str, Any] = {"file": str(path), "sound": True, "prompts": len(prior)}
    lines = [f"{shown_path(path)}: sound, {len(prior)} prompts"]
    if pool is not None:
        held = read_pool(pool)
        fitted = fit_to_pool(prior, held, missing)  # type: ignore[arg-type]
        compared = "text, answer and verifier" if fitted.hashes_known else "ids only"
        verdict |= {
            "serves": str(pool),
            "missing": fitted.n_missing,
            "extra": fitted.n_extra,
            "compared": compared,
        }
        lines.append(
            f"serves {pool}: {len(held)} prompts compared by {compared}, "
            f"{fitted.n_missing} filled by --missing {missing}, {fitted.n_extra} more in the prior"
        )
    emit(verdict, "\n".join(lines), as_json)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Rates: .parquet, .csv, .jsonl or a .json map.")],
    pool: options.PoolSource = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Prior file to write.")] = DEFAULT,
    id_column: options.IdColumn = None,
    rate_column: options.RateColumn = None,
    successes_column: options.SuccessesColumn = None,
    trials_column: options.TrialsColumn = None,
    anchor: Annotated[str | None, typer.Option(help="The model that was measured.")] = None,
    kappa: options.Kappa = 4.0,
    epsilon: options.Epsilon = 1e-3,
    missing: options.MissingRule = "refuse",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Make a prior from measured rates: a pass-rate column, counts, or a map of scores.

    A JSON map is keyed by prompt id, by pool index or by prompt text. With --pool the prior is
    put in the pool's order and carries its row hashes.

    Example: priorkit prior import rates.csv --rate-column pass_rate --trials-column 16
    """
    from priorkit.errors import PriorFileError
    from priorkit.pool import read_pool
    from priorkit.prior import import_prior, write_prior
    from priorkit.rates import RateColumns, read_rates

    held = None if pool is None else read_pool(pool)
    columns = RateColumns(id_column, rate_column, successes_column, trials_column)
    rates = read_rates(source, columns, held, PriorFileError)
    prior = import_prior(rates, source, held, anchor, kappa, epsilon, missing)  # type: ignore[arg-type]
    write_prior(out, prior, force=force)
    facts = describe(prior)
    emit(
        {"file": str(out), **facts},
        f"{shown_path(out)}: {len(prior)} prompts, mean rate {facts['mean_rate']:.3f}, "
        f"{facts['never_solved']} never and {facts['always_solved']} always solved",
        as_json,
    )


@app.command("export")
def export(
    path: PriorFile = DEFAULT,
    out: options.OutFile = None,
    fmt: Annotated[
        str, typer.Option("--format", metavar="csv|jsonl|json", help="json: a map id → rate.")
    ] = "csv",
    force: options.Force = False,
) -> None:
    """Write a prior in another format, to a file or to stdout.

    Example: priorkit prior export priors.parquet --format csv --out priors.csv
    """
    from priorkit.parquet import replacing
    from priorkit.prior import export_text, read_prior

    text = export_text(read_prior(path), fmt)
    if out is None:
        typer.echo(text, nl=False)
        return
    with replacing(out, force=force) as partial:
        partial.write_text(text, encoding="utf-8")
    typer.echo(f"{shown_path(out)}: written")
