"""What Ray's job submission starts for an attempt: waits until the job is whole, runs the entrypoint, notes its end.

Ray's job supervisor and this process come up while the nodes do, so the entrypoint starts in the moment the last node
is there. It is the runner's only source for the program's process and exit code: files in the attempt's folder, written
whole or not at all. It runs by itself and imports the standard library only, so that it starts in a moment.

A process that the program leaves behind becomes a child of this one (Linux), so that it ends with the attempt.

| file | says |
|---|---|
| `program.json` | (from the runner) `entrypoint`, `cwd` |
| `go` | (from the runner) the job is whole |
| `cancelled` | (from the runner) it never will be |
| `claimed` | one process has taken it on; any other leaves |
| `waiting.json` | this process is there: `pid`, `session` |
| `started.json` | the program's process is there: `pid`, `at` |
| `exited.json` | how it ended: `code` (negative: by that signal), `at` |
| `driver.log` | what it wrote |
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

POLL = 0.02
"""Seconds between two checks for the file `go`."""


def note(path: Path, **facts: object) -> None:
    """Write facts as a JSON file, atomically."""
    write(path, json.dumps(facts))


def write(path: Path, text: str) -> None:
    """Write a small file atomically."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(text)
    partial.replace(path)


def keep_orphans() -> None:
    """Make this process the parent of its orphaned descendants (prctl(2), PR_SET_CHILD_SUBREAPER). Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_SET_CHILD_SUBREAPER = 36


def _ended(pid: int) -> int:
    """Wait for that child; its exit code. Orphans that end meanwhile are waited for, too: none stays a zombie."""
    while True:
        child, status = os.wait()
        if child == pid:
            return os.waitstatus_to_exitcode(status)


def drive(folder: Path) -> int:
    """Run the attempt's program; its exit code."""
    try:
        (folder / "claimed").touch(exist_ok=False)
    except FileExistsError:
        return 0  # the submission was repeated, and both came through
    note(folder / "waiting.json", pid=os.getpid(), session=os.getsid(0))
    # Written before `cancelled` is read: the runner finds this process to kill, or this process finds `cancelled`.
    while not (cancelled := (folder / "cancelled").exists()) and not (folder / "go").exists():
        time.sleep(POLL)
    if cancelled:
        return 0
    keep_orphans()
    program = json.loads((folder / "program.json").read_text())
    with (folder / "driver.log").open("ab", buffering=0) as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", program["entrypoint"]],
            cwd=program["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    note(folder / "started.json", pid=process.pid, at=time.time())

    def forward(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # the shell may not pass it on

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    code = process.returncode = _ended(process.pid)
    note(folder / "exited.json", code=code, at=time.time())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(drive(Path(sys.argv[1])))
