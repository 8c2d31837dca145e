"""The end of a job in its log: the outcome is recorded, and only the newest commits are kept."""

from __future__ import annotations

import pytest

from spotladder.checkpoints import entries, garbage
from spotladder.checkpoints.ending import end_job
from spotladder.checkpoints.entries import Owner
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from tests.checkpoints.builders import a_log, committed
from tests.checkpoints.memory_store import MemoryStore


@pytest.fixture
def log(store: MemoryStore) -> CommitLog:
    """Three attempts with two commits each."""
    log = a_log(store, uid="mine")
    for attempt in (1, 2, 3):
        committed(log.start(attempt), 2 * attempt - 1, 2 * attempt)
    return log


def steps_of(log: CommitLog) -> list[int]:
    return [commit.step for commit in log.commits()]


def files(store: MemoryStore) -> int:
    return sum("/attempts/" in key for key in store.objects)


@pytest.mark.parametrize(("keep", "steps"), [(1, [6]), (2, [5, 6]), (9, [1, 2, 3, 4, 5, 6])])
def test_only_the_newest_commits_are_kept(log: CommitLog, store: MemoryStore, keep: int, steps: list[int]) -> None:
    assert end_job(log, "Succeeded", keep=keep, attempt=3) == ""
    assert steps_of(log) == steps
    assert files(store) == len(steps)
    end = log.read().end
    assert end is not None
    assert end.outcome == "Succeeded"


def test_an_interrupted_end_can_be_repeated(
    log: CommitLog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_keys: object) -> None:
        raise StoreUnavailable("503")

    with monkeypatch.context() as broken:
        broken.setattr(log.store, "delete", away)
        with pytest.raises(StoreUnavailable):
            end_job(log, "Succeeded", keep=1)
    assert steps_of(log) == [6]
    assert files(store) == 6
    entries = [entry.kind for entry in log.tail()]
    assert end_job(log, "Succeeded", keep=1) == ""
    assert files(store) == 1
    assert [entry.kind for entry in log.tail()] == entries  # Neither the outcome nor the drop is appended twice.


def test_the_outcome_is_recorded_in_a_log_that_is_too_large_for_a_snapshot(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "COMPACT_AFTER", 0)
    monkeypatch.setattr(entries, "LARGEST_ENTRY", 900)
    assert "log entry 11: has at least" in end_job(log, "Succeeded", keep=3)
    assert steps_of(log) == [4, 5, 6]
    assert log.read().end is not None


def test_the_outcome_is_recorded_without_permission_to_delete(
    log: CommitLog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_keys: object) -> None:
        raise StoreRefused("no permission to delete")

    monkeypatch.setattr(log.store, "delete", refused)
    assert end_job(log, "Failed", keep=1) == "no permission to delete"
    assert log.read().end is not None
    assert files(store) == 6


@pytest.mark.parametrize(
    ("owner", "attempt", "error"),
    [(Owner("digits", "team-b", "theirs"), 3, ForeignLog), (Owner("digits", "team-a", "mine"), 2, Fenced)],
)
def test_a_job_of_another_owner_or_a_newer_attempt_is_not_ended(
    log: CommitLog, store: MemoryStore, owner: Owner, attempt: int, error: type[SpotladderError]
) -> None:
    before = dict(store.objects)
    with pytest.raises(error):
        end_job(a_log(store, namespace=owner.namespace, uid=owner.uid), "Succeeded", keep=1, attempt=attempt)
    assert store.objects == before


def test_ending_a_job_that_never_started_writes_no_log(store: MemoryStore) -> None:
    assert end_job(a_log(store), "Failed", keep=1) == ""
    assert store.objects == {}
