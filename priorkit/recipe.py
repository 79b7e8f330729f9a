"""What a run is made of, by name: from settings a person types to a training that can start.

Everything that can be refused is refused before the model is loaded, and a finished run is known
without loading it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from priorkit.beta import EPSILON, KAPPA, BetaPrior, flat_prior
from priorkit.columns import FloatArray
from priorkit.engines.models import ModelSource, resolve_model
from priorkit.engines.template import DEFAULT_INSTRUCTION, PromptRenderer
from priorkit.errors import (
    MismatchError,
    PoolFileError,
    RunFolderError,
    SettingError,
)
from priorkit.extras import TRAINING, require
from priorkit.pool import Pool, bundled_pool, read_pool
from priorkit.prior import Fitted, Missing, fit_to_pool, read_prior
from priorkit.rates import read_rates
from priorkit.selectors import Selector, make_selector
from priorkit.tasks import Tasks
from priorkit.verify import make_verifier, make_verifiers, verifier_identity

if TYPE_CHECKING:
    from priorkit.run_tables import Run
    from priorkit.train import Training, TrainSettings

_NEED_A_PRIOR = ("thinkprior", "prior-only")
_USE_NO_PRIOR = ("online-np",)


@dataclass(frozen=True, slots=True)
class Template:
    """How prompts are put to a model."""

    mode: str = "auto"
    """`chat`, `plain`, or `auto`: chat when the tokenizer has a template."""
    instruction: str = DEFAULT_INSTRUCTION
    """Appended to every prompt."""
    max_prompt_tokens: int = 384
    """Longer prompts lose the left of their text."""

    def renderer(self, tokenizer: Any) -> PromptRenderer:
        """A renderer for that tokenizer."""
        return PromptRenderer(
            tokenizer,
            self.mode,  # type: ignore[arg-type]  # checked by the renderer
            self.instruction,
            self.max_prompt_tokens,
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything a run is made of, by name."""

    policy: str
    """Model name, folder or `.gguf` file."""
    settings: TrainSettings
    """The run's own settings."""
    pool: str | Path | None = None
    """Pool source; None for the bundled pool."""
    prior: Path | None = None
    """Prior file; None for Beta(1, 1). Selectors that start from nothing leave it unread."""
    selector: str | None = None
    """By name; None for `thinkprior` with a prior and `uniform` without one."""
    reference: Path | None = None
    """Measured rates, for the oracle alone."""
    missing: Missing = "refuse"
    """What a prompt gets that the prior lacks."""
    keep_strength: bool = False
    """Use a posterior at its own strength instead of at κ."""
    template: Template = Template()
    """How prompts are put."""
    dtype: str = "auto"
    """`float32`, `bfloat16`, or `auto`: bfloat16 on a GPU."""
    device: str = "auto"
    """`cpu`, `cuda` or `auto`."""
    save_every: int = 10
    """Updates between checkpoints."""

    def __post_init__(self) -> None:
        if self.save_every < 1:
            raise SettingError(f"save_every must be at least 1, got {self.save_every}")
        if self.prior is None and self.selector in _NEED_A_PRIOR:
            raise SettingError(f"selector {self.selector} needs a prior: pass --prior FILE")

    @property
    def selector_name(self) -> str:
        """The selector that will choose."""
        return self.selector or ("uniform" if self.prior is None else "thinkprior")

    @property
    def uses_prior(self) -> bool:
        """Whether there is a prior and the selector starts from it."""
        return self.prior is not None and self.selector_name not in _USE_NO_PRIOR

    def ingredients(self) -> Ingredients:
        """Read and check everything but the model's weights.

        Raises:
            PriorkitError: whatever is wrong with pool, prior, selector or model name.
        """
        require("training", *TRAINING)
        source = self.pool or bundled_pool()
        pool = read_pool(source, "train")
        try:
            held_out = read_pool(source, "eval")
        except PoolFileError:
            held_out = None
        fitted = self._fitted(pool)
        belief = flat_prior(pool.prompt_id) if fitted is None else fitted.prior
        made = Ingredients(
            self, resolve_model(self.policy), pool, held_out, belief, fitted, self._options(pool)
        )
        made.try_selecting()
        return made

    def _options(self, pool: Pool) -> dict[str, FloatArray]:
        """The selector's own options."""
        if self.reference is None:
            return {}
        rates = read_rates(self.reference)
        place = {key: row for row, key in enumerate(rates.prompt_id)}
        absent = [key for key in pool.prompt_id if key not in place]
        if absent:
            raise MismatchError(
                f"{self.reference}: has no rate for {len(absent)} of the pool's {len(pool)} "
                f"prompts (first: {absent[0]!r})"
            )
        return {"reference_rate": rates.rate[[place[key] for key in pool.prompt_id]]}

    def _fitted(self, pool: Pool) -> Fitted | None:
        if self.prior is None or not self.uses_prior:
            return None
        fitted = fit_to_pool(read_prior(self.prior), pool, self.missing)
        if fitted.prior.kind == "posterior" and not self.keep_strength:
            return replace(fitted, prior=fitted.prior.rescaled(KAPPA, EPSILON))
        return fitted


@dataclass(frozen=True, slots=True, eq=False)
class Ingredients:
    """A recipe's files, read and found to belong together.

    Attributes:
        recipe: what was asked for.
        source: the policy's files.
        pool: prompts to train on.
        held_out: prompts to evaluate on; None where the pool has none.
        belief: `[P]` in pool order.
        fitted: how the prior fits the pool; None without a prior.
        options: the selector's own.
    """

    recipe: Recipe
    source: ModelSource
    pool: Pool
    held_out: Pool | None
    belief: BetaPrior
    fitted: Fitted | None
    options: Mapping[str, FloatArray]

    def selector(self) -> Selector:
        """A fresh selector over the pool."""
        settings = self.recipe.settings
        name = self.recipe.selector_name
        return make_selector(name, self.belief, settings.group_size, settings.seed, **self.options)

    def try_selecting(self) -> None:
        """Refuse here, rather than after the model is loaded, what could never choose `B` prompts.

        Raises:
            SettingError: selector, options or pool do not allow it.
        """
        selector = self.selector()
        try:
            selector.select(self.recipe.settings.groups)
        except SettingError as caught:
            raise SettingError(f"{caught}; lower --groups, or give it a larger pool") from caught

    @property
    def name(self) -> str:
        """The run's name unless another is given."""
        from priorkit.probe import folder_name

        seed = self.recipe.settings.seed
        return f"{self.recipe.selector_name}-{folder_name(self.source.name)}-s{seed}"

    def binding(self) -> dict[str, object]:
        """What identifies pool, prior, policy, selector, template and verifiers in `run.json`."""
        recipe = self.recipe
        return {
            "format": 1,
            "policy": {"name": self.source.name, "revision": self.source.revision},
            "pool": self.pool.identity(),
            "held_out": None if self.held_out is None else self.held_out.identity(),
            "prior": None if self.fitted is None else _identity(self.belief),
            "selector": {
                "name": recipe.selector_name,
                "options": {name: _digest(values) for name, values in self.options.items()},
            },
            "template": {
                "mode": recipe.template.mode,
                "instruction": recipe.template.instruction,
                "max_prompt_tokens": recipe.template.max_prompt_tokens,
            },
            "verifier": [verifier_identity(make_verifier(name)) for name in self._verifiers],
            "dtype": recipe.dtype,
            "device": recipe.device,
        }

    def finished(self, folder: Path) -> Run | None:
        """The run in that folder if it is this one and done; None if there is work left.

        Raises:
            RunFolderError: the folder holds another run, or another process is at work in it.
        """
        from priorkit.folder import claim, locked
        from priorkit.run_tables import is_finished, read_run
        from priorkit.runlog import RunLog
        from priorkit.train import REMEDY, definition, spoken

        if not (folder / "run.json").exists():
            return None
        ours = definition(self.binding(), self.recipe.settings)
        with locked(folder, RunFolderError):
            claim(folder / "run.json", ours, REMEDY, RunFolderError, {}, spoken)
            if not is_finished(folder):
                return None
            RunLog(folder).finish(ours)  # a kill may have left its last clean-up
            return read_run(folder)

    @contextmanager
    def training(self, folder: Path) -> Iterator[Training]:
        """The training, its model loaded; verifier processes end with the context."""
        import torch

        from priorkit import __version__
        from priorkit.engines.loading import load_model
        from priorkit.policy import Policy
        from priorkit.train import Training, sparing

        recipe, settings = self.recipe, self.recipe.settings
        with make_verifiers(self._verifiers) as verifiers:
            model, tokenizer = load_model(
                self.source,
                dtype=recipe.dtype,  # type: ignore[arg-type]  # checked there
                device=recipe.device,  # type: ignore[arg-type]
            )
            renderer = recipe.template.renderer(tokenizer)
            yield Training(
                folder=folder,
                settings=settings,
                policy=Policy(model, tokenizer, self.source, settings.lora, settings.seed),
                tasks=Tasks(self.pool, renderer, verifiers),
                selector=self.selector(),
                held_out=None
                if self.held_out is None
                else Tasks(self.held_out, renderer, verifiers),
                binding=self.binding(),
                notes={
                    "files": {
                        "policy": str(self.source.path),
                        "pool": _noted(recipe.pool or bundled_pool()),
                        "prior": os.path.abspath(recipe.prior)  # type: ignore[arg-type]
                        if recipe.uses_prior
                        else None,
                    },
                    "template": renderer.identity(),
                    "dtype": str(model.dtype).removeprefix("torch."),
                    "device": model.device.type,
                    "threads": torch.get_num_threads(),
                    **sparing(settings),
                    "versions": {"priorkit": __version__, **{n: version(n) for n in TRAINING}},
                },
                save_every=recipe.save_every,
            )  # fmt: skip

    @property
    def _verifiers(self) -> list[str]:
        """Names of the verifiers that train and held-out prompts ask for."""
        held_out = () if self.held_out is None else self.held_out.verifier
        return sorted({*self.pool.verifier, *held_out})


def _noted(source: str | Path) -> str:
    """Where a pool can be found again: a file's full path, or a name on the hub as it is."""
    return os.path.abspath(source) if Path(source).exists() else str(source)


def _identity(belief: BetaPrior) -> dict[str, object]:
    """What a run records of its prior."""
    return {
        "kind": belief.kind,
        "sha256": _digest(belief.alpha, belief.beta),
        "anchor": belief.provenance.get("anchor", "unknown"),
    }


def _digest(*columns: FloatArray) -> str:
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()[:16]
