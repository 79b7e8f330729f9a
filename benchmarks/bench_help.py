"""`priorkit --help`, from the shell's call to the last line."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

TARGET = 0.3  # seconds, median


def test_help_is_there_at_once(benchmark: Any) -> None:
    command = [sys.executable, "-m", "priorkit_cli", "--help"]
    benchmark.pedantic(
        lambda: subprocess.run(command, check=True, capture_output=True), rounds=15, warmup_rounds=2
    )
    assert benchmark.stats.stats.median <= TARGET
