"""From a pool's prompt to token ids: template, instruction, and a limit that spares both.

Over the limit, only the beginning of what the user wrote is cut, by whole tokens: a question's end
asks for something, its template and instruction decide whether the answer can be judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from priorkit.engines.thinking import ThinkingTokens, opens_thinking
from priorkit.errors import SettingError

DEFAULT_INSTRUCTION = r"Reason step by step and put the final answer in \boxed{}."

Mode = Literal["auto", "chat", "plain"]
Prompt = str | Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Token ids of a prompt, and what became of it.

    Attributes:
        tokens: what the model reads.
        truncated: some of the user's text had to go.
        opens_thinking: the template ends with `<think>`, so the response begins inside it.
    """

    tokens: tuple[int, ...]
    truncated: bool
    opens_thinking: bool = False


class PromptRenderer:
    """Renders prompts for one tokenizer.

    Args:
        tokenizer: a Hugging Face tokenizer.
        mode: `chat` puts the prompt through the tokenizer's chat template, `plain` does not;
            `auto` is chat when the tokenizer has a template.
        instruction: appended to the last user text after a blank line; empty for none.
        max_prompt_tokens: length limit, template and instruction included.

    Raises:
        SettingError: an unknown mode, or `chat` without a chat template.
    """

    def __init__(
        self,
        tokenizer: Any,
        mode: Mode = "auto",
        instruction: str = DEFAULT_INSTRUCTION,
        max_prompt_tokens: int = 384,
    ) -> None:
        if mode not in ("auto", "chat", "plain"):
            raise SettingError(f"template must be auto, chat or plain, got {mode!r}")
        if max_prompt_tokens < 1:
            raise SettingError(f"max_prompt_tokens must be at least 1, got {max_prompt_tokens}")
        self._tokenizer = tokenizer
        self._template = str(tokenizer.get_chat_template()) if tokenizer.chat_template else None
        if mode == "chat" and self._template is None:
            raise SettingError(
                "template 'chat' needs a tokenizer with a chat template, and this one has none; "
                "use --template plain"
            )
        self.mode = "plain" if mode == "plain" or self._template is None else "chat"
        self._thinking = ThinkingTokens(tokenizer)
        self.instruction = instruction
        self.max_prompt_tokens = max_prompt_tokens

    def identity(self) -> dict[str, object]:
        """What decides the rendering, for a file's provenance."""
        used = self._template if self.mode == "chat" else None
        return {
            "mode": self.mode,
            "instruction": self.instruction,
            "max_prompt_tokens": self.max_prompt_tokens,
            "chat_template_sha256": hashlib.sha256(used.encode()).hexdigest() if used else None,
        }

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Token ids of a prompt, at most `max_prompt_tokens` of them.

        Args:
            prompt: text, or chat messages, each with a string `role` and a string `content`.

        Raises:
            SettingError: malformed messages, or a template and instruction over the limit alone.
        """
        messages = _messages(prompt)
        tokens = self._tokens(messages)
        opened = self.mode == "chat" and opens_thinking(self._text(messages))
        if len(tokens) <= self.max_prompt_tokens:
            return RenderedPrompt(tokens, truncated=False, opens_thinking=opened)
        return RenderedPrompt(self._shortened(messages, len(tokens)), True, opened)

    def think_tokens(self, tokens: Sequence[int], opened: bool) -> int | None:
        """Tokens a response spent inside its thinking block; None where it has none."""
        return self._thinking.count(tokens, opened)

    def _shortened(self, messages: list[dict[str, str]], length: int) -> tuple[int, ...]:
        # Joining text to a template can merge or split tokens, so the cut is measured again.
        starts = [self._token_starts(m["content"]) if m["role"] == "user" else [] for m in messages]
        available, dropped = sum(map(len, starts)), 0
        while length > self.max_prompt_tokens:
            if dropped == available:
                raise SettingError(
                    f"the template and instruction alone take {length} tokens, over the limit of "
                    f"{self.max_prompt_tokens}; raise max_prompt_tokens or shorten the instruction"
                )
            dropped = min(dropped + length - self.max_prompt_tokens, available)
            tokens = self._tokens(_without_first(dropped, messages, starts))
            length = len(tokens)
        return tokens

    def _tokens(self, messages: list[dict[str, str]]) -> tuple[int, ...]:
        text = self._text(messages)
        # A chat template writes its own special tokens; adding the tokenizer's would double BOS.
        encoded = self._tokenizer(text, add_special_tokens=self.mode == "plain")
        return tuple(encoded["input_ids"])

    def _text(self, messages: list[dict[str, str]]) -> str:
        asked = self._with_instruction(messages)
        if self.mode == "chat":
            apply = self._tokenizer.apply_chat_template
            try:
                return str(apply(asked, tokenize=False, add_generation_prompt=True))
            except Exception as error:  # whatever a template raises, such as for a system role
                said = (str(error).splitlines() or [type(error).__name__])[0]
                raise SettingError(f"the chat template refuses these messages: {said}") from error
        text = "\n\n".join(message["content"] for message in asked)
        return f"{text}\n\n" if self.instruction else text

    def _with_instruction(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        if not self.instruction:
            return messages
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        content = f"{messages[last]['content']}\n\n{self.instruction}"
        return [*messages[:last], {**messages[last], "content": content}, *messages[last + 1 :]]

    def _token_starts(self, text: str) -> list[int]:
        """Where each token of the text begins, in characters."""
        if not self._tokenizer.is_fast:  # it knows no offsets: cut by characters instead
            return list(range(len(text)))
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return [start for start, _ in encoded["offset_mapping"]]


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    messages = [dict(message) for message in prompt]
    for number, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise SettingError(
                f"chat message {number} must have a text 'role' and a text 'content', "
                f"got {message!r:.200}"
            )
    if not any(message["role"] == "user" for message in messages):
        raise SettingError("a prompt of chat messages must hold at least one with role 'user'")
    return messages


def _without_first(
    dropped: int, messages: list[dict[str, str]], starts: list[list[int]]
) -> list[dict[str, str]]:
    """The messages less the first `dropped` tokens of user text, the oldest message first."""
    shortened = []
    for message, begins in zip(messages, starts, strict=True):
        gone = min(dropped, len(begins))
        dropped -= gone
        text = message["content"][begins[gone] :] if gone < len(begins) else ""
        shortened.append({**message, "content": text} if gone else message)
    return shortened
