"""Nothing that a run starts outlives it, not even after `kill -9` of the runner.

1. The watchdog is a small process in a session of its own. It holds the read end of a pipe whose only write end is the
   runner's: when the runner goes, in whatever way, the watchdog reads the end of the pipe and ends everything.
2. What belongs to the run: the sessions the runner told of, every process that carries the run's mark in its
   environment, and the descendants of all of these. The mark finds a process in a session of its own; the session finds
   a process that has overwritten its environment (Ray's workers write their title there); descent finds a process with
   neither (`env -i setsid …`). On Linux `ray start` and the driver are child subreapers (`driver.keep_orphans`), so an
   orphan stays below one of them. macOS has no subreapers: an orphan is found there by its mark or session only.
3. There is one way to end a run, `Reaper.close`, and it takes the same path as a crash: close the pipe and wait.
4. Processes are stopped (SIGSTOP) before the first one is killed: the death of a parent would hide its children.
5. Pids are used again: a session is forgotten as soon as it was seen to be empty, and what is left of it keeps its
   number from being given to another.

The file is also the watchdog's program, run by itself so that it starts in a moment: it imports the standard library
only.
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
"""Below the scratch folder: temporary files of the programs, or a link to their folder."""

LINUX = sys.platform == "linux"

EXIT_TIMEOUT = 10.0
"""Seconds that the processes of a run may take to exit after SIGKILL."""


class Reaper:
    """The runner's end: tells the watchdog of sessions, and ends the run. `scratch` is removed with it.

    `hold` is a descriptor that the watchdog keeps open: as long as it is, the run is looked after.
    """

    def __init__(self, mark: str, scratch: Path, hold: int | None = None) -> None:
        self._mark, self._scratch, self._hold = mark, scratch, hold
        self._sessions: set[int] = set()
        self._watchdog = self._start()

    def adopt(self, session: int) -> None:
        """Let everything in that session end with the run."""
        self._sessions.add(session)
        self._tell(session)

    def forget(self, session: int) -> None:
        """Nothing is left of that session; its number may soon be another's."""
        self._sessions.discard(session)
        self._tell(-session)

    def ensure(self) -> None:
        """Restart the watchdog if it was killed."""
        if self._watchdog.poll() is not None:
            if self._watchdog.stdin:
                self._watchdog.stdin.close()
            self._watchdog = self._start()
            for session in self._sessions:
                self._tell(session)

    def close(self) -> None:
        """Kill all processes of the run and wait until they are gone."""
        self.ensure()
        if self._watchdog.stdin:
            self._watchdog.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(2 * EXIT_TIMEOUT)

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, self._mark, str(self._scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if self._hold is None else (self._hold,),
            cwd="/",
        )

    def _tell(self, session: int) -> None:
        if self._watchdog.stdin:
            with contextlib.suppress(BrokenPipeError):  # it was killed this very moment; `ensure` tells the next one
                self._watchdog.stdin.write(b"%d\n" % session)
                self._watchdog.stdin.flush()


def end_all(mark: str, sessions: set[int]) -> list[int]:
    """Kill every process of the run, until none is left; returns those that did not end in time.

    `mark` is the environment entry `NAME=VALUE`, or only the value of `MARK`; "": only the sessions count.
    """
    return _end(lambda: members(mark, sessions))


def end_below(pid: int) -> list[int]:
    """Kill every descendant of that process, not itself; returns those that did not end in time."""
    return _end(lambda: sorted(_below({pid}, lineage()) - {os.getpid()}))


def _end(find: Callable[[], list[int]]) -> list[int]:
    """Stop what is found until nothing new is, then kill it; again until nothing is left."""
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
    """Kill every process of one session, and their descendants; whether none is left."""
    return not end_all("", {session})


def members(mark: str, sessions: set[int]) -> list[int]:
    """The living processes of a run: in one of its sessions, carrying its mark, or below one that is. Never this
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
    """The descendants of these processes; `parents` as from `lineage`."""
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
    if LINUX:
        read = ((pid, _stat(pid)) for pid in everyone())
        return {pid: int(stat[1]) for pid, stat in read if stat and stat[0] not in (b"Z", b"X")}
    listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False).stdout
    rows = (line.split() for line in listed.splitlines())
    return {int(row[0]): int(row[1]) for row in rows if len(row) > 2 and not row[2].startswith("Z")}


def _stat(pid: int) -> list[bytes]:
    """State, parent and more of a process, as Linux has them; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def everyone() -> list[int]:
    """The pids of all processes."""
    if LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 – half the time of a Path
    listed = subprocess.run(["/bin/ps", "-axo", "pid="], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in listed.split()]


def alive(pid: int) -> bool:
    """Whether the process still runs; one that nobody has waited for yet does not."""
    if LINUX:
        stat = _stat(pid)
        return bool(stat) and stat[0] not in (b"Z", b"X")
    shown = subprocess.run(["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.startswith("Z")


def marked(mark: str) -> set[int]:
    """The pids of the processes whose environment carries the mark, as `end_all` is given it."""
    wanted = mark if "=" in mark else f"{MARK}={mark}"
    found: set[int] = set()
    if LINUX:
        for pid in everyone():
            with contextlib.suppress(OSError):  # gone meanwhile, or another user's
                if wanted.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.add(pid)
        return found
    listed = subprocess.run(["/bin/ps", "-axEwwo", "pid=,command="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        pid_text, _, command = line.strip().partition(" ")
        if wanted in command.split():
            found.add(int(pid_text))
    return found


def remove(scratch: Path) -> None:
    """Remove the run's scratch folder, and the folder of temporary files that it may have a link to."""
    with contextlib.suppress(OSError):
        shutil.rmtree((scratch / TEMPORARY).readlink(), ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)


def watch(mark: str, scratch: Path) -> int:
    """The watchdog: collect sessions until the pipe ends, then end them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it goes when the run goes, not before
    sessions: set[int] = set()
    for line in sys.stdin.buffer:
        told = int(line)
        (sessions.add if told > 0 else sessions.discard)(abs(told))
    left = end_all(mark, sessions)
    remove(scratch)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(watch(sys.argv[1], Path(sys.argv[2])))
