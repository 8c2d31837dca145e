"""No acknowledged commit is lost in random runs of two writers on a faulty store.

Faults: lost responses, requests executed twice, 5xx and throttling, late requests, torn uploads, clocks that are wrong
by an hour.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.checkpoints import garbage
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, Store
from spotladder.checkpoints.writer import Writer
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from tests.checkpoints.builders import AT, a_folder, commit_folder
from tests.checkpoints.memory_store import MemoryStore

Answer = TypeVar("Answer")
HOUR = 3600.0
FAULTS = ("lost response", "executed twice", "503 Service Unavailable", "429 Too Many Requests", "late", "torn")
ACTS = (
    "old starts",
    "old commits",
    "old collects",
    "new starts",
    "new commits",
    "new collects",
    "new resumes",
    "new ends",
)


class FaultyStore(Store):
    """A memory store behind a network: each request gets the next of `faults` (None: no fault)."""

    def __init__(self, memory: MemoryStore, faults: Iterator[str | None]) -> None:
        self.uri = memory.uri
        self.memory = memory
        self._faults = faults
        self._late: list[Callable[[], object]] = []

    def _through(self, request: Callable[[], Answer]) -> Answer:
        fault = next(self._faults, None)
        if fault is None and self._late:
            self._late.pop(0)()
        match fault:
            case "lost response":
                request()
            case "executed twice":
                request()
                return request()
            case "late":
                self._late.append(request)
            case None | "torn":
                return request()
        raise StoreUnavailable(fault)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._through(lambda: self.memory.put_if_absent(key, data))

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        return self._through(lambda: self.memory.get(key, most))

    def get_many(self, keys: Sequence[str], most: int = LARGEST_OBJECT) -> list[bytes | None]:
        return self._through(lambda: self.memory.get_many(keys, most))

    def head(self, key: str) -> ObjectMeta | None:
        return self._through(lambda: self.memory.head(key))

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        return self._through(lambda: self.memory.list(prefix, after))

    def put_file(self, key: str, path: Path) -> FileEntry:
        def put() -> FileEntry:
            entry = self.memory.put_file(key, path)
            if next(self._faults, None) == "torn":
                self.memory.objects[key] = self.memory.objects[key][:-1]
            return entry

        return self._through(put)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        return self._through(lambda: self.memory.get_file(key, path))

    def delete(self, keys: Iterable[str]) -> None:
        self._through(lambda: self.memory.delete(list(keys)))


@dataclass
class TwoWriters:
    """Two writers of one job: attempt 1 with its clock an hour ahead, attempt 2 an hour behind."""

    store: FaultyStore
    scratch: Path
    writers: dict[str, Writer] = field(default_factory=dict)
    acknowledged: list[Commit] = field(default_factory=list)
    errors: list[SpotladderError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reliable_log = CommitLog(self.store.memory, "digits")

    def log(self, who: str) -> CommitLog:
        at = AT + (HOUR if who == "old" else -HOUR)
        return CommitLog(self.store, "digits", clock=lambda: at, pause=lambda _: None)

    def act(self, act: str, step: int) -> None:
        """Perform one act. Only errors of spotladder are expected; any other error fails the test."""
        who, verb = act.split()
        try:
            if verb == "starts":
                self.start(who)
            elif verb == "ends":
                self.log(who).end_as_controller("Failed")
            elif verb == "resumes":
                self.log(who).resume(self.scratch / f"out-{step}")
            elif who in self.writers:
                self.write(who, verb, step)
        except SpotladderError as error:
            self.errors.append(error)

    def start(self, who: str) -> None:
        started = self.log(who).start(1 if who == "old" else 2)
        assert who == "new" or "new" not in self.writers, "an older attempt started after a newer one"
        assert started.history.commits == self.reliable_log.commits(), "a new writer does not know all commits"
        self.writers[who] = started

    def write(self, who: str, verb: str, step: int) -> None:
        writer = self.writers[who]
        if verb == "collects":
            writer.collect(1)
            return
        folder = a_folder(self.scratch / str(step), w=b"weights %d" % step)
        commit = commit_folder(writer, step, folder)
        assert who == "new" or "new" not in self.writers, "a fenced writer's commit was accepted"
        self.acknowledged.append(commit)

    def check(self) -> None:
        """Every valid commit is complete, and an acknowledged commit is replaced only by a newer one."""
        commits = self.reliable_log.commits()
        for commit in commits:
            self.reliable_log.verify(commit)
        if self.acknowledged:
            assert commits
            assert commits[-1].seq >= self.acknowledged[-1].seq


@given(
    acts=st.lists(st.sampled_from(ACTS), max_size=14),
    faults=st.lists(st.none() | st.none() | st.sampled_from(FAULTS), max_size=80),
    compact_after=st.sampled_from([0, 3, 64]),
)
def test_no_acknowledged_commit_is_lost(acts: list[str], faults: list[str | None], compact_after: int) -> None:
    store = FaultyStore(MemoryStore(), iter(faults))
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage, "COMPACT_AFTER", compact_after)
        job = TwoWriters(store, Path(scratch))
        for step, act in enumerate(["old starts", *acts]):
            job.act(act, step)
            job.check()
    assert all(isinstance(error, StoreUnavailable | Fenced) for error in job.errors), job.errors
