r"""The lab's tokenizer: a character a token, and one token for `\boxed{`.

It is an ordinary fast tokenizer with an ordinary chat template, so that every tool reads it. The
template keeps the first paragraph of the last message and drops the rest: the standard instruction
("Reason step by step …") follows after a blank line, and nano models answer that way anyhow.
"""

from __future__ import annotations

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
BOXED = r"\boxed{"
ASK = "?"
"""Ends the question; the response begins after it."""

_SPECIAL = (PAD, START, END, UNKNOWN)
_PIECES = ("0123456789", "+-*%=;,", ASK, "}", " \n")
_CHAT = (
    "{{ bos_token }}{{ messages[-1]['content'].split('\\n\\n')[0] }}"
    "{% if add_generation_prompt %}" + ASK + "{% endif %}"
)


def vocabulary() -> list[str]:
    """Every token, by id."""
    return [*_SPECIAL, *(char for piece in _PIECES for char in piece), BOXED]


def lab_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of every lab model."""
    ids = {token: at for at, token in enumerate(vocabulary())}
    core = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"\\boxed\{|[\s\S]"), behavior="isolated")
    core.decoder = decoders.Fuse()
    core.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _CHAT
    return tokenizer
