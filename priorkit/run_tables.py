"""Reading the log of a training run: three tables and the settings, validated together.

A running run has `steps.jsonl`, `groups.jsonl` and `evals.jsonl`; a finished one holds the same
rows as Parquet. `evals.parquet` is the last file to get there, so it tells the two apart.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from priorkit import parquet
from priorkit.errors import RunFolderError
from priorkit.run_rows import KINDS, EvalRow, GroupRow, Row, StepRow, checked, is_unicode, tally

DAMAGED = "the log was edited or damaged: restore it from a copy, or start the run anew"


_SETTINGS: dict[str, type] = {
    "policy.name": str,
    "policy.revision": str,
    "selector.name": str,
    "settings.updates": int,
    "settings.sampling.max_new_tokens": int,
    "template.mode": str,
    "template.instruction": str,
    "template.max_prompt_tokens": int,
    "held_out.fingerprint": str,
    "notes.files.policy": str,
    "notes.files.pool": str,
}
"""What is read of `run.json` beside its comparison with a command's own definition."""

_KIND = {str: "text", int: "a whole number", dict: "an object"}


class Tables(NamedTuple):
    """The rows of a log, in file order; `KINDS` has the same order."""

    steps: list[StepRow]
    groups: list[GroupRow]
    evals: list[EvalRow]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run's folder as read.

    Attributes:
        folder: where it is.
        settings: `run.json`.
        finished: the log is compacted, nothing more will come.
        steps: one row an update, from step 1 without gaps.
        groups: every candidate group of those updates.
        evals: every evaluated prompt, up to the last update.
    """

    folder: Path
    settings: dict[str, Any]
    finished: bool
    steps: list[StepRow]
    groups: list[GroupRow]
    evals: list[EvalRow]

    def setting(self, *keys: str) -> Any:
        """A value of `run.json`, by the keys that lead to it.

        Raises:
            RunFolderError: it is not there.
        """
        value: Any = self.settings
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                raise RunFolderError(
                    f"{self.folder / 'run.json'}: has no {'.'.join(keys)}, which every run of "
                    f"`priorkit train` has; {DAMAGED}"
                )
            value = value[key]
        return value


def read_run(folder: str | Path) -> Run:
    """A validated run, running or finished.

    Rows of an update whose step row is not there are what a kill left, and are dropped.

    Raises:
        RunFolderError: no run, or a log that breaks its schema, repeats or skips a step, or whose
            groups do not come to what its steps say.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    if not is_finished(folder):
        tables = running_tables(folder)
        if not is_finished(folder):  # else what was read just now was being removed
            return Run(folder, settings, False, *tables)
    return Run(folder, settings, True, *finished_tables(folder))


def newest_run(root: str | Path) -> Path:
    """The run under `root` whose log was written to last.

    Raises:
        RunFolderError: there is none.
    """
    found = [folder.parent for folder in Path(root).glob("*/run.json")]
    if not found:
        raise RunFolderError(
            f"{root}: no run here; `priorkit train` makes one, or name a run's folder"
        )
    return max(found, key=_last_written)


def find_run(run: Path | None, root: str | Path) -> Path:
    """A run's folder, given as that or by its name under `root`; the newest one there for None.

    Raises:
        RunFolderError: the newest is wanted and there is none.
    """
    if run is None:
        return newest_run(root)
    under = Path(root) / run
    return under if not run.exists() and (under / "run.json").is_file() else run


def _last_written(folder: Path) -> tuple[float, str]:
    logs = [table_path(folder, kind, end) for kind in KINDS for end in ("jsonl", "parquet")]
    times = [path.stat().st_mtime for path in (*logs, folder / "run.json") if path.exists()]
    return max(times, default=0.0), folder.name


def is_finished(folder: Path) -> bool:
    """Whether the folder's log is compacted."""
    return table_path(folder, EvalRow, "parquet").exists()


def table_path(folder: Path, row_type: type, ending: str = "jsonl") -> Path:
    """Where the rows of a type are."""
    return folder / f"{KINDS[row_type].name}.{ending}"


def running_tables(folder: Path) -> Tables:
    """The validated rows of a running run; RunFolderError where they cannot be vouched for."""
    _refuse_half(folder)
    # Steps first: the groups of a step that is there were written before it.
    steps, groups, evals = (table_path(folder, row_type) for row_type in KINDS)
    tables = Tables(logged(steps, StepRow), logged(groups, GroupRow), logged(evals, EvalRow))
    return vouched(folder, "jsonl", tables)


def finished_tables(folder: Path) -> Tables:
    """The validated rows of a finished run; RunFolderError where they cannot be vouched for."""
    steps, groups, evals = (table_path(folder, row_type, "parquet") for row_type in KINDS)
    tables = Tables(_stored(steps, StepRow), _stored(groups, GroupRow), _stored(evals, EvalRow))
    return vouched(folder, "parquet", tables)


def logged(path: Path, row_type: type[Row]) -> list[Row]:
    """The rows of a JSONL file, each valid; none where there is no file."""
    return [row for _, row in lines(path, row_type)]


def lines(path: Path, row_type: type[Row]) -> Iterator[tuple[bytes, Row]]:
    """Each whole line with its newline, and its row."""
    # What follows the last newline is torn or empty.
    for number, line in enumerate(held_bytes(path).split(b"\n")[:-1]):
        try:
            row = checked(row_type(**json.loads(line)))
        except (ValueError, TypeError, RecursionError) as caught:
            name = KINDS[row_type].name
            raise RunFolderError(
                f"{_place(path, number)} is no row of {name} ({_brief(caught)}); {DAMAGED}"
            ) from caught
        yield line + b"\n", row


def held_bytes(path: Path) -> bytes:
    """What a file holds; nothing where it is not there."""
    parquet.refuse_special(path, RunFolderError)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as caught:
        raise RunFolderError(f"{path}: cannot be read ({caught.strerror})") from caught


def repeated(rows: Sequence[EvalRow]) -> int | None:
    """Where a prompt is there for the second time in one evaluation; None when nowhere."""
    seen: set[tuple[int, str]] = set()
    for i, row in enumerate(rows):
        if (row.step, row.prompt_id) in seen:
            return i
        seen.add((row.step, row.prompt_id))
    return None


def read_settings(folder: Path) -> dict[str, Any]:
    """`run.json`, its values of the types that everything here counts on; RunFolderError else."""
    path = folder / "run.json"
    remedy = "name a run's folder; `priorkit train` makes one"
    if not path.is_file():
        raise RunFolderError(f"{folder}: no run here, expected a folder with run.json; {remedy}")
    try:
        settings = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as caught:
        raise RunFolderError(f"{path}: cannot be read ({_brief(caught)}); {DAMAGED}") from caught
    if not isinstance(settings, dict):
        raise RunFolderError(
            f"{path}: expected a JSON object of settings, found {type(settings).__name__}; {remedy}"
        )
    for keys, expected in _SETTINGS.items():
        _check_setting(path, settings, keys.split("."), expected)
    return settings


def _check_setting(path: Path, value: Any, keys: list[str], expected: type) -> None:
    """RunFolderError where something else than expected stands in a setting's place, or on the way.

    What is not there is not missed here; `Run.setting` does that where it is wanted.
    """
    for depth, key in enumerate(keys):
        if key not in value:
            return
        value = value[key]
        wanted = expected if depth == len(keys) - 1 else dict
        if value is None and wanted is dict:
            return
        if type(value) is not wanted or (wanted is str and not is_unicode(value)):
            raise RunFolderError(
                f"{path}: {'.'.join(keys[: depth + 1])} is {_brief(json.dumps(value))}, expected "
                f"{_KIND[wanted]}; {DAMAGED}"
            )


def _refuse_half(folder: Path) -> None:
    """Refuse a finished log that lost its last file, which would read as an empty running one."""
    if any(table_path(folder, row_type).exists() for row_type in KINDS):
        return
    left = next((p for t in KINDS if (p := table_path(folder, t, "parquet")).exists()), None)
    if left is not None:
        raise RunFolderError(
            f"{table_path(folder, EvalRow, 'parquet')}: is missing, though {left.name} is there; "
            f"{DAMAGED}"
        )


def _stored(path: Path, row_type: type[Row]) -> list[Row]:
    table, _ = parquet.read(path, KINDS[row_type], RunFolderError)
    rows = []
    for i, values in enumerate(table.to_pylist()):
        try:
            rows.append(checked(row_type(**values)))
        except ValueError as caught:
            raise RunFolderError(f"{_place(path, i)}: {caught}; {DAMAGED}") from caught
    return rows


def vouched(folder: Path, ending: str, tables: Tables) -> Tables:
    """The tables without what a kill left; RunFolderError where they contradict each other."""
    steps, groups, evals = (table_path(folder, row_type, ending) for row_type in KINDS)
    for i, row in enumerate(tables.steps):
        if row.step != i + 1:
            raise RunFolderError(
                f"{_place(steps, i)} has step {row.step}, expected {i + 1}; {DAMAGED}"
            )
    last = len(tables.steps)
    kept = Tables(
        tables.steps, _until(groups, tables.groups, last), _until(evals, tables.evals, last)
    )
    _check_tallies(steps, kept)
    twice = repeated(kept.evals)
    if twice is not None:
        key = kept.evals[twice]
        raise RunFolderError(
            f"{_place(evals, twice)} has prompt {key.prompt_id!r} at step {key.step} for the "
            f"second time; {DAMAGED}"
        )
    return kept


def _until(path: Path, rows: list[Row], last: int) -> list[Row]:
    """The rows up to the last step, which must be in order of step."""
    for i, row in enumerate(rows):
        if i and row.step < rows[i - 1].step:
            raise RunFolderError(
                f"{_place(path, i)} has step {row.step} after step {rows[i - 1].step}; {DAMAGED}"
            )
        if row.step > last and path.suffix == ".parquet":
            raise RunFolderError(
                f"{_place(path, i)} has step {row.step}, but the steps end with {last}; {DAMAGED}"
            )
    return [row for row in rows if row.step <= last]


def _check_tallies(path: Path, tables: Tables) -> None:
    groups: dict[int, list[GroupRow]] = defaultdict(list)
    for group in tables.groups:
        groups[group.step].append(group)
    for i, step in enumerate(tables.steps):
        for name, found in tally(groups[step.step]).items():
            said = getattr(step, name)
            if said != found:
                raise RunFolderError(
                    f"{_place(path, i)} says {name} = {said} of step {step.step}, but its rows in "
                    f"groups{path.suffix} come to {found}; {DAMAGED}"
                )


def _place(path: Path, row: int) -> str:
    return f"{path}: " + (f"line {row + 1}" if path.suffix == ".jsonl" else f"row {row}")


def _brief(said: object) -> str:
    text = " ".join(str(said).split())
    return text if len(text) <= 200 else text[:199] + "…"
