"""The prior file: read, validate, write, and fit to a pool.

A prior serves a pool when every pool prompt is in it under the same row hash; it may cover more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from priorkit import parquet, schema
from priorkit.beta import EPSILON, KAPPA, BetaPrior
from priorkit.columns import FloatArray, IntArray, TextArray, as_ids
from priorkit.errors import MismatchError, PriorFileError, SettingError
from priorkit.outcomes import Counts
from priorkit.pool import Pool
from priorkit.schema import PRIOR_KINDS, PRIOR_PROVENANCE, UNKNOWN, PriorKind

Missing = Literal["refuse", "mean", "beta11"]
_COUNT_COLUMNS = ("successes", "trials", "n_truncated", "n_error")


def read_prior(path: str | Path) -> BetaPrior:
    """A validated prior.

    Raises:
        PriorFileError: not a prior, a newer version, a missing or mistyped column, NaN, α or β not
            above zero, ids double or empty.
    """
    table, footer = parquet.read(path, schema.PRIOR, PriorFileError)
    kind = footer.get("prior_kind")
    if kind not in PRIOR_KINDS:
        raise PriorFileError(
            f"{path}: its kind is {kind!r}, expected one of {', '.join(PRIOR_KINDS)}"
        )
    try:
        prior = BetaPrior(
            prompt_id=_text(table, "prompt_id"),
            alpha=_floats(table, "alpha"),
            beta=_floats(table, "beta"),
            row_hash=_text(table, "row_hash") if _known(table, "row_hash") else None,
            rate=_floats(table, "rate") if _known(table, "rate") else None,
            kind=cast("PriorKind", kind),
            provenance=footer["provenance"],
            **{name: _counts(path, table, name) for name in _COUNT_COLUMNS},
        )
    except PriorFileError as caught:
        raise PriorFileError(f"{path}: {caught}") from caught
    return prior


def write_prior(path: str | Path, prior: BetaPrior, *, force: bool = False) -> Path:
    """Write a prior file; provenance fields that nobody gave are written as `unknown`."""
    nothing = pa.nulls(len(prior))
    columns: dict[str, Any] = {}
    for column in schema.PRIOR.columns:
        values = getattr(prior, column.name)
        if values is not None and column.name == "rate":
            values = pa.array(values, from_pandas=True)  # NaN in memory is null in the file
        columns[column.name] = nothing if values is None else values
    provenance = {name: prior.provenance.get(name, UNKNOWN) for name in PRIOR_PROVENANCE}
    return parquet.write(
        path, schema.PRIOR, columns, {**prior.provenance, **provenance},
        force=force, prior_kind=prior.kind,
    )  # fmt: skip


def anchor_prior(
    counts: Counts,
    pool: Pool,
    provenance: Mapping[str, object],
    kappa: float = KAPPA,
    epsilon: float = EPSILON,
    missing: Missing = "refuse",
) -> tuple[BetaPrior, int]:
    """The prior of an anchor pass (ThinkPrior, eqs. 5–6), and how many prompts `missing` filled.

    Args:
        counts: of the pool's prompts, in pool order.
        pool: what was probed.
        provenance: for the footer.
        kappa: weight of the anchor's word in pseudo-rollouts.
        epsilon: added to both counts.
        missing: what a prompt gets whose every sample failed without a verdict.

    Raises:
        MismatchError: such prompts exist and `missing` is `refuse`.
    """
    tried = counts.trials > 0
    if not tried.all() and (missing == "refuse" or not tried.any()):
        row = int(np.argmin(tried))
        raise MismatchError(
            f"{int((~tried).sum())} of {len(tried)} prompts have no sample with a verdict (first: "
            f"{pool.prompt_id[row]!r}, {counts.n_error[row]} errors); run the probe again to "
            "regenerate them, or pass --missing mean or --missing beta11"
        )
    rows = np.flatnonzero(tried)
    measured = BetaPrior.from_counts(
        pool.prompt_id[rows],
        counts.successes[rows],
        counts.trials[rows],
        kappa,
        epsilon,
        n_truncated=counts.n_truncated[rows],
        n_error=counts.n_error[rows],
        row_hash=pool.row_hash[rows],
        kind="anchor",
        provenance={"parents": [], **provenance, "kappa": kappa, "epsilon": epsilon},
    )
    if tried.all():
        return measured, 0
    filled = fit_to_pool(measured, pool, missing, kappa, epsilon).prior
    return replace(
        filled, provenance={**measured.provenance, "missing": missing}, n_error=counts.n_error
    ), int((~tried).sum())


def publish_prior(source: str | Path, target: str | Path, prior: BetaPrior) -> bool:
    """Copy a fresh anchor prior to where `train` looks; False when that place is taken.

    What stands there is replaced only if it is an anchor prior of the same pool; anything else is
    somebody's own and stays.
    """
    if Path(target).exists():
        footer = parquet.footer_of(target, PriorFileError) if _is_parquet(target) else None
        theirs = (footer or {}).get("provenance", {})
        if not footer or footer.get("prior_kind") != "anchor":
            return False
        ours = json.loads(json.dumps(prior.provenance.get("pool", UNKNOWN)))
        if theirs.get("pool") != ours:
            return False
    with parquet.replacing(target, force=True) as partial:
        partial.write_bytes(Path(source).read_bytes())
    return True


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prior in pool order.

    Attributes:
        prior: `[P]` beliefs, one per pool row.
        n_missing: pool prompts the prior did not know, filled as asked.
        n_extra: prompts of the prior that the pool does not have.
        hashes_known: whether the rows' content could be compared, or only their ids.
    """

    prior: BetaPrior
    n_missing: int
    n_extra: int
    hashes_known: bool


def check_missing(rule: str) -> None:
    """Refuse a rule for absent prompts that there is not."""
    if rule not in get_args(Missing):
        raise SettingError(f"missing must be one of {', '.join(get_args(Missing))}, got {rule!r}")


def fit_to_pool(
    prior: BetaPrior,
    pool: Pool,
    missing: Missing = "refuse",
    kappa: float = KAPPA,
    epsilon: float = EPSILON,
) -> Fitted:
    """The beliefs about a pool's prompts, in its order, after checking that they are about them.

    Args:
        prior: may cover more than the pool.
        pool: the rows wanted.
        missing: `refuse`; `mean`, the prior's mean rate at strength κ; or `beta11`.
        kappa: strength of a filled belief.
        epsilon: as in `BetaPrior.from_rates`.

    Raises:
        MismatchError: a prompt whose content differs from the one probed, or that is absent.
    """
    check_missing(missing)
    rows = prior.rows_of(pool.prompt_id)
    found = rows >= 0
    if prior.row_hash is not None:
        _refuse_edited(prior.row_hash, rows, pool)
    if not found.any():
        raise MismatchError(
            f"this prior is of another pool: none of the pool's {len(pool)} prompts is in it (it "
            f"begins with {prior.prompt_id[0]!r}, the pool with {pool.prompt_id[0]!r}); probe this "
            "pool, or use the one the prior was made of"
        )
    if not found.all() and missing == "refuse":
        row = int(np.argmin(found))
        raise MismatchError(
            f"the prior lacks {int((~found).sum())} of the pool's {len(pool)} prompts (first: row "
            f"{row}, {pool.prompt_id[row]!r}); probe them, or pass --missing mean or "
            "--missing beta11"
        )
    if not found.all():
        fitted = _filled(prior, pool, rows, missing, kappa, epsilon)
    elif len(rows) == len(prior) and np.array_equal(rows, np.arange(len(rows))):
        fitted = prior
    else:
        fitted = prior.take(rows)
    extra = len(prior) - int(found.sum())
    return Fitted(fitted, int((~found).sum()), extra, prior.row_hash is not None)


def _refuse_edited(row_hash: TextArray, rows: IntArray, pool: Pool) -> None:
    found = np.flatnonzero(rows >= 0)
    theirs, ours = row_hash[rows[found]], pool.row_hash[found]
    differ = (theirs != ours) & (theirs != None)  # noqa: E711 (elementwise: null is not known)
    if differ.any():
        row = int(found[int(differ.argmax())])
        raise MismatchError(
            f"{int(differ.sum())} of {len(pool)} prompts differ from what the prior was made of "
            f"(first: row {row}, prompt {pool.prompt_id[row]!r}: its text, answer or verifier was "
            "changed); probe the changed pool, or use the pool the prior was made of"
        )


def _filled(
    prior: BetaPrior,
    pool: Pool,
    rows: IntArray,
    missing: Missing,
    kappa: float,
    epsilon: float,
) -> BetaPrior:
    """Beliefs in pool order, with the rule's belief where the prior has no row."""
    found, at = rows >= 0, np.maximum(rows, 0)
    mean = float(prior.mean.mean())
    alpha = 1.0 if missing == "beta11" else kappa * mean + epsilon
    beta = 1.0 if missing == "beta11" else kappa * (1 - mean) + epsilon
    columns: dict[str, Any] = {
        name: np.where(found, values[at], nothing)
        for name, nothing in (*((name, 0) for name in _COUNT_COLUMNS), ("rate", np.nan))
        if (values := getattr(prior, name)) is not None
    }
    return replace(
        prior,
        prompt_id=pool.prompt_id,
        alpha=np.where(found, prior.alpha[at], alpha),
        beta=np.where(found, prior.beta[at], beta),
        row_hash=None if prior.row_hash is None else pool.row_hash,
        **columns,
    )


def _is_parquet(path: str | Path) -> bool:
    try:
        parquet.open_parquet(path, PriorFileError)
    except PriorFileError:
        return False
    return True


def _known(table: pa.Table, name: str) -> bool:
    return bool(table.column(name).null_count < len(table))


def _text(table: pa.Table, name: str) -> TextArray:
    return as_ids(table.column(name).to_pylist())


def _floats(table: pa.Table, name: str) -> FloatArray:
    return np.array(table.column(name).to_numpy(), dtype=float)


def _counts(path: str | Path, table: pa.Table, name: str) -> IntArray | None:
    column = table.column(name)
    if column.null_count == len(table):
        return None
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise PriorFileError(
            f"column {name!r} is null in some rows and not in others (first: row "
            f"{row}, prompt {table.column('prompt_id')[row].as_py()!r})"
        )
    return np.array(column.to_numpy(), dtype=np.int64)
