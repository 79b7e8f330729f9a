"""Selectors by name; a new one is a module here and a line in `make_selector`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from priorkit.beta import BetaPrior
from priorkit.errors import SettingError
from priorkit.selectors.learnability import (
    OnlineNPSelector,
    OracleSelector,
    PriorOnlySelector,
    ThinkPriorSelector,
)
from priorkit.selectors.protocol import CountingSelector, Selector
from priorkit.selectors.uniform import UniformSelector

_SELECTORS: dict[str, Callable[..., Selector]] = {
    "thinkprior": ThinkPriorSelector,
    "online-np": OnlineNPSelector,
    "prior-only": PriorOnlySelector,
    "uniform": UniformSelector,
    "oracle": OracleSelector,
}

SELECTOR_NAMES = tuple(_SELECTORS)


def make_selector(
    name: str, prior: BetaPrior, group_size: int = 8, seed: int = 0, **options: Any
) -> Selector:
    """Any selector by name.

    Args:
        name: one of `SELECTOR_NAMES`.
        prior: one belief per pool prompt, in pool order; see `priorkit.prior.fit_to_pool`. A
            selector that uses no prior takes its prompts from it (`flat_prior(ids)` will do).
        group_size: rollouts in a group `G`, at least 2.
        seed: of the selector's own generator; those that draw nothing ignore it.
        options: the selector's own, such as `reference_rate` of the oracle.

    Raises:
        SettingError: unknown name or option, or one out of its domain.
    """
    make = _SELECTORS.get(name)
    if make is None:
        raise SettingError(f"no selector is called {name!r}; there are {', '.join(_SELECTORS)}")
    parameters = inspect.signature(make).parameters
    unknown = set(options) - (set(parameters) - {"prior", "group_size", "rng"})
    if unknown:
        raise SettingError(f"selector {name!r} has no option {sorted(unknown)[0]!r}")
    if seed < 0:
        raise SettingError(f"seed must not be negative, got {seed}")
    if "rng" in parameters:
        options["rng"] = np.random.Generator(np.random.PCG64(seed))
    return make(prior, group_size, **options)


__all__ = [
    "SELECTOR_NAMES",
    "CountingSelector",
    "OnlineNPSelector",
    "OracleSelector",
    "PriorOnlySelector",
    "Selector",
    "ThinkPriorSelector",
    "UniformSelector",
    "make_selector",
]
