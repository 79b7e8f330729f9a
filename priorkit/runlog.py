"""Writing the log of a training run: lines while it runs, Parquet once it is finished."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path

from priorkit import parquet
from priorkit.errors import OutputError, RunFolderError
from priorkit.run_rows import KINDS, EvalRow, GroupRow, Row, StepRow, json_line, tally
from priorkit.run_tables import (
    DAMAGED,
    Tables,
    finished_tables,
    held_bytes,
    is_finished,
    lines,
    logged,
    repeated,
    running_tables,
    table_path,
    vouched,
)


class RunLog:
    """The log of a run at work; its folder is the caller's alone.

    The groups of an update are written before its step row, so a step that is there is whole. An
    evaluation is written beside and moved into place: it is there whole or not at all.
    What a kill left is dropped by `cut`, or before the first row is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._last: int | None = None  # step; None while nobody has looked at the files
        self._handles: dict[type, FileIO] = {}

    def append(self, step: StepRow, groups: Sequence[GroupRow]) -> None:
        """Write one update; it survives a kill from here on.

        Raises:
            OutputError: the disk said no.
            RunFolderError: the run is finished, or what is there is damaged.
        """
        last = self._ready()
        assert step.step == last + 1, f"step {step.step!r} cannot follow step {last}"
        data = {GroupRow: b"".join(map(json_line, groups)), StepRow: json_line(step)}
        stray = next((group.step for group in groups if group.step != step.step), None)
        assert stray is None, f"a group of step {stray} came with step {step.step}"
        for name, found in tally(groups).items():
            said = getattr(step, name)
            assert said == found, f"step {step.step} says {name} = {said}, its groups {found}"
        try:
            for row_type, rows in data.items():
                self._write(row_type, rows)
        except OSError as caught:
            self.close()
            raise OutputError(
                f"{self.folder}: step {step.step} could not be written ({caught.strerror}); the "
                "steps before it are kept, so the same command goes on from the last checkpoint"
            ) from caught
        self._last = step.step

    def append_evals(self, rows: Sequence[EvalRow]) -> None:
        """Write the rows of one evaluation, of a step already there; errors as for `append`."""
        last = self._ready()
        path = table_path(self.folder, EvalRow)
        every = [*logged(path, EvalRow), *rows]
        data = b"".join(map(json_line, every))
        for before, row in zip([None, *every], every, strict=False):
            first = before.step if before else 0
            assert first <= row.step <= last, f"evaluation of step {row.step} at step {last}"
        twice = repeated(every)
        assert twice is None, f"prompt {every[twice or 0].prompt_id!r} is evaluated twice"
        with parquet.replacing(path, force=True) as partial:
            partial.write_bytes(data)

    def cut(self, step: int) -> None:
        """Go back to a step: drop what was written of later ones, and torn last lines.

        Args:
            step: stays, with its evaluation; -1 drops the evaluation before training too.

        Raises:
            RunFolderError: the run is finished, the log does not reach that step, or what stays is
                damaged.
            OutputError: the disk said no.
        """
        self.close()
        if is_finished(self.folder):
            raise RunFolderError(f"{self.folder}: this run is finished; start another elsewhere")
        # In this order: a kill in between leaves only groups without a step, which nobody counts.
        evals, evaluated = _until(self.folder, EvalRow, step)
        steps, stepped = _until(self.folder, StepRow, step)
        groups, grouped = _until(self.folder, GroupRow, step)
        kept: dict[type, bytes] = {EvalRow: evals, StepRow: steps, GroupRow: groups}
        reached = len(stepped)
        if reached != max(step, 0):
            raise RunFolderError(
                f"{table_path(self.folder, StepRow)}: expected the {step} steps before the "
                f"checkpoint, found {reached}; {DAMAGED}"
            )
        vouched(self.folder, "jsonl", Tables(stepped, grouped, evaluated))
        for left in self.folder.glob(f".*{parquet.PARTIAL}"):
            left.unlink()  # of a write that a kill broke
        for row_type, data in kept.items():
            path = table_path(self.folder, row_type)
            if data != held_bytes(path):
                with parquet.replacing(path, force=True) as partial:
                    partial.write_bytes(data)
        self._last = reached

    def sync(self) -> None:
        """Have every row on the disk itself, where no power cut takes it back.

        Raises:
            OutputError: the disk said no.
        """
        try:
            for handle in self._handles.values():
                os.fsync(handle.fileno())
        except OSError as caught:
            raise OutputError(f"{self.folder}: {caught.strerror}") from caught

    def close(self) -> None:
        """Let go of the files."""
        for handle in self._handles.values():
            handle.close()
        self._handles = {}
        self._last = None

    def finish(self, provenance: Mapping[str, object]) -> None:
        """Compact the log to Parquet, then remove what it was compacted from.

        A kill in between is harmless: call it again.

        Args:
            provenance: for the footer of each file.

        Raises:
            RunFolderError: the log is damaged.
            OutputError: the disk said no; nothing is lost.
        """
        self.close()
        if not is_finished(self.folder):
            tables: tuple[Sequence[object], ...] = running_tables(self.folder)
            for rows, (row_type, kind) in zip(tables, KINDS.items(), strict=True):
                columns = {c.name: [getattr(row, c.name) for row in rows] for c in kind.columns}
                path = table_path(self.folder, row_type, "parquet")
                parquet.write(path, kind, columns, provenance, force=True)
        finished_tables(self.folder)  # read back before the lines go
        try:
            for row_type in KINDS:
                table_path(self.folder, row_type).unlink(missing_ok=True)
        except OSError as caught:
            raise OutputError(
                f"{self.folder}: the lines of the finished log could not be removed "
                f"({caught.strerror}); remove the .jsonl files in it"
            ) from caught

    def _ready(self) -> int:
        """The last step written, with nothing torn or half-written after it."""
        if self._last is None:
            self.cut(held_bytes(table_path(self.folder, StepRow)).count(b"\n"))
        assert self._last is not None
        return self._last

    def _write(self, row_type: type, data: bytes) -> None:
        if row_type not in self._handles:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = table_path(self.folder, row_type)
            self._handles[row_type] = path.open("ab", buffering=0)
        while data:  # a raw write may take only a part, as on a disk about to fill
            data = data[self._handles[row_type].write(data) :]


def _until(folder: Path, row_type: type[Row], step: int) -> tuple[bytes, list[Row]]:
    """Lines and rows before the first of a later step; what comes after it may be damaged."""
    kept, rows = [], []
    for line, row in lines(table_path(folder, row_type), row_type):
        if row.step > step:
            break
        kept.append(line)
        rows.append(row)
    return b"".join(kept), rows
