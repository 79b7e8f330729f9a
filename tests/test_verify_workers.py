"""`priorkit/verify/workers.py`, and several questions at once: real children, really killed."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from priorkit.errors import SettingError
from priorkit.verify import ExactVerifier, MathVerifier, Question, check_all
from priorkit.verify.equality import Policies
from priorkit.verify.worker import Limits
from priorkit.verify.workers import Workers

HOSTILE = "9^{9^{9^{9}}}"

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@pytest.fixture
def two() -> Iterator[Workers]:
    made = Workers(Limits(limit_s=1.5), asdict(Policies()), count=2)
    yield made
    made.close()


def test_one_hostile_pair_costs_its_neighbours_nothing(two: Workers) -> None:
    good = [("2x", f"{n}x - {n - 2}x") for n in range(3, 12)]
    found = two.compare_all([*good[:4], ("1", HOSTILE), *good[4:]])
    assert found.pop(("1", HOSTILE)) == "timeout"
    assert list(found) == good and set(found.values()) == {"equal"}


def test_a_pair_is_compared_once_however_often_it_comes(two: Workers) -> None:
    start = time.monotonic()
    assert two.compare_all([("1", HOSTILE)] * 20) == {("1", HOSTILE): "timeout"}
    assert two.compare("1", HOSTILE) == "timeout"
    assert time.monotonic() - start < 1.5 + 30.0  # once, and a start-up


def test_only_so_many_comparisons_are_remembered() -> None:
    made = Workers(Limits(), {}, count=1, remembered=2)
    for answer in ("a", "b", "a", "c"):
        made.compare("x", answer)
    assert [answer for _, answer in made._found] == ["a", "c"]
    made.close()


def test_children_start_as_they_are_needed_and_end_with_close(two: Workers) -> None:
    assert two.pids == []
    two.compare("2x", "x+x")
    two.compare("3x", "x+2x")
    assert len(two.pids) == 1  # the warm one is asked again
    two.compare_all([(f"{n}x", f"x+{n - 1}x") for n in range(4, 10)])
    pids = two.pids
    assert len(pids) == 2
    two.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_copy_has_the_settings_and_no_child(two: Workers) -> None:
    two.compare("2x", "x+x")
    twin = pickle.loads(pickle.dumps(two))
    assert twin._settings == two._settings and twin.pids == []


def test_at_least_one_worker_is_needed() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        MathVerifier(workers=0)


QUESTIONS = [
    Question(r"\boxed{x+x}", "2x"),
    Question(r"\boxed{x+x}", "3x"),
    Question("no answer", "2x"),
    Question(r"\boxed{x+x}", ("3x", "2x")),
    Question("cut", "2x", "length"),
    Question("broken", "2x", "error"),
    Question(rf"\boxed{{{HOSTILE}}}", "1"),
    Question(rf"\boxed{{{HOSTILE}}}", ["1", HOSTILE]),
    Question(r"\boxed{0.5}", r"\frac12"),
]
EXPECTED = [
    "correct", "wrong", "no_answer", "correct", "truncated", "engine_error", "verifier_timeout",
    "correct", "correct",
]  # fmt: skip


def test_many_questions_have_the_verdicts_of_each_one() -> None:
    math = MathVerifier(limit_s=1.5, workers=2)
    together = check_all(math, QUESTIONS)
    assert [verdict.status for verdict in together] == EXPECTED
    assert together == [math.check(*question) for question in QUESTIONS]
    math.close()


def test_a_verifier_without_batches_is_asked_one_by_one() -> None:
    statuses = [verdict.status for verdict in check_all(ExactVerifier(), QUESTIONS)]
    assert statuses[:3] == ["wrong", "wrong", "no_answer"] and statuses[-1] == "wrong"
