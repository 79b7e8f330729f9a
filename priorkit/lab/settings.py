"""How training goes in the lab: found on uniform sampling with task seed 0, then left alone."""

from __future__ import annotations

from dataclasses import replace

from priorkit.engines.protocol import Sampling
from priorkit.learner import LearnerSettings
from priorkit.train import TrainSettings

NEW_TOKENS = 64  # the longest right response has 52, its end token among them
LEARNING_RATE = 3e-4


def lab_settings(seed: int = 0, updates: int = 60, kl: float = 0.0) -> TrainSettings:
    """The paper's run with the lab's limit of new tokens and its learning rate."""
    settings = TrainSettings(
        updates=updates,
        sampling=Sampling(max_new_tokens=NEW_TOKENS),
        learner=LearnerSettings(learning_rate=LEARNING_RATE, kl=kl, micro_tokens=16_384),
        seed=seed,
    )
    return replace(settings, eval_every=updates)
