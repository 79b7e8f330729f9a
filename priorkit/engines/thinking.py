"""Where a response thinks: between `<think>` and `</think>`, as reasoning models write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OPEN, CLOSE = "<think>", "</think>"


def opens_thinking(rendered: str) -> bool:
    """Whether a rendered prompt ends by opening a block, so that the response begins inside it."""
    return rendered.rstrip().endswith(OPEN)


class ThinkingTokens:
    """Counts tokens inside the delimiters, for tokenizers that have each as one token."""

    def __init__(self, tokenizer: Any) -> None:
        self._open, self._close = (_only_token(tokenizer, text) for text in (OPEN, CLOSE))

    def count(self, tokens: Sequence[int], opened: bool = False) -> int | None:
        """Tokens of the first block, up to the end when it is never closed; None without one.

        Args:
            tokens: the response.
            opened: the prompt's template opened the block already.
        """
        if self._open is None or self._close is None:
            return None
        held = list(tokens)
        end = held.index(self._close) if self._close in held else len(held)
        if self._open in held[:end]:
            return end - held.index(self._open) - 1
        return end if opened or self._close in held else None


def _only_token(tokenizer: Any, text: str) -> int | None:
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(ids[0]) if len(ids) == 1 else None
