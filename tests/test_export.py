"""`priorkit/export.py` and `adapter.py`: what a run hands out computes what the run computed."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from lab_runs import UPDATES, call, small_pool, train
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from priorkit import adapter
from priorkit.adapter import adapted_source, load_adapted, resolve_base
from priorkit.checkpoint import latest_checkpoint
from priorkit.engines.loading import load_model
from priorkit.engines.models import resolve_model
from priorkit.errors import (
    EngineError,
    MismatchError,
    ModelNotFoundError,
    OutputError,
    RunFolderError,
)
from priorkit.export import (
    base_id,
    export_adapter,
    export_merged,
    export_posterior,
    how_asked,
    replacing_folder,
    run_base,
)
from priorkit.folder import empty
from priorkit.lab.tokenizer import lab_tokenizer
from priorkit.policy import LoraSettings, Policy
from priorkit.prior import read_prior
from priorkit.run_tables import read_run

IDS = torch.tensor(np.random.default_rng(0).integers(4, 20, (3, 9)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a finished run; read only."""
    return train(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def run(trained, tmp_path):
    """A copy of that run, in a folder of its own."""
    return read_run(shutil.copytree(trained, tmp_path / "runs" / trained.name))


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


def plain(folder):
    return AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)


def the_base():
    return plain(resolve_model("lab-policy").path)


def checkpoint_policy(run):
    """The trained policy, as a resumed run has it."""
    source = resolve_model("lab-policy")
    model, tokenizer = load_model(source, dtype="float32", device="cpu")
    policy = Policy(model, tokenizer, source, LoraSettings(4, 8), seed=0)
    policy.load_state(latest_checkpoint(run.folder / "checkpoints").adapter)
    return policy


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def noted(run, name, folder):
    """The run as if its policy had been of that name, in that folder."""
    settings = json.loads((run.folder / "run.json").read_text())
    settings["policy"]["name"] = name
    settings["notes"]["files"]["policy"] = str(folder)
    (run.folder / "run.json").write_text(json.dumps(settings))
    return read_run(run.folder)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextlib.contextmanager
def full_disk(size):
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# The same numbers everywhere


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PEFT asks transformers by an old name
def test_plain_peft_plain_transformers_and_the_run_itself_compute_alike(run, tmp_path):
    export_adapter(run, tmp_path / "adapter")
    export_merged(run, tmp_path / "merged")
    with_adapter = logits(PeftModel.from_pretrained(the_base(), tmp_path / "adapter"))
    policy = checkpoint_policy(run)
    assert not torch.allclose(with_adapter, logits(the_base()), atol=0.05)
    for other in (plain(tmp_path / "merged"), policy.model, policy.engine(4).model):
        assert torch.allclose(with_adapter, logits(other), atol=1e-5)


def test_a_loaded_adapter_is_the_rollout_model_bit_for_bit(run):
    folder = run.folder / "checkpoints" / f"{UPDATES:06d}"
    model, _ = load_adapted(folder, resolve_model("lab-policy"), dtype="float32", device="cpu")
    assert torch.equal(logits(model), logits(checkpoint_policy(run).engine(4).model))


def test_merged_weights_are_an_ordinary_model_folder(run, tmp_path):
    folder = export_merged(run, tmp_path / "merged")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ours = lab_tokenizer()
    assert tokenizer("12+3=15;\\boxed{15}")["input_ids"] == ours("12+3=15;\\boxed{15}")["input_ids"]
    assert tokenizer.get_chat_template() == ours.get_chat_template()
    named = json.loads((folder / "tokenizer_config.json").read_text())
    assert named["tokenizer_class"] == "PreTrainedTokenizerFast"
    base = resolve_model("lab-policy").path
    assert {p.name for p in base.iterdir()} == {p.name for p in folder.iterdir()} - {
        "README.md",
        "priorkit.json",
    }
    assert plain(folder).config.tie_word_embeddings
    assert resolve_model(str(folder)).revision != resolve_model("lab-policy").revision


def test_an_exported_posterior_is_a_prior_with_what_was_counted(run, tmp_path):
    prior = read_prior(export_posterior(run, tmp_path / "p.parquet"))
    assert prior.kind == "posterior"
    assert prior.prompt_id.tolist() == small_pool().of_split("train").prompt_id.tolist()
    assert prior.provenance["updates"] == UPDATES
    for key, alpha, beta in zip(prior.prompt_id, prior.alpha, prior.beta, strict=True):
        groups = [group for group in run.groups if group.prompt_id == key]
        solved = sum(group.successes for group in groups)
        assert alpha == pytest.approx(1 + solved)
        assert beta == pytest.approx(1 + sum(group.trials for group in groups) - solved)


# The card, and what the adapter calls its base


def test_cards_name_base_settings_and_figures(run, tmp_path):
    export_adapter(run, tmp_path / "adapter")
    export_merged(run, tmp_path / "merged")
    for name, library in (("adapter", "peft"), ("merged", "transformers")):
        text = (tmp_path / name / "README.md").read_text()
        head, body = text.split("---\n")[1:]
        assert f"library_name: {library}\n" in head
        assert 'base_model: "lab-policy"\n' in head
        assert "picked by `uniform`" in body
        assert f"updates: {UPDATES} of {UPDATES}" in body
        silent = sum(group.silent for group in run.groups) / len(run.groups)
        assert f"silent groups: {silent:.3f}" in body
        solved = sum(row.successes for row in run.evals if row.step == UPDATES)
        assert f"held-out accuracy after update {UPDATES}: {solved / 12:.3f} (12)" in body
        settings = json.loads(body.split("```json\n")[1].split("```")[0])
        assert settings["settings"]["learner"]["learning_rate"] == 1e-2
        assert settings["policy"] == run.settings["policy"]
        assert "notes" not in settings  # paths of one machine


def test_a_card_tells_of_the_updates_its_weights_had_and_of_no_later_ones(run, tmp_path):
    shutil.rmtree(run.folder / "checkpoints" / f"{UPDATES:06d}")
    ran = call(tmp_path, "export", "--out", "mine")
    assert ran.out == f"adapter after {UPDATES - 1} updates: mine\n"
    text = (tmp_path / "mine" / "README.md").read_text()
    assert f"updates: {UPDATES - 1} of {UPDATES}" in text
    groups = [group.silent for group in run.groups if group.step < UPDATES]
    assert f"silent groups: {sum(groups) / len(groups):.3f}" in text
    assert "held-out accuracy after update 0" in text
    assert f"held-out accuracy after update {UPDATES}" not in text
    policy = latest_checkpoint(run.folder / "checkpoints")
    assert policy.update == UPDATES - 1
    held = load_file(tmp_path / "mine" / adapter.WEIGHTS)
    assert all(torch.equal(held[name], policy.adapter[name]) for name in held)


def test_an_exported_adapter_calls_its_base_what_other_machines_do(run, tmp_path):
    folder = export_adapter(run, tmp_path / "adapter")
    assert adapter.base_name(folder) == "lab-policy"
    held = json.loads((folder / adapter.CONFIG).read_text())
    written = run.folder / "checkpoints" / f"{UPDATES:06d}" / adapter.CONFIG
    ours = {**json.loads(written.read_text()), "base_model_name_or_path": "lab-policy"}
    assert held == ours


def test_a_base_from_the_hub_is_called_by_its_hub_name_and_found_at_its_commit(run, tmp_path):
    snapshot = tmp_path / "models--Some--Tiny-Model" / "snapshots" / "0f4ac0de"
    shutil.copytree(resolve_model("lab-policy").path, snapshot)
    run = noted(run, "Tiny-Model", snapshot)
    assert base_id(run) == "Some/Tiny-Model"
    with pytest.raises(MismatchError):
        run_base(run)  # its revision is not that commit
    run.settings["policy"]["revision"] = "0f4ac0de"
    assert run_base(run).path == snapshot


def test_a_gguf_base_is_found_by_its_file(run, tmp_path):
    packed = tmp_path / "Tiny.Q4.gguf"
    packed.write_bytes(b"GGUF")
    run = noted(run, "Tiny.Q4", tmp_path)
    run.settings["policy"]["revision"] = resolve_model(str(packed)).revision
    assert run_base(run).gguf_file == "Tiny.Q4.gguf"
    assert base_id(run) == str(packed)


# The base must be the run's


def test_a_changed_base_is_refused_and_the_right_one_named_mends_it(run, tmp_path):
    base = tmp_path / "mine"
    shutil.copytree(resolve_model("lab-policy").path, base)
    run = noted(run, "mine", base)
    export_merged(run, tmp_path / "before")
    weights = load_file(base / "model.safetensors")
    weights["model.norm.weight"] += 0.001
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MismatchError, match=r"trained on mine at sha256:\w+, .*--base"):
        export_merged(run, tmp_path / "after")
    assert not (tmp_path / "after").exists()
    export_merged(run, tmp_path / "after", base="lab-policy")
    assert files(tmp_path / "after") == files(tmp_path / "before")


def test_a_moved_base_is_missed_and_the_right_one_named_mends_it(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    run = noted(run, "mine", tmp_path / "gone")
    with pytest.raises(ModelNotFoundError, match=r"its policy mine is not here; pass --base"):
        export_merged(run, tmp_path / "merged")
    export_merged(run, tmp_path / "merged", base="lab-policy")
    with pytest.raises(MismatchError, match="--base"):
        export_merged(run, tmp_path / "other", base="lab-anchor")


def test_a_lab_policy_is_found_though_priorkit_lives_elsewhere_now(run, tmp_path):
    run = noted(run, "lab-policy", tmp_path / "another-environment" / "policy")
    assert run_base(run).revision == resolve_model("lab-policy").revision


# The adapter must fit its base


def test_an_adapter_of_another_shape_is_refused(run):
    folder = run.folder / "checkpoints" / f"{UPDATES:06d}"
    with pytest.raises(EngineError, match=r"does not fit lab-anchor \(size mismatch"):
        load_adapted(folder, resolve_model("lab-anchor"), dtype="float32", device="cpu")


def test_an_adapter_that_lacks_a_matrix_or_has_one_too_many_is_refused(run):
    base, folder = resolve_model("lab-policy"), run.folder / "checkpoints" / f"{UPDATES:06d}"
    whole = load_file(folder / adapter.WEIGHTS)
    last = [name for name in whole if ".layers.3." in name]
    more = {name.replace(".layers.3.", ".layers.4."): whole[name].clone() for name in last}
    for held in ({n: t for n, t in whole.items() if n not in last}, whole | more):
        save_file(held, folder / adapter.WEIGHTS)
        with pytest.raises(EngineError, match=r"layers\.[34].*in only one of them"):
            load_adapted(folder, base, dtype="float32", device="cpu")


@pytest.mark.parametrize("name", [adapter.WEIGHTS, adapter.CONFIG])
def test_a_damaged_adapter_is_refused(run, name):
    base, folder = resolve_model("lab-policy"), run.folder / "checkpoints" / f"{UPDATES:06d}"
    held = (folder / name).read_bytes()
    for damage in (held[:-40], b"[]", b""):
        (folder / name).write_bytes(damage)
        with pytest.raises(EngineError, match=str(folder)):
            identify_and_load(folder, base)
    (folder / name).unlink()
    with pytest.raises(ModelNotFoundError, match=f"{name} is missing"):
        adapted_source(folder, base)


def identify_and_load(folder, base):
    adapted_source(folder, base)
    return load_adapted(folder, base, dtype="float32", device="cpu")


def test_an_adapters_revision_is_its_contents_and_not_where_it_came_from(run, tmp_path):
    base, folder = resolve_model("lab-policy"), export_adapter(run, tmp_path / "adapter")
    revision = adapted_source(folder, base).revision
    assert revision.startswith(f"{base.revision}+adapter-sha256:")
    assert revision == adapted_source(run.folder / "checkpoints" / f"{UPDATES:06d}", base).revision
    config = folder / adapter.CONFIG
    modules = json.loads(config.read_text())["target_modules"]
    edit(config, target_modules=modules[::-1], peft_version="9.9", base_model_name_or_path="x")
    assert adapted_source(folder, base).revision == revision
    edit(config, lora_alpha=9)
    scaled = adapted_source(folder, base).revision
    assert scaled != revision
    weights = load_file(folder / adapter.WEIGHTS)
    save_file({name: tensor * 2 for name, tensor in weights.items()}, folder / adapter.WEIGHTS)
    assert adapted_source(folder, base).revision not in (revision, scaled)


def test_an_adapter_without_its_base_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = export_adapter(run, tmp_path / "adapter")
    edit(folder / adapter.CONFIG, base_model_name_or_path="/gone/away")
    with pytest.raises(ModelNotFoundError, match=r"base '/gone/away' is not here; pass --base"):
        resolve_base(folder)
    assert resolve_base(folder, "lab-policy").name == "lab-policy"
    edit(folder / adapter.CONFIG, base_model_name_or_path=None)
    with pytest.raises(ModelNotFoundError, match="does not name the model"):
        resolve_base(folder)


# The command, and what it spares


def test_the_newest_run_is_exported_beside_unless_told_otherwise(run, tmp_path):
    ran = call(tmp_path, "export", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "run": f"runs/{run.folder.name}",
        "what": "adapter",
        "path": f"{run.folder.name}-adapter",
        "updates": UPDATES,
    }
    for what, beside in (("merged", "-merged"), ("posterior", "-prior.parquet")):
        ran = call(tmp_path, "export", run.folder, "--what", what)
        assert (ran.code, ran.err) == (0, "")  # no progress bar either
        assert f"{what} after {UPDATES} updates: {run.folder.name}{beside}" in ran.out
        assert (tmp_path / f"{run.folder.name}{beside}").exists()
    assert "adapter, merged or posterior" in call(tmp_path, "export", "--what", "all").err


@pytest.mark.parametrize("what", ["adapter", "merged", "posterior"])
def test_an_existing_target_is_replaced_with_force_alone(run, tmp_path, what):
    command = ("export", run.folder, "--what", what, "--out", "mine")
    assert call(tmp_path, *command).code == 0
    before = files(tmp_path)
    ran = call(tmp_path, *command)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: mine: already exists; pass --force to replace it\n"
    assert files(tmp_path) == before
    if what != "posterior":
        (tmp_path / "mine" / "model-00001-of-00002.safetensors").write_text("of an earlier export")
    assert call(tmp_path, *command, "--force").code == 0
    assert files(tmp_path) == before


def test_force_throws_away_an_earlier_export_and_nothing_else(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    shutil.copytree(resolve_model("lab-policy").path, tmp_path / "model")
    assert call(tmp_path, "export", run.folder, "--out", "earlier").code == 0
    (tmp_path / "link").symlink_to("earlier")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    newest = run.folder / "checkpoints" / f"{UPDATES:06d}"
    before = files(tmp_path)
    for target in (".", "thesis", "model", "link", "file", run.folder, newest):
        ran = call(tmp_path, "export", run.folder, "--out", target, "--force")
        assert ran.code == 1, target
        assert ran.err.startswith(f"error: {target}: "), target
        assert len(ran.err.splitlines()) == 1
        assert files(tmp_path) == before
    assert call(tmp_path, "export", run.folder, "--out", "empty", "--force").code == 0


@pytest.mark.parametrize("what", ["adapter", "merged", "posterior"])
def test_a_full_disk_leaves_no_half_export_and_the_earlier_one(run, tmp_path, what):
    command = ("export", run.folder, "--what", what, "--out", "mine", "--force")
    before = files(tmp_path)
    with full_disk(2000):
        ran = call(tmp_path, *command)
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert "mine: could not be written" in ran.err
    assert "File too large" in ran.err or "file too large" in ran.err
    assert files(tmp_path) == before
    assert not (tmp_path / "mine").exists()
    assert call(tmp_path, *command).code == 0
    held = files(tmp_path)
    with full_disk(2000):
        assert call(tmp_path, *command).code == 1
    assert files(tmp_path) == held


def test_a_swap_that_fails_half_way_leaves_the_old_folder(tmp_path, monkeypatch):
    target = tmp_path / "old"
    target.mkdir()
    (target / "kept").write_text("kept")
    rename, calls = Path.rename, []

    def failing(self, to):
        calls.append(to)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", failing)
    with (
        pytest.raises(OutputError, match="Input/output error"),
        replacing_folder(target, True, lambda folder: True) as draft,
    ):
        (draft / "new").write_text("new")
    assert files(tmp_path) == {"old/kept": b"kept"}
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_an_unwritable_place_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    ran = call(tmp_path, "export", run.folder, "--out", "file/adapter")
    assert ran.code == 1
    assert ran.err.startswith("error: file/adapter: could not be written (")


@pytest.mark.parametrize("what", ["adapter", "merged"])
@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
@pytest.mark.parametrize("content", ["", "[]"])
def test_a_damaged_checkpoint_is_handed_out_to_nobody(run, tmp_path, what, name, content):
    (run.folder / "checkpoints" / f"{UPDATES:06d}" / name).write_text(content)
    for command in (("export", run.folder, "--what", what), ("evaluate", run.folder)):
        ran = call(tmp_path, *command)
        assert ran.code == 1
        assert ran.err.startswith("error: ")
        assert f"{name} is not what was written there" in ran.err
    assert not list(tmp_path.glob("uniform-*"))


def test_a_run_without_a_checkpoint_or_with_a_damaged_one_is_refused(run, tmp_path):
    newest = run.folder / "checkpoints" / f"{UPDATES:06d}"
    held = (newest / "posterior.parquet").read_bytes()
    (newest / "posterior.parquet").write_bytes(held[:-9])
    ran = call(tmp_path, "export", run.folder, "--what", "posterior")
    assert ran.code == 1
    assert "posterior.parquet is not what was written there" in ran.err
    shutil.rmtree(run.folder / "checkpoints")
    with pytest.raises(RunFolderError, match="no checkpoint yet"):
        export_adapter(run, tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


def test_an_exported_model_is_asked_as_its_run_was_and_never_of_another_pool(run, tmp_path):
    folder = export_adapter(run, tmp_path / "adapter")
    asked = how_asked(folder)
    assert asked is not None
    assert asked["max_new_tokens"] == run.settings["settings"]["sampling"]["max_new_tokens"]
    assert asked["template"] == run.settings["template"]
    said = call(tmp_path, "evaluate", str(folder), "--base", "lab-policy")
    assert said.code == 1
    assert "--pool" in said.err
    (folder / "priorkit.json").write_text("[]")
    with pytest.raises(RunFolderError, match="export the run again"):
        how_asked(folder)
    assert how_asked(tmp_path) is None


def test_an_earlier_export_with_somebody_elses_file_in_it_is_spared(run, tmp_path):
    command = ("export", run.folder, "--out", "mine", "--force")
    assert call(tmp_path, *command).code == 0
    for name in ("thesis.txt", "notes.json", "other.safetensors"):
        (tmp_path / "mine" / name).write_text("years of work")
        assert call(tmp_path, *command).code == 1
        (tmp_path / "mine" / name).unlink()
    assert call(tmp_path, *command).code == 0


def test_a_folder_reached_by_a_detour_is_spared(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "t.txt").write_text("years of work")
    assert call(tmp_path, "export", run.folder, "--out", "new/../thesis").code == 1
    assert (tmp_path / "thesis" / "t.txt").exists()


def test_starting_over_empties_no_folder_with_foreign_files(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "precious.py").write_text("")
    with pytest.raises(RunFolderError, match=r"precious\.py"):
        empty(tmp_path, RunFolderError)
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "precious.py").unlink()
    for name in ("a.partial", "checkpoints/mine.bin", "checkpoints/000001/mine", "shards/x.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
        with pytest.raises(RunFolderError, match=name):
            empty(tmp_path, RunFolderError)
        (tmp_path / name).unlink()
    (tmp_path / "checkpoints" / "000001" / "state.json").write_text("")
    (tmp_path / "shards" / "000001.jsonl").write_text("")
    empty(tmp_path, RunFolderError)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_folder_without_a_definition_is_nobodys(tmp_path):
    (tmp_path / "outcomes.parquet").write_text("mine")
    with pytest.raises(RunFolderError, match=r"outcomes\.parquet"):
        empty(tmp_path, RunFolderError)
    assert (tmp_path / "outcomes.parquet").exists()
