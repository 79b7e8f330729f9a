"""The lab's comparison: arms × task seeds × training seeds, each a real run in a folder of its own.

    python benchmarks/lab_trials.py --out lab-trials                # the comparison
    python benchmarks/lab_trials.py --out lab-horizon --horizon     # 300 updates, KL on and off

A rerun goes on where it was stopped; `figures.json` and `figures.md` come last. Each worker is a
process with one thread, so figures do not hang on the number of cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from dataclasses import dataclass, replace
from pathlib import Path

TASK_SEEDS = (1, 2, 3)  # task seed 0 was for tuning
SEEDS = tuple(range(8))
ARMS = ("uniform", "online-np", "thinkprior", "shuffled")
HORIZON_ARMS = ("online-np", "thinkprior")
SAMPLED, SAMPLES = 0.9, 4


@dataclass(frozen=True)
class Trial:
    """One run: `shuffled` is uniform sampling with shuffled rewards."""

    arm: str
    task_seed: int
    seed: int
    updates: int = 60
    kl: float = 0.0
    learning_rate: float | None = None

    @property
    def name(self) -> str:
        horizon = "" if self.updates == 60 else f"-u{self.updates}"
        rate = "" if self.learning_rate is None else f"-lr{self.learning_rate:g}"
        return f"t{self.task_seed}-{self.arm}-s{self.seed}{horizon}{rate}{'-kl' if self.kl else ''}"


def work(job: tuple[Path, Trial]) -> str:
    """Train and evaluate one trial, unless it is there."""
    root, trial = job
    if not (root / "runs" / trial.name / "after.json").exists():
        train(root, trial)
    return trial.name


def train(root: Path, trial: Trial) -> None:
    from priorkit.lab.settings import lab_settings
    from priorkit.recipe import Recipe

    settings = lab_settings(trial.seed, trial.updates, trial.kl)
    if trial.learning_rate is not None:
        learner = replace(settings.learner, learning_rate=trial.learning_rate)
        settings = replace(settings, learner=learner)
    settings = replace(
        settings,
        shuffle_rewards=trial.arm == "shuffled",
        eval_every=min(trial.updates, 60) // (1 if trial.updates == 60 else 2),
    )
    recipe = Recipe(
        policy="lab-policy",
        settings=settings,
        pool=root / f"tasks-{trial.task_seed}.parquet",
        prior=root / f"prior-{trial.task_seed}.parquet",
        selector="uniform" if trial.arm == "shuffled" else trial.arm,
        device="cpu",
        save_every=50,
    )
    folder = root / "runs" / trial.name
    with recipe.ingredients().training(folder) as training:
        training.run()
        after = sampled_accuracy(training)
    (folder / "after.json").write_text(json.dumps({"avg@4": after}))


def sampled_accuracy(training) -> float:  # type: ignore[no-untyped-def]
    """avg@4 on the held-out prompts at the rollouts' temperature."""
    from priorkit.engines.protocol import Sampling
    from priorkit.train import examine

    sampling = Sampling(SAMPLED, 1.0, training.settings.sampling.max_new_tokens)
    found = examine(training.policy.engine(256), training.held_out, sampling, SAMPLES, seed=0)
    return float((found.successes / found.trials).mean())


def prepare(root: Path, task_seed: int) -> None:
    """Tasks, the anchor's prior, and how the policy samples before training."""
    from priorkit.engines.models import resolve_model
    from priorkit.engines.protocol import Sampling
    from priorkit.engines.transformers import TransformersEngine
    from priorkit.lab.pools import lab_pool
    from priorkit.lab.settings import NEW_TOKENS, lab_settings
    from priorkit.pool import write_pool
    from priorkit.prior import anchor_prior, write_prior
    from priorkit.probe import Probe, ProbeSettings
    from priorkit.recipe import Recipe, Template
    from priorkit.verify import make_verifier

    tasks, prior = root / f"tasks-{task_seed}.parquet", root / f"prior-{task_seed}.parquet"
    if not tasks.exists():
        write_pool(tasks, lab_pool(task_seed), {"source": "priorkit lab", "task_seed": task_seed})
    if not prior.exists():
        pool = lab_pool(task_seed).of_split("train")
        engine = TransformersEngine.load(resolve_model("lab-anchor"), device="cpu", batch_size=256)
        asked = ProbeSettings(samples=16, sampling=Sampling(max_new_tokens=NEW_TOKENS))
        probe = Probe(root / f"probe-{task_seed}", pool, "lab-anchor", asked, {})
        verifiers = {"exact": make_verifier("exact")}
        done = probe.run(engine, verifiers, Template().renderer(engine.tokenizer))
        write_prior(prior, anchor_prior(done.counts, pool, done.outcomes.provenance)[0])
    before = root / f"before-{task_seed}.json"
    if not before.exists():
        recipe = Recipe(policy="lab-policy", settings=lab_settings(), pool=tasks, device="cpu")
        with recipe.ingredients().training(root / "unused") as training:
            training.policy.refresh()
            before.write_text(json.dumps({"avg@4": sampled_accuracy(training)}))


def start_worker() -> None:
    import torch

    torch.set_num_threads(1)


def trials(arguments: argparse.Namespace) -> list[Trial]:
    rate = arguments.learning_rate
    if arguments.horizon:
        return [
            Trial(arm, arguments.task_seeds[0], seed, 300, kl, rate)
            for seed in arguments.seeds[:4]
            for kl in (0.0, 0.04)
            for arm in HORIZON_ARMS
        ]
    return [
        Trial(arm, task_seed, seed, learning_rate=rate)
        for seed in arguments.seeds
        for task_seed in arguments.task_seeds
        for arm in arguments.arms
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("lab-trials"))
    parser.add_argument("--horizon", action="store_true", help="300 updates instead of 60")
    parser.add_argument("--task-seeds", type=int, nargs="+", default=TASK_SEEDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--learning-rate", type=float, help="instead of the lab's own")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ["OMP_NUM_THREADS"] = "1"
    wanted = trials(arguments)
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(arguments.workers, initializer=start_worker) as pool:
        seeds = sorted({trial.task_seed for trial in wanted})
        pool.starmap(prepare, [(arguments.out, seed) for seed in seeds])
        jobs = [(arguments.out, trial) for trial in wanted]
        for at, name in enumerate(pool.imap_unordered(work, jobs), 1):
            print(f"{at}/{len(jobs)} {name}", flush=True)
    from lab_figures import write_figures

    write_figures(arguments.out, wanted)


if __name__ == "__main__":
    main()
