from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priorkit.engines.template import DEFAULT_INSTRUCTION, PromptRenderer
from priorkit.errors import SettingError

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

CHAT = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
MARKERS = ["<s>", "</s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]


def byte_tokenizer(chat_template: str | None = CHAT) -> Any:
    """A token a byte, begin-of-text added, role markers single tokens."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*MARKERS, *alphabet])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    inner.add_special_tokens(MARKERS)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>"
    )
    made.chat_template = chat_template
    return made


TOKENIZER = byte_tokenizer()


def text_of(tokens: tuple[int, ...]) -> str:
    return str(TOKENIZER.decode(list(tokens), clean_up_tokenization_spaces=False))


def test_a_chat_prompt_carries_template_and_instruction_and_opens_the_answer() -> None:
    rendered = PromptRenderer(TOKENIZER).render("1+1?")
    assert text_of(rendered.tokens) == (
        f"<s><|user|>\n1+1?\n\n{DEFAULT_INSTRUCTION}<|end|>\n<|assistant|>\n"
    )
    assert not rendered.truncated


def test_a_chat_prompt_has_one_begin_token_though_template_and_tokenizer_both_add_one() -> None:
    tokens = PromptRenderer(TOKENIZER, "chat").render("1+1?").tokens
    assert tokens.count(TOKENIZER.bos_token_id) == 1


def test_a_plain_prompt_gets_the_tokenizers_special_tokens_and_blank_lines() -> None:
    tokens = PromptRenderer(TOKENIZER, "plain", "Think.").render("1+1?").tokens
    assert text_of(tokens) == "<s>1+1?\n\nThink.\n\n"


@pytest.mark.parametrize(("template", "mode"), [(CHAT, "chat"), (None, "plain")])
def test_auto_follows_the_tokenizer(template: str | None, mode: str) -> None:
    assert PromptRenderer(byte_tokenizer(template)).identity()["mode"] == mode


def test_an_empty_instruction_leaves_no_newlines_behind() -> None:
    chat = PromptRenderer(TOKENIZER, "chat", "").render("1+1?").tokens
    plain = PromptRenderer(TOKENIZER, "plain", "").render("1+1?").tokens
    assert text_of(chat) == "<s><|user|>\n1+1?<|end|>\n<|assistant|>\n"
    assert text_of(plain) == "<s>1+1?"


def test_the_instruction_follows_the_last_user_message_of_a_conversation() -> None:
    conversation = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2+2?"},
    ]
    assert text_of(PromptRenderer(TOKENIZER, "chat", "Go.").render(conversation).tokens) == (
        "<s><|system|>\nBe brief.<|end|>\n<|user|>\n1+1?<|end|>\n<|assistant|>\n2<|end|>\n"
        "<|user|>\n2+2?\n\nGo.<|end|>\n<|assistant|>\n"
    )
    assert conversation[-1]["content"] == "2+2?"


@settings(max_examples=60, deadline=None)
@given(
    prompt=st.text(st.characters(codec="utf-8", exclude_characters="<"), max_size=80),
    room=st.integers(0, 90),
    mode=st.sampled_from(["chat", "plain"]),
)
def test_a_cut_spares_all_but_the_left_of_the_user_text(prompt: str, room: int, mode: Any) -> None:
    frame = PromptRenderer(TOKENIZER, mode, "Go.", 10_000)
    limit = len(frame.render("").tokens) + room
    rendered = PromptRenderer(TOKENIZER, mode, "Go.", limit).render(prompt)
    before, after = text_of(frame.render("\x00").tokens).split("\x00")
    text = text_of(rendered.tokens)
    kept = text[len(before) : len(text) - len(after)]
    assert len(rendered.tokens) <= limit
    assert text == before + kept + after
    assert prompt.endswith(kept)
    assert rendered.truncated == (len(prompt.encode()) > room)
    # Whole characters are kept, and never so few that another would have fitted.
    assert len(kept.encode()) > room - 4 or kept == prompt


def test_a_cut_takes_the_oldest_user_text_first_and_no_other_message() -> None:
    conversation = [
        {"role": "system", "content": "Z" * 20},
        {"role": "user", "content": "x" * 20},
        {"role": "assistant", "content": "Y" * 20},
        {"role": "user", "content": "w" * 20},
    ]
    whole = len(PromptRenderer(TOKENIZER, "chat", "Go.", 10_000).render(conversation).tokens)
    text = text_of(PromptRenderer(TOKENIZER, "chat", "Go.", whole - 25).render(conversation).tokens)
    assert [text.count(letter) for letter in "ZxYw"] == [20, 0, 20, 15]
    assert text.endswith("w\n\nGo.<|end|>\n<|assistant|>\n")


def test_a_prompt_at_the_limit_is_left_whole() -> None:
    length = len(PromptRenderer(TOKENIZER).render("1+1?").tokens)
    assert not PromptRenderer(TOKENIZER, max_prompt_tokens=length).render("1+1?").truncated
    assert PromptRenderer(TOKENIZER, max_prompt_tokens=length - 1).render("1+1?").truncated


def test_a_limit_below_template_and_instruction_is_refused() -> None:
    with pytest.raises(SettingError, match=r"alone take .* over the limit of 20"):
        PromptRenderer(TOKENIZER, max_prompt_tokens=20).render("1+1?")


def test_chat_without_a_chat_template_is_refused() -> None:
    with pytest.raises(SettingError, match="--template plain"):
        PromptRenderer(byte_tokenizer(None), "chat")


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([{"role": "user"}], "chat message 0"),
        ([{"role": "user", "content": [{"type": "image"}]}], "chat message 0"),
        ([{"role": "system", "content": "hi"}], "role 'user'"),
        ([], "role 'user'"),
    ],
)
def test_malformed_messages_are_refused(messages: Any, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        PromptRenderer(TOKENIZER).render(messages)


def test_the_identity_tells_templates_instructions_and_limits_apart() -> None:
    known = PromptRenderer(TOKENIZER).identity()
    others = [
        PromptRenderer(byte_tokenizer(CHAT + " ")),
        PromptRenderer(TOKENIZER, "plain"),
        PromptRenderer(TOKENIZER, instruction="Go."),
        PromptRenderer(TOKENIZER, max_prompt_tokens=100),
    ]
    assert all(other.identity() != known for other in others)
    assert PromptRenderer(byte_tokenizer()).identity() == known
    assert PromptRenderer(TOKENIZER, "plain").identity()["chat_template_sha256"] is None
