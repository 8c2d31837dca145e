"""No process outlives a run: with real processes, without Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import spotladder
from spotladder.local.reaper import MARK, Reaper, alive, end_all, members
from tests.waiting import eventually

RUNNER = """\
import os, subprocess, sys, time, pathlib
from spotladder.local.reaper import MARK, Reaper
mark, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
reaper = Reaper(mark, scratch)
sleep = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"]
plain = {name: value for name, value in os.environ.items() if name != MARK}
adopted = subprocess.Popen(sleep, env=plain, start_new_session=True)
reaper.adopt(adopted.pid)
marked = subprocess.Popen(sleep, env={**plain, MARK: mark}, start_new_session=True)
leave = "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
daemon = "import os, sys; " + leave + "os.execv(sys.argv[1], sys.argv[1:])"
subprocess.run([sys.executable, "-c", daemon, *sleep], env={**plain, MARK: mark}, check=True)
print(adopted.pid, marked.pid, flush=True)
if sys.argv[3] == "close":
    sys.stdin.readline()
    reaper.close()
    print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid.uuid4().hex
    yield mark
    assert end_all(mark, set()) == []


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user that does not belong to the run, although the run's mark is in its arguments."""
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", f"{MARK}=x"]) as process:
        yield process
        assert process.poll() is None, "the process does not belong to the run"
        process.kill()


def runner(
    mark: str, scratch: Path, how: str = "wait", python: str = sys.executable, **environment: str
) -> subprocess.Popen[str]:
    scratch.mkdir()
    (scratch / "socket").write_text("")
    return subprocess.Popen(
        [python, "-c", RUNNER, mark, str(scratch), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_processes_and_files_of_a_killed_runner_are_removed(
    mark: str, tmp_path: Path, bystander: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    scratch = tmp_path / "scratch"
    with runner(mark, scratch) as process:
        assert process.stdout is not None
        adopted, marked = map(int, process.stdout.readline().split())
        assert eventually(lambda: len(members(mark, {adopted})) == 3), "two sleepers and a daemon"
        os.killpg(process.pid, number)
        assert eventually(lambda: members(mark, {adopted}) == [])
        assert not alive(adopted)
        assert not alive(marked)
        assert eventually(lambda: not scratch.exists())


def test_close_ends_all_processes_and_waits_for_them(mark: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with runner(mark, scratch, "close") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        adopted, _marked = map(int, process.stdout.readline().split())
        assert eventually(lambda: len(members(mark, {adopted})) == 3)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        assert members(mark, {adopted}) == []
        assert not scratch.exists()
        process.kill()


def test_packages_outside_of_the_python_are_the_watchdogs_too(mark: str, tmp_path: Path) -> None:
    """As after `pip install --user`: this Python itself has no psutil."""
    packages = os.pathsep.join(str(Path(module.__path__[0]).parent) for module in (psutil, spotladder))
    base = os.path.realpath(sys.executable)
    with runner(mark, tmp_path / "scratch", "close", base, PYTHONPATH=packages) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        adopted, _marked = map(int, process.stdout.readline().split())
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        assert members(mark, {adopted}) == []
        process.kill()


def test_without_its_watchdog_the_runner_ends_all_adopted_sessions(mark: str, tmp_path: Path) -> None:
    reaper = Reaper(mark, tmp_path / "none")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as sleeper:
        reaper.adopt(sleeper.pid)
        reaper._watchdog.kill()
        reaper._watchdog.wait()
        reaper.close()
        assert sleeper.wait(600) == -signal.SIGKILL


def ignores(pid: int, number: int) -> bool:
    """Whether the process ignores this signal, as Linux shows it."""
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show which signals a process ignores")
def test_the_watchdog_ignores_signals_of_the_terminal(mark: str, tmp_path: Path) -> None:
    reaper = Reaper(mark, tmp_path / "none")
    terminal = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    assert eventually(lambda: all(ignores(reaper._watchdog.pid, number) for number in terminal))
    for number in terminal:
        reaper._watchdog.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        reaper._watchdog.wait(0.3)
    reaper.close()
    assert reaper._watchdog.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no child subreapers")
def test_a_daemon_without_mark_and_session_ends_with_the_run(mark: str) -> None:
    """The daemon is found as a descendant of a subreaper of the run (`ray start`)."""
    leave = "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    bare = leave + "os.execve('/bin/sleep', ['bare', '600'], {})"
    start = [sys.executable, "-c", f"import os; {bare}"]
    node = (
        "import subprocess, sys, time; from spotladder.local.driver import keep_orphans; keep_orphans(); "
        f"subprocess.run({start!r}); print('started', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", node], stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, MARK: mark}
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert eventually(lambda: len(members(mark, set())) == 2)
        left = members(mark, set())
        assert end_all(mark, set()) == []
        assert not any(map(alive, left))


def test_a_zombie_process_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    assert eventually(lambda: not alive(process.pid))
    process.wait()
