"""Exit codes of Ray drivers and plain scripts."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder.checkpoints.store import RightsRefused
from spotladder.checkpoints.store_check import StoreUnsafe
from spotladder.errors import Fenced, StoreUnavailable
from spotladder.train.ending import exit_code_of
from spotladder.train.interruption import Interrupted
from tests.train.builders import job, log_of, variables


def test_exit_codes_of_a_driver() -> None:
    from ray.train.v2.api.exceptions import ControllerError, WorkerGroupError

    lost = RuntimeError("connection reset")
    caused = RuntimeError("wrapped by the program")
    caused.__cause__ = WorkerGroupError("…", {0: Interrupted(7)})
    for error, code in (
        (WorkerGroupError("…", {0: Interrupted(7), 1: lost}), 75),
        (WorkerGroupError("…", {0: lost, 1: Fenced("…")}), 76),
        (ControllerError(Fenced("…")), 76),
        (Fenced("…"), 76),
        (StoreUnavailable("…"), 5),
        (RightsRefused("…"), 77),
        (WorkerGroupError("…", {0: lost, 1: RightsRefused("…")}), 77),
        (WorkerGroupError("…", {0: Interrupted(7), 1: RightsRefused("…")}), 75),
        (StoreUnsafe("…"), 78),
        (WorkerGroupError("…", {0: StoreUnsafe("…"), 1: lost}), 78),
        (caused, 75),
        (WorkerGroupError("…", {0: KeyError("a bug")}), None),
        (lost, None),
    ):
        assert exit_code_of(error) == code


def test_interrupted_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(Interrupted(42)))  # noqa: S301 – pickled here
    assert (again.code, again.step, str(again)) == (75, 42, str(Interrupted(42)))


def script(tmp_path: Path, text: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, **variables(tmp_path, **more)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"attempt": "none"}, 2, "SPOTLADDER_ATTEMPT"),
        ({"uri": "ftp://x"}, 2, "ftp"),
        ({"uri": "/dev/null/x"}, 5, "null"),
    ],
)
def test_a_script_that_cannot_join_prints_the_cause_in_one_line(
    tmp_path: Path, more: dict[str, str], code: int, said: str
) -> None:
    ended = script(tmp_path, "from spotladder import train; train.current()", **more)
    assert (ended.returncode, ended.stderr.count("\n")) == (code, 1), ended.stderr
    assert said in ended.stderr


def test_a_script_whose_store_cannot_fence_it_starts_nothing(tmp_path: Path) -> None:
    """An attempt that is cut off would continue to commit beside its successor, which would resume from its files."""
    text = """
import os, shutil
from spotladder import train
os.link = shutil.copyfile  # a file system whose links overwrite
train.current()
"""
    ended = script(tmp_path, text)
    assert (ended.returncode, ended.stderr.count("\n")) == (78, 1), ended.stderr
    assert "could overwrite its successor's checkpoints: mount" in ended.stderr
    assert log_of(tmp_path).read().seq == -1
    assert script(tmp_path, "from spotladder import train; train.current()").returncode == 0


def test_a_bug_of_the_script_prints_its_traceback(tmp_path: Path) -> None:
    ended = script(tmp_path, "from spotladder import train; train.current(); {}['a bug']")
    assert ended.returncode == 1
    assert "KeyError: 'a bug'" in ended.stderr


def test_a_script_uploads_its_last_commit_before_it_exits(tmp_path: Path) -> None:
    text = """
from spotladder import train
job = train.current()
with job.commit(1) as folder:
    (folder / "a").write_bytes(b"a" * 10_000_000)
"""
    assert script(tmp_path, text).returncode == 0
    with job(tmp_path, attempt=2).resume() as found:
        assert found is not None
        assert found.step == 1


def test_a_failed_last_commit_sets_the_exit_code(tmp_path: Path) -> None:
    text = """
from spotladder import train
job = train.current()
with job.commit(1) as folder:
    (folder / "a\\n").write_text("a name that no bucket takes")
"""
    ended = script(tmp_path, text)
    assert (ended.returncode, "the last commit failed" in ended.stderr) == (2, True), ended.stderr


def test_a_process_that_the_program_forks_does_not_leave_the_job(tmp_path: Path) -> None:
    """It would close the connections to the other ranks, which it shares, as each loader process did at its end."""
    text = """
import multiprocessing, os
from spotladder import train
train.Job.close = lambda _: print(os.getpid())
train.current()
child = multiprocessing.get_context("fork").Process(target=int)
child.start()
child.join()
print(os.getpid())
"""
    this, closed = script(tmp_path, text).stdout.split()
    assert closed == this


def test_a_process_that_the_program_forks_ends_at_sigterm(tmp_path: Path) -> None:
    text = """
import multiprocessing
from spotladder import train

def wait():
    to.send("started")  # Python forgets a signal that arrives before.
    while True:
        pass  # A handler runs only between instructions.

train.current().should_commit(1)
context = multiprocessing.get_context("fork")
here, to = context.Pipe()
child = context.Process(target=wait)
child.start()
here.recv()
child.terminate()
child.join()
print(child.exitcode)
"""
    assert script(tmp_path, text).stdout == "-15\n"
