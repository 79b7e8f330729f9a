"""Updates a second, against TRL's `GRPOTrainer`: same model, prompts, batch, LoRA, in one process.

    pip install trl==1.16.0
    python benchmarks/trl_speed.py lab-policy --rewards coin
    python benchmarks/trl_speed.py lab-policy --rewards verified
    python benchmarks/trl_speed.py smollm2 --rewards coin

Blocks of updates alternate, TRL first in the odd pairs and second in the even ones; a figure is the
median ratio over pairs with the distribution-free interval of a median (of 7: lowest to highest,
98.4 %). What each side does in an update, 8 prompts × 8 rollouts:

- both: sample at temperature 0.9 up to the same number of new tokens with a key-value cache, score
  with the same function, one AdamW step on LoRA r = 32, α = 64 on all linear layers, float32, no
  reference model; the gradient in one forward pass (lab-policy) or in pieces of about 16 sequences
  (smollm2, whose activations would not fit 24 GB otherwise). The learning rate is 1e-12, so that
  both stay with the policy they started with and sample responses of the same lengths; tokens an
  update are printed for both.
- TRL: generates through the adapter with `model.generate`, which goes on for every row until the
  last has ended; recomputes all log-likelihoods with gradient, silent groups included; clips the
  ratio (loss_type grpo).
- priorkit: generates with merged weights, drops rows that have ended from the batch; computes the
  loss on responses of mixed groups only, sorted by length and right-padded.

Rewards `coin` are a hash of the text, so nearly all groups are mixed and nothing is saved by
skipping silent ones; `verified` are the lab's own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # for both, as the command line does

import torch

from priorkit.engines.loading import load_model
from priorkit.engines.models import resolve_model
from priorkit.engines.protocol import Sampling
from priorkit.learner import Learner, LearnerSettings
from priorkit.pool import Pool, bundled_pool, read_pool
from priorkit.recipe import Recipe, Template
from priorkit.runlog import RunLog
from priorkit.train import TrainSettings
from priorkit.verify import Verdict, make_verifier

RATE = 1e-12
PIECE = {"lab-policy": (64, 16_384), "smollm2": (16, 2048)}  # TRL's sequences, our tokens
Score = Callable[[str, str], bool]


class Coin:
    """A verifier that tosses a coin by the text."""

    name, version, policies = "exact", 1, {}  # type: ignore[var-annotated]

    def check(self, response: str, answer: Any, finish_reason: str | None = None) -> Verdict:
        heads = hashlib.sha256(response.encode()).digest()[0] % 2 == 0
        return Verdict("correct" if heads else "wrong", response)


def verifier(rewards: str) -> Any:
    return Coin() if rewards == "coin" else make_verifier("exact")


class Ours:
    """priorkit's own loop, update by update."""

    def __init__(self, name: str, pool: Path, tokens: int, rewards: str) -> None:
        settings = TrainSettings(
            sampling=Sampling(max_new_tokens=tokens),
            learner=LearnerSettings(learning_rate=RATE, micro_tokens=PIECE[name][1]),
            eval_every=0,
        )
        recipe = Recipe(
            policy=name,
            settings=settings,
            pool=pool,
            device="cpu",
            template=Template(instruction=""),
        )
        self._context = recipe.ingredients().training(Path(tempfile.mkdtemp()))
        training = self._context.__enter__()
        for key in training.tasks._verifiers:
            training.tasks._verifiers[key] = verifier(rewards)  # type: ignore[index]
        self._training = training
        self._learner = Learner(training.policy, settings.learner, tokens)
        training.policy.refresh()
        self._log = RunLog(training.folder)
        self._update = 0
        self.steps: list[Any] = []

    def block(self, updates: int) -> float:
        """Seconds for so many updates."""
        began = time.perf_counter()
        for _ in range(updates):
            self._update += 1
            self.steps.append(self._training._update(self._update, self._learner, self._log))
        return time.perf_counter() - began

    def tokens(self) -> float:
        return float(statistics.mean(step.n_tokens for step in self.steps))

    def split(self) -> dict[str, float]:
        whole = sum(step.seconds_total for step in self.steps)
        return {
            name: sum(getattr(step, f"seconds_{name}") for step in self.steps) / whole
            for name in ("generate", "verify", "update")
        }


class Theirs:
    """TRL's trainer; a block is one `train()`, its first update left out of the clock."""

    def __init__(self, name: str, pool: Pool, tokens: int, rewards: str, updates: int) -> None:
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import TrainerCallback
        from trl import GRPOConfig, GRPOTrainer

        model, tokenizer = load_model(resolve_model(name), dtype="float32", device="cpu")
        rows = [
            {"prompt": [{"role": "user", "content": prompt}], "gold": answer}
            for prompt, answer in zip(pool.prompt, pool.answer, strict=True)
        ]
        judge = verifier(rewards)
        ends = self.ends = []  # type: ignore[var-annotated]
        lengths = self.lengths = []  # type: ignore[var-annotated]

        def score(completions: Any, gold: Any, completion_ids: Any, **_: Any) -> list[float]:
            lengths.append(sum(map(len, completion_ids)))
            return [
                float(judge.check(said[0]["content"], answer).correct or 0)
                for said, answer in zip(completions, gold, strict=True)
            ]

        class Clock(TrainerCallback):
            def on_step_end(self, *_: Any, **__: Any) -> None:
                ends.append(time.perf_counter())

        config = GRPOConfig(
            output_dir=tempfile.mkdtemp(), num_generations=8,
            per_device_train_batch_size=PIECE[name][0],
            gradient_accumulation_steps=64 // PIECE[name][0],
            max_completion_length=tokens, max_steps=updates + 1, learning_rate=RATE,
            temperature=0.9, beta=0.0, loss_type="grpo", logging_steps=10_000,
            save_strategy="no", report_to=[], bf16=False, use_cpu=True,
            gradient_checkpointing=False, disable_tqdm=True,
        )  # fmt: skip
        lora = LoraConfig(r=32, lora_alpha=64, target_modules="all-linear", task_type="CAUSAL_LM")
        self._trainer = GRPOTrainer(
            model=model, processing_class=tokenizer, args=config,
            train_dataset=Dataset.from_list(rows), reward_funcs=score, peft_config=lora,
            callbacks=[Clock()],
        )  # fmt: skip

    def block(self, updates: int) -> float:
        """Seconds for so many updates."""
        self.ends.clear()
        self._trainer.train()
        return float(self.ends[-1] - self.ends[-1 - updates])

    def tokens(self) -> float:
        return float(statistics.mean(self.lengths))


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=("lab-policy", "smollm2"))
    parser.add_argument("--rewards", choices=("coin", "verified"), default="coin")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--updates", type=int, help="a block; default 20, or 2 for smollm2")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    updates = arguments.updates or (20 if arguments.model == "lab-policy" else 2)
    with tempfile.TemporaryDirectory() as folder:
        path, pool = tasks(Path(folder), arguments.model)
        print(json.dumps(result := measure(arguments, path, pool, updates), indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


def tasks(folder: Path, model: str) -> tuple[Path, Pool]:
    """The pool, every row judged exactly."""
    import numpy as np

    from priorkit.lab.pools import lab_pool
    from priorkit.pool import write_pool

    pool = lab_pool(0) if model == "lab-policy" else read_pool(bundled_pool())
    pool = pool.of_split("train")
    pool = replace(pool, verifier=np.full(len(pool), "exact", dtype=object))
    return write_pool(folder / "pool.parquet", pool, {}), pool


def measure(arguments: argparse.Namespace, path: Path, pool: Pool, updates: int) -> dict[str, Any]:
    tokens = 64
    ours = Ours(arguments.model, path, tokens, arguments.rewards)
    theirs = Theirs(arguments.model, pool, tokens, arguments.rewards, updates)
    for side in (ours, theirs):
        side.block(1 if arguments.model == "smollm2" else 5)  # warm up
    ours.steps.clear()
    theirs.lengths.clear()
    pairs = []
    for pair in range(arguments.pairs):
        sides = (theirs, ours) if pair % 2 == 0 else (ours, theirs)
        spent = {side: side.block(updates) for side in sides}
        pairs.append({"priorkit": updates / spent[ours], "trl": updates / spent[theirs]})
        print(pairs[-1], flush=True)
    ratios = sorted(pair["priorkit"] / pair["trl"] for pair in pairs)
    return {
        "model": arguments.model, "rewards": arguments.rewards, "updates_a_block": updates,
        "threads": torch.get_num_threads(), "pairs": pairs,
        "median_ratio": statistics.median(ratios), "interval": [ratios[0], ratios[-1]],
        "priorkit_updates_a_second": statistics.median(pair["priorkit"] for pair in pairs),
        "trl_updates_a_second": statistics.median(pair["trl"] for pair in pairs),
        "priorkit_tokens_an_update": ours.tokens(), "trl_tokens_an_update": theirs.tokens(),
        "priorkit_time": ours.split(),
        "priorkit_mixed_groups": statistics.mean(s.n_used / s.n_groups for s in ours.steps),
    }  # fmt: skip


if __name__ == "__main__":
    main()
