"""Columns by prompt: their array types, and what ids and counts must be.

`P` prompts. Nothing here knows what a column means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from priorkit.errors import PriorFileError, SettingError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TextArray = npt.NDArray[np.object_]  # of str: one long id does not widen a million short ones


def as_ids(values: Sequence[str] | TextArray) -> TextArray:
    """Ids as an object array of str, `[P]`."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def id_text(value: object) -> str:
    """An id as text: from text or a whole number; empty for anything that is no id."""
    usable = isinstance(value, (str, int)) and not isinstance(value, bool)
    text = str(value) if usable else ""
    return text if text.strip() else ""


def order_hash(ids: TextArray) -> str:
    """Identity of ids and their order: sha256 over their JSON list, 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(ids.tolist()).encode()).hexdigest()


def as_counts(values: npt.ArrayLike, name: str) -> IntArray:
    """Counts as integers, `[n]`.

    Raises:
        SettingError: a fraction, as a mean reward passed for a count would be, or a number too
            large to count with.
    """
    held = np.asarray(values)
    if held.size and held.dtype.kind not in "iu":
        numbers = held.astype(float)
        if not np.all(numbers == np.floor(numbers)):
            raise SettingError(
                f"{name} must be whole numbers, found {numbers.ravel()[0]}; counts of correct "
                "rollouts are wanted, not mean rewards"
            )
    if held.size and not np.all(np.abs(held) < 2**31):
        raise SettingError(f"{name} must be below 2**31, found {np.abs(held).max()}")
    return held.astype(np.int64)


def check_ids(ids: TextArray) -> None:
    """Refuse ids that are empty, double or no text; PriorFileError names the rows."""
    keys = ids.tolist()
    if not keys:
        raise PriorFileError("a prior needs at least one prompt, found none")
    texts = set(map(type, keys)) == {str}
    if texts and len(distinct := set(keys)) == len(keys) and "" not in distinct:
        return
    seen: dict[object, int] = {}
    for row, key in enumerate(keys):
        if type(key) is not str or not key:
            raise PriorFileError(f"'prompt_id' must be non-empty text, found {key!r} in row {row}")
        if key in seen:
            raise PriorFileError(
                f"'prompt_id' must be unique, but {key!r} is in rows {seen[key]} and {row}"
            )
        seen[key] = row


def refuse_rows(
    ids: TextArray,
    bad: npt.NDArray[np.bool_],
    name: str,
    values: npt.NDArray[Any],
    rule: str,
    remedy: str = "",
    error: type[SettingError | PriorFileError] = SettingError,
) -> None:
    """Raise one error about the rows marked bad: how many, the first, and what to do."""
    if not bad.any():
        return
    row = int(bad.argmax())
    raise error(
        f"column {name!r} {rule}, but {int(bad.sum())} of {len(values)} rows are not "
        f"(first: row {row}, prompt {ids[row]!r}, {name}={values[row]})"
        + (f"; {remedy}" if remedy else "")
    )
