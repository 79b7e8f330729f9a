"""Does a response answer its prompt? Extraction, equality, and the verifiers by name.

    >>> make_verifier("exact").check(r"So it is \\boxed{42}.", "42")
    Verdict(status='correct', extracted='42')

Importing this loads no algebra system; a verifier that needs one runs it in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from priorkit.errors import SettingError
from priorkit.verify.exact import ExactVerifier
from priorkit.verify.judging import Question, check_all
from priorkit.verify.math import MathVerifier
from priorkit.verify.protocol import ERROR_STATUSES, STATUSES, Status, Verdict, Verifier

__all__ = [
    "ERROR_STATUSES",
    "STATUSES",
    "VERIFIERS",
    "ExactVerifier",
    "MathVerifier",
    "Question",
    "Status",
    "Verdict",
    "Verifier",
    "check_all",
    "make_verifier",
    "make_verifiers",
    "verifier_identity",
]

VERIFIERS: Mapping[str, Callable[..., Verifier]] = MappingProxyType(
    {"math": MathVerifier, "exact": ExactVerifier}
)
"""The verifiers that can be asked for by name."""


def make_verifier(name: str, **settings: object) -> Verifier:
    """The verifier of that name; `settings` are its class's fields.

    Raises:
        SettingError: no such verifier, or no such setting of it.
    """
    if name not in VERIFIERS:
        raise SettingError(f"no verifier is called {name!r}; known: {', '.join(VERIFIERS)}")
    try:
        return VERIFIERS[name](**settings)
    except TypeError as failure:
        raise SettingError(f"verifier {name!r} cannot take these settings: {failure}") from failure


@contextmanager
def make_verifiers(names: Iterable[str]) -> Iterator[dict[str, Verifier]]:
    """The verifiers of those names, each once; processes of their own end with the context.

    Raises:
        SettingError: no such verifier.
    """
    made = {name: make_verifier(name) for name in sorted(set(names))}
    try:
        yield made
    finally:
        for verifier in made.values():
            getattr(verifier, "close", lambda: None)()


def verifier_identity(verifier: Verifier) -> dict[str, object]:
    """What a file records of its verifier: name, version, policies and a short hash of the three.

    Two verdicts are comparable when the `sha256` of their verifiers agree.
    """
    identity: dict[str, object] = {
        "name": verifier.name,
        "version": verifier.version,
        "policies": dict(verifier.policies),
    }
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return {**identity, "sha256": hashlib.sha256(canonical.encode()).hexdigest()[:16]}
