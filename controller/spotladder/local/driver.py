"""The process that Ray's job submission starts for an attempt: it waits until the gang is ready, runs the entrypoint
and records its end.

Ray's job supervisor and this process start in parallel with the nodes, so the entrypoint starts as soon as the last
node is ready. The runner learns the program's process and exit code only from the files that this process writes
atomically into the attempt's folder. This file runs as a script and imports only the standard library, so that it
starts fast.

On Linux, orphaned processes of the program become children of this process, so they end with the attempt.

| file | content |
|---|---|
| `program.json` | (from the runner) `entrypoint`, `cwd` |
| `go` | (from the runner) the gang is ready |
| `cancelled` | (from the runner) the attempt has ended before the gang was ready |
| `claimed` | one driver process runs the attempt; any other exits |
| `waiting.json` | this process has started: `pid`, `session` |
| `started.json` | the program's process has started: `pid`, `at` |
| `exited.json` | the program has ended: `code` (negative: the signal that killed it), `at` |
| `driver.log` | the program's output |
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
    """Write values as a JSON file, atomically."""
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
    """Wait for this child and return its exit code. Also reaps orphans that end meanwhile."""
    while True:
        child, status = os.wait()
        if child == pid:
            return os.waitstatus_to_exitcode(status)


def drive(folder: Path) -> int:
    """Run the attempt's program; its exit code."""
    try:
        (folder / "claimed").touch(exist_ok=False)
    except FileExistsError:
        return 0  # Ray ran the submission twice.
    note(folder / "waiting.json", pid=os.getpid(), session=os.getsid(0))
    # Written before `cancelled` is read: either the runner finds this process and kills it, or this process finds
    # `cancelled`.
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
            os.killpg(process.pid, number)  # The shell may not forward the signal.

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    code = process.returncode = _ended(process.pid)
    note(folder / "exited.json", code=code, at=time.time())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(drive(Path(sys.argv[1])))
