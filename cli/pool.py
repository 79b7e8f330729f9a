"""`priorkit pool`: look at a prompt pool, or make one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .output import emit, shown_path, table, warn

if TYPE_CHECKING:
    from priorkit.pool import Pool

app = typer.Typer(help="Show a prompt pool, or make one.", no_args_is_help=True)


@app.command("show")
def show(
    source: Annotated[str | None, typer.Argument(metavar="[POOL]", help="Pool file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Summarise a pool: prompts by level and subject, splits, identity.

    Example: priorkit pool show pool.parquet
    """
    from priorkit.pool import bundled_pool, read_pool

    pool = read_pool(source or bundled_pool(), split=None)
    emit(describe(pool), in_words(pool, source or "the bundled pool"), as_json)


def describe(pool: Pool) -> dict[str, Any]:
    """A pool in figures."""
    splits = {str(name): pool.of_split(name) for name in sorted(set(pool.split))}
    return {
        "prompts": {name: len(part) for name, part in splits.items()},
        "fingerprint": {name: part.fingerprint for name, part in splits.items()},
        "order_hash": {name: part.order_hash for name, part in splits.items()},
        "levels": {} if pool.level is None else _tally(pool.level),
        "subjects": {} if pool.subject is None else _tally(pool.subject),
        "verifiers": _tally(pool.verifier),
    }


def in_words(pool: Pool, name: object) -> str:
    """A pool for people."""
    facts = describe(pool)
    held = ", ".join(f"{count} {split}" for split, count in facts["prompts"].items())
    lines = [f"{name}: {held} prompts"]
    lines += [f"fingerprint {part} {hash_}" for part, hash_ in facts["fingerprint"].items()]
    part = pool.of_split("train")
    if part.level is not None and part.subject is not None and len(part):
        cells = Counter(zip(part.subject.tolist(), part.level.tolist(), strict=True))
        levels = sorted(set(part.level.tolist()))
        rows = [
            [subject or "–", *(str(cells[subject, level]) for level in levels)]
            for subject in sorted(set(part.subject.tolist()))
        ]
        header = ["train prompts", *("–" if level < 0 else f"level {level}" for level in levels)]
        lines.append(table(header, rows))
    return "\n".join(lines)


def _tally(values: Any) -> dict[str, int]:
    return {str(key): count for key, count in sorted(Counter(values.tolist()).items())}


@app.command("make")
def make(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="Any pool source. Default: the bundled exercises."),
    ] = None,
    size: Annotated[int | None, typer.Option(help="Training prompts. Default: all.")] = None,
    eval_size: Annotated[
        int | None,
        typer.Option(help="Eval prompts. Default: the source's own, else 200 of what is left."),
    ] = None,
    seed: options.Seed = 0,
    id_column: options.IdColumn = None,
    prompt_column: Annotated[str | None, typer.Option(help="Column of the prompts.")] = None,
    answer_column: Annotated[str | None, typer.Option(help="Column of the answers.")] = None,
    drop_unanswered: Annotated[
        bool, typer.Option("--drop-unanswered", help="Leave out rows without an answer.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Pool file to write.")] = Path(
        "pool.parquet"
    ),
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Sample a pool evenly over levels and subjects, shuffle it, set an eval split aside.

    Example: priorkit pool make --size 250 --out pool.parquet
    """
    from priorkit.pool import bundled_exercises, read_pool, write_pool
    from priorkit.rows import PoolColumns
    from priorkit.spread import make_pool

    columns = PoolColumns(id_column, prompt_column, answer_column, drop_unanswered)
    held = read_pool(source or bundled_exercises(), split=None, columns=columns)
    pool = make_pool(held, size, eval_size, seed)
    provenance = {
        "source": source or "priorkit exercises",
        "source_fingerprint": held.fingerprint,
        "size": size,
        "eval_size": eval_size,
        "seed": seed,
    }
    write_pool(out, pool, provenance, force=force)
    if not len(pool.of_split("eval")):
        warn("no prompts were left for an eval split")
    emit({"file": str(out), **describe(pool)}, in_words(pool, shown_path(out)), as_json)
