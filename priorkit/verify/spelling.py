r"""One spelling for what is written in many ways: text in, text out, no mathematics.

Two answers with the same spelling are the same answer. Every pass is linear in the text's length.
"""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

from priorkit.verify.extract import strip_math

_SYMBOLS = str.maketrans(
    {
        "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u2010": "-", "\u00d7": r"\cdot ",
        "\u00b7": r"\cdot ", "\u22c5": r"\cdot ", "\u00f7": "/", "\u2215": "/", "\u2044": "/",
        "\u03c0": r"\pi ", "\u221e": r"\infty ", "\u00b0": r"^\circ ", "\u2264": r"\le ",
        "\u2265": r"\ge ", "\u2260": r"\ne ", "\u222a": r"\cup ", "\u2229": r"\cap ",
        "\u2208": r"\in ", "\u00b1": r"\pm ", "\u221a": r"\sqrt ", "\u00b2": "^2",
        "\u00b3": "^3", "\u00bd": r"\frac{1}{2}", "\u00bc": r"\frac{1}{4}",
        "\u00be": r"\frac{3}{4}", "\u2026": r"\dots ", "\u2019": "'", "\u03b8": r"\theta ",
        "\u03b1": r"\alpha ", "\u03b2": r"\beta ", "\u03bb": r"\lambda ", "\u2205": r"\emptyset ",
        "\u00a2": r"\text{cents}",
    }
)  # fmt: skip

_SAME = MappingProxyType(
    {
        r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\leq": r"\le",
        r"\leqslant": r"\le", r"\geq": r"\ge", r"\geqslant": r"\ge", r"\neq": r"\ne",
        r"\ldots": r"\dots", r"\cdots": r"\dots", r"\dotsc": r"\dots", r"\times": r"\cdot",
        r"\ast": r"\cdot", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\lvert": "|", r"\rvert": "|",
        r"\vert": "|", r"\degree": r"^\circ", r"\lt": "<", r"\gt": ">",
        r"\varnothing": r"\emptyset", r"\textbf": r"\text", r"\textit": r"\text",
        r"\textrm": r"\text", r"\textup": r"\text", r"\textsf": r"\text", r"\mbox": r"\text",
        r"\hbox": r"\text", r"\mathbf": r"\mathrm", r"\operatorname": r"\mathrm",
        r"\mathit": r"\mathrm", r"\mathsf": r"\mathrm", r"\colon": ":",
        r"\land": r"\text{and}", r"\lor": r"\text{or}", r"\rightarrow": r"\to", r"\mid": "|",
        r"\lparen": "(", r"\rparen": ")", r"\lbrack": "[", r"\rbrack": "]",
        r"\backslash": r"\setminus",
    }
)  # fmt: skip
"""Commands by another name of the same thing."""

_SIZES = frozenset(
    [rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")]
    + [r"\left", r"\right", r"\middle"]
)
_BLANKS = frozenset(
    [
        r"\quad", r"\qquad", r"\displaystyle", r"\textstyle", r"\scriptstyle", r"\limits",
        r"\nolimits", r"\,", r"\:", r"\;", r"\>", r"\ ", "~",
    ]
)  # fmt: skip

# A doubled backslash is a line break: it passes, so that what follows is not read as a command.
_COMMAND = re.compile(r"\\\\|\\[A-Za-z]+|\\[^A-Za-z]|~|\$|\*\*|\*|\.\.\.+", re.DOTALL)
_DELIMITER = re.compile(r"\s*\.")
DOLLAR = "\u00a4"
"""Stands for `\\$`, which would else be taken for a mark of mathematics."""

_DOLLAR = re.compile(r"(?<!\\)\\(?:\$|textdollar(?![A-Za-z]))")
# `1, 234` is a list, while `1,234` is a number.
_LIST_COMMA = re.compile(r"(?<=[0-9]), +(?=[0-9]{3}(?![0-9]))")
_TEXT = re.compile(r"\\(text|mathrm)\s*\{([^{}]*)\}")
_NUMERAL_TEXT = re.compile(r"[-+]?[0-9][0-9.,/]*")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{\s*(?:[bvBV]matrix|smallmatrix|matrix)\s*\}")
_PIECE = re.compile(r"\\\\|\\[A-Za-z]+|\\[^A-Za-z]|(?<=\\sqrt)\s*\[[^\[\]{}]*\]|.", re.DOTALL)
_SHORT = re.compile(r"([\^_])\s*\{\s*(\\?[A-Za-z]+|[0-9])\s*\}(?![A-Za-z0-9])")
_CIRCLE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))")
_SPACE = re.compile(r"\s+")
_IDLE_SPACE = re.compile(r"(?<![\w.]) | (?![\w.])")
_THIN_THOUSANDS = re.compile(r"(?<=[0-9])(?:\\,|\{,\}|,\\! *)(?=[0-9]{3}(?![0-9]))")


def spelling(text: str) -> str:
    r"""A spelling that does not depend on spacing, sizing, synonyms and surrounding `$`.

    Space between two letters or digits stays as one space: `2 2/3` is not `22/3`.

    >>> spelling(r"$\left( 3, \dfrac{\pi}2 \right)$")
    '(3,\\frac{\\pi}{2})'
    >>> spelling(r"5\, \mbox{ cm}^{2}.")
    '5\\text{cm}^2'
    """
    plain = _SPACE.sub(" ", unicodedata.normalize("NFKC", text.translate(_SYMBOLS)))
    plain = _THIN_THOUSANDS.sub(",", strip_math(_DOLLAR.sub(DOLLAR, plain)))
    plain = _without_sizes(plain)
    plain = _ENVIRONMENT.sub(lambda match: rf"\{match[1]}{{pmatrix}}", plain)
    plain = _without_last_breaks(plain)
    plain = _CIRCLE.sub(r"^\\circ ", plain)
    plain = _TEXT.sub(_plain_text, plain)
    plain = _with_braces(_SPACE.sub(" ", plain))
    plain = _LIST_COMMA.sub(";", _SHORT.sub(r"\1\2 ", plain))
    plain = _IDLE_SPACE.sub("", _SPACE.sub(" ", plain))
    return strip_math(plain).rstrip(" ,;")


def _without_sizes(text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _COMMAND.finditer(text):
        if match.start() < at:
            continue
        parts.append(text[at : match.start()])
        token, at = match.group(), match.end()
        if token in _SIZES:
            dot = _DELIMITER.match(text, at)  # `\left.` is an invisible delimiter
            at = dot.end() if dot else at
        elif token == "**":
            parts.append("^")
        elif token == "*":
            parts.append(r"\cdot ")
        elif token.startswith("..."):
            parts.append(r"\dots ")
        elif token in _BLANKS:
            parts.append(" ")
        elif token == r"\%":
            parts.append("%")
        elif token not in (r"\!", "$", r"\(", r"\)", r"\[", r"\]"):
            parts.append(_SAME.get(token, token) + (" " if token[-1].isalpha() else ""))
    parts.append(text[at:])
    return "".join(parts)


def _without_last_breaks(text: str) -> str:
    r"""Without line breaks before an `\end`: they open no row."""
    *parts, last = text.split(r"\end")
    for at, part in enumerate(parts):
        bare = part.rstrip(" \\")
        breaks = part[len(bare) :].replace(" ", "")
        parts[at] = bare + "\\" * (len(breaks) % 2)
    return r"\end".join([*parts, last])


def _plain_text(match: re.Match[str]) -> str:
    inner = " ".join(match[2].split())
    if _NUMERAL_TEXT.fullmatch(inner) or (match[1] == "mathrm" and len(inner) == 1):
        return f" {inner} "
    return rf"\text{{{inner}}} " if inner else " "


def _with_braces(text: str) -> str:
    r"""`\frac12`, `\frac1{2}`, `\sqrt2` and `\sqrt[3]2` with braces around their arguments."""
    if r"\frac" not in text and r"\sqrt" not in text:
        return text
    parts: list[str] = []
    outside: list[int] = []  # arguments still to come outside of each open brace
    wanted = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece in (r"\frac", r"\sqrt"):
            wanted = 2 if piece == r"\frac" else 1
        elif piece == "{":
            outside.append(max(wanted - 1, 0))
            wanted = 0
        elif piece == "}":
            wanted = outside.pop() if outside else 0
        elif wanted and piece == " ":
            continue
        elif wanted and piece.lstrip().startswith("["):
            piece = f"[{piece.strip()[1:-1].strip()}]"
        elif wanted and (piece.isalnum() or (piece[0] == "\\" and piece[1:].isalpha())):
            piece, wanted = f"{{{piece}}}", wanted - 1
        else:
            wanted = 0
        parts.append(piece)
    return "".join(parts)
