"""`priorkit train`: a LoRA GRPO run whose prompts a selector picks."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priorkit.engines.template import DEFAULT_INSTRUCTION

from . import options
from .output import emit, note, shown_path, warn

if TYPE_CHECKING:
    from priorkit.recipe import Ingredients, Recipe
    from priorkit.run_tables import Run


def train(
    prior: Annotated[
        Path | None, typer.Option("--prior", help="Prior file; without one, nothing is known.")
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="MODEL", help="What is trained: name, folder or .gguf."),
    ] = "Qwen2.5-Math-7B",
    pool: options.PoolSource = None,
    selector: Annotated[
        str | None,
        typer.Option(help="What picks prompts. Default: thinkprior with a prior, else uniform."),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Measured rates, for the oracle alone.")
    ] = None,
    updates: Annotated[int, typer.Option(help="Optimiser steps.")] = 60,
    groups: Annotated[int, typer.Option("--groups", "-B", help="Prompts an update.")] = 8,
    group_size: options.GroupSize = 8,
    learning_rate: Annotated[float, typer.Option("--lr", help="AdamW's learning rate.")] = 3e-5,
    warmup: Annotated[int, typer.Option(help="Updates of linear warm-up.")] = 3,
    clip: Annotated[float, typer.Option(help="Gradient norm limit.")] = 1.0,
    loss_length: Annotated[
        str,
        typer.Option(
            metavar="response|token|constant",
            help="A response's log-likelihood is divided by its own length, the batch's mean "
            "length, or --max-new-tokens.",
        ),
    ] = "token",
    kl: Annotated[float, typer.Option(help="Weight of the reference penalty.")] = 0.0,
    lora_rank: Annotated[int, typer.Option(help="Rank of the adapter.")] = 32,
    lora_alpha: Annotated[int, typer.Option(help="Scale times rank of the adapter.")] = 64,
    temperature: Annotated[float, typer.Option(help="Of the rollouts.")] = 0.9,
    top_p: Annotated[float, typer.Option(help="Nucleus mass kept.")] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens generated at most.")] = 512,
    rollout_batch: Annotated[int, typer.Option(help="Sequences generated at once.")] = 64,
    micro_tokens: Annotated[
        int, typer.Option(help="Tokens in one forward pass of the gradient step, at most.")
    ] = 4096,
    gradient_checkpointing: Annotated[
        bool,
        typer.Option("--gradient-checkpointing", help="Less memory in the step, more time."),
    ] = False,
    eval_every: Annotated[
        int, typer.Option(help="Evaluate before, every so many updates and after; 0: never.")
    ] = 60,
    eval_samples: Annotated[int, typer.Option(help="Responses a held-out prompt.")] = 1,
    eval_temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    save_every: Annotated[int, typer.Option(help="Updates between checkpoints.")] = 10,
    shuffle_rewards: Annotated[
        bool,
        typer.Option("--shuffle-rewards", help="A control: rewards change places in each group."),
    ] = False,
    missing: options.MissingRule = "refuse",
    keep_strength: Annotated[
        bool, typer.Option("--keep-strength", help="Use a posterior's own strength, not kappa 4.")
    ] = False,
    template: options.TemplateMode = "auto",
    instruction: options.Instruction = DEFAULT_INSTRUCTION,
    max_prompt_tokens: options.MaxPromptTokens = 384,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    seed: options.Seed = 0,
    name: Annotated[str | None, typer.Option(help="The run's folder name.")] = None,
    root: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    force: Annotated[bool, typer.Option("--force", help="Start this run over.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a policy with GRPO on the prompts that its prior expects to be mixed.

    The same command again goes on from the newest checkpoint, or says that all is done.

    Example: priorkit train --prior priors.parquet
    """
    from priorkit.extras import TRAINING, require

    require("training", *TRAINING)
    from priorkit.engines.protocol import Sampling
    from priorkit.learner import LearnerSettings
    from priorkit.policy import LoraSettings
    from priorkit.prior import check_missing
    from priorkit.recipe import Recipe, Template
    from priorkit.train import TrainSettings

    check_missing(missing)
    settings = TrainSettings(
        updates=updates,
        groups=groups,
        group_size=group_size,
        sampling=Sampling(temperature, top_p, max_new_tokens),
        learner=LearnerSettings(
            learning_rate, warmup, clip, loss_length, kl, micro_tokens, gradient_checkpointing  # type: ignore[arg-type]
        ),
        lora=LoraSettings(lora_rank, lora_alpha),
        seed=seed,
        eval_every=eval_every,
        eval_samples=eval_samples,
        eval_temperature=eval_temperature,
        rollout_batch=rollout_batch,
        shuffle_rewards=shuffle_rewards,
    )  # fmt: skip
    recipe = Recipe(
        policy=policy,
        settings=settings,
        pool=pool,
        prior=prior,
        selector=selector,
        reference=reference,
        missing=missing,  # type: ignore[arg-type]
        keep_strength=keep_strength,
        template=Template(template, instruction, max_prompt_tokens),
        dtype=dtype,
        device=device,
        save_every=save_every,
    )
    run = run_training(recipe, root, name, force, as_json)
    report(run, as_json)


def run_training(recipe: Recipe, root: Path, name: str | None, force: bool, as_json: bool) -> Run:
    """Run, go on with, or find finished the run that a recipe describes."""
    from priorkit.probe import folder_name

    made = recipe.ingredients()
    folder = root / (folder_name(name) if name else made.name)
    done = None if force else made.finished(folder)
    if done is not None:
        note(f"{shown_path(folder)}: finished before, nothing to train (--force starts over)")
        return done
    _tell(made)
    try:
        return _train(made, folder, force)
    except KeyboardInterrupt:
        note("stopped; run the same command again to go on")
        raise typer.Exit(130) from None


def _tell(made: Ingredients) -> None:
    """What a person should know of the prior before hours of training."""
    if made.recipe.prior is not None and not made.recipe.uses_prior:
        warn(f"{made.recipe.selector_name} starts from nothing: the prior is not used")
    if made.fitted is None:
        return
    if made.fitted.n_missing:
        warn(f"{made.fitted.n_missing} prompts are not in the prior and got --missing")
    unknown = sorted(k for k, v in made.belief.provenance.items() if v == "unknown")
    if unknown:
        warn(f"the prior does not say its {', '.join(unknown)}")


def _train(made: Ingredients, folder: Path, force: bool) -> Run:
    from priorkit.errors import RunFolderError
    from priorkit.folder import empty

    from .progress import train_progress

    with made.training(folder) as training:
        if force:
            empty(folder, RunFolderError)
        _tell_of_resuming(folder, training.notes)
        with polite_stop() as stop, train_progress(training.settings.updates) as progress:
            run = training.run(on_update=progress, should_stop=stop)
    if not run.finished:
        note(
            f"stopped after update {len(run.steps)} of {training.settings.updates}, saved in "
            f"{shown_path(folder)}; run the same command again to go on"
        )
        raise typer.Exit(130)
    return run


def _tell_of_resuming(folder: Path, notes: Any) -> None:
    from priorkit.checkpoint import newest_folder
    from priorkit.errors import RunFolderError

    try:
        reached = int(newest_folder(folder / "checkpoints").name)
    except RunFolderError:
        return
    note(f"{shown_path(folder)}: going on after update {reached}")
    try:
        before = dict(json.loads((folder / "run.json").read_text())["notes"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in ("threads", "rollout_batch", "micro_tokens", "gradient_checkpointing"):
        if before.get(name, notes[name]) != notes[name]:
            warn(
                f"this run began with {name} = {before[name]} and goes on with {notes[name]}: its "
                "last bits, and so its counts, may differ from an unbroken run's"
            )


@contextmanager
def polite_stop() -> Iterator[Any]:
    """A question that turns true at the first Ctrl-C; a second one stops at once."""
    asked: list[int] = []

    def handle(signum: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(signum)
        note("finishing this update, then saving; again to stop at once")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report(run: Run, as_json: bool) -> None:
    """Print how a run went and where it is."""
    from .show import describe, story

    emit(describe(run), story(run), as_json)
