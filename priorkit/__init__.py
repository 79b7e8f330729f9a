"""priorkit tells, before a reinforcement-learning run, which prompts are worth rolling out.

The names below are loaded on first use, so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior, expected_learnability, learnability
    from priorkit.outcomes import read_outcomes
    from priorkit.pool import read_pool
    from priorkit.prior import fit_to_pool, read_prior, write_prior
    from priorkit.selectors import make_selector

__version__ = "0.1.0.dev0"

_HOMES = {
    "BetaPrior": "beta",
    "expected_learnability": "beta",
    "fit_to_pool": "prior",
    "learnability": "beta",
    "make_selector": "selectors",
    "read_outcomes": "outcomes",
    "read_pool": "pool",
    "read_prior": "prior",
    "write_prior": "prior",
}

__all__ = [
    "BetaPrior",
    "__version__",
    "expected_learnability",
    "fit_to_pool",
    "learnability",
    "make_selector",
    "read_outcomes",
    "read_pool",
    "read_prior",
    "write_prior",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'priorkit' has no attribute {name!r}")
    return getattr(import_module(f"priorkit.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
