"""The training loop: select, roll out, standardise, step, observe.

`P` prompts, `B` groups an update, `G` rollouts a group. A prior from any source trains the same
way, and uniform sampling is just another selector. All randomness of an update is a function of the
run's seed, its number and the prompt; with checkpoints, a run that was broken at any moment ends as
the unbroken one does, bit for bit on a CPU in float32 with as many threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from priorkit import grpo
from priorkit.beta import check_group_size, expected_learnability
from priorkit.checkpoint import clear_drafts, latest_checkpoint, save_checkpoint
from priorkit.columns import FloatArray, IntArray
from priorkit.engines.protocol import Engine, Request, Sampling, check_seed, request_seed
from priorkit.errors import RunFolderError, SettingError
from priorkit.folder import claim, locked
from priorkit.learner import Batch, Learner, LearnerSettings, StepResult
from priorkit.policy import LoraSettings, Policy
from priorkit.prior import write_prior
from priorkit.rollout import Rollouts, roll_out
from priorkit.run_rows import EvalRow, GroupRow, StepRow
from priorkit.run_tables import (
    DAMAGED,
    Run,
    is_finished,
    logged,
    read_run,
    read_settings,
    table_path,
)
from priorkit.runlog import RunLog
from priorkit.selectors.protocol import Selector
from priorkit.tasks import Tasks


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """What defines a run besides its pool, prior, policy and selector. Defaults: ThinkPrior."""

    updates: int = 60
    """Optimiser steps."""
    groups: int = 8
    """`B` prompts an update."""
    group_size: int = 8
    """`G` rollouts a prompt."""
    sampling: Sampling = field(default_factory=Sampling)
    """How rollouts are drawn."""
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    """Optimiser and loss."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """The adapter."""
    seed: int = 0
    """Of the adapter's start, the rollouts and the selector."""
    eval_every: int = 60
    """Evaluate before the first update, after every so many and after the last; 0: never."""
    eval_samples: int = 1
    """Responses a held-out prompt."""
    eval_temperature: float = 0.0
    """0 is greedy, as in the paper."""
    rollout_batch: int = 64
    """Sequences generated at once."""
    shuffle_rewards: bool = False
    """A control: rewards change places within each group, so nothing can be learned from them."""

    def __post_init__(self) -> None:
        check_group_size(self.group_size)
        for name in ("updates", "groups", "eval_samples", "rollout_batch"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.eval_every < 0:
            raise SettingError(f"eval_every must be 0 or more, got {self.eval_every}")
        check_seed(self.seed)
        Sampling(self.eval_temperature)

    def evaluates_after(self, update: int) -> bool:
        """Whether the held-out prompts are asked after that update; 0 is before the first."""
        return bool(self.eval_every) and (update % self.eval_every == 0 or update == self.updates)


_INHERITED = ("policy", "pool", "selector", "template", "verifier")
REMEDY = "pass --name to start another run, or --force to start over"
_OPTIONS = {"learning_rate": "lr", "rank": "lora-rank", "alpha": "lora-alpha"}


def spoken(name: str) -> str:
    """What the command line calls a part of a run's definition."""
    room, _, last = name.rpartition(".")
    if not room.startswith("settings"):
        return name
    return f"--{_OPTIONS.get(last, last.replace('_', '-'))}"


def definition(binding: Mapping[str, object], settings: TrainSettings) -> dict[str, object]:
    """What must be equal for a run to go on in its folder: all but what only spares memory."""
    defining = asdict(settings)
    for name in sparing(settings):
        defining.pop(name, None)
        defining["learner"].pop(name, None)
    return {**binding, "settings": defining}


def sparing(settings: TrainSettings) -> dict[str, object]:
    """The settings that only spare memory, so that a run which ran out of it can go on."""
    return {
        "rollout_batch": settings.rollout_batch,
        "micro_tokens": settings.learner.micro_tokens,
        "gradient_checkpointing": settings.learner.gradient_checkpointing,
    }


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """One run in one folder.

    Attributes:
        folder: gets `run.json`, the log and `checkpoints/`.
        settings: what defines the run.
        policy: what is trained.
        tasks: the prompts to choose from.
        selector: chooses among them.
        held_out: prompts to evaluate on, never trained on; None for none.
        binding: policy, pool, prior, selector, template and verifier as recorded: what else must
            be equal for the run to go on.
        notes: what is recorded but may change, such as versions.
        save_every: updates between checkpoints.
    """

    folder: Path
    settings: TrainSettings
    policy: Policy
    tasks: Tasks
    selector: Selector
    held_out: Tasks | None = None
    binding: Mapping[str, object] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    save_every: int = 10

    def run(
        self,
        on_update: Callable[[StepRow], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Train, from the newest checkpoint if there is one, to the last update.

        Args:
            on_update: told of each update's log row.
            should_stop: asked after each update; true saves and ends the call early.

        Raises:
            SettingError: fewer prompts than `B`.
            RunFolderError: another process works here, or the folder holds another definition.
            EngineError: a loss that is not a number, or out of memory.
        """
        settings = self.settings
        if settings.groups > len(self.tasks):
            raise SettingError(
                f"an update takes {settings.groups} prompts and the pool has only "
                f"{len(self.tasks)}; lower --groups"
            )
        with locked(self.folder, RunFolderError), torch.random.fork_rng(devices=[]):
            defined = definition(self.binding, settings)
            claim(self.folder / "run.json", defined, REMEDY, RunFolderError, self.notes, spoken)
            read_settings(self.folder)  # or what it lacks would show only at the end
            if is_finished(self.folder):
                RunLog(self.folder).finish(defined)  # a kill may have left its last clean-up
                return read_run(self.folder)
            learner = Learner(self.policy, settings.learner, settings.sampling.max_new_tokens)
            log = RunLog(self.folder)
            try:
                self._resume(learner, log)
                for update in range(learner.updates + 1, settings.updates + 1):
                    row = self._update(update, learner, log)
                    if settings.evaluates_after(update):
                        self._evaluate(update, log)
                    stopping = should_stop()
                    if update % self.save_every == 0 or update == settings.updates or stopping:
                        self._save(learner, log)
                    if on_update is not None:
                        on_update(row)
                    if stopping:
                        break
                if learner.updates == settings.updates:
                    log.finish(defined)
            finally:
                log.close()
            return read_run(self.folder)

    def _update(self, update: int, learner: Learner, log: RunLog) -> StepRow:
        """One update: the algorithm."""
        began = time.perf_counter()
        settings = self.settings
        rows = self.selector.select(settings.groups)
        expected = self._expected(rows)
        engine = self.policy.engine(settings.rollout_batch)
        rollouts = roll_out(engine, self.tasks, rows, self._requests(rows, update))
        rewards, judged = rollouts.reward_tensors()
        if settings.shuffle_rewards:
            rewards = self._shuffled(rewards, judged, update)
        advantages = grpo.group_advantages(rewards, judged)
        stepping = time.perf_counter()
        result = learner.step(as_batch(rollouts, advantages))
        seconds_update = time.perf_counter() - stepping
        self.selector.observe(rows, rollouts.successes, rollouts.trials)
        groups = group_rows(update, rollouts, self.tasks, expected)
        total = time.perf_counter() - began
        row = step_row(update, rollouts, result, expected, seconds_update, total)
        log.append(row, groups)
        return row

    def _requests(self, rows: IntArray, update: int) -> list[Request]:
        settings = self.settings
        ids = self.tasks.pool.prompt_id
        return [
            self.tasks.request(
                int(row),
                settings.group_size,
                request_seed(settings.seed, "rollout", ids[row], step=update, round_=1),
                settings.sampling,
            )
            for row in rows
        ]

    def _expected(self, rows: IntArray) -> FloatArray:
        """`[B]` expected learnability by prior and counts, whatever the selector itself goes by."""
        belief = self.selector.posterior()
        return expected_learnability(
            belief.alpha[rows], belief.beta[rows], self.settings.group_size
        )

    def _shuffled(self, rewards: Tensor, judged: Tensor, update: int) -> Tensor:
        """Rewards changing places among the judged responses of each group."""
        shuffled = rewards.clone()
        rng = np.random.Generator(
            np.random.Philox(request_seed(self.settings.seed, "shuffle", "", step=update))
        )
        for group, seen in enumerate(judged):
            places = np.flatnonzero(seen.numpy())
            shuffled[group, places] = rewards[group, rng.permutation(places)]
        return shuffled

    def _evaluate(self, update: int, log: RunLog) -> None:
        """Ask the held-out prompts and log every one of them."""
        if self.held_out is None:
            return
        settings = self.settings
        sampling = Sampling(settings.eval_temperature, 1.0, settings.sampling.max_new_tokens)
        engine = self.policy.engine(settings.rollout_batch)
        counted = examine(engine, self.held_out, sampling, settings.eval_samples, settings.seed)
        log.append_evals(eval_rows(update, counted, self.held_out, sampling.temperature))

    def _resume(self, learner: Learner, log: RunLog) -> None:
        """The newest checkpoint's state, and a log that ends with it; else a start at zero."""
        root = self.folder / "checkpoints"
        clear_drafts(root)
        checkpoint = latest_checkpoint(root)
        if checkpoint is not None:
            checkpoint.restore(learner, self.selector)
            log.cut(checkpoint.update)
            self._check_evaluations(checkpoint.update)
            return
        trained = len(logged(table_path(self.folder, StepRow), StepRow))
        if trained:
            raise RunFolderError(
                f"{root}: holds no checkpoint, though the log has {trained} updates; put it back, "
                "or pass --force to start over"
            )
        torch.manual_seed(self.settings.seed)
        self.policy.refresh()
        log.cut(-1)
        if self.settings.evaluates_after(0):
            self._evaluate(0, log)
        self._save(learner, log)

    def _check_evaluations(self, update: int) -> None:
        """RunFolderError unless the log holds every evaluation up to that update."""
        if self.held_out is None:
            return
        wanted = [
            (step, key)
            for step in range(update + 1)
            if self.settings.evaluates_after(step)
            for key in self.held_out.pool.prompt_id
        ]
        path = table_path(self.folder, EvalRow)
        if [(row.step, row.prompt_id) for row in logged(path, EvalRow)] != wanted:
            raise RunFolderError(
                f"{path}: does not hold the {len(wanted)} held-out results up to update {update}; "
                f"{DAMAGED}"
            )

    def _save(self, learner: Learner, log: RunLog) -> None:
        log.sync()  # a checkpoint must not outlive the rows it goes with
        posterior = replace(
            self.selector.posterior(),
            kind="posterior",
            row_hash=self.tasks.pool.row_hash,
            provenance=self._origin(learner.updates),
        )
        save_checkpoint(
            self.folder / "checkpoints",
            learner,
            self.selector.state_dict(),
            lambda path: write_prior(path, posterior),
        )

    def _origin(self, updates: int) -> dict[str, object]:
        """The provenance of the beliefs after so many updates."""
        prior = self.binding.get("prior")
        return {
            "anchor": prior["anchor"] if isinstance(prior, dict) else "none",
            "sampling": asdict(self.settings.sampling),
            "parents": [] if prior is None else [prior],
            "versions": self.notes.get("versions", {}),
            "updates": updates,
            **{key: self.binding[key] for key in _INHERITED if key in self.binding},
        }


def examine(engine: Engine, tasks: Tasks, sampling: Sampling, samples: int, seed: int) -> Rollouts:
    """`samples` responses to every prompt, judged."""
    requests = [
        tasks.request(row, samples, request_seed(seed, "evaluate", key), sampling)
        for row, key in enumerate(tasks.pool.prompt_id)
    ]
    return roll_out(engine, tasks, np.arange(len(tasks)), requests)


def as_batch(rollouts: Rollouts, advantages: Tensor) -> Batch:
    """The learner's view of a round: every response in order, its prefix masked from the loss."""
    pairs = [
        (request, completion)
        for request, group in zip(rollouts.requests, rollouts.completions, strict=True)
        for completion in group
    ]
    return Batch(
        prompts=[request.prompt_tokens for request, _ in pairs],
        responses=[request.prefix_tokens + completion.tokens for request, completion in pairs],
        masks=[
            (0,) * len(request.prefix_tokens) + (1,) * len(completion.tokens)
            for request, completion in pairs
        ],
        advantages=advantages.flatten(),
    )


def group_rows(
    update: int, rollouts: Rollouts, tasks: Tasks, expected: FloatArray
) -> list[GroupRow]:
    """One log row a group."""
    errors = (~rollouts.judged).sum(axis=1)
    return [
        GroupRow(
            step=update,
            round=1,
            rank=at,
            prompt_id=tasks.pool.prompt_id[row],
            successes=int(rollouts.successes[at]),
            trials=int(rollouts.trials[at]),
            n_error=int(errors[at]),
            n_truncated=int(rollouts.truncated[at].sum()),
            fate="silent" if rollouts.silent[at] else "used",
            expected=float(expected[at]),
            prefix_kind=None,
            prefix_tokens=0,
            node_id=None,
            n_tokens=int(rollouts.n_tokens[at]),
            n_replayed=0,
        )
        for at, row in enumerate(rollouts.rows)
    ]


def step_row(
    update: int,
    rollouts: Rollouts,
    result: StepResult,
    expected: FloatArray,
    seconds_update: float,
    seconds_total: float,
) -> StepRow:
    """The log row of one update."""
    size = rollouts.rewards.shape[1]
    trials = int(rollouts.trials.sum())
    silent = int(rollouts.silent.sum())
    return StepRow(
        step=update,
        loss=result.loss,
        kl=result.kl,
        grad_norm=result.grad_norm,
        learning_rate=result.learning_rate,
        reward=float(rollouts.successes.sum() / trials) if trials else None,
        n_groups=len(rollouts.rows),
        n_silent=silent,
        n_used=len(rollouts.rows) - silent,
        n_responses=rollouts.rewards.size,
        n_wasted=silent * size,
        n_no_verdict=int((~rollouts.judged).sum()),
        n_truncated=int(rollouts.truncated.sum()),
        n_tokens=int(rollouts.n_tokens.sum()),
        n_replayed=0,
        n_prompt_tokens=sum(len(request.prompt_tokens) for request in rollouts.requests),
        expected=float(expected.mean()),
        seconds_generate=rollouts.seconds_generate,
        seconds_verify=rollouts.seconds_verify,
        seconds_update=seconds_update,
        seconds_total=seconds_total,
    )


def eval_rows(update: int, counted: Rollouts, tasks: Tasks, temperature: float) -> list[EvalRow]:
    """One log row a held-out prompt."""
    errors = (~counted.judged).sum(axis=1)
    return [
        EvalRow(
            step=update,
            prompt_id=key,
            successes=int(counted.successes[at]),
            trials=int(counted.trials[at]),
            n_error=int(errors[at]),
            n_truncated=int(counted.truncated[at].sum()),
            n_tokens=int(counted.n_tokens[at]),
            temperature=temperature,
        )
        for at, key in enumerate(tasks.pool.prompt_id)
    ]
