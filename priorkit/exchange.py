"""Priors from and to other people's formats.

`P` prompts. What a source does not tell is the word `unknown` in the provenance.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from priorkit import schema
from priorkit.beta import EPSILON, KAPPA, BetaPrior
from priorkit.errors import SettingError
from priorkit.pool import Pool
from priorkit.prior import Missing, fit_to_pool
from priorkit.rates import Rates
from priorkit.schema import UNKNOWN


def import_prior(
    rates: Rates,
    source: str | Path,
    pool: Pool | None = None,
    anchor: str | None = None,
    kappa: float | None = None,
    epsilon: float = EPSILON,
    missing: Missing = "refuse",
) -> BetaPrior:
    """A prior from somebody's measured rates; what they do not tell is `unknown`.

    Args:
        rates: from `priorkit.rates.read_rates`.
        source: where they were found, for the provenance.
        pool: put in its order, and carry its row hashes from now on.
        anchor: the model that was measured, where known.
        kappa: weight of a rate in pseudo-rollouts; None takes the table's own alpha and beta
            where it has them, else 4.
        epsilon: added to both pseudo-counts.
        missing: what a pool prompt without a rate gets.

    Raises:
        MismatchError: the table's row hashes, or its ids, are not the pool's.
    """
    strength = KAPPA if kappa is None else kappa
    provenance: dict[str, object] = {
        "anchor": UNKNOWN if anchor is None else {"name": anchor, "revision": UNKNOWN},
        "parents": [{"file": Path(source).name}],
        "matched_by": rates.matched_by,
    }
    prior = _from_rates(rates, strength, epsilon, own_beliefs=kappa is None)
    provenance |= prior.provenance
    if pool is None:
        return replace(prior, provenance=provenance)
    fitted = fit_to_pool(prior, pool, missing, strength, epsilon)
    provenance["pool"] = pool.identity()
    if fitted.n_missing:
        provenance |= {"missing": missing, "n_filled": fitted.n_missing}
    return replace(fitted.prior, row_hash=pool.row_hash, provenance=provenance)


def _from_rates(rates: Rates, kappa: float, epsilon: float, own_beliefs: bool) -> BetaPrior:
    ids, hashes = rates.prompt_id, rates.row_hash
    if rates.beliefs is not None and own_beliefs:
        return BetaPrior(
            ids,
            *rates.beliefs,
            row_hash=hashes,
            rate=rates.rate,
            successes=rates.successes,
            trials=rates.trials,
        )
    more: dict[str, Any] = {
        "row_hash": hashes,
        "provenance": {"kappa": kappa, "epsilon": epsilon},
    }
    if rates.successes is not None and rates.trials is not None:
        return BetaPrior.from_counts(ids, rates.successes, rates.trials, kappa, epsilon, **more)
    return BetaPrior.from_rates(ids, rates.rate, rates.trials, kappa, epsilon, **more)


def export_text(prior: BetaPrior, fmt: str) -> str:
    """A prior as CSV, JSON lines, or a JSON map from id to rate."""
    names = [c.name for c in schema.PRIOR.columns if getattr(prior, c.name) is not None]
    rows = [
        [None if value != value else value for value in row]  # NaN: not measured
        for row in zip(*(getattr(prior, name).tolist() for name in names), strict=True)
    ]
    if fmt == "json":
        rate = prior.mean if prior.rate is None else prior.rate
        rate = np.where(np.isnan(rate), prior.mean, rate)
        return json.dumps(dict(zip(prior.prompt_id, rate.tolist(), strict=True))) + "\n"
    if fmt == "jsonl":
        return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    if fmt == "csv":
        held = io.StringIO()
        writer = csv.writer(held, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        return held.getvalue()
    raise SettingError(f"format must be csv, jsonl or json, got {fmt!r}")
