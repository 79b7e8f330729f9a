"""Outcomes: one row a sample of one model, never summarised away.

`S` samples in all, `P` prompts. A row's key is (prompt_id, sample). The three error statuses are
no trials: their `correct` is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from priorkit import parquet, schema
from priorkit.columns import IntArray, TextArray, as_ids
from priorkit.errors import OutcomesFileError, OutputError, ProbeFolderError
from priorkit.verify.protocol import ERROR_STATUSES, STATUSES, Status

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One sample as it is written down; columns as in the outcomes file."""

    prompt_id: str
    sample: int
    model: str
    status: Status
    correct: bool | None
    n_tokens: int
    think_tokens: int | None
    extracted: str | None
    finish_reason: str
    response: str | None


_FIELDS = tuple(f.name for f in fields(Outcome))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A whole outcomes file in columns.

    Attributes:
        prompt_id: `[S]` pool keys.
        sample: `[S]` number of the sample within its prompt.
        model: `[S]` who answered.
        status: `[S]` one of `priorkit.verify.STATUSES`.
        n_tokens: `[S]` new tokens.
        think_tokens: `[S]` tokens inside the think delimiters; None when no row has any.
        extracted: `[S]` the answer judged, None where there was none.
        finish_reason: `[S]` the engine's word.
        response: `[S]` text, None where not stored.
        provenance: the footer's account: anchor, sampling, template, verifier, pool, versions.
    """

    prompt_id: TextArray
    sample: IntArray
    model: TextArray
    status: TextArray
    n_tokens: IntArray
    extracted: TextArray
    finish_reason: TextArray
    response: TextArray
    think_tokens: list[int | None] | None = None
    provenance: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.prompt_id)

    @property
    def keys(self) -> list[Key]:
        """`[S]` (prompt_id, sample)."""
        return list(zip(self.prompt_id.tolist(), self.sample.tolist(), strict=True))

    def rows(self) -> Iterator[Outcome]:
        """The rows, in file order."""
        thinks = self.think_tokens or [None] * len(self)
        for i, key in enumerate(self.prompt_id):
            yield Outcome(
                prompt_id=key,
                sample=int(self.sample[i]),
                model=self.model[i],
                status=self.status[i],
                correct=correctness(self.status[i]),
                n_tokens=int(self.n_tokens[i]),
                think_tokens=thinks[i],
                extracted=self.extracted[i],
                finish_reason=self.finish_reason[i],
                response=self.response[i],
            )

    def counts(self, prompt_id: TextArray, samples: int | None = None) -> Counts:
        """Counts of those prompts, in their order; a prompt without samples counts zero.

        Args:
            prompt_id: `[P]` keys.
            samples: count only samples numbered below this.
        """
        place = {key: row for row, key in enumerate(prompt_id)}
        row = np.fromiter((place.get(key, -1) for key in self.prompt_id), np.int64, len(self))
        known = (row >= 0) & (self.sample < (np.inf if samples is None else samples))

        def count(chosen: npt.NDArray[np.bool_]) -> IntArray:
            return np.bincount(row[known & chosen], minlength=len(prompt_id)).astype(np.int64)

        errors = np.isin(self.status.astype(str), list(ERROR_STATUSES))
        return Counts(
            prompt_id=prompt_id,
            successes=count(self.status == "correct"),
            trials=count(~errors),
            n_truncated=count(self.status == "truncated"),
            n_error=count(errors),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What the samples of each prompt come to, `[P]` each."""

    prompt_id: TextArray
    successes: IntArray
    trials: IntArray
    n_truncated: IntArray
    n_error: IntArray


def correctness(status: Status) -> bool | None:
    """The `correct` column that goes with a status."""
    return None if status in ERROR_STATUSES else status == "correct"


def read_outcomes(path: str | Path) -> Outcomes:
    """A validated outcomes file.

    Raises:
        OutcomesFileError: schema broken, unknown status, or a (prompt_id, sample) twice.
    """
    table, footer = parquet.read(path, schema.OUTCOMES, OutcomesFileError)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    for row, status in enumerate(columns["status"]):
        if status not in STATUSES:
            raise OutcomesFileError(
                f"{path}: row {row} has status {status!r}, expected one of {', '.join(STATUSES)}"
            )
        if columns["correct"][row] is not correctness(status):
            raise OutcomesFileError(
                f"{path}: row {row} has status {status!r} but correct = {columns['correct'][row]}"
            )
        for name in ("sample", "n_tokens"):
            if columns[name][row] < 0:
                raise OutcomesFileError(f"{path}: row {row} has {name} = {columns[name][row]}")
    thinks = columns["think_tokens"]
    outcomes = Outcomes(
        sample=np.array(columns["sample"], dtype=np.int64),
        n_tokens=np.array(columns["n_tokens"], dtype=np.int64),
        think_tokens=thinks if any(t is not None for t in thinks) else None,
        provenance=footer["provenance"],
        **{
            name: as_ids(columns[name])
            for name in ("prompt_id", "model", "status", "extracted", "finish_reason", "response")
        },
    )
    twice = _first_repeated(outcomes.keys)
    if twice:
        raise OutcomesFileError(f"{path}: sample {twice[1]} of prompt {twice[0]!r} is there twice")
    return outcomes


def write_outcomes(
    path: str | Path,
    rows: Iterable[Outcome],
    provenance: Mapping[str, object],
    *,
    force: bool = False,
) -> Path:
    """Write rows as one outcomes file, in the order given."""
    held = list(rows)
    columns = {name: [getattr(row, name) for row in held] for name in _FIELDS}
    return parquet.write(path, schema.OUTCOMES, columns, provenance, force=force)


def _first_repeated(keys: list[Key]) -> Key | None:
    if len(set(keys)) == len(keys):
        return None
    seen: set[Key] = set()
    return next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]


_TYPES: dict[str, tuple[type, ...]] = {
    "prompt_id": (str,),
    "sample": (int,),
    "model": (str,),
    "status": (str,),
    "correct": (bool, type(None)),
    "n_tokens": (int,),
    "think_tokens": (int, type(None)),
    "extracted": (str, type(None)),
    "finish_reason": (str,),
    "response": (str, type(None)),
}


def _sound(row: Outcome) -> Outcome:
    """The row, if every field is what the file can hold; else ValueError."""
    for name, types in _TYPES.items():
        value = getattr(row, name)
        if type(value) not in types:
            raise ValueError(f"{name} is {value!r}")
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, int) and not 0 <= value < 2**31:
            raise ValueError(f"{name} is {value}")
    if row.status not in STATUSES or row.correct is not correctness(row.status):
        raise ValueError(f"status is {row.status!r} with correct = {row.correct}")
    return row


class OutcomeLog:
    """Append-only JSONL shards of a probe that runs, one shard a session.

    A row is one `write` of one line, so a kill leaves at most one torn last line in a shard, which
    a reader drops: that sample was never finished. Later rows replace earlier ones of the same
    key, as a regenerated `engine_error` does.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._handle: Any = None

    def read(self) -> dict[Key, Outcome]:
        """Every finished row so far, the newest of each key."""
        rows: dict[Key, Outcome] = {}
        for shard in self._shards():
            for row in _shard_rows(shard):
                rows[row.prompt_id, row.sample] = row
        return rows

    def append(self, row: Outcome) -> None:
        """Write one finished row; it survives a kill from here on."""
        line = json.dumps({name: getattr(row, name) for name in _FIELDS}, ensure_ascii=True)
        try:
            if self._handle is None:
                self._handle = self._next_shard().open("ab", buffering=0)
            data = line.encode() + b"\n"
            while data:  # a raw write may take only a part, as on a disk about to fill
                data = data[self._handle.write(data) :]
        except OSError as caught:
            raise OutputError(
                f"{self.folder}: a finished sample could not be written "
                f"({caught.strerror}); what was written before is kept, so the "
                "same command goes on from there"
            ) from caught

    def close(self) -> None:
        """End this session's shard."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def clear(self) -> None:
        """Remove the shards, once a compacted file holds their rows."""
        self.close()
        for shard in self._shards():
            shard.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _shards(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.jsonl"))

    def _next_shard(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        last = self._shards()
        number = int(last[-1].stem) + 1 if last else 1
        return self.folder / f"{number:06d}.jsonl"


def _shard_rows(shard: Path) -> Iterator[Outcome]:
    try:
        lines = shard.read_bytes().split(b"\n")
    except OSError as caught:
        raise ProbeFolderError(f"{shard}: cannot be read ({caught.strerror})") from caught
    for number, line in enumerate(lines[:-1]):  # what follows the last newline is torn or empty
        try:
            row = _sound(Outcome(**cast("dict[str, Any]", json.loads(line))))
        except (ValueError, TypeError, RecursionError) as caught:
            raise ProbeFolderError(
                f"{shard}: line {number + 1} is not an outcome ({caught}); "
                "the shard was edited or damaged: remove that line"
            ) from caught
        yield row
