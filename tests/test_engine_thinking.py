"""`priorkit/engines/thinking.py`, and what a probe makes of a template that opens thinking."""

from __future__ import annotations

import pytest
from fakes import CharRenderer
from probe_child import probe

from priorkit.engines.protocol import Completion
from priorkit.engines.template import RenderedPrompt
from priorkit.engines.thinking import ThinkingTokens, opens_thinking
from priorkit.verify import make_verifier


class Words:
    """A tokenizer of whole words; `<think>` and `</think>` are 1 and 2 where it knows them."""

    def __init__(self, knows: bool = True) -> None:
        self.known = {"<think>": [1], "</think>": [2]} if knows else {}

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": self.known.get(text, [7, 8, 9])}


@pytest.mark.parametrize(
    ("tokens", "opened", "expected"),
    [
        ([5, 6], False, None),
        ([1, 5, 6, 2, 5], False, 2),
        ([5, 1, 6, 2], False, 1),
        ([1, 5, 6], False, 2),
        ([5, 6, 2, 5], True, 2),
        ([5, 6], True, 2),
        ([5, 6, 2], False, 2),
        ([1, 2], False, 0),
        ([], True, 0),
    ],
)
def test_thinking_is_counted_between_its_delimiters(tokens, opened, expected):
    assert ThinkingTokens(Words()).count(tokens, opened) == expected
    assert ThinkingTokens(Words(knows=False)).count(tokens, opened) is None


def test_only_a_template_that_ends_with_the_delimiter_opens_thinking():
    assert opens_thinking("<|assistant|><think>\n")
    assert not opens_thinking("what does <think> mean?<|assistant|>")


class Thinker(CharRenderer):
    """A reasoning model's template: the response begins inside the thinking."""

    def render(self, prompt: object) -> RenderedPrompt:
        return RenderedPrompt((1, 2, 3), False, opens_thinking=True)

    def think_tokens(self, tokens, opened):
        return ThinkingTokens(Words()).count(tokens, opened)


def test_an_answer_inside_thinking_that_the_template_opened_is_no_answer(tmp_path):
    class Cut:
        def generate(self, requests):
            for request in requests:
                right = 100 + int(request.prompt_id[1:])
                for i in range(request.n):
                    key = (request.prompt_id, request.first_sample + i)
                    thought = f"so \\boxed{{{right}}} maybe"
                    if i % 2:
                        yield Completion(*key, (5, 6), thought, "length")
                    else:
                        yield Completion(*key, (5, 2, 6), f"{thought}</think>\\boxed{{0}}", "stop")

    held = probe(tmp_path, samples=2)
    result = held.run(Cut(), {"exact": make_verifier("exact")}, Thinker())
    assert set(result.outcomes.status[1::2]) == {"truncated"}
    assert set(result.outcomes.status[0::2]) == {"wrong"}
    assert result.outcomes.think_tokens == [1, 2] * len(held.pool)
    assert all(text.startswith("<think>") for text in result.outcomes.response)
