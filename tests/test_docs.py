"""The documents tell the truth: their commands are run and must print what the page says.

In a fenced `console` block a line `$ command` is run in a folder shared by the page, and the lines
under it are its output. `…` stands for any text on a line, a line `...` for any lines. A block
after `<!-- slow -->` needs a real model and is run with the slow tests; one after
`<!-- not run -->` needs what a machine may lack. Blocks of `python` are run as they stand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Lines of a job's log, which come when a command takes longer than half a minute.
PROGRESS = re.compile(r"^(?:update \d+: .* updates left|\d+/\d+ samples, .*)\n", re.MULTILINE)
_BLOCK = re.compile(r"(?:<!-- (?P<mark>[a-z ]+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.S)


@dataclass(frozen=True)
class Block:
    page: Path
    kind: str
    mark: str
    body: str


def blocks(page: Path) -> list[Block]:
    return [
        Block(page, found["kind"], found["mark"] or "", found["body"])
        for found in _BLOCK.finditer(page.read_text())
    ]


def pattern(expected: str) -> re.Pattern[str]:
    lines = []
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(re.escape(line.rstrip()).replace("…", ".*?") + r"[ ]*\n")
    return re.compile("".join(lines))


def steps(body: str) -> list[tuple[str, str]]:
    """Commands and the output written under each."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:].partition("  #")[0], ""))
        elif found:
            command, output = found[-1]
            found[-1] = (command, output + line + "\n")
    return found


def environment() -> dict[str, str]:
    bin_folder = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": bin_folder + os.pathsep + os.environ["PATH"],
        "COLUMNS": "80",
        "HF_HUB_OFFLINE": "1",
    }


def check(block: Block, folder: Path) -> None:
    for command, expected in steps(block.body):
        made = command.startswith("make ")
        where = ROOT if made else folder
        actual = command.replace("make demo", "priorkit demo", 1) if made else command
        ran = subprocess.run(
            ["bash", "-c", actual], cwd=folder if made else where, env=environment(),
            capture_output=True, text=True,
        )  # fmt: skip
        printed = ran.stdout + PROGRESS.sub("", ran.stderr)
        assert ran.returncode == 0 or "error: " in expected, f"{command}\n{printed}"
        if expected.strip():
            assert pattern(expected).fullmatch(
                printed if printed.endswith("\n") else printed + "\n"
            ), f"{block.page.name}: `{command}` printed\n{printed}\ninstead of\n{expected}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_quick_blocks_of_a_page_print_what_it_says(page, tmp_path):
    for block in blocks(page):
        if block.kind == "console" and not block.mark:
            check(block, tmp_path)
        elif block.kind == "python" and not block.mark:
            ran = subprocess.run(
                [sys.executable, "-c", block.body], cwd=tmp_path, env=environment(),
                capture_output=True, text=True,
            )  # fmt: skip
            assert ran.returncode == 0, block.body + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_slow_blocks_of_a_page_print_what_it_says(page, tmp_path):
    for block in blocks(page):
        if block.kind == "console" and block.mark in ("", "slow"):
            check(block, tmp_path)


def test_every_block_is_of_a_kind_that_is_checked_or_says_why_not():
    for page in PAGES:
        for block in blocks(page):
            assert block.kind in {"console", "python", "text", "bibtex"}, (page, block.body)
            assert block.mark in {"", "slow", "not run"}, (page, block.mark)


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.md").read_text()
    for command in ("demo", "probe", "evaluate", "prior show", "prior check", "prior import",
                    "prior export", "pool show", "pool make"):  # fmt: skip
        assert f"priorkit {command}" in text or f"`{command}" in text, command


def test_no_page_has_a_dead_link():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "data/README.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
