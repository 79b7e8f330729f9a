"""Rows of any source as pool rows: whose column is whose, and what a row must have.

The trainers' layout (`data_source`, `prompt`, `reward_model.ground_truth`, `extra_info.index`) is
untangled here; values are checked one by one, and an error names the first bad row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorkit import tables
from priorkit.columns import IntArray, TextArray, as_ids, id_text
from priorkit.errors import PoolFileError

Message = Mapping[str, str]
Prompt = str | tuple[Message, ...]
Answer = str | tuple[str, ...]

DEFAULT_VERIFIER = "math"
_LEVEL = re.compile(r"(?:level)?\s*([0-9]{1,6})(?:\.0+)?", re.IGNORECASE)
_PROMPT_NAMES = ("prompt", "problem", "question")
_SPLIT_NAMES = {"train": "train", "eval": "eval", "test": "eval", "validation": "eval"}


@dataclass(frozen=True, slots=True)
class PoolColumns:
    """Names of a source's columns, where they are not ours.

    Attributes:
        prompt_id: None looks for `prompt_id`, `id`, then the trainers' `extra_info.index`.
        prompt: None looks for `prompt`, `problem`, `question`.
        answer: None looks for `answer`, then the trainers' `reward_model.ground_truth`.
        drop_unanswered: leave out rows without an answer instead of refusing the source.
    """

    prompt_id: str | None = None
    prompt: str | None = None
    answer: str | None = None
    drop_unanswered: bool = False


def pool_columns(
    found: tables.Columns, source: str, names: PoolColumns = PoolColumns()
) -> dict[str, Any]:
    """The fields of a `Pool`, from columns of any source; `source` names them in errors.

    Raises:
        PoolFileError: ids missing, empty or double, no rows, a row without prompt or answer.
    """
    found = _untangled(found)
    height = len(next(iter(found.values()), []))
    if not height:
        raise PoolFileError(f"{source}: the pool is empty, expected at least one prompt")
    if names.drop_unanswered:
        golds = _column(found, source, "answer", names.answer, ("answer",))
        kept = [row for row, gold in enumerate(golds) if _is_answer(gold)]
        found = {name: [values[row] for row in kept] for name, values in found.items()}
        height = len(kept)
    blank = [None] * height
    ids = _ids(found, source, names.prompt_id)
    prompts = [
        _prompt(value, row, source)
        for row, value in enumerate(_column(found, source, "prompt", names.prompt, _PROMPT_NAMES))
    ]
    answers = [
        _answer(value, row, source, ids)
        for row, value in enumerate(_column(found, source, "answer", names.answer, ("answer",)))
    ]
    return {
        "prompt_id": as_ids(ids),
        "prompt": as_ids(prompts),  # type: ignore[arg-type]
        "answer": as_ids(answers),  # type: ignore[arg-type]
        "verifier": as_ids(
            [_utf8(str(v or DEFAULT_VERIFIER), source) for v in found.get("verifier", blank)]
        ),
        "split": as_ids(
            [_split(v, row, source) for row, v in enumerate(found.get("split", blank))]
        ),
        "level": _levels(found.get("level")),
        "subject": _optional_text(found.get("subject")),
        "source": _optional_text(found.get("source")),
    }


def _untangled(found: tables.Columns) -> tables.Columns:
    """The trainers' nested layout, flattened to our names where ours are absent."""
    out = dict(found)
    nested = {
        "answer": ("reward_model", "ground_truth"),
        "prompt_id": ("extra_info", "index"),
        "split": ("extra_info", "split"),
    }
    for name, (outer, inner) in nested.items():
        held = found.get(outer)
        if name in out or held is None or not all(isinstance(row, Mapping) for row in held):
            continue
        values = [row.get(inner) for row in held]
        if name == "prompt_id" and "data_source" in found:
            values = [
                None if value is None else f"{kind}/{value}"
                for kind, value in zip(found["data_source"], values, strict=True)
            ]
        if any(value is not None for value in values):
            out[name] = values
    out.setdefault("source", out.get("data_source", []))
    return {name: values for name, values in out.items() if values or name != "source"}


def _column(
    found: tables.Columns, source: str, name: str, given: str | None, known: Sequence[str]
) -> list[Any]:
    for candidate in [given] if given else known:
        if candidate in found:
            return found[candidate]
    wanted = repr(given) if given else " or ".join(map(repr, known))
    raise PoolFileError(
        f"{source}: no column {wanted} for the {name} (found: {', '.join(found)[:300]}); "
        f"`priorkit pool make {source} --{name.replace('prompt_id', 'id')}-column NAME` reads it"
    )


def _ids(found: tables.Columns, source: str, given: str | None) -> list[str]:
    values = _column(found, source, "prompt_id", given, ("prompt_id", "id"))
    seen: dict[str, int] = {}
    for row, value in enumerate(values):
        key = id_text(value)
        if not key:
            raise PoolFileError(
                f"{source}: row {row} has no prompt_id (found {value!r}); every "
                "prompt needs a unique one"
            )
        if key in seen:
            raise PoolFileError(
                f"{source}: prompt_id {_short(key)} is in rows {seen[key]} and "
                f"{row}; ids must be unique"
            )
        seen[_utf8(key, f"{source}: row {row}: prompt_id")] = row
    return list(seen)


def _prompt(value: Any, row: int, source: str) -> Prompt:
    if isinstance(value, str) and value.strip():
        return _utf8(value, f"{source}: row {row}: prompt")
    if isinstance(value, list) and value and all(
        isinstance(m, Mapping) and isinstance(m.get("role"), str)
        and isinstance(m.get("content"), str) for m in value
    ):  # fmt: skip
        messages = tuple(
            {key: _utf8(m[key], f"{source}: row {row}: prompt") for key in ("role", "content")}
            for m in value
        )
        if len(messages) == 1 and messages[0]["role"] == "user":
            return _prompt(messages[0]["content"], row, source)  # the same prompt, the same hash
        return messages
    raise PoolFileError(
        f"{source}: row {row} has no prompt: expected text or a list of chat "
        f"messages, found {_short(value)}"
    )


def _answer(value: Any, row: int, source: str, ids: list[str]) -> Answer:
    several = list(value) if isinstance(value, (list, tuple)) else [value]
    texts = [_one_answer(one, f"{source}: row {row}") for one in several]
    if not texts or None in texts:
        raise PoolFileError(
            f"{source}: row {row} (prompt {_short(ids[row])}) has no answer, found "
            f"{_short(value)}; expected text, a number, or a list of them; drop such rows with "
            "`priorkit pool make --drop-unanswered`"
        )
    return tuple(map(str, texts)) if len(texts) > 1 else str(texts[0])


def _one_answer(value: Any, where: str) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value) if isinstance(value, int) or math.isfinite(value) else None
    if isinstance(value, str) and value.strip():
        return _utf8(value, f"{where}: answer")
    return None


def _is_answer(value: Any) -> bool:
    several = list(value) if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(_one_answer(one, "") is not None for one in several)


def _split(value: Any, row: int, source: str) -> str:
    name = _SPLIT_NAMES.get("train" if value is None else str(value))
    if name is None:
        raise PoolFileError(f"{source}: row {row} has split {value!r}, expected train or eval")
    return name


def _levels(values: list[Any] | None) -> IntArray | None:
    """Levels as integers, −1 where a source writes none, or what is not a whole number."""
    if values is None:
        return None
    out = [_level(value) for value in values]
    return None if all(level < 0 for level in out) else np.array(out, dtype=np.int64)


def _level(value: Any) -> int:
    found = _LEVEL.fullmatch("" if isinstance(value, bool) else str(value).strip())
    return int(found[1]) if found else -1


def _optional_text(values: list[Any] | None) -> TextArray | None:
    if values is None or all(value is None for value in values):
        return None
    return as_ids(["" if value is None else _utf8(str(value), "a text column") for value in values])


def _utf8(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as caught:
        raise PoolFileError(
            f"{where} is not valid Unicode (a lone surrogate at character {caught.start})"
        ) from caught
    return text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
