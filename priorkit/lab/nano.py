"""The lab's models: ordinary Llama folders of a megabyte or two, trained from nothing on one core.

A nano model learns to write as a `Writer` does, on problems it has not seen. `S` sequences a
batch, `T` tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from priorkit.adapter import write_model
from priorkit.columns import IntArray
from priorkit.engines.protocol import check_seed
from priorkit.lab.problems import LEVELS, SUBJECTS, draw_problem
from priorkit.lab.tokenizer import ASK, END, PAD, START, lab_tokenizer, vocabulary
from priorkit.lab.writers import Writer

HEAD = 32  # vLLM's CPU attention wants multiples of 32
_IGNORED = -100
_FILES = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}
_DRAWN_AT_ONCE = 64  # batches cut from one sorted draw, so that little of a batch is padding


@dataclass(frozen=True, slots=True)
class NanoSettings:
    """How a nano model is made."""

    width: int
    """Hidden size, a multiple of 32."""
    layers: int
    """Decoder layers."""
    writer: Writer
    """Whose answers it learns."""
    level_weights: tuple[float, ...]
    """How often each of `LEVELS` is practised, relative."""
    learning_rate: float
    """Peak, after 5 % of warm-up and before a cosine to zero."""
    steps: int = 3000
    """Updates."""
    batch: int = 128
    """Sequences an update."""


ANCHOR = NanoSettings(
    width=64,
    layers=3,
    writer=Writer(
        {
            "addition": 0.30,
            "subtraction": 0.45,
            "multiplication": 0.50,
            "running sum": 0.35,
            "remainder": 0.45,
        },
        bare=0.10,
    ),
    level_weights=(3, 3, 2, 1.5, 1),
    learning_rate=4e-3,
)
POLICY = NanoSettings(
    width=96,
    layers=4,
    writer=Writer(
        {
            "addition": 0.40,
            "subtraction": 0.50,
            "multiplication": 0.55,
            "running sum": 0.35,
            "remainder": 0.55,
        },
        bare=0.10,
    ),
    level_weights=(1, 2, 2, 2, 2),
    learning_rate=3e-3,
)
NANO: Mapping[str, NanoSettings] = MappingProxyType({"anchor": ANCHOR, "policy": POLICY})
"""The lab's models by name."""


def build_nano(
    folder: Path,
    settings: NanoSettings,
    seed: int,
    on_step: Callable[[int, float], None] | None = None,
) -> None:
    """Train a model and write it: the same folder for the same seed, thread count and versions.

    Args:
        folder: gets `config.json`, `model.safetensors` and the tokenizer's files.
        settings: what is trained.
        seed: of initial weights and practice problems.
        on_step: told of each update and its loss.

    Raises:
        SettingError: a seed that torch does not take.
    """
    check_seed(seed)
    model = untrained(settings, seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.99), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        settings.learning_rate,
        total_steps=settings.steps,
        pct_start=max(0.05, 2 / settings.steps),  # of a single step the schedule divides by zero
    )
    batches = practice(settings, np.random.Generator(np.random.PCG64(seed)))
    for step, (ids, labels) in zip(range(settings.steps), batches, strict=False):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if on_step is not None:
            on_step(step, float(loss.detach()))
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder, model, lab_tokenizer())


def is_nano(folder: Path) -> bool:
    """Whether a folder holds a model of the lab and nothing else, which may be made again."""
    try:
        chat = (folder / "chat_template.jinja").read_text()
    except (OSError, ValueError):
        return False
    entries = list(folder.iterdir())
    plain = all(entry.is_file() and not entry.is_symlink() for entry in entries)
    known = {"config.json"} <= {entry.name for entry in entries} <= _FILES
    return plain and known and chat == lab_tokenizer().get_chat_template()


def untrained(settings: NanoSettings, seed: int) -> LlamaForCausalLM:
    """A model with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(nano_config(settings))


def nano_config(settings: NanoSettings) -> LlamaConfig:
    """The architecture."""
    tokens = vocabulary()
    return LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=settings.width,
        intermediate_size=settings.width * 8 // 3 // HEAD * HEAD,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.width // HEAD,
        num_key_value_heads=settings.width // HEAD,
        head_dim=HEAD,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        pad_token_id=tokens.index(PAD),
        bos_token_id=tokens.index(START),
        eos_token_id=tokens.index(END),
    )


def practice(settings: NanoSettings, rng: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Token ids and labels `[S, T]`, batch after batch without end; the question is not learned."""
    encode = {token: at for at, token in enumerate(vocabulary())}
    tokenizer = lab_tokenizer()
    weights = np.array(settings.level_weights) / sum(settings.level_weights)
    subjects = list(SUBJECTS)
    while True:
        drawn = []
        for _ in range(_DRAWN_AT_ONCE * settings.batch):
            level = LEVELS[int(rng.choice(len(LEVELS), p=weights))]
            problem = draw_problem(subjects[int(rng.integers(len(subjects)))], level, rng)
            asked = [encode[START], *map(encode.__getitem__, problem.question + ASK)]
            said = tokenizer(settings.writer.response(problem, rng))["input_ids"]
            drawn.append((asked, [*said, encode[END]]))
        drawn.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        for at in rng.permutation(_DRAWN_AT_ONCE):
            yield _padded(drawn[at * settings.batch : (at + 1) * settings.batch], encode[PAD])


def _padded(pairs: list[tuple[list[int], list[int]]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(len(asked) + len(said) for asked, said in pairs)
    ids: IntArray = np.full((len(pairs), longest), pad)
    labels: IntArray = np.full((len(pairs), longest), _IGNORED)
    for row, (asked, said) in enumerate(pairs):
        end = len(asked) + len(said)
        ids[row, :end] = asked + said
        labels[row, len(asked) : end] = said
    return torch.from_numpy(ids), torch.from_numpy(labels)
