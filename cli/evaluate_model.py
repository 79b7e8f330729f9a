"""`priorkit evaluate RUN|MODEL|ADAPTER`: accuracy on held-out prompts, as a file and as figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import emit, note, shown_path, table, warn

if TYPE_CHECKING:
    from priorkit.accuracy import Accuracy, Estimate
    from priorkit.engines.models import ModelSource
    from priorkit.pool import Pool
    from priorkit.probe import Probe, ProbeResult
    from priorkit.run_tables import Run

SAMPLED_AT = 0.9  # as the rollouts
_TEMPLATE = ("mode", "instruction", "max_prompt_tokens")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, as the command's options say it."""

    suite: str | None
    pool: str | None
    samples: int
    temperature: float | None
    max_new_tokens: int | None
    base: str | None
    template: str
    instruction: str
    model: dict[str, Any]
    seed: int


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers: a base, perhaps with an adapter, and how its prompts are put.

    Attributes:
        name: as shown and in the folder's name.
        source: files and revision, adapter included.
        base: the base's files.
        adapter: the adapter's folder; None for a plain model.
        template: mode, instruction and prompt limit.
        max_new_tokens: of its run; None for a model.
        run: the run it comes from.
        held_out: identity of the prompts that its run did not train on.
    """

    name: str
    source: ModelSource
    base: ModelSource
    adapter: Path | None
    template: dict[str, Any]
    max_new_tokens: int | None = None
    run: Run | None = None
    held_out: dict[str, Any] | None = None


def evaluate_model(
    target: str | None, question: Question, root: Path, runs: Path, name: str | None,
    force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Generate, judge and count responses, and print what they come to."""
    import numpy as np

    from priorkit.accuracy import accuracy

    who = answerer(target, question, runs)
    pool = asked_pool(who, question)
    probe = _probe(who, pool, question, root, name)
    result = _responses(probe, who, question, force)
    rng = np.random.Generator(np.random.PCG64(question.seed))
    measured = accuracy(result.counts, rng)
    gain = _gain(who, result, probe, rng)
    facts = {
        "model": who.name,
        "pool": pool.fingerprint,
        "temperature": probe.settings.sampling.temperature,
        "generated": result.n_generated,
        **asdict(measured),
        "gain": None if gain is None else gain._asdict(),
        "outcomes": str(probe.outcomes_path),
    }
    emit(facts, _account(who, probe, measured, gain, _asked(who, question)), as_json)


def answerer(target: str | None, question: Question, runs: Path) -> Answerer:
    """Who a run folder, an adapter folder or a model name stands for."""
    from priorkit.extras import TRAINING, require

    require("running a model", *TRAINING)
    from priorkit import adapter
    from priorkit.engines.models import resolve_model
    from priorkit.export import how_asked
    from priorkit.run_tables import find_run, read_run

    folder = find_run(None if target is None else Path(target), runs)
    if (folder / "run.json").is_file():
        return _of_run(read_run(folder), question)
    shape = {
        "mode": question.template,
        "instruction": question.instruction,
        "max_prompt_tokens": 384,
    }
    known = how_asked(folder) or {}
    asked = (known.get("template", shape), known.get("max_new_tokens"), None, known.get("held_out"))
    if adapter.is_adapter(folder):
        base = adapter.resolve_base(folder, question.base)
        source = adapter.adapted_source(folder, base)
        return Answerer(folder.resolve().name, source, base, folder, *asked)
    source = resolve_model(str(target))
    return Answerer(source.name, source, source, None, *asked)


def _of_run(run: Run, question: Question) -> Answerer:
    from priorkit import adapter
    from priorkit.checkpoint import check_whole, newest_folder
    from priorkit.export import run_base

    base = run_base(run, question.base)
    folder = newest_folder(run.folder / "checkpoints")
    check_whole(folder)
    if not run.finished:
        warn(f"{shown_path(run.folder)} is not finished: this is update {int(folder.name)}")
    return Answerer(
        run.folder.resolve().name,
        adapter.adapted_source(folder, base),
        base,
        folder,
        {key: run.setting("template", key) for key in _TEMPLATE},
        run.setting("settings", "sampling", "max_new_tokens"),
        run,
    )


def asked_pool(who: Answerer, question: Question) -> Pool:
    """The prompts to ask: a whole suite, a pool's eval split, or the run's own held-out prompts."""
    from priorkit.errors import MismatchError, SettingError
    from priorkit.pool import bundled_pool, read_pool

    if question.suite is not None and question.pool is not None:
        raise SettingError("pass --suite (every row) or --pool (its eval split), not both")
    if question.suite is not None:
        return read_pool(question.suite, None)
    if question.pool is not None:
        return read_pool(question.pool, "eval")
    if who.run is None:
        pool = read_pool(bundled_pool(), "eval")
        if who.held_out is not None and pool.identity() != who.held_out:
            raise SettingError(
                f"{who.name}: was trained on another pool than the bundled one; pass --pool with "
                "that file (its eval split is asked), or --suite FILE"
            )
        return pool
    wanted = who.run.setting("held_out")
    if wanted is None:
        raise SettingError(f"{who.run.folder}: its pool has no eval split; pass --suite FILE")
    source = who.run.setting("notes", "files", "pool")
    pool = read_pool(source, "eval")
    if pool.identity() != wanted:
        raise MismatchError(
            f"{source}: its eval split is not the one {who.run.folder} was started with; pass "
            "--pool with the file it was trained on"
        )
    return pool


def _probe(who: Answerer, pool: Pool, question: Question, root: Path, name: str | None) -> Probe:
    from priorkit.engines.protocol import Sampling
    from priorkit.probe import Probe, ProbeSettings, folder_name
    from priorkit.verify import make_verifier, verifier_identity

    heat = question.temperature
    if heat is None:
        heat = 0.0 if question.samples == 1 else SAMPLED_AT
    limit = question.max_new_tokens
    if limit is None:
        limit = who.max_new_tokens or 512
    label = "greedy" if heat == 0 else f"t{heat:g}"
    binding = {
        "anchor": {"name": who.name, "revision": who.source.revision},
        "engine": {"kind": "transformers", **question.model},
        "template": who.template,
        "verifier": [verifier_identity(make_verifier(v)) for v in sorted(set(pool.verifier))],
    }
    folder = root / pool.fingerprint[:8] / folder_name(name or f"{who.name}-{label}")
    settings = ProbeSettings(question.samples, Sampling(heat, 1.0, limit), question.seed)
    return Probe(folder, pool, who.name, settings, binding)


def _responses(probe: Probe, who: Answerer, question: Question, force: bool) -> ProbeResult:
    """The finished responses: held already, or generated now."""
    from priorkit import __version__
    from priorkit.adapter import load_adapted
    from priorkit.engines import make_engine
    from priorkit.engines.template import PromptRenderer
    from priorkit.engines.transformers import TransformersEngine
    from priorkit.verify import make_verifiers

    from .probe import generate

    done = None if force else probe.finished()
    if done is not None:
        note(f"{shown_path(probe.folder)}: finished before, nothing to generate (--force repeats)")
        return done
    if who.adapter is None:
        engine = make_engine("transformers", who.source, **question.model)
    else:
        shape = {key: question.model[key] for key in ("dtype", "device")}
        model, tokenizer = load_adapted(who.adapter, who.base, **shape)
        batch = question.model["batch_size"]
        engine = TransformersEngine(model, tokenizer, who.source, batch_size=batch)
    renderer = PromptRenderer(engine.tokenizer, **who.template)
    notes = {"engine": engine.settings(), "template": renderer.identity()}
    probe = probe.noting({**notes, "versions": {"priorkit": __version__}})
    if force:
        probe.start_over()
    with make_verifiers(probe.pool.verifier) as verifiers:
        return generate(probe, engine, verifiers, renderer)


def _gain(who: Answerer, result: ProbeResult, probe: Probe, rng: Any) -> Estimate | None:
    """The change since before training, where the run asked the same prompts the same way."""
    from priorkit.run_figures import counts_at, gain

    if who.run is None or who.run.setting("held_out") != probe.pool.identity():
        return None
    before = [row for row in who.run.evals if row.step == 0]
    asked = probe.settings.sampling
    heated = any(row.temperature != asked.temperature for row in before)
    if not before or heated or asked.max_new_tokens != who.max_new_tokens:
        note("no gain is shown: before training the run did not ask at this temperature and length")
        return None
    return gain(counts_at(who.run, 0), result.counts, rng)


def _asked(who: Answerer, question: Question) -> str:
    """What the prompts are of, for people."""
    named = question.suite or question.pool
    if named is None and who.run is not None:
        named = str(who.run.setting("notes", "files", "pool"))
    return "the bundled pool" if named is None else shown_path(named)


def _account(
    who: Answerer, probe: Probe, found: Accuracy, gain: Estimate | None, asked: str
) -> str:
    heat, n = probe.settings.sampling.temperature, probe.settings.samples
    how = "greedy" if heat == 0 else f"temperature {heat:g}"
    lines = [
        f"{who.name} on {found.n_prompts} prompts of {asked}, {n} response{'s' * (n > 1)} each, "
        f"{how}",
        f"  accuracy  {found.mean:.3f}  [{found.low:.3f}, {found.high:.3f}]  ({found.interval})",
    ]
    if n > 1:
        rows = [
            [f"pass@{k}", f"{one.value:.3f}", f"[{one.low:.3f}, {one.high:.3f}]",
             str(found.pass_prompts[k])]
            for k, one in found.pass_at.items()
        ]  # fmt: skip
        lines.append(table(["", "mean", "95 %", "prompts"], rows))
    if gain is not None:
        lines.append(
            f"  since before training  {gain.value:+.3f}  [{gain.low:+.3f}, {gain.high:+.3f}]"
        )
    if found.n_truncated:
        lines.append(f"  {found.n_truncated} responses were cut at the length limit")
    if found.n_error or found.n_unjudged:
        lines.append(
            f"  {found.n_error} responses without a verdict, {found.n_unjudged} prompts without any"
        )
    return "\n".join([*lines, f"outcomes  {shown_path(probe.outcomes_path)}"])
