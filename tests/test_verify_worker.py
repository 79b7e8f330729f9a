from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from priorkit.errors import EngineError, MissingExtraError, SettingError
from priorkit.verify import MathVerifier, worker
from priorkit.verify.worker import Limits, Worker

HOSTILE = "9^{9^{9^{9}}}"
SLACK_S = 2.0

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


def alive(pid: int) -> bool:
    """Whether a process still runs; one that ended and was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def proc(subject: Worker, file: str, field: str) -> str:
    """One field of what the kernel says about a worker's child."""
    text = Path(f"/proc/{subject.pid}/{file}").read_text()
    return next(line for line in text.splitlines() if line.startswith(field)).removeprefix(field)


@pytest.fixture
def quick() -> Iterator[Worker]:
    with Worker(Limits(limit_s=1.5)) as it:
        yield it


@pytest.fixture(scope="module")
def patient() -> Iterator[Worker]:
    with Worker(Limits(limit_s=30.0)) as it:
        yield it


def script(folder: Path, body: str) -> list[str]:
    """A command that runs `body` as a program of its own, with this project importable."""
    file = folder / "program.py"
    paths = [str(Path(worker.__file__).parents[2]), *sys.path]
    file.write_text(f"import sys\nsys.path[:] = {paths!r}\n" + body)
    return [sys.executable, str(file)]


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{\pi}{2}", r"\pi/2"),
        ("n(n+1)/2", r"\frac{n(n+1)}{2}"),
        (r"\frac{x+2}{7}", r"$\frac{x}{7}+\frac{2}{7}$"),
        ("1,-2", "-2,1"),
        (r"(1,\frac{9}{2})", "(1,4.5)"),
        ("0 < x < 12.5", "(0, 12.5)"),
        ("(0, 12.5)", "0 < x < 12.5"),
        (r"50\%", "50 percent"),
        (r"\[ 2x \]", "x+x"),
    ],
)
def test_algebra_sees_what_text_does_not(patient: Worker, gold: str, answer: str) -> None:
    assert patient.compare(gold, answer) == "equal"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{\pi}{2}", r"\pi/3"),
        ("x+1", "x+2"),
        ("(1,2)", "(2,1)"),
        ("[0,1)", "[0,1]"),
        ("x", ""),
        ("x", "}{"),
        ("x", "\ud800\n\x00"),
        ("", ""),
    ],
)
def test_what_algebra_cannot_show_equal_is_unequal(patient: Worker, gold: str, answer: str) -> None:
    assert patient.compare(gold, answer) == "unequal"


def test_no_child_runs_before_it_is_needed_or_after_close() -> None:
    subject = Worker()
    pids = [subject.pid]
    assert subject.compare("2x", "x+x") == "equal"
    pids.append(subject.pid)
    assert pids[0] is None and pids[1] is not None and alive(pids[1])
    subject.close()
    assert subject.pid is None and not alive(pids[1])
    subject.close()


def test_a_closed_worker_starts_again(quick: Worker) -> None:
    quick.compare("2x", "x+x")
    quick.close()
    assert quick.compare("3x", "x+x+x") == "equal"


def test_a_hostile_answer_ends_at_the_limit_and_the_next_one_is_judged(quick: Worker) -> None:
    quick.compare("2x", "x+x")  # start-up has its own limit
    pid = quick.pid
    start = time.monotonic()
    assert quick.compare("1", HOSTILE) == "timeout"
    assert time.monotonic() - start < 1.5 + SLACK_S
    assert pid is not None and not alive(pid)
    assert quick.compare("3x", "x+x+x") == "equal"


def test_a_child_makes_room_for_a_fresh_one_in_time() -> None:
    with Worker(Limits(recycle_after=2)) as subject:
        pids = []
        for answer in ("a", "b", "c", "d", "e"):
            assert subject.compare("x", answer) == "unequal"
            pids.append(subject.pid)
        assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
        assert not alive(pids[0]) and not alive(pids[2])  # type: ignore[arg-type]


def test_a_child_grows_by_no_more_memory_than_it_may() -> None:
    with Worker(Limits(limit_s=60.0, memory_bytes=64 * 2**20)) as subject:
        subject.compare("2x", "x+x")
        limit = int(proc(subject, "limits", "Max address space").split()[0])
        assert subject.compare("7", "2^{10^{10}}") in ("unequal", "error")  # wants 1.25 GB
        peak = 1024 * int(proc(subject, "status", "VmPeak:").split()[0])
        assert peak <= limit < peak + 64 * 2**20
        assert subject.compare("3x", "x+2x") == "equal"


def test_a_child_killed_from_outside_is_replaced(quick: Worker) -> None:
    quick.compare("2x", "x+x")
    assert quick.pid is not None
    os.kill(quick.pid, signal.SIGKILL)
    assert quick.compare("3x", "x+x+x") == "equal"


def test_a_pair_whose_child_dies_is_asked_once_more(quick: Worker) -> None:
    quick.compare("2x", "x+x")
    first = quick.pid
    assert first is not None
    threading.Timer(0.5, os.kill, (first, signal.SIGKILL)).start()
    start = time.monotonic()
    assert quick.compare("1", HOSTILE) == "timeout"
    assert time.monotonic() - start > 0.5 + 1.5
    assert not alive(first)


def test_a_pair_whose_child_always_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    dies = "print('null', flush=True); input()"
    monkeypatch.setattr(worker, "_BOOT", dies)
    with Worker() as subject:
        assert subject.compare("x", "y") == "error"


def test_an_interrupted_comparison_does_not_answer_the_next_one(
    quick: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.compare("2x", "x+x")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(worker._Child, "reply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick.compare("x", "x+0")
    assert quick.compare("x", "x+1") == "unequal"


def test_threads_share_a_worker(patient: Worker) -> None:
    pairs = [(f"{n}x", f"{m}x+{n - m}x") for n in range(3, 12) for m in (1, n)]
    pairs += [(f"{n}x", f"x+{n}x") for n in range(3, 12)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda pair: patient.compare(*pair), pairs))
    assert outcomes == ["equal"] * 18 + ["unequal"] * 9


def test_a_copy_has_the_limits_but_not_the_child(patient: Worker) -> None:
    patient.compare("2x", "x+x")
    twin = pickle.loads(pickle.dumps(patient))
    assert twin.limits == patient.limits and twin.pid is None


def _compare_in_fork(subject: Worker, results: multiprocessing.Queue[object]) -> None:
    results.put((subject.compare("3x", "x+2x"), subject.pid))
    subject.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_gets_a_child_of_its_own(quick: Worker) -> None:
    quick.compare("2x", "x+x")
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    process = fork.Process(target=_compare_in_fork, args=(quick, results))
    process.start()
    outcome, pid = results.get(timeout=60)
    process.join()
    assert outcome == "equal" and pid != quick.pid
    assert quick.pid is not None and alive(quick.pid) and ends_within(pid, 2.0)
    assert quick.compare("4x", "x+3x") == "equal"


def test_the_program_that_verifies_is_not_run_again_by_the_child(tmp_path: Path) -> None:
    body = (
        "print('ran', flush=True)\n"
        "from priorkit.verify.worker import Limits, Worker\n"
        "it = Worker()\n"
        "print(it.compare('2x', 'x+x'), it.pid)\n"
    )
    done = subprocess.run(script(tmp_path, body), capture_output=True, text=True, timeout=120)
    ran, outcome, pid = done.stdout.split()
    assert (ran, outcome, done.stderr) == ("ran", "equal", "")
    assert not alive(int(pid))  # and it is gone with the program


@pytest.mark.parametrize(
    ("last", "seconds"),
    [("", SLACK_S), (f"print('busy', flush=True); it.compare('1', {HOSTILE!r})", 7.0 + SLACK_S)],
    ids=["idle", "busy"],
)
def test_a_child_does_not_outlive_a_parent_that_is_killed(
    tmp_path: Path, last: str, seconds: float
) -> None:
    body = (
        "import time\n"
        "from priorkit.verify.worker import Limits, Worker\n"
        "it = Worker(Limits(limit_s=2.0))\n"
        "it.compare('2x', 'x+x')\n"
        f"print(it.pid, flush=True)\n{last}\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(script(tmp_path, body), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        if last:
            parent.stdout.readline()
            time.sleep(0.5)
        assert alive(pid)
        parent.kill()
    assert ends_within(pid, seconds)


@pytest.mark.parametrize(
    ("boot", "error", "said"),
    [
        ("pass", EngineError, "it ended at once"),
        ("import time; time.sleep(60)", EngineError, "not ready within 1 s"),
        (
            "import sys; sys.modules['math_verify'] = None; " + worker._BOOT,
            MissingExtraError,
            "pip install math-verify",
        ),
        (
            "import math_verify; math_verify.parse = lambda *a, **k: []; " + worker._BOOT,
            EngineError,
            r"cannot tell that x\+x is 2x",
        ),
    ],
)
def test_a_child_that_cannot_start_is_an_error_that_says_why(
    monkeypatch: pytest.MonkeyPatch, boot: str, error: type[Exception], said: str
) -> None:
    monkeypatch.setattr(worker, "_BOOT", boot)
    slow = "math_verify" in boot
    with Worker(Limits(start_limit_s=60.0 if slow else 1.0)) as subject:
        with pytest.raises(error, match=said):
            subject.compare("x", "y")
        assert subject.pid is None


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_must_be_finite_and_above_zero(limit: float) -> None:
    with pytest.raises(SettingError, match="limits above zero"):
        Limits(limit_s=limit)
    with pytest.raises(SettingError, match="limits above zero"):
        MathVerifier(limit_s=limit)
