"""The model that is trained: a base left as it was, and a LoRA adapter on its linear layers.

Rollouts in float32 run on a second, plain model whose adapted matrices are W + ΔW, put together
once an update, and which shares every other parameter with the base: no adapter arithmetic at each
token. In 16 bits the sum would round small ΔW away, so there rollouts go through the adapter.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from peft.utils import get_peft_model_state_dict
from torch import Tensor

from priorkit.engines.models import ModelSource
from priorkit.engines.transformers import TransformersEngine
from priorkit.errors import EngineError, SettingError
from priorkit.memory import memory_advice

_ADAPTER = "default"


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """The adapter, on all linear layers and without dropout (our choice)."""

    rank: int = 32
    """Rank of each update matrix (ThinkPrior, app. F)."""
    alpha: int = 64
    """Scale times rank: ΔW = alpha / rank · B A."""

    def __post_init__(self) -> None:
        if not (1 <= self.rank < 2**31 and 1 <= self.alpha < 2**31):
            raise SettingError(
                "LoRA rank and alpha must be from 1 to below 2**31, got "
                f"{self.rank} and {self.alpha}"
            )


class Policy:
    """A causal language model under training.

    Args:
        model: the base; its parameters are frozen and never change.
        tokenizer: its tokenizer.
        source: where it came from.
        lora: the adapter's shape.
        seed: of the adapter's initial weights; its ΔW starts at zero whatever the seed.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        source: ModelSource | None,
        lora: LoraSettings,
        seed: int,
    ) -> None:
        merged = model.dtype == torch.float32
        self.tokenizer = tokenizer
        self.source = source
        self._plain = _sharing_copy(model) if merged else None
        with memory_advice(f"while an adapter of rank {lora.rank} was added", "lower --lora-rank"):
            self.model = _adapted(model, lora, seed)
        self._pairs = [] if self._plain is None else _merge_pairs(self.model, self._plain)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.model.device
        return device

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """What is trained."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def engine(self, batch_size: int) -> TransformersEngine:
        """Generates with the weights of the last `refresh`; in 16 bits, through the adapter."""
        model = self.model if self._plain is None else self._plain
        return TransformersEngine(
            model,
            self.tokenizer,
            self.source,
            batch_size=batch_size,
            size_flag="--rollout-batch",
        )

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring the rollout model to the adapter's present weights."""
        for adapted, target in self._pairs:
            torch.add(
                adapted.get_base_layer().weight, adapted.get_delta_weight(_ADAPTER), out=target.data
            )

    def save_memory(self) -> None:
        """Compute activations again in the backward pass instead of keeping them."""
        base: Any = self.model.get_base_model()
        enable: Any = getattr(base, "activation_checkpointing_enable", None)  # since 5.24
        (enable or base.gradient_checkpointing_enable)({"use_reentrant": False})

    @contextmanager
    def reference(self) -> Iterator[Any]:
        """The base model, for the KL reference: the adapter is off inside."""
        with torch.no_grad(), self.model.disable_adapter():
            yield self.model

    def state(self) -> dict[str, Tensor]:
        """The adapter's weights, by PEFT's names."""
        held = get_peft_model_state_dict(self.model)
        return {name: tensor.detach().cpu().contiguous() for name, tensor in held.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from saved weights, and refresh.

        Raises:
            EngineError: the weights do not fit this model's adapter.
        """
        ours = self.state()
        wrong = sorted(
            name
            for name in set(ours) | set(state)
            if name not in ours or name not in state or ours[name].shape != state[name].shape
        )
        if wrong:
            raise EngineError(f"the saved adapter does not fit this model ({wrong[0]!r} differs)")
        set_peft_model_state_dict(self.model, dict(state))
        self.refresh()

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter as PEFT reads it: safetensors and a configuration."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # it looks for the base on the hub to compare vocabularies
            self.model.save_pretrained(str(folder))
        (folder / "README.md").unlink(missing_ok=True)  # an empty card


def _sharing_copy(model: Any) -> Any:
    """A second model object over the very same parameters."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, memo={id(tensor): tensor for tensor in shared})


def _adapted(model: Any, lora: LoraSettings, seed: int) -> PeftModel:
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by an old name
        torch.manual_seed(seed)
        adapted = get_peft_model(model, config)
    _without_dropout(adapted)
    return adapted


def _without_dropout(model: Any) -> None:
    """Let the gradient be of the model that rolled out."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0


def _merge_pairs(model: PeftModel, plain: Any) -> list[tuple[Any, torch.nn.Parameter]]:
    """Each adapted layer with a matrix of its own in the plain model."""
    pairs = []
    for name, layer in model.get_base_model().named_modules():
        if isinstance(layer, LoraLayer):
            linear = plain.get_submodule(name)
            linear.weight = torch.nn.Parameter(linear.weight.detach().clone(), requires_grad=False)
            pairs.append((layer, linear.weight))
    return pairs
