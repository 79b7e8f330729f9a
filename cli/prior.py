"""`priorkit prior`: look at a prior, check it, bring one in, take one out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, one_line, rate_histogram, shown_path, table, warn

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior
    from priorkit.rank import Choice

app = typer.Typer(help="Show, check, import or export a prior file.", no_args_is_help=True)

PriorFile = Annotated[Path, typer.Argument(metavar="[PRIOR]", help="Prior file.")]
DEFAULT = Path("priors.parquet")


@app.command("show")
def show(
    path: PriorFile = DEFAULT,
    pool: options.PoolToFit = None,
    top: Annotated[int, typer.Option(help="How many of the best prompts to list.")] = 10,
    group_size: options.GroupSize = 8,
    missing: options.MissingRule = "refuse",
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
        prior, texts = fit_to_pool(prior, held, missing).prior, held.prompt  # type: ignore[arg-type]
    best = first_choices(prior, min(max(top, 0), len(prior)), group_size)
    summary = {"file": str(path), **describe(prior), "top": best}
    emit(summary, "\n".join([origin(path, prior), choices(best, texts, prior)]), as_json)


def describe(prior: BetaPrior) -> dict[str, Any]:
    """A prior in figures."""
    rate = prior.measured
    return {
        "kind": prior.kind,
        "prompts": len(prior),
        "without_rate": len(prior) - len(rate),
        "mean_rate": float(rate.mean()),
        "never_solved": int((rate == 0).sum()),
        "always_solved": int((rate == 1).sum()),
        "provenance": dict(prior.provenance),
    }


def origin(path: Path, prior: BetaPrior) -> str:
    """Where a prior comes from, and its rates, for people."""
    facts = describe(prior)
    account = sorted(prior.provenance.items())
    unknown = [name for name, value in account if value == "unknown"]
    told = [(name, one_line(_flat(value), 120)) for name, value in account if name not in unknown]
    width = max([len(name) for name, _ in told] + [7])
    is_posterior = prior.kind == "posterior"
    filled = f", {facts['without_rate']} of them without" if facts["without_rate"] else ""
    return "\n".join(
        [
            f"{shown_path(path)}: {facts['kind']} prior of {facts['prompts']} prompts, mean rate "
            f"{facts['mean_rate']:.3f}{filled}",
            *(f"  {name:<{width}}  {value}" for name, value in told),
            *([f"  {'unknown':<{width}}  {', '.join(unknown)}"] if unknown else []),
            *(["  train takes it at strength 4, unless told --keep-strength"] * is_posterior),
            "solve rate, prompts",
            rate_histogram(prior.measured),
        ]
    )


def _flat(value: Any) -> str:
    """A provenance value without its brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(one)}" for key, one in sorted(value.items()))
    if isinstance(value, list):
        return "; ".join(map(_flat, value))
    return str(value)


def choices(best: list[Choice], texts: Any, prior: BetaPrior) -> str:
    """The prompts a selector would take first, and why."""
    if not best:
        return ""
    rows = []
    for one in best:
        label = one["prompt_id"] if texts is None else last_words(texts[one["row"]])
        rows.append(
            [
                one_line(label, 64),
                _solved(one, prior),
                f"{one['alpha']:.3f}",
                f"{one['beta']:.3f}",
                f"{one['score']:.3f}",
            ]
        )
    header = ["taken first", "solved", "alpha", "beta", "E[U]"]
    ties = sum(one["score"] == best[-1]["score"] for one in best)
    told = f"\n  the last {ties} of them score alike and stand in pool order" if ties > 1 else ""
    return table(header, rows) + told


def _solved(one: Choice, prior: BetaPrior) -> str:
    if one["successes"] is not None and one["trials"]:
        return f"{one['successes']}/{one['trials']}"
    rate = None if prior.rate is None else float(prior.rate[one["row"]])
    return "" if rate is None or rate != rate else f"{rate:.3f}"


def last_words(prompt: Any) -> str:
    """What a prompt asks: its text, or the last message of its user."""
    if isinstance(prompt, str):
        return prompt
    return str([message["content"] for message in prompt if message["role"] == "user"][-1:] or "")


@app.command("check")
def check(
    path: PriorFile = DEFAULT,
    pool: options.PoolToFit = None,
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
        if fitted.hashes_known and prior.kind == "import" and "matched_by" in prior.provenance:
            compared += f" since its import, by {prior.provenance['matched_by']}"
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
    pool: options.PoolToFit = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Prior file to write.")] = DEFAULT,
    id_column: options.IdColumn = None,
    rate_column: options.RateColumn = None,
    successes_column: options.SuccessesColumn = None,
    trials_column: options.TrialsColumn = None,
    anchor: Annotated[str | None, typer.Option(help="The model that was measured.")] = None,
    kappa: Annotated[
        float | None,
        typer.Option(
            help="Weight of a rate, in pseudo-rollouts. Default: the table's own beliefs, else 4."
        ),
    ] = None,
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
    from priorkit.exchange import import_prior
    from priorkit.pool import read_pool
    from priorkit.prior import check_missing, write_prior
    from priorkit.rates import RateColumns, read_rates

    check_missing(missing)
    held = None if pool is None else read_pool(pool)
    columns = RateColumns(id_column, rate_column, successes_column, trials_column)
    rates = read_rates(source, columns, held, PriorFileError)
    prior = import_prior(rates, source, held, anchor, kappa, epsilon, missing)  # type: ignore[arg-type]
    write_prior(out, prior, force=force)
    facts = describe(prior)
    known = set() if held is None else set(prior.prompt_id)
    foreign = 0 if held is None else sum(key not in known for key in rates.prompt_id)
    if foreign:
        warn(f"{foreign} of {len(rates)} rates are of prompts that the pool does not have")
    if rates.n_blank:
        warn(f"{rates.n_blank} rows have no rate and were left out")
    if facts["without_rate"]:
        warn(f"{facts['without_rate']} prompts have no rate and got the rule --missing {missing}")
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
        str | None,
        typer.Option(
            "--format",
            metavar="csv|jsonl|json",
            help="json: a map id → rate. Default: the ending of --out, else csv.",
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Write a prior in another format, to a file or to stdout.

    Example: priorkit prior export priors.parquet --format csv --out priors.csv
    """
    from priorkit.exchange import export_text
    from priorkit.parquet import replacing
    from priorkit.prior import read_prior

    ending = "csv" if out is None else out.suffix.lstrip(".").lower()
    text = export_text(read_prior(path), ending if fmt is None else fmt)
    if out is None:
        typer.echo(text, nl=False)
        return
    with replacing(out, force=force) as partial:
        partial.write_text(text, encoding="utf-8")
    typer.echo(f"{shown_path(out)}: written")
