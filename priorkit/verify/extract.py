r"""Where a response says its answer is: text in, the answer's text out.

Only what follows the last `</think>` is read, and nothing behind a `<think>` left open: an answer
inside thinking is no answer. There, the first of these that is found:

1. the last non-empty `\boxed{...}` or `\fbox{...}` with matching braces;
2. the last line `#### 42` (GSM8K): four marks and a number, so that no heading is one;
3. the last announcement that says something: a phrase of `ANCHORS`, `"answer": ...` of a JSON
   object, `<answer>...</answer>`, or a line that begins with `A:`.

Bare numbers are never guessed at, so a response without any of them has no answer.

Responses are hostile: every pass here is linear in their length, with no backtracking.
"""

from __future__ import annotations

import json
import re

ANCHORS = ("final answer is", "final answer:", "the answer is", "answer is", "answer:")
"""Phrases that announce an answer, longest first; case is ignored and `**bold**` may intervene."""

_BOX = re.compile(r"\\(?:boxed|fbox)\s*+\{")
# A box opens; or escaped characters pass, so that `\{` is no brace; or a run of braces comes.
# A doubled backslash before a box is text that was escaped once too often: still a box.
_BOX_OR_BRACES = re.compile(
    r"\\(?:boxed|fbox)\s*+\{|(?:\\\\(?!boxed|fbox))++|\\[^\\]|\{++|\}++", re.DOTALL
)
_INVISIBLE = frozenset([r"\ ", r"\,", r"\;", r"\:", r"\!", r"\(", r"\)", r"\[", r"\]"])
_BLANK = " \t\r\n~$"

_GAP = r"(?:\s|\*\*)"


def _phrase(anchor: str) -> str:
    """The pattern of one anchor: spaces and bold marks may be any, words end where they end."""
    words = rf"{_GAP}++".join(anchor.removesuffix(":").split())
    return words + (rf"{_GAP}*+:" if anchor.endswith(":") else r"\b")


_PHRASE = re.compile(rf"\b(?:{'|'.join(map(_phrase, ANCHORS))})", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r'"(?:final_?)?answer"\s*+:\s*+(?P<json>"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.,eE+\-]*+)'
    r"|<answer>(?P<tag>[^<]*+(?:<(?!/?answer>)[^<]*+)*+)</answer>"
    rf"|(?P<anchor>{_PHRASE.pattern}|(?<![^\n])A:)|\\(?:boxed|fbox)",
    re.IGNORECASE | re.DOTALL,
)
_CURRENCY = r"(?:\\?[$\u20ac\u00a3])"
_MARK = re.compile(
    rf"^####[ \t]*+({_CURRENCY}?[ \t]*+[+-]?[ \t]*+{_CURRENCY}?\.?[0-9][^\n]*+)", re.MULTILINE
)
_DELIMITERS = ((r"\(", r"\)"), (r"\[", r"\]"))
_HEAD, _HEAD_MARKDOWN = re.compile(r"(?:[\s$]|\\\$)*+"), re.compile(r"(?:[\s$*`]|\\\$)*+")
_TAIL, _TAIL_MARKDOWN = re.compile(r"(?:[\s.]|\$\\?)*+"), re.compile(r"(?:[\s.*`]|\$\\?)*+")
_DISPLAY = (*_DELIMITERS, ("$$", "$$"))
_SENTENCE_END = re.compile(r"\n|(?<!\.)\.(?=[\s*$`]|\\[)\]]|\Z)")


def extract_answer(response: str, *, cut_off: bool = False) -> str | None:
    r"""The text of the answer a response settles on, or None when it gives none.

    Args:
        response: all of a response's text, thinking included.
        cut_off: whether it stopped at the length limit. An announced answer that runs into the
            end of the text may then lack its last digits and is passed over; a closed box is
            complete either way.

    >>> extract_answer(r"So $x=\boxed{\frac{1}{2}}$.")
    '\\frac{1}{2}'
    >>> extract_answer("The answer is 12.50. I hope it is correct.")
    '12.50'
    >>> extract_answer("The answer is 1", cut_off=True) is None
    True
    """
    spoken = _after_thinking(response)
    for found in (_last_box(spoken), _last_marked(spoken, cut_off)):
        if found is not None:
            return found
    return _last_announced(spoken, cut_off)


def strip_math(text: str, *, markdown: bool = False) -> str:
    r"""Text without surrounding spaces, `$`, `\$`, `\( \)`, `\[ \]` and a trailing full stop.

    With `markdown`, also without surrounding emphasis and code marks.
    """
    head, tail = (_HEAD_MARKDOWN, _TAIL_MARKDOWN) if markdown else (_HEAD, _TAIL)
    low, high = _length(head, text), len(text) - _length(tail, text[::-1])
    ellipsis = text.rfind("..", high)  # dots in a row are no full stop
    if ellipsis >= 0:
        high = ellipsis + 2
    if _is_one_formula(text, low, high):
        return strip_math(text[low + 2 : high - 2], markdown=markdown)
    return text[low:high]


def _length(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    assert match, "the pattern matches the empty text too"
    return match.end()


def _is_one_formula(text: str, low: int, high: int) -> bool:
    r"""Whether one pair of delimiters is around all of `text[low:high]`: not `\(a\) or \(b\)`."""
    return any(
        text.startswith(opening, low, high) and text.find(closing, low + 2, high) == high - 2
        for opening, closing in _DELIMITERS
    )


def _after_thinking(response: str) -> str:
    spoken = response.rpartition("</think>")[2]
    return spoken.partition("<think>")[0]


def _last_box(text: str) -> str | None:
    """The content of the box that opens last among those that close and show something."""
    start = _BOX.search(text)
    if start is None:
        return None
    boxes: list[tuple[int, int]] = []  # depth of the braces inside, and where the content starts
    depth, shown, best = 0, -1, (-1, -1)  # shown: where the last visible text ends
    at = start.start()
    for match in _BOX_OR_BRACES.finditer(text, at):
        token, begin = match.group(), match.start()
        if begin > at and text[at:begin].strip(_BLANK):
            shown = begin
        at = match.end()
        if token[0] == "{":
            depth += len(token)
        elif token[0] == "}":
            left = depth - len(token)
            while boxes and boxes[-1][0] > left:
                inside, content = boxes.pop()
                if shown > content > best[0]:
                    best = (content, begin + depth - inside)
            depth = max(0, left)
        elif token[-1] == "{" and len(token) > 2:
            depth += 1
            boxes.append((depth, at))
        elif token[1] != "\\" and token not in _INVISIBLE:
            shown = at
    return text[slice(*best)].strip() if best[0] >= 0 else None


def _last_marked(text: str, cut_off: bool) -> str | None:
    """What the last `####` line says; passed over where the text may have been cut inside it."""
    marked = [match for match in _MARK.finditer(text) if not (cut_off and match.end() == len(text))]
    return strip_math(marked[-1][1], markdown=True) if marked else None


def _last_announced(text: str, cut_off: bool) -> str | None:
    """The last non-empty answer that is announced, each read no further than the next one.

    A box ends it as well: one that reaches here is empty or never closed, which is no answer.
    """
    spans: list[tuple[int, int, bool]] = []  # where each answer may lie, and whether it is closed
    begin = -1
    for match in _ANNOUNCED.finditer(text):
        if begin >= 0:
            spans.append((begin, match.start(), False))
        begin = match.end() if match["anchor"] else -1
        if match["json"] is not None or match["tag"] is not None:
            spans.append((*match.span("tag" if match["json"] is None else "json"), True))
    if begin >= 0:
        spans.append((begin, len(text), False))
    for begin, end, closed in reversed(spans):
        inner = text[begin:end]
        answer = (
            _closed(inner)
            if closed
            else _first_sentence(inner, must_end=cut_off and end == len(text))
        )
        if answer:
            return answer
    return None


def _closed(text: str) -> str:
    """The answer between marks of its own; a JSON string is read as one."""
    if text.startswith('"'):
        try:
            said = str(json.loads(text, strict=False))
            text = said.encode("utf-8", "replace").decode()  # an escape may be half a character
        except ValueError:
            text = text.strip('"')
    announced = _last_announced(text, cut_off=False) if _PHRASE.search(text) else None
    return announced or strip_math(text, markdown=True)


def _first_sentence(text: str, must_end: bool) -> str:
    """The first line or sentence without its markup; `""` when `must_end` and it does not."""
    text = text.lstrip(" \t\r\n:*")
    if text.startswith("```"):  # a block of code is no answer
        return ""
    end = _SENTENCE_END.search(text, _display_end(text))
    if must_end and (end is None or text[end.start() :] == "."):  # "12." may go on as "12.5"
        return ""
    return strip_math(text[: end.start()] if end else text, markdown=True)


def _display_end(text: str) -> int:
    """Where the formula that opens the text closes; a line break inside ends no answer."""
    for opening, closing in _DISPLAY:
        if text.startswith(opening):
            return max(0, text.find(closing, len(opening)))
    return 0
