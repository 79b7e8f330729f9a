"""Reading and writing one Parquet file: validated against its kind, written whole or not at all.

The only module that knows pyarrow's Parquet calls. Errors name the file, what was expected, what
was found, the first bad row, and the remedy.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from priorkit.errors import FileError, OutputError
from priorkit.schema import FOOTER_KEY, Column, FileKind

PARTIAL = ".partial"  # the ending of a file being written
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

#: What pyarrow raises on a damaged file: a flipped bit may land in a length, a name or a page.
_DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)

_ARROW: dict[str, tuple[pa.DataType, ...]] = {
    "string": (pa.string(),),
    "int32": (pa.int32(),),
    "int64": (pa.int64(),),
    "float64": (pa.float64(),),
    "bool": (pa.bool_(),),
    "prompt": (pa.string(), MESSAGES),
    "answer": (pa.string(), pa.list_(pa.string())),
}


def write(
    path: str | Path,
    kind: FileKind,
    columns: Mapping[str, Any],
    provenance: Mapping[str, object],
    *,
    force: bool = False,
    **footer: object,
) -> Path:
    """Write one file of `kind`, beside its target and then moved into place.

    Args:
        path: target; its folder is made when missing.
        kind: what is written; columns are stored in its order.
        columns: name → arrow array, numpy array or list, `[P]` each.
        provenance: JSON-serialisable account of where the rows came from.
        force: replace an existing file.
        footer: more fields for the footer object, such as the prior's `kind_of_prior`.

    Raises:
        OutputError: the target exists (without `force`), or the disk said no.
    """
    arrays, fields = [], []
    for column in kind.columns:
        if column.name not in columns:
            continue
        array = _as_arrow(columns[column.name], column)
        arrays.append(array)
        fields.append(pa.field(column.name, array.type, nullable=column.nullable))
    document = {"kind": kind.name, "version": kind.version, **footer, "provenance": provenance}
    metadata = {FOOTER_KEY: json.dumps(document, sort_keys=True).encode()}
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))
    with replacing(path, force=force) as partial:
        # Ids, hashes and texts rarely repeat: a dictionary would only be built and thrown away.
        repeats = [f.name for f in fields if f.name not in {"prompt_id", "row_hash", "response"}]
        pq.write_table(
            table,
            partial,
            compression="zstd",
            compression_level=1,
            use_dictionary=repeats,
            write_page_checksum=True,
        )
    return Path(path)


def read(
    path: str | Path, kind: FileKind, error: type[FileError]
) -> tuple[pa.Table, dict[str, Any]]:
    """The validated table and footer object of one file.

    Raises:
        FileError: of the class given; see the module's first line.
    """
    parquet = open_parquet(path, error)
    footer = _footer(path, parquet, kind, error)
    names = [column.name for column in kind.columns]
    missing = [
        c.name for c in kind.columns if c.required and c.name not in parquet.schema_arrow.names
    ]
    if missing:
        found = ", ".join(parquet.schema_arrow.names)
        raise error(
            f"{path}: column {missing[0]!r} is missing (found: {found}); "
            f"a {kind.name} file needs {', '.join(c.name for c in kind.columns if c.required)}"
        )
    present = [name for name in names if name in parquet.schema_arrow.names]
    try:
        table = parquet.read(columns=present)
        table.validate(full=True)  # text that is not UTF-8, lists that point nowhere
    except _DAMAGE as caught:
        raise error(
            f"{path}: its data pages cannot be read ({_first_line(caught)}); "
            "the file is damaged, write it again"
        ) from caught
    columns = [
        _checked(path, table.column(column.name), column, error)
        for column in kind.columns
        if column.name in present
    ]
    return pa.table(columns, names=present), footer


def open_parquet(path: str | Path, error: type[FileError]) -> pq.ParquetFile:
    """An opened Parquet file, or one error saying why not."""
    refuse_special(path, error)
    opened = _opened(path, error)
    names = opened.schema_arrow.names
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise error(f"{path}: column {twice!r} is there twice; names must be unique")
    return opened


def refuse_special(path: str | Path, error: type[FileError]) -> None:
    """Refuse a pipe or a device, whose reading might never end."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise error(f"{path}: not a regular file")


def _opened(path: str | Path, error: type[FileError]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError as caught:
        raise error(f"{path}: no such file") from caught
    except _DAMAGE as caught:
        if Path(path).is_dir():
            raise error(f"{path}: is a folder, expected a Parquet file") from caught
        if isinstance(caught, PermissionError):
            raise error(f"{path}: cannot be read (permission denied)") from caught
        start = _first_bytes(path)
        found = "an empty file" if not start else f"{start[:16]!r} at its start"
        if start[:4] == b"PAR1":
            found = "a Parquet file cut short or damaged"
        raise error(
            f"{path}: not a readable Parquet file, found {found}; name the right file, or write "
            "it again"
        ) from caught


def footer_of(path: str | Path, error: type[FileError]) -> dict[str, Any] | None:
    """The footer object of a Parquet file, or None when another program wrote it."""
    raw = (open_parquet(path, error).schema_arrow.metadata or {}).get(FOOTER_KEY)
    if raw is None:
        return None
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise error(f"{path}: its `priorkit` footer is not a JSON object; the file is damaged")
    return document


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """A path beside the target to write to; moved into place on success, removed on failure.

    Raises:
        OutputError: the target exists (without `force`), or the disk said no.
    """
    target = Path(path)
    if os.path.lexists(target) and not force:
        raise OutputError(f"{target}: already exists; pass --force to replace it")
    target = Path(os.path.realpath(target))  # through a link, to the file it names
    if target.exists() and not target.is_file():
        raise OutputError(f"{path}: is no regular file, cannot be replaced by one")
    partial = target.with_name(f".priorkit-{os.getpid()}{PARTIAL}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb+") as written:
            os.fsync(written.fileno())
        partial.replace(target)
    except (OSError, pa.ArrowException) as caught:
        raise OutputError(
            f"{target}: could not be written ({_reason(caught)}); nothing was changed"
        ) from caught
    finally:
        if partial.parent.is_dir():
            partial.unlink(missing_ok=True)


def _as_arrow(values: Any, column: Column) -> pa.Array:
    """One column as arrow, of the first admissible type that takes it."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    last: Exception | None = None
    for arrow_type in _ARROW[column.type]:
        try:
            if isinstance(values, pa.Array):
                array = values.cast(arrow_type)
            else:
                array = pa.array(values, type=arrow_type)
        except (pa.ArrowException, TypeError) as caught:
            last = caught
            continue
        assert column.nullable or array.null_count == 0, f"null in column {column.name!r}"
        return array
    raise AssertionError(f"column {column.name!r} cannot be stored as {column.type}: {last}")


def _checked(
    path: str | Path, column: pa.ChunkedArray, spec: Column, error: type[FileError]
) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], type=array.type)
    for arrow_type in _ARROW[spec.type]:
        if array.type == arrow_type or _lossless(array.type, arrow_type):
            try:
                array = array.cast(arrow_type)
            except pa.ArrowException as caught:
                raise error(
                    f"{path}: column {spec.name!r} does not fit {spec.type} ({_first_line(caught)})"
                ) from caught
            break
    else:
        raise error(f"{path}: column {spec.name!r} must be {spec.type}, found {array.type}")
    if array.null_count and not spec.nullable:
        row = array.is_null().to_pylist().index(True)
        raise error(
            f"{path}: column {spec.name!r} has {array.null_count} null of {len(array)} "
            f"rows (first: row {row})"
        )
    return array


def _lossless(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(found))  # a safe cast refuses what overflows
    if pa.types.is_list(wanted) and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        if pa.types.is_struct(wanted.value_type):
            return bool(pa.types.is_struct(found.value_type))
        return _lossless(found.value_type, wanted.value_type)
    return bool(pa.types.is_null(found))


def _footer(
    path: str | Path, parquet: pq.ParquetFile, kind: FileKind, error: type[FileError]
) -> dict[str, Any]:
    document = footer_of(path, error)
    if document is None:
        raise error(
            f"{path}: no `priorkit` footer, so it is not a {kind.name} file of ours "
            f"(columns: {', '.join(parquet.schema_arrow.names)[:200]}){_remedy(kind)}"
        )
    if document.get("kind") != kind.name:
        raise error(f"{path}: expected a {kind.name} file, found kind {document.get('kind')!r}")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise error(
            f"{path}: its {kind.name} format version is {version!r}, expected an integer from 1"
        )
    if version > kind.version:
        raise error(
            f"{path}: {kind.name} format version {version} is newer than this priorkit "
            f"knows ({kind.version}); update priorkit"
        )
    if not isinstance(document.get("provenance"), dict):
        raise error(f"{path}: its footer has no provenance object; write the file again")
    return document


def _remedy(kind: FileKind) -> str:
    return "; make one with `priorkit prior import`" if kind.name == "prior" else ""


def _first_bytes(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as handle:
            return handle.read(64)
    except OSError:
        return b""


def _first_line(caught: BaseException) -> str:
    return (str(caught).splitlines() or [type(caught).__name__])[0][:200]


def _reason(caught: BaseException) -> str:
    code = getattr(caught, "errno", None)
    if code is not None and code in errno.errorcode:
        return os.strerror(code).lower()
    return _first_line(caught)
