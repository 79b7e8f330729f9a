"""The prompt pool: what may be rolled out, and the exact identity of every row.

`P` prompts. A row's **hash** is sha256 over the JSON list [prompt, answer, verifier], its first
16 hexadecimal digits; the pool's **fingerprint** is sha256 over its sorted row hashes, so order
does not matter; its **order hash** is sha256 over the ids in order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorkit import parquet, schema, tables
from priorkit.columns import IntArray, TextArray, as_ids, order_hash
from priorkit.errors import PoolFileError
from priorkit.rows import DEFAULT_VERIFIER, Answer, PoolColumns, Prompt, pool_columns

SPLITS = ("train", "eval")


@dataclass(frozen=True, eq=False)
class Pool:
    """Prompts with their accepted answers, in a fixed order.

    Attributes:
        prompt_id: `[P]` unique keys.
        prompt: `[P]` text, or a tuple of chat messages.
        answer: `[P]` accepted answer, or a tuple of several.
        level: `[P]` difficulty as given, −1 where not known; None when the pool has none.
        subject: `[P]` or None.
        source: `[P]` or None.
        verifier: `[P]` name of the verifier that judges the row.
        split: `[P]` `train` or `eval`.
    """

    prompt_id: TextArray
    prompt: TextArray
    answer: TextArray
    verifier: TextArray
    split: TextArray
    level: IntArray | None = None
    subject: TextArray | None = None
    source: TextArray | None = None

    def __len__(self) -> int:
        return len(self.prompt_id)

    @cached_property
    def row_hash(self) -> TextArray:
        """`[P]` identity of each row's content."""
        rows = zip(self.prompt, self.answer, self.verifier, strict=True)
        return as_ids([row_hash(prompt, answer, verifier) for prompt, answer, verifier in rows])

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the content, whatever the order: 64 hexadecimal digits."""
        return hashlib.sha256("\n".join(sorted(self.row_hash)).encode()).hexdigest()

    @cached_property
    def order_hash(self) -> str:
        """Identity of the ids and their order: 64 hexadecimal digits."""
        return order_hash(self.prompt_id)

    def identity(self) -> dict[str, object]:
        """What a file records of its pool."""
        return {"fingerprint": self.fingerprint, "order_hash": self.order_hash}

    def take(self, rows: npt.NDArray[Any]) -> Pool:
        """Those rows, in that order."""
        fields = (
            "prompt_id",
            "prompt",
            "answer",
            "verifier",
            "split",
            "level",
            "subject",
            "source",
        )
        columns: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in fields
        }
        return replace(self, **columns)

    def of_split(self, split: str) -> Pool:
        """The rows of one split, in pool order."""
        return self.take(np.flatnonzero(self.split == split))


def row_hash(prompt: Prompt, answer: Answer, verifier: str = DEFAULT_VERIFIER) -> str:
    """Identity of one pool row: 16 hexadecimal digits.

    >>> row_hash("What is 2 + 2?", "4")
    '0b22f5bb823bf833'
    """
    plain = prompt if isinstance(prompt, str) else [dict(message) for message in prompt]
    gold = answer if isinstance(answer, str) else list(answer)
    text = json.dumps([plain, gold, verifier], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def bundled_pool() -> Path:
    """The offline pool that comes with priorkit: 250 prompts and their eval split."""
    return Path(str(resources.files("priorkit_data") / "pool.parquet"))


def bundled_exercises() -> Path:
    """Every bundled exercise, from which `pool make` takes its sample."""
    return Path(str(resources.files("priorkit_data") / "exercises.parquet"))


def read_pool(
    source: str | Path, split: str | None = "train", columns: PoolColumns = PoolColumns()
) -> Pool:
    """A validated pool from a file or a hub data set.

    Args:
        source: `.parquet`, `.jsonl`, `.csv` or `.json` file; or `org/name[:config]` on the hub.
            The trainers' layout (`data_source`, `prompt`, `reward_model.ground_truth`,
            `extra_info.index`) is understood as well.
        split: `train` (the rows to roll out), `eval`, or None for all.
        columns: the source's column names, where they are not ours.

    Raises:
        PoolFileError: ids missing, empty or double, no rows, a row without prompt or answer.
    """
    path = Path(source)
    ours = path.suffix == ".parquet" and path.is_file() and _has_footer(path)
    if ours:
        table, _ = parquet.read(path, schema.POOL, PoolFileError)
        found = {name: table.column(name).to_pylist() for name in table.column_names}
    elif not path.exists() and not path.suffix and str(source).count("/") == 1:
        files = tables.hub_files(str(source), split or "train")
        found = tables.concatenate([tables.read_table(file, PoolFileError) for file in files])
    else:
        found = tables.read_table(path, PoolFileError)
    pool = pool_from_columns(found, str(source), columns)
    if split is None:
        return pool
    part = pool.of_split(split)
    if not len(part):
        raise PoolFileError(
            f"{source}: no row belongs to split {split!r} "
            f"(found: {', '.join(sorted(set(pool.split)))})"
        )
    return part


def pool_from_columns(
    found: tables.Columns, source: str, columns: PoolColumns = PoolColumns()
) -> Pool:
    """A validated pool from columns held in memory; `source` names them in errors."""
    return Pool(**pool_columns(found, source, columns))


def write_pool(
    path: str | Path, pool: Pool, provenance: Mapping[str, object], *, force: bool = False
) -> Path:
    """Write a pool file; prompts that are all plain text are stored as such."""
    columns: dict[str, Any] = {
        "prompt_id": pool.prompt_id,
        "prompt": _uniform(pool.prompt, lambda text: [{"role": "user", "content": text}]),
        "answer": _uniform(pool.answer, lambda text: [text]),
        "verifier": pool.verifier,
        "split": pool.split,
    }
    if pool.level is not None:
        columns["level"] = [None if level < 0 else int(level) for level in pool.level]
    for name in ("subject", "source"):
        if getattr(pool, name) is not None:
            columns[name] = getattr(pool, name)
    return parquet.write(path, schema.POOL, columns, provenance, force=force)


def _has_footer(path: Path) -> bool:
    return parquet.footer_of(path, PoolFileError) is not None


def _uniform(values: TextArray, wrap: Any) -> list[Any]:
    if all(isinstance(value, str) for value in values):
        return list(values)
    return [wrap(value) if isinstance(value, str) else list(value) for value in values]
