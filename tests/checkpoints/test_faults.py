"""Random stories of two writers on a store that fails in every way a store can; nothing promised is ever lost.

Lost answers, requests done twice, 5xx and throttling, requests that arrive late, torn uploads, and clocks an hour off.
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
from spotladder.checkpoints.memory import MemoryStore
from spotladder.checkpoints.store import ObjectMeta
from spotladder.checkpoints.upload import commit_folder
from spotladder.checkpoints.writer import Writer
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from tests.checkpoints.builders import AT, a_folder

Answer = TypeVar("Answer")
HOUR = 3600.0
FAULTS = ("lost answer", "done twice", "503 Service Unavailable", "429 Too Many Requests", "late", "torn")
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


class FaultyStore:
    """Another store, behind a network that does what `faults` says, one after the other (None: works)."""

    def __init__(self, behind: MemoryStore, faults: Iterator[str | None]) -> None:
        self.uri = behind.uri
        self.behind = behind
        self._faults = faults
        self._late: list[Callable[[], object]] = []

    def _through(self, request: Callable[[], Answer]) -> Answer:
        fault = next(self._faults, None)
        if fault is None and self._late:
            self._late.pop(0)()
        match fault:
            case "lost answer":
                request()
            case "done twice":
                request()
                return request()
            case "late":
                self._late.append(request)
            case None | "torn":
                return request()
        raise StoreUnavailable(fault)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._through(lambda: self.behind.put_if_absent(key, data))

    def get(self, key: str) -> bytes:
        return self._through(lambda: self.behind.get(key))

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self._through(lambda: self.behind.get_many(keys))

    def head(self, key: str) -> ObjectMeta | None:
        return self._through(lambda: self.behind.head(key))

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        return self._through(lambda: self.behind.list(prefix, after))

    def put_file(self, key: str, path: Path) -> FileEntry:
        def put() -> FileEntry:
            entry = self.behind.put_file(key, path)
            if next(self._faults, None) == "torn":
                self.behind.objects[key] = self.behind.objects[key][:-1]
            return entry

        return self._through(put)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        return self._through(lambda: self.behind.get_file(key, path))

    def delete(self, keys: Iterable[str]) -> None:
        self._through(lambda: self.behind.delete(list(keys)))


@dataclass
class Story:
    """Two writers of one job: attempt 1 with its clock an hour ahead, attempt 2 an hour behind."""

    store: FaultyStore
    scratch: Path
    writers: dict[str, Writer] = field(default_factory=dict)
    promised: list[Commit] = field(default_factory=list)
    errors: list[SpotladderError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.truth = CommitLog(self.store.behind, "digits")

    def log(self, who: str) -> CommitLog:
        at = AT + (HOUR if who == "old" else -HOUR)
        return CommitLog(self.store, "digits", clock=lambda: at, pause=lambda _: None)

    def does(self, act: str, step: int) -> None:
        """Every failure is one of ours; anything else fails the test."""
        who, verb = act.split()
        try:
            if verb == "starts":
                self.starts(who)
            elif verb == "ends":
                self.log(who).end_as_controller("Failed")
            elif verb == "resumes":
                self.log(who).resume(self.scratch / f"out-{step}")
            elif who in self.writers:
                self.writes(who, verb, step)
        except SpotladderError as error:
            self.errors.append(error)

    def starts(self, who: str) -> None:
        started = self.log(who).start(1 if who == "old" else 2)
        assert who == "new" or "new" not in self.writers, "an older attempt started after a newer one"
        assert started.history.commits == self.truth.commits(), "a new writer does not know all commits"
        self.writers[who] = started

    def writes(self, who: str, verb: str, step: int) -> None:
        writer = self.writers[who]
        if verb == "collects":
            writer.collect(1)
            return
        folder = a_folder(self.scratch / str(step), w=b"weights %d" % step)
        commit = commit_folder(writer, step, folder)
        assert who == "new" or "new" not in self.writers, "a fenced writer's commit was accepted"
        self.promised.append(commit)

    def holds(self) -> None:
        """What counts is whole, and nothing that was promised is lost to anything but a newer commit."""
        commits = self.truth.commits()
        for commit in commits:
            self.truth.verify(commit)
        if self.promised:
            assert commits
            assert commits[-1].seq >= self.promised[-1].seq


@given(
    acts=st.lists(st.sampled_from(ACTS), max_size=14),
    faults=st.lists(st.none() | st.none() | st.sampled_from(FAULTS), max_size=80),
    compact_after=st.sampled_from([0, 3, 64]),
)
def test_nothing_promised_is_lost(acts: list[str], faults: list[str | None], compact_after: int) -> None:
    store = FaultyStore(MemoryStore(), iter(faults))
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage, "COMPACT_AFTER", compact_after)
        story = Story(store, Path(scratch))
        for step, act in enumerate(["old starts", *acts]):
            story.does(act, step)
            story.holds()
    assert all(isinstance(error, StoreUnavailable | Fenced) for error in story.errors), story.errors
