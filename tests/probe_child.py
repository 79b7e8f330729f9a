"""A probe in a process of its own, to be killed: reports every finished sample on stdout.

python probe_child.py FOLDER {plain|batched} DELAY
"""

from __future__ import annotations

import sys
from pathlib import Path

from fakes import BatchedRateEngine, CharRenderer, RateEngine

from priorkit.outcomes import Outcome
from priorkit.pool import Pool, pool_from_columns
from priorkit.probe import Probe, ProbeResult, ProbeSettings
from priorkit.verify import make_verifier

PROMPTS, SAMPLES = 24, 20


def pool() -> Pool:
    return pool_from_columns(
        {
            "prompt_id": [f"p{i:02d}" for i in range(PROMPTS)],
            "prompt": [f"prompt {i} {'x' * (i * 7 % 11)}" for i in range(PROMPTS)],
            "answer": [str(100 + i) for i in range(PROMPTS)],
            "verifier": ["exact"] * PROMPTS,
        },
        "memory",
    )


def rates() -> dict[str, float]:
    return {f"p{i:02d}": (i % 9) / 8 for i in range(PROMPTS)}


def probe(folder: Path, samples: int = SAMPLES) -> Probe:
    binding = {"anchor": {"name": "fake", "revision": "1"}}
    return Probe(folder, pool(), "fake", ProbeSettings(samples=samples), binding)


def run(folder: Path, kind: str, delay: float = 0.0, on_sample: object = None) -> ProbeResult:
    answers = {f"p{i:02d}": str(100 + i) for i in range(PROMPTS)}
    make = BatchedRateEngine if kind == "batched" else RateEngine
    engine = make(rates(), answers, delay)
    return probe(folder).run(engine, {"exact": make_verifier("exact")}, CharRenderer(), on_sample)  # type: ignore[arg-type]


def told(row: Outcome) -> None:
    sys.stdout.write(f"{row.prompt_id} {row.sample}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    run(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), told)
    sys.stdout.write("done\n")
    sys.stdout.flush()
