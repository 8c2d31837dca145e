"""Ends every process of a run when its runner ends, even after `kill -9` of the runner.

1. The watchdog is a small process in its own session. It holds the read end of a pipe whose only write end is the
   runner's: when the runner ends for any reason, the watchdog reads the end of the pipe and kills the run's processes.
2. The run's processes are those in the sessions that the runner has registered, those with the run's mark in their
   environment, and the descendants of both. The mark identifies a process in another session; the session identifies a
   process that has overwritten its environment (Ray's workers write their title there); descent identifies a process
   with neither (`env -i setsid …`). On Linux `ray start` and the driver are child subreapers (`driver.keep_orphans`),
   so an orphan stays their descendant. macOS has no subreapers: an orphan is found there only by its mark or session.
3. `Reaper.close` is the only way to end a run, and does the same as a crash: it closes the pipe, then waits.
4. All processes are stopped (SIGSTOP) before the first one is killed: the end of a parent would hide its children.
5. The system reuses pids. A remaining process of a session reserves the session's number, and a session is removed as
   soon as it is empty.

This file is also the watchdog's program. It imports only the standard library and, to list processes, psutil, so that
it starts fast.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MARK = "SPOTLADDER_RUN"
"""The environment variable that every process of a run carries."""

TEMPORARY = "tmp"
"""Folder below the scratch folder for temporary files of the programs, or a link to that folder."""

EXIT_TIMEOUT = 10.0
"""Seconds that the processes of a run may take to exit after SIGKILL."""


class Reaper:
    """The runner's side: registers sessions with the watchdog and ends the run. The watchdog then removes `scratch`.

    `hold` is the descriptor of a lock that the watchdog keeps open as long as the run may have processes.
    """

    def __init__(self, mark: str, scratch: Path, hold: int | None = None) -> None:
        self._mark, self._scratch = mark, scratch
        self._sessions: set[int] = set()
        self._watchdog = subprocess.Popen(
            # Not "-I": psutil may be outside of this Python, as after `pip install --user`.
            [sys.executable, "-P", __file__, mark, str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if hold is None else (hold,),
            cwd="/",
        )

    def adopt(self, session: int) -> None:
        """Register a session, whose processes then end with the run."""
        self._sessions.add(session)
        self._send(session)

    def forget(self, session: int) -> None:
        """Remove a session that has no processes: its number may soon be reused."""
        self._sessions.discard(session)
        self._send(-session)

    def close(self) -> None:
        """Kill all processes of the run and wait until they are gone. Does the work of the watchdog if that was
        killed."""
        killed = self._watchdog.poll() is not None
        if self._watchdog.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        if killed:
            end_all(self._mark, self._sessions)
            remove(self._scratch)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(2 * EXIT_TIMEOUT)

    def _send(self, session: int) -> None:
        if self._watchdog.stdin:
            with contextlib.suppress(BrokenPipeError):  # The watchdog was killed.
                self._watchdog.stdin.write(b"%d\n" % session)
                self._watchdog.stdin.flush()


def end_all(mark: str, sessions: set[int]) -> list[int]:
    """Kill every process of the run until none is left; returns those that did not end in time.

    `mark` is the environment entry `NAME=VALUE`, or only the value of `MARK`; "": only the sessions count.
    """
    return _end(lambda: members(mark, sessions))


def end_below(pid: int) -> list[int]:
    """Kill every descendant of that process, not the process itself; returns those that did not end in time."""
    return _end(lambda: sorted(_below({pid}, lineage()) - {os.getpid()}))


def _end(find: Callable[[], list[int]]) -> list[int]:
    """Stop processes until no new ones are found, then kill them; repeat until none is left."""
    deadline = time.monotonic() + EXIT_TIMEOUT
    stopped: set[int] = set()
    while time.monotonic() < deadline:
        left = {*find(), *filter(alive, stopped)}
        if not left:
            return []
        new = left - stopped
        _signal(new or left, signal.SIGSTOP if new else signal.SIGKILL)
        stopped |= new
        if not new:
            time.sleep(0.01)
    _signal(stopped, signal.SIGKILL)
    return sorted(filter(alive, stopped))


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_run(mark: str) -> None:
    """Kill the processes of a dead run that carry its mark."""
    sessions = set()
    for pid in members(mark, set()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            sessions.add(os.getsid(pid))
    end_all(mark, sessions - {os.getsid(0)})


def end_session(session: int) -> bool:
    """Kill every process of one session, and their descendants; returns whether none is left."""
    return not end_all("", {session})


def members(mark: str, sessions: set[int]) -> list[int]:
    """The living processes of a run: in one of its sessions, with its mark, or descendants of these. Never this
    process itself."""
    found = marked(mark) if mark else set()
    parents = lineage()
    for pid in parents:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) in sessions:
                found.add(pid)
    found.discard(os.getpid())
    return sorted((found | _below(found, parents)) - {os.getpid()})


def _below(pids: set[int], parents: dict[int, int]) -> set[int]:
    """The descendants of these processes; `parents` is the result of `lineage`."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    todo = list(pids)
    while todo:
        new = [pid for pid in children.get(todo.pop(), []) if pid not in found and pid not in pids]
        found.update(new)
        todo += new
    return found


def lineage() -> dict[int, int]:
    """Every living process with its parent; a zombie is not living."""
    import psutil

    found = psutil.process_iter(["ppid", "status"])
    return {process.pid: process.info["ppid"] for process in found if process.info["status"] not in _GONE}


def alive(pid: int) -> bool:
    """Whether the process still runs; a zombie does not."""
    import psutil

    try:
        return psutil.Process(pid).status() not in _GONE
    except psutil.NoSuchProcess:
        return False


_GONE = ("zombie", "dead")
"""The states of a process of psutil that has ended."""


def marked(mark: str) -> set[int]:
    """The pids of the processes whose environment has the mark, in the form that `end_all` accepts."""
    import psutil

    name, _, value = (mark if "=" in mark else f"{MARK}={mark}").partition("=")
    found: set[int] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # The process is gone, or belongs to another user.
            if process.environ().get(name) == value:
                found.add(process.pid)
    return found


def remove(scratch: Path) -> None:
    """Remove the run's scratch folder, and the folder of temporary files to which it may link."""
    with contextlib.suppress(OSError):
        shutil.rmtree((scratch / TEMPORARY).readlink(), ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)


def watch(mark: str, scratch: Path) -> int:
    """The watchdog: register sessions until the pipe ends, then kill their processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # The watchdog ignores signals: it ends only when the run ends.
    sessions: set[int] = set()
    for line in sys.stdin.buffer:
        session = int(line)
        (sessions.add if session > 0 else sessions.discard)(abs(session))
    left = end_all(mark, sessions)
    remove(scratch)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(watch(sys.argv[1], Path(sys.argv[2])))
