"""A table of measured solve rates from anywhere: another tool's pass-rate column, or outcomes.

`P` prompts. Both a prior's import and an evaluation's reference are read here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from priorkit import parquet, tables
from priorkit.columns import FloatArray, IntArray, TextArray, as_ids, id_text
from priorkit.errors import FileError, MismatchError, OutcomesFileError, SettingError
from priorkit.outcomes import read_outcomes
from priorkit.pool import Pool
from priorkit.prior import read_prior

_RATE_NAMES = ("rate", "pass_rate", "passrate", "solve_rate", "success_rate", "mean_reward")
_ID_NAMES = ("prompt_id", "id", "index")


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Measured solve rates.

    Attributes:
        prompt_id: `[P]` keys.
        rate: `[P]` in [0, 1].
        successes: `[P]` counts behind the rate; None when not known.
        trials: `[P]` samples behind the rate; None when not known.
        beliefs: `[P]` alpha and beta, where the table holds a prior's; None otherwise.
        row_hash: `[P]` hashes of the pool rows measured, where the table holds them.
        matched_by: how rows name their prompts: `id`, `text` or `index`.
        n_blank: rows left out, since they had no rate.
        table: the source's other columns, `[P]` each, for grouping.
    """

    prompt_id: TextArray
    rate: FloatArray
    successes: IntArray | None
    trials: IntArray | None
    table: tables.Columns
    beliefs: tuple[FloatArray, FloatArray] | None = None
    row_hash: TextArray | None = None
    matched_by: str = "id"
    n_blank: int = 0

    def __len__(self) -> int:
        return len(self.prompt_id)


@dataclass(frozen=True, slots=True)
class RateColumns:
    """Names of a table's columns, where they are not ours.

    Attributes:
        prompt_id: None looks for `prompt_id`, `id`, `index`.
        rate: None looks for `successes` with `trials`, then `rate`, `pass_rate` and their like.
        successes: a count column, with `trials`.
        trials: a count column, or one whole number for all rows.
    """

    prompt_id: str | None = None
    rate: str | None = None
    successes: str | None = None
    trials: str | None = None


def read_rates(
    path: str | Path,
    columns: RateColumns = RateColumns(),
    pool: Pool | None = None,
    error: type[FileError] = OutcomesFileError,
) -> Rates:
    """Rates from an outcomes file, a prior, a table, or a JSON map of scores.

    Args:
        path: `.parquet`, `.csv`, `.jsonl`, `.json`.
        columns: the table's column names.
        pool: needed for a JSON map keyed by pool index or prompt text.
        error: class raised when the file cannot be used.

    Raises:
        FileError: of the class given.
        MismatchError: a JSON map that does not fit the pool.
    """
    source = Path(path)
    if source.suffix == ".parquet":
        footer = parquet.footer_of(source, error)
        if footer and footer.get("kind") == "outcomes":
            return _from_outcomes(source)
        if footer and footer.get("kind") == "prior":
            return _from_prior(source)
    if source.suffix == ".json":
        document = tables.read_json(source, error)
        if isinstance(document, Mapping):
            return _from_map(source, document, pool, error)
    return _from_columns(source, tables.read_table(source, error), columns, error)


def _from_outcomes(path: Path) -> Rates:
    outcomes = read_outcomes(path)
    counts = outcomes.counts(as_ids(list(dict.fromkeys(outcomes.prompt_id))))
    tried = counts.trials > 0
    successes, trials = counts.successes[tried], counts.trials[tried]
    return Rates(counts.prompt_id[tried], successes / trials, successes, trials, {})


def _from_prior(path: Path) -> Rates:
    prior = read_prior(path)
    rate = prior.mean if prior.rate is None else prior.rate
    return Rates(prior.prompt_id, rate, prior.successes, prior.trials, {})


def _from_columns(
    path: Path, table: tables.Columns, names: RateColumns, error: type[FileError]
) -> Rates:
    counted = names.successes or (
        "successes" if names.rate is None and "successes" in table else None
    )
    if counted is None:
        measured = _name(path, table, names.rate, _RATE_NAMES, "rate", error)
    else:
        measured = _name(path, table, counted, (), "successes", error)
    kept = [row for row, value in enumerate(table[measured]) if not _is_blank(value)]
    n_blank = len(table[measured]) - len(kept)
    table = {name: [values[row] for row in kept] for name, values in table.items()}
    id_name = _name(path, table, names.prompt_id, _ID_NAMES, "id", error)
    ids = [_id(path, row, value, error) for row, value in enumerate(table[id_name])]
    if len(set(ids)) != len(ids) or not ids:
        raise error(
            f"{path}: ids must be unique and at least one, found {len(set(ids))} different ids in "
            f"{len(ids)} rows with a {measured}"
        )
    trials = _trials(path, table, names.trials, ids, error)
    values = _numbers(path, table[measured], measured, ids, error)
    successes = None
    if counted is None:
        bad = ~((values >= 0) & (values <= 1))
        _refuse(path, bad, measured, "must lie in [0, 1]", values, ids, error)
        rate = values
    else:
        if trials is None:
            raise error(f"{path}: {measured!r} needs sample counts; pass --trials-column")
        bad = (values < 0) | (values > trials) | (values % 1 != 0)
        _refuse(path, bad, measured, "must be whole numbers in 0..trials", values, ids, error)
        successes = values.astype(np.int64)
        rate = successes / trials
    hashes = table.get("row_hash")
    return Rates(
        as_ids(ids),
        rate,
        successes,
        trials,
        table,
        _beliefs(path, table, ids, error),
        None if hashes is None or None in hashes else as_ids([str(one) for one in hashes]),
        n_blank=n_blank,
    )


def _beliefs(
    path: Path, table: tables.Columns, ids: list[str], error: type[FileError]
) -> tuple[FloatArray, FloatArray] | None:
    if not ("alpha" in table and "beta" in table):
        return None
    alpha, beta = (_numbers(path, table[name], name, ids, error) for name in ("alpha", "beta"))
    return alpha, beta


def _id(path: Path, row: int, value: Any, error: type[FileError]) -> str:
    key = id_text(value)
    if not key or not _is_unicode(key):
        raise error(f"{path}: row {row} has no usable id, found {value!r:.60}; expected text")
    return key


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _trials(
    path: Path, table: tables.Columns, name: str | None, ids: list[str], error: type[FileError]
) -> IntArray | None:
    if name is not None and name.isdecimal() and len(name) < 10 and name not in table:
        return np.full(len(ids), int(name), dtype=np.int64)
    if name is None and "trials" not in table:
        return None
    column = _name(path, table, name, ("trials",), "trials", error)
    values = _numbers(path, table[column], column, ids, error)
    _refuse(
        path,
        ~((values >= 1) & (values % 1 == 0)),
        "trials",
        "must be whole numbers from 1",
        values,
        ids,
        error,
    )
    return values.astype(np.int64)


def _from_map(
    path: Path, document: Mapping[str, Any], pool: Pool | None, error: type[FileError]
) -> Rates:
    if pool is None:
        raise SettingError(f"{path}: a JSON map of scores needs the pool it is about; pass --pool")
    if not document:
        raise error(f"{path}: the map is empty")
    keys = list(document)
    names = {key: key for key in pool.prompt_id}
    texts = {
        prompt: key
        for key, prompt in zip(pool.prompt_id, pool.prompt, strict=True)
        if isinstance(prompt, str)
    }
    matched_by = "id"
    if all(key in names for key in keys):
        ids = keys
    elif all(key in texts for key in keys):
        ids, matched_by = [texts[key] for key in keys], "text"
    elif all(key.isdecimal() and len(key) < 10 and int(key) < len(pool) for key in keys):
        matched_by = "index"
        ids = [str(pool.prompt_id[int(key)]) for key in keys]
    else:
        odd = next(key for key in keys if key not in names and key not in texts)
        raise MismatchError(
            f"{path}: key {odd[:60]!r} is neither a prompt_id, a prompt's text nor "
            f"an index below {len(pool)} of this pool"
        )
    rate = _numbers(path, list(document.values()), "score", ids, error)
    _refuse(path, ~((rate >= 0) & (rate <= 1)), "score", "must lie in [0, 1]", rate, ids, error)
    return Rates(as_ids(ids), rate, None, None, {}, matched_by=matched_by)


def _name(
    path: Path,
    table: tables.Columns,
    given: str | None,
    known: Sequence[str],
    what: str,
    error: type[FileError],
) -> str:
    for name in [given] if given else known:
        if name in table:
            return name
    wanted = repr(given) if given else " or ".join(map(repr, known))
    more = " (or counts with --successes-column and --trials-column)" if what == "rate" else ""
    raise error(
        f"{path}: no column {wanted} for the {what} (found: {', '.join(table)[:300]}); "
        f"name it with --{what}-column{more}"
    )


def _numbers(
    path: Path, values: Sequence[Any], name: str, ids: Sequence[str], error: type[FileError]
) -> FloatArray:
    out = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            out[row] = float("nan") if value is None or isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            out[row] = math.nan
    _refuse(path, ~(np.abs(out) < 2**31), name, "must be a number", out, ids, error)
    return out


def _refuse(
    path: Path, bad: Any, name: str, rule: str, values: FloatArray, ids: Sequence[str],
    error: type[FileError],
) -> None:  # fmt: skip
    if bad.any():
        row = int(np.argmax(bad))
        raise error(
            f"{path}: {name!r} {rule}, but {int(bad.sum())} of {len(values)} rows are not "
            f"(first: row {row}, prompt {ids[row]!r}, {name}={values[row]:g})"
        )
