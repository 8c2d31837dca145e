"""The deleted jobs that a bucket has records of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.checkpoints.store import folder_of
from spotladder.core.model import JobSpec, JobState, Observation, Progress, Stage, Tier
from spotladder.places import deleted
from spotladder.records.model import Began, Decided, Record, encode
from spotladder.records.recorded import Recorded
from spotladder.records.recorded_jobs import as_job, deleted_jobs
from spotladder.records.stored import append, of_job
from tests.checkpoints.memory_store import MemoryStore

SPEC = JobSpec((Tier("spot-a"),))
TRAINED = JobState(stage=Stage.RUNNING, tier="spot-a", progress=Progress(step=40, total=100))


def record(store: MemoryStore, name: str, uid: str, *records: Record) -> None:
    """Write a job's records, one object each, and a checkpoint that no search should read."""
    after = 0
    for each in records:
        after = append(of_job(folder_of(store, name), uid), [encode(each)], after)
    store.put_if_absent(f"{name}/log/00000001.json", b"a commit")


def began(name: str, at: float = 1_795_000_000.0, namespace: str = "team-a") -> Began:
    return Began(at, name, namespace, SPEC)


def decided(state: JobState) -> Decided:
    return Decided(1_795_000_100.0, Observation(0), state)


def phases(store: MemoryStore, existing: tuple[str, ...] = (), namespace: str = "") -> dict[str, str]:
    found = deleted_jobs(store, existing, namespace)
    return {job["metadata"]["uid"]: job["status"]["phase"] for job in found}


def test_a_job_that_no_longer_exists_has_its_last_state() -> None:
    store = MemoryStore()
    record(store, "digits", "u1", began("digits"), decided(JobState()), decided(TRAINED))
    record(store, "mnist", "u2", began("mnist"), decided(JobState(stage=Stage.SUCCEEDED)))
    assert phases(store) == {"u1": "Deleted", "u2": "Succeeded"}
    (digits,) = deleted_jobs(store, ["u2"])
    assert digits["deleted"]
    assert digits["metadata"]["creationTimestamp"] == "2026-11-18T11:06:40Z"
    assert (digits["status"]["tier"], digits["status"]["progress"]["text"]) == ("spot-a", "40/100")


@pytest.mark.parametrize("budget", ["250", "0.5", "1234567.25"])
def test_a_budget_has_all_its_digits(budget: str) -> None:
    job = as_job(Recorded((replace(began("digits"), spec=replace(SPEC, budget=float(budget))),)), "Deleted")
    assert job is not None
    assert job["spec"]["budget"] == budget


def test_the_newest_comes_first_and_only_the_namespace_is_listed() -> None:
    store = MemoryStore()
    for number, namespace in enumerate(("team-a", "team-b", "team-a"), 1):
        record(store, "digits", f"u{number}", began("digits", 1_795_000_000.0 + number, namespace))
    assert list(phases(store)) == ["u3", "u2", "u1"]
    assert list(phases(store, ("u3",), "team-a")) == ["u1"]


def test_the_newest_of_two_buckets_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = {"s3://a": MemoryStore(), "s3://b": MemoryStore()}
    record(stores["s3://a"], "digits", "old", began("digits"))
    record(stores["s3://b"], "digits", "new", began("digits", 1_795_000_009.0))
    monkeypatch.setattr(deleted, "open_store", stores.__getitem__)
    found, problems = deleted.deleted_from(stores, (), "team-a")
    assert [(uri, job["metadata"]["uid"]) for uri, job in found] == [("s3://b", "new"), ("s3://a", "old")]
    assert problems == []


def test_folders_that_are_not_those_of_a_job_are_left_out() -> None:
    store = MemoryStore()
    store.put_if_absent("data/records/x/00000001.jsonl.gz", b"no records")
    record(store, "digits", "foreign", began("mnist"))
    record(store, "early", "u1", decided(TRAINED))
    record(store, "odd", "u2", began("odd", 1e300))
    assert phases(store) == {}
