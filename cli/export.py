"""`priorkit export`: what a run made, for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .output import emit, shown_path


def export(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Folder or name; default: the newest."),
    ] = None,
    what: Annotated[
        str,
        typer.Option(
            metavar="adapter|merged|posterior",
            help="The LoRA adapter, the whole model with it added, or the beliefs as a prior.",
        ),
    ] = "adapter",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder, or file for a posterior; default: beside."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The policy's weights, if moved.")
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a run's adapter, its merged weights, or its posterior as a prior file.

    Adapter and merged weights come with a card that says how they were trained.

    Example: priorkit export runs/thinkprior-Qwen2.5-Math-7B-s0 --what merged
    """
    from priorkit.errors import SettingError
    from priorkit.extras import TRAINING, require
    from priorkit.run_tables import find_run, read_run

    if what not in ("adapter", "merged", "posterior"):
        raise SettingError(f"--what must be adapter, merged or posterior, got {what!r}")
    held = read_run(find_run(run, root))
    require("exporting", *TRAINING)
    from priorkit.export import (
        export_adapter,
        export_merged,
        export_posterior,
        exported_update,
    )

    beside, update = held.folder.resolve().name, exported_update(held)
    if what == "adapter":
        path = export_adapter(held, out or Path(f"{beside}-adapter"), force=force)
    elif what == "merged":
        path = export_merged(held, out or Path(f"{beside}-merged"), base=base, force=force)
    else:
        path = export_posterior(held, out or Path(f"{beside}-prior.parquet"), force=force)
    result = {"run": str(held.folder), "what": what, "path": str(path), "updates": update}
    emit(result, f"{what} after {update} updates: {shown_path(path)}", as_json)
