"""Optional libraries, asked for before they are imported."""

from __future__ import annotations

import importlib.util

from priorkit.errors import MissingExtraError

TRAINING = ("torch", "transformers", "peft")


def require(what: str, *libraries: str, extra: str = "train") -> None:
    """Refuse with the command that helps, where a library is not installed.

    Args:
        what: needs them, such as `training`.
        libraries: import names.
        extra: priorkit's extra that brings them.

    Raises:
        MissingExtraError: one of them is missing.
    """
    absent = [name for name in libraries if importlib.util.find_spec(name) is None]
    if absent:
        needed = " and ".join(absent)
        raise MissingExtraError(f"{what} needs {needed}: pip install 'priorkit[{extra}]'")
