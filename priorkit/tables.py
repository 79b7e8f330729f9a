"""Rows from anywhere: Parquet, CSV, JSONL, JSON, or a data set on the Hugging Face hub.

Knows containers, not meanings: a table is a dict of equally long columns, values as they came
(CSV: all text). What the columns mean is for `pool` and `rates` to say.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from priorkit.errors import FileError, PoolFileError
from priorkit.parquet import open_parquet, refuse_special

Columns = dict[str, list[Any]]

SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")


def read_table(path: str | Path, error: type[FileError] = FileError) -> Columns:
    """Columns of one file, by its ending.

    Raises:
        FileError: of the class given; missing, damaged, or of a kind not known.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _from_parquet(path, error)
    if suffix in {".csv", ".tsv"}:
        return _from_csv(path, "\t" if suffix == ".tsv" else ",", error)
    if suffix in {".jsonl", ".ndjson"}:
        return _from_rows(path, _json_lines(path, error), error)
    if suffix == ".json":
        document = read_json(path, error)
        if isinstance(document, list):
            return _from_rows(path, list(enumerate(document)), error)
        raise error(f"{path}: expected a JSON list of rows, found {type(document).__name__}")
    raise error(f"{path}: cannot tell its format; expected one of {', '.join(SUFFIXES)}")


def read_json(path: str | Path, error: type[FileError] = FileError) -> Any:
    """One JSON document."""
    try:
        return json.loads(_text(path, error))
    except ValueError as caught:
        raise error(f"{path}: not JSON ({caught})") from caught
    except RecursionError as caught:
        raise error(f"{path}: JSON nested too deeply to read") from caught


def hub_files(name: str, split: str, error: type[FileError] = PoolFileError) -> list[Path]:
    """Local copies of the data files of a hub data set, `org/name` or `org/name:config`.

    Files are chosen by the split's name in their path, as the hub lays them out; when none has it,
    all are taken. The local cache is asked first, so a set fetched once works offline.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as caught:
        raise error(
            f"{name}: no such file, and data sets on the hub need `pip install 'priorkit[train]'`"
        ) from caught
    repo, _, config = name.partition(":")
    patterns = [f"**{ending}" for ending in (".parquet", ".jsonl", ".csv")]
    folder = None
    for local in (True, False):
        try:
            folder = Path(
                snapshot_download(
                    repo,
                    repo_type="dataset",
                    allow_patterns=patterns,
                    local_files_only=local,
                    etag_timeout=5,
                )
            )
            break
        except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as caught:
            reason = (str(caught).strip().splitlines() or ["no answer"])[0]
    if folder is None:
        raise error(
            f"{name}: no such file, and no data set of that name could be fetched from the hub "
            f"({reason}); pass a local .parquet, .jsonl or .csv file"
        )
    found = sorted(p for p in folder.rglob("*") if p.suffix in {".parquet", ".jsonl", ".csv"})
    if config:
        found = [p for p in found if config in p.relative_to(folder).as_posix()]
    chosen = [p for p in found if split in p.relative_to(folder).as_posix()] or found
    if not chosen:
        raise error(f"{name}: the data set has no .parquet, .jsonl or .csv files to read")
    return chosen


def concatenate(tables: list[Columns]) -> Columns:
    """Tables one under another; a column that one lacks is null there."""
    names = {name: None for table in tables for name in table}
    out: Columns = {name: [] for name in names}
    for table in tables:
        height = len(next(iter(table.values()), []))
        for name in names:
            out[name].extend(table.get(name, [None] * height))
    return out


def _from_parquet(path: str | Path, error: type[FileError]) -> Columns:
    parquet = open_parquet(path, error)
    try:
        return {name: column.to_pylist() for name, column in _columns(parquet)}
    except (OSError, ValueError, OverflowError) as caught:
        raise error(
            f"{path}: its data pages cannot be read ({caught}); the file is damaged"
        ) from caught


def _columns(parquet: Any) -> list[tuple[str, Any]]:
    table = parquet.read()
    return [(name, table.column(name)) for name in dict.fromkeys(table.column_names)]


def _from_csv(path: str | Path, delimiter: str, error: type[FileError]) -> Columns:
    csv.field_size_limit(1 << 30)
    try:
        # newline="" leaves line ends, and U+2028 and its like, inside quoted fields alone.
        held = io.StringIO(_text(path, error), newline="")
        rows = list(csv.reader(held, delimiter=delimiter, strict=True))
    except csv.Error as caught:
        raise error(f"{path}: not CSV ({caught})") from caught
    if not rows:
        raise error(f"{path}: is empty, expected a header line")
    header, body = rows[0], [row for row in rows[1:] if row]
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise error(f"{path}: column {twice!r} is there twice; names must be unique")
    for number, row in enumerate(body):
        if len(row) != len(header):
            raise error(f"{path}: row {number} has {len(row)} fields, the header {len(header)}")
    return {name: [row[i] for row in body] for i, name in enumerate(header)}


def _json_lines(path: str | Path, error: type[FileError]) -> list[tuple[int, Any]]:
    rows = []
    for number, line in enumerate(_text(path, error).split("\n")):
        if not line.strip():
            continue
        try:
            rows.append((number, json.loads(line)))
        except (ValueError, RecursionError) as caught:
            raise error(f"{path}: line {number + 1} is not JSON ({caught})") from caught
    return rows


def _from_rows(path: str | Path, rows: list[tuple[int, Any]], error: type[FileError]) -> Columns:
    names: dict[str, None] = {}
    for number, row in rows:
        if not isinstance(row, Mapping):
            raise error(f"{path}: row {number} is a {type(row).__name__}, expected an object")
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for _, row in rows] for name in names}


def _text(path: str | Path, error: type[FileError]) -> str:
    try:
        refuse_special(path, error)
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError as caught:
        raise error(f"{path}: no such file") from caught
    except UnicodeDecodeError as caught:
        raise error(f"{path}: not UTF-8 text ({caught.reason} at byte {caught.start})") from caught
    except OSError as caught:
        raise error(f"{path}: cannot be read ({caught.strerror})") from caught
