"""The stored state of local runs: a folder for each job, with one owner at a time.

| name | content |
|---|---|
| `lock` | locked (flock) by the job's runner; the system releases it when the process ends |
| `state.json` | `JobState`, replaced atomically before its actions are executed |
| `run.json` | properties of the run that must not change when it is resumed (start time, Python, Ray), and its mark |
| `timeline.jsonl` | the timeline |
| `attempts/0001/` | the program's log and files |
| `nodes/` | the output of each `ray start` |
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from spotladder.atomic import write_text
from spotladder.core.model import Instant, JobState
from spotladder.core.model.codec import dump, load_state
from spotladder.errors import EnvironmentFailure, InvalidSpec, SpotladderError

_RUN_FILES = ("state.json", "run.json", "timeline.jsonl")
_REMOVE = "remove it, and --continue resumes from the newest commit"
_RUN_FOLDERS = ("attempts", "compiled", "nodes", "report")


LOCK_TRIES = 4
LOCK_RETRY_INTERVAL = 0.05
"""Seconds between two attempts to take the job's lock."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of a run, which does not change when the run is resumed, except `mark`, which is that of the last
    runner. `uri` is the address of the checkpoints. `uid` names the run in the commit log. `folder` is that of the
    program."""

    began: Instant
    python: str
    ray: str
    uri: str
    mark: str = ""
    uid: str = ""
    folder: str = ""


class JobFolder:
    """The state folder of one job."""

    def __init__(self, root: Path, namespace: str, job: str) -> None:
        self.path = root / namespace / job
        self._lock = -1

    @property
    def timeline(self) -> Path:
        """The path of the run's timeline."""
        return self.path / "timeline.jsonl"

    def known_run(self) -> RunIdentity | None:
        """The previous run, as far as `run.json` can be read."""
        try:
            return self.load_run()
        except EnvironmentFailure:
            return None

    def load(self) -> JobState | None:
        """The last saved state; None if the job never ran on this machine."""
        text = self._read("state.json")
        try:
            return None if text is None else load_state(text)
        except InvalidSpec as error:
            where = self.path / "state.json"
            raise EnvironmentFailure(f"{where}: {error}; {_REMOVE}") from error

    def save(self, state: JobState) -> None:
        """Replace the state atomically and flush it to the disk."""
        self._write("state.json", dump(state))

    def load_run(self) -> RunIdentity | None:
        """The run to resume."""
        text = self._read("run.json")
        if text is None:
            return None
        try:
            return RunIdentity(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise EnvironmentFailure(f"{self.path / 'run.json'}: cannot be read ({error}); {_REMOVE}") from error

    def save_run(self, run: RunIdentity) -> None:
        """Write the identity of the run."""
        self._write("run.json", json.dumps(asdict(run)))

    def clear(self) -> None:
        """Delete the state of the run. The checkpoints are stored elsewhere and are kept."""
        with self._refusals("remove"):
            for name in _RUN_FILES:
                (self.path / name).unlink(missing_ok=True)
            for name in _RUN_FOLDERS:
                shutil.rmtree(self.path / name, ignore_errors=True)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the job's lock as its one runner."""
        with self._refusals("make"):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with self._refusals("lock"):
                try:
                    _lock(lock)
                except BlockingIOError:
                    owner = os.pread(lock, 32, 0).decode(errors="replace").strip() or "?"
                    raise AlreadyRunning(
                        f"{self.path}: process {owner} is running this job; wait for it, or stop it with Ctrl-C there"
                    ) from None
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(lock)

    def owner(self) -> int | None:
        """The process that runs this job now; None if no process does."""
        try:
            lock = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
            return int(pid) if pid.isdigit() else 0
        except OSError:
            return None  # This file system has no locks, so no process runs a job here.
        finally:
            os.close(lock)
        return None

    def _read(self, name: str) -> str | None:
        with self._refusals("read"):
            try:
                return (self.path / name).read_text(encoding="utf-8")
            except FileNotFoundError:
                return None
            except UnicodeDecodeError as error:
                raise EnvironmentFailure(f"{self.path / name}: is not UTF-8 text; {_REMOVE}") from error

    def _write(self, name: str, text: str) -> None:
        with self._refusals("write"):
            write_text(self.path / name, text, durable=True)

    @contextmanager
    def _refusals(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.path
            another = "name another with --state-dir or SPOTLADDER_STATE"
            hint = "free space, then run with --continue" if verb == "write" else another
            raise EnvironmentFailure(f"{where}: cannot {verb} it: {error.strerror}; {hint}") from error


def _lock(file: int) -> None:
    """Take the lock. Raises BlockingIOError. A command that only reads the owner (`owner`) may hold it for a moment."""
    for _ in range(LOCK_TRIES):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(LOCK_RETRY_INTERVAL)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class AlreadyRunning(SpotladderError):
    """Another runner owns the job."""

    exit_code = 5
