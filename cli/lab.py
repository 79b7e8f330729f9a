"""`priorkit lab`: graded tasks and nano models, for machines without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .output import emit, note, shown_path

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(help="Graded tasks and nano models, for machines without a GPU.")

TaskSeed = Annotated[int, typer.Option("--task-seed", min=0, help="Which problems are drawn.")]


@app.command("build")
def build(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")] = Path("lab"),
    seed: options.Seed = 0,
    task_seed: TaskSeed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Make the nano models and a pool of tasks again from their seeds, in about a quarter hour.

    The models that priorkit brings along were made so; `lab-anchor` and `lab-policy` name them.

    Example: priorkit lab build --out lab
    """
    from priorkit.extras import TRAINING, require

    require("building models", *TRAINING)
    import torch

    torch.set_num_threads(1)  # sums in one order, whatever the machine
    from priorkit.export import check_replaceable, replacing_folder
    from priorkit.lab.nano import NANO, build_nano, is_nano

    for name in NANO:
        check_replaceable(folder / name, force, is_nano)
    pool = _write_tasks(folder / "tasks.parquet", task_seed, force)
    losses = {}
    for name, settings in NANO.items():
        tell, last = _teller(name, settings.steps)
        with replacing_folder(folder / name, force, is_nano) as draft:
            build_nano(draft, settings, seed, tell)
        losses[name] = last[0]
    paths = [str(folder / name) for name in NANO] + [str(pool)]
    text = "\n".join(
        [f"{name}: last loss {loss:.3f}" for name, loss in losses.items()]
        + [f"written: {shown_path(path)}" for path in paths]
    )
    emit({"seed": seed, "task_seed": task_seed, "loss": losses, "paths": paths}, text, as_json)


@app.command("tasks")
def tasks(
    out: Annotated[Path, typer.Option("--out", "-o", help="Pool file to write.")] = Path(
        "lab.parquet"
    ),
    task_seed: TaskSeed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the lab's prompt pool of one task seed: 250 prompts and 500 held-out ones.

    Example: priorkit lab tasks --task-seed 1
    """
    path = _write_tasks(out, task_seed, force)
    result = {"pool": str(path), "task_seed": task_seed}
    emit(result, f"{shown_path(path)}: the lab's tasks of task seed {task_seed}", as_json)


def _write_tasks(path: Path, task_seed: int, force: bool) -> Path:
    from priorkit.lab.pools import lab_pool
    from priorkit.pool import write_pool

    origin = {"source": "priorkit lab", "task_seed": task_seed}
    return write_pool(path, lab_pool(task_seed), origin, force=force)


def _teller(name: str, steps: int) -> tuple[Callable[[int, float], None], list[float]]:
    """A callback that says every 200 updates how far a model is, and the mean loss it said last."""
    recent: list[float] = []
    last = [float("nan")]

    def tell(step: int, loss: float) -> None:
        recent.append(loss)
        if len(recent) == 200 or step == steps - 1:
            last[0] = sum(recent) / len(recent)
            note(f"{name}: {step + 1} of {steps} updates, loss {last[0]:.3f}")
            recent.clear()

    return tell, last
