"""Columns, types and version of every file kind priorkit writes.

A file is Parquet (zstd) with a JSON object under the footer key `priorkit`:
`{"kind": …, "version": …, "provenance": {…}}`. The version belongs to the kind and moves apart
from the package's; a reader accepts every version up to the one it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FOOTER_KEY = b"priorkit"
UNKNOWN = "unknown"  # a provenance field that an import cannot know

ColumnType = Literal["string", "int32", "int64", "float64", "bool", "prompt", "answer"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file kind.

    Attributes:
        name: as in the file.
        type: `prompt` is a string or a list of chat messages, `answer` a string or a list of them.
        nullable: null is allowed, and means "not known".
        required: a file without it is refused; an optional column may be absent.
    """

    name: str
    type: ColumnType
    nullable: bool = False
    required: bool = True


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of file: its name, the newest version this package knows, its columns in order."""

    name: str
    version: int
    columns: tuple[Column, ...]


POOL = FileKind(
    "pool",
    1,
    (
        Column("prompt_id", "string"),
        Column("prompt", "prompt"),
        Column("answer", "answer"),
        Column("level", "int32", nullable=True, required=False),
        Column("subject", "string", nullable=True, required=False),
        Column("source", "string", nullable=True, required=False),
        Column("verifier", "string", nullable=True, required=False),
        Column("split", "string", nullable=True, required=False),
    ),
)

OUTCOMES = FileKind(
    "outcomes",
    1,
    (
        Column("prompt_id", "string"),
        Column("sample", "int32"),
        Column("model", "string"),
        Column("status", "string"),
        Column("correct", "bool", nullable=True),
        Column("n_tokens", "int32"),
        Column("think_tokens", "int32", nullable=True),
        Column("extracted", "string", nullable=True),
        Column("finish_reason", "string"),
        Column("response", "string", nullable=True),
    ),
)

PRIOR = FileKind(
    "prior",
    1,
    (
        Column("prompt_id", "string"),
        Column("row_hash", "string", nullable=True),
        Column("alpha", "float64"),
        Column("beta", "float64"),
        Column("rate", "float64", nullable=True),
        Column("successes", "int32", nullable=True),
        Column("trials", "int32", nullable=True),
        Column("n_truncated", "int32", nullable=True),
        Column("n_error", "int32", nullable=True),
    ),
)

STEPS = FileKind(
    "steps",
    1,
    (
        Column("step", "int32"),
        Column("loss", "float64"),
        Column("kl", "float64", nullable=True),
        Column("grad_norm", "float64"),
        Column("learning_rate", "float64"),
        Column("reward", "float64", nullable=True),
        Column("n_groups", "int32"),
        Column("n_silent", "int32"),
        Column("n_used", "int32"),
        Column("n_responses", "int32"),
        Column("n_wasted", "int32"),
        Column("n_no_verdict", "int32"),
        Column("n_truncated", "int32"),
        Column("n_tokens", "int64"),
        Column("n_replayed", "int64"),
        Column("n_prompt_tokens", "int64"),
        Column("expected", "float64", nullable=True),
        Column("seconds_generate", "float64"),
        Column("seconds_verify", "float64"),
        Column("seconds_update", "float64"),
        Column("seconds_total", "float64"),
    ),
)

GROUPS = FileKind(
    "groups",
    1,
    (
        Column("step", "int32"),
        Column("round", "int32"),
        Column("rank", "int32"),
        Column("prompt_id", "string"),
        Column("successes", "int32"),
        Column("trials", "int32"),
        Column("n_error", "int32"),
        Column("n_truncated", "int32"),
        Column("fate", "string"),
        Column("expected", "float64", nullable=True),
        Column("prefix_kind", "string", nullable=True),
        Column("prefix_tokens", "int32"),
        Column("node_id", "string", nullable=True),
        Column("n_tokens", "int64"),
        Column("n_replayed", "int64"),
    ),
)

EVALS = FileKind(
    "evals",
    1,
    (
        Column("step", "int32"),
        Column("prompt_id", "string"),
        Column("successes", "int32"),
        Column("trials", "int32"),
        Column("n_error", "int32"),
        Column("n_truncated", "int32"),
        Column("n_tokens", "int64"),
        Column("temperature", "float64"),
    ),
)

FILE_KINDS = {kind.name: kind for kind in (POOL, OUTCOMES, PRIOR, STEPS, GROUPS, EVALS)}

PriorKind = Literal["anchor", "irt", "length", "posterior", "import"]
PRIOR_KINDS: tuple[PriorKind, ...] = ("anchor", "irt", "length", "posterior", "import")

#: What every prior says of where it came from; `unknown` where nobody can tell.
PRIOR_PROVENANCE = ("anchor", "sampling", "template", "verifier", "pool", "parents", "versions")
