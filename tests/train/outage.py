"""A store with an outage, on simulated time."""

from __future__ import annotations

import threading
import time as real
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import RightsRefused
from spotladder.errors import StoreUnavailable
from spotladder.train import membership
from spotladder.train.commits import Commits
from spotladder.train.session import Job
from spotladder.train.store_retry import StoreRetry
from tests.checkpoints.memory_store import MemoryStore
from tests.train.builders import job

POLL_INTERVAL = 0.0002
"""Real seconds between two reads of the simulated time by a thread."""


class Time:
    """Simulated time in seconds. Only the program (the thread that created this object) advances it; then it waits for
    the background threads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.background = False
        self._program = threading.get_ident()
        self._asleep: dict[int, float] = {}
        self._waits: tuple[Callable[[], bool], float] | None = None

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Advance the time, then wait until every background thread waits for a later time."""
        self.now += seconds
        while self.background and not self._at_rest():
            real.sleep(POLL_INTERVAL)

    def sleep(self, seconds: float) -> None:
        if threading.get_ident() == self._program:
            self.pass_by(seconds)
            return
        me, until = threading.get_ident(), self.now + seconds
        self._asleep[me] = until
        while self.now < until:
            real.sleep(POLL_INTERVAL)
        del self._asleep[me]

    def wait(self, condition: threading.Condition, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """`Condition.wait_for` with the timeout in simulated time."""
        until = float("inf") if timeout is None else self.now + timeout
        if threading.get_ident() == self._program:
            while not ready() and self.now < until:
                condition.release()
                try:
                    self.pass_by(1.0)
                finally:
                    condition.acquire()
            return ready()
        self._waits = (ready, until)
        while not ready() and self.now < until:
            condition.wait(POLL_INTERVAL)
        self._waits = None
        return ready()

    def _at_rest(self) -> bool:
        waits, asleep = self._waits, list(self._asleep.values())
        if waits is not None:
            return not waits[0]() and self.now < waits[1]
        return bool(asleep) and all(self.now < until for until in asleep)


class OutageStore(MemoryStore):
    """A store with an outage from `begins` to `ends`. `kind` is how requests fail then: `refused`, `503`, `hanging` or
    `rights` (access denied)."""

    def __init__(self, time: Time, kind: str = "refused", begins: float = 0.0, ends: float = 0.0) -> None:
        super().__init__()
        self.time, self.kind, self.begins, self.ends = time, kind, begins, ends
        self.renewable = False

    def renew(self) -> bool:
        return self.renewable

    def arrived(self, request: str, key: str) -> None:
        if not self.begins <= self.time.now < self.ends:
            return
        match self.kind:
            case "503":
                self.time.sleep(1.0)
            case "hanging":
                self.time.sleep(60.0 if request == "put_file" else 10.0)
            case "rights":
                raise RightsRefused("access denied")
        raise StoreUnavailable(f"the bucket does not answer ({self.kind})")


class OutageSite:
    """A job of one process on an `OutageStore`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = Time()
        self.store = OutageStore(self.time)
        self.folder = folder
        self.local = folder / "local"
        self.local.mkdir()
        self.left: list[int] = []
        monkeypatch.setattr("tempfile.tempdir", str(self.local))
        monkeypatch.setattr("time.monotonic", self.time)
        monkeypatch.setattr(membership, "open_store", lambda _: self.store)
        retry = partial(StoreRetry, clock=self.time, wall=self.time, sleep=self.time.sleep)
        monkeypatch.setattr(membership, "StoreRetry", retry)
        monkeypatch.setattr(membership, "Commits", partial(Commits, wait=self.time.wait))

    def job(self, **more: object) -> Job:
        made = job(self.folder, clock=self.time, left=self.left, heartbeat=self.folder / "heartbeat", **more)
        self.time.background = False
        return made

    def train(self, made: Job, total: int, seconds: float, on_step: Callable[[int], None] = lambda _: None) -> None:
        """Train from the newest commit to step `total`; each step takes `seconds`."""
        with made.resume() as found:
            start = found.step if found else 0
        for step in made.steps(start, total):
            self.time.pass_by(seconds)
            on_step(step)
            if made.should_commit(step):
                with made.commit(step) as folder:
                    (folder / "w").write_text(str(step))
                self.time.background = True

    def log(self) -> CommitLog:
        """The log, read without the outage."""
        store = MemoryStore()
        store.objects = self.store.objects
        return CommitLog(store, "digits")

    def newest(self) -> int:
        newest = self.log().newest()
        return newest.step if newest else 0

    def folders(self) -> int:
        """The number of checkpoints on the local disk."""
        return len(list(self.local.glob("spotladder-commit-*")))

    def orphans(self) -> set[str]:
        """Files in the store that belong to no commit."""
        named = {f"digits/{commit.path}/{file.name}" for commit in self.log().commits() for file in commit.files}
        with suppress(KeyError):
            return {key for key in self.store.objects if "/log/" not in key} - named
        return set()
