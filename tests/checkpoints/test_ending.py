"""A job's end in its log: the outcome, and only the newest commits."""

from __future__ import annotations

import pytest

from spotladder.checkpoints.ending import end_job
from spotladder.checkpoints.entries import Owner
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.memory import MemoryStore
from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from tests.checkpoints.builders import a_log, committed


@pytest.fixture
def log(store: MemoryStore) -> CommitLog:
    """Three attempts, of which each has committed twice."""
    log = a_log(store, uid="mine")
    for attempt in (1, 2, 3):
        committed(log.start(attempt), 2 * attempt - 1, 2 * attempt)
    return log


def kept(log: CommitLog) -> list[int]:
    return [commit.step for commit in log.commits()]


def files(store: MemoryStore) -> int:
    return sum("/attempts/" in key for key in store.objects)


@pytest.mark.parametrize(("keep", "steps"), [(1, [6]), (2, [5, 6]), (9, [1, 2, 3, 4, 5, 6])])
def test_only_the_newest_stay(log: CommitLog, store: MemoryStore, keep: int, steps: list[int]) -> None:
    assert end_job(log, "Succeeded", keep=keep, attempt=3) == ""
    assert kept(log) == steps
    assert files(store) == len(steps)
    end = log.read().end
    assert end is not None
    assert end.outcome == "Succeeded"


def test_a_store_that_is_away_meanwhile_is_asked_again(
    log: CommitLog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_keys: object) -> None:
        raise StoreUnavailable("503")

    with monkeypatch.context() as broken:
        broken.setattr(log.store, "delete", away)
        with pytest.raises(StoreUnavailable):
            end_job(log, "Succeeded", keep=1)
    assert kept(log) == [6]
    assert files(store) == 6
    entries = [entry.kind for entry in log.tail()]
    assert end_job(log, "Succeeded", keep=1) == ""
    assert files(store) == 1
    assert [entry.kind for entry in log.tail()] == entries  # neither the outcome nor the drop a second time


def test_a_store_that_permits_no_deletion_still_takes_the_outcome(
    log: CommitLog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_keys: object) -> None:
        raise StoreRefused("no right to delete")

    monkeypatch.setattr(log.store, "delete", refused)
    assert end_job(log, "Failed", keep=1) == "no right to delete"
    assert log.read().end is not None
    assert files(store) == 6


@pytest.mark.parametrize(
    ("owner", "attempt", "error"),
    [(Owner("digits", "team-b", "theirs"), 3, ForeignLog), (Owner("digits", "team-a", "mine"), 2, Fenced)],
)
def test_what_is_not_ours_to_end_keeps_everything(
    log: CommitLog, store: MemoryStore, owner: Owner, attempt: int, error: type[SpotladderError]
) -> None:
    before = dict(store.objects)
    with pytest.raises(error):
        end_job(a_log(store, namespace=owner.namespace, uid=owner.uid), "Succeeded", keep=1, attempt=attempt)
    assert store.objects == before


def test_a_job_that_never_started_has_no_log_afterwards(store: MemoryStore) -> None:
    assert end_job(a_log(store), "Failed", keep=1) == ""
    assert store.objects == {}
