"""How results look: one JSON object, or text for people. No arithmetic of the product's own."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

RATE_BINS = ("0", "0-.2", ".2-.4", ".4-.6", ".6-.8", ".8-1", "1")


def emit(result: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print a result to stdout, as JSON or as text."""
    if as_json:
        typer.echo(json.dumps(_plain(result), allow_nan=False))
    else:
        typer.echo(text)


def warn(message: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {one_line(message, limit=None)}", file=sys.stderr)


def note(message: str) -> None:
    """Print a remark to stderr, where it does not mix with a result."""
    print(one_line(message, limit=None), file=sys.stderr)


def rate_histogram(rates: Iterable[float], width: int = 40) -> str:
    """Bars of solve rates: never, five fifths, always."""
    counts = rate_bins(rates)
    peak = max([*counts, 1])
    lines = []
    for label, count in zip(RATE_BINS, counts, strict=True):
        bar = "█" * math.ceil(width * count / peak) if count else ""
        lines.append(f"  {label:>6} {count:>7}  {bar}".rstrip())
    return "\n".join(lines)


def rate_bins(rates: Iterable[float]) -> list[int]:
    """How many rates are exactly 0, in each fifth between, exactly 1."""
    counts = [0] * len(RATE_BINS)
    for rate in rates:
        at = 0 if rate <= 0 else 6 if rate >= 1 else 1 + min(int(rate * 5), 4)
        counts[at] += 1
    return counts


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns padded with blanks; the first `left` are flush left, the rest flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def one_line(text: object, limit: int | None = 60) -> str:
    """Text on one line, control characters shown, cut to fit a row where there is a limit."""
    shown = " ".join(str(text).split())
    shown = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in shown)
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def shown_path(path: object) -> str:
    """A path relative to here where that is shorter."""
    try:
        relative = os.path.relpath(str(path))
    except OSError:  # the working folder is gone
        return str(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
