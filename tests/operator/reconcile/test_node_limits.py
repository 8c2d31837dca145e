from __future__ import annotations

from random import Random
from typing import Any

import pytest

from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.operator.reconcile.node_limits import Limits
from tests.workloads.builders import capacity

POOL = CapacityRecord(name="pool", uid="p", model=capacity(limits={"nodes": 4}))


class JobList:
    """The cached jobs of a namespace."""

    def __init__(self, *jobs: JobRecord) -> None:
        self.jobs = {job.name: job for job in jobs}

    def get(self, name: str, _namespace: str) -> JobRecord | None:
        return self.jobs.get(name)


def job(name: str, *, phase: str = "Pending", created_at: int = 0, on: str = "spot", standby: str = "") -> JobRecord:
    tiers = [{"name": "spot", "capacityTier": "pool"}, {"name": "on-demand", "capacityTier": "other"}]
    return JobRecord.of(
        {
            "metadata": {
                "name": name, "namespace": "ns", "uid": name, "creationTimestamp": f"2026-11-21T12:00:0{created_at}Z",
            },
            "spec": {"tiers": tiers},
            "status": {"phase": phase, "tier": on if phase else "", "standby": {"tier": standby}},
        }
    )  # fmt: skip


def limits_of(
    *jobs: JobRecord, size: int = 2, launched: tuple[str, ...] = (), standing_by: tuple[str, ...] = ()
) -> Limits:
    """`launched` and `standing_by` are the jobs with an observed live or standby attempt."""
    made: Any = JobList(*jobs)
    limits = Limits(
        made,
        workers=lambda _job: size,
        left=lambda _job: (),
        standby_workers=lambda _job: size,
        launched=lambda key: key[1] in launched,
        standby_launched=lambda job: job.name in standing_by,
        wake=lambda _key: None,
    )
    for each in jobs:
        limits.touch(each.key)
    return limits


def full(me: JobRecord, *others: JobRecord, launched: tuple[str, ...] = (), pool: CapacityRecord = POOL) -> bool:
    return bool(limits_of(me, *others, launched=launched).full(pool, me))


@pytest.mark.parametrize(
    ("others", "launched", "expected"),
    [
        ([], (), False),
        ([job("a")], (), False),
        ([job("a"), job("b")], (), True),
        ([job("a", phase="Running"), job("b", phase="Draining")], (), True),
        ([job("a", phase="Succeeded"), job("b")], (), False),
        ([job("a", phase="Suspended"), job("b")], (), False),
        ([job("a", on="on-demand"), job("b")], (), False),
    ],
)
def test_a_new_job_counts_all_jobs_that_hold_nodes_of_the_tier(
    others: list[JobRecord], launched: tuple[str, ...], expected: bool
) -> None:
    assert full(job("me", phase=""), *others, launched=launched) is expected


def test_of_two_waiting_jobs_the_older_one_has_precedence() -> None:
    older, younger, third = job("a", created_at=1), job("b", created_at=2), job("c", created_at=0)
    assert not full(older, younger, third)
    assert full(younger, older, third)
    assert full(older, younger, third, launched=("b", "c"))  # launched jobs keep their nodes


def test_a_launch_in_progress_counts_before_its_objects_are_observed() -> None:
    older, younger = job("a", created_at=1), job("b", created_at=2)
    limits = limits_of(older, younger, size=3)
    assert not limits.full(POOL, older)
    with limits.launching(younger):
        assert limits.full(POOL, older) == 'CapacityTier "pool" has limits.nodes 4: 3 are in use, 3 are needed'
    assert not limits.full(POOL, older)


def test_a_capacitytier_without_limits_is_never_full() -> None:
    others = [job(name) for name in "abcdefgh"]
    assert not full(job("me"), *others, pool=CapacityRecord(name="pool", uid="p", model=capacity()))
    assert not full(job("me"), *others, pool=CapacityRecord(name="pool", uid="p"))


def test_a_job_larger_than_the_limit_never_fits() -> None:
    assert full(job("me"), pool=CapacityRecord(name="pool", uid="p", model=capacity(limits={"nodes": 1})))


@pytest.mark.parametrize("most", [0, 1])
def test_a_limit_below_the_size_of_the_job_names_the_limit_that_the_job_needs(most: int) -> None:
    """A regression test: the message was the same as that of a tier on which other jobs will release nodes."""
    me, pool = job("me"), CapacityRecord(name="pool", uid="p", model=capacity(limits={"nodes": most}))
    assert limits_of(me, size=3).full(pool, me) == (
        f'CapacityTier "pool" has limits.nodes {most}: the job needs 3, so it never fits: set limits.nodes to 3 or more'
    )


@pytest.mark.parametrize(
    ("others", "pool", "expected"),
    [
        ([], POOL, 2),
        ([job("a", phase="Running")], POOL, 0),
        ([job("a", phase="Running"), job("b", phase="Running")], POOL, 0),
        ([job("a", phase="Running", on="on-demand")], POOL, 2),
        ([], CapacityRecord(name="pool", uid="p", model=capacity()), None),
    ],
)
def test_a_job_that_replaces_workers_stays_within_the_limit(
    others: list[JobRecord], pool: CapacityRecord, expected: int | None
) -> None:
    me = job("me", phase="Running")
    assert limits_of(me, *others).room(pool, me, held=2) == expected


STANDS_BY: dict[str, Any] = {"phase": "Running", "on": "on-demand", "standby": "spot"}


@pytest.mark.parametrize(
    ("others", "standing_by", "held", "expected"),
    [
        ([], (), 2, True),
        ([], (), 3, False),
        ([job("a")], (), 2, False),
        ([job("a")], (), 0, True),
        ([job("a", **STANDS_BY)], ("a",), 2, False),
        ([job("a", **STANDS_BY, created_at=1)], (), 2, False),
        ([job("a", **STANDS_BY, created_at=9)], (), 2, True),
    ],
    ids=[
        "room for both attempts",
        "no room for both",
        "a waiting job goes first",
        "room beside it",
        "another standby",
        "an older job's planned standby goes first",
        "a younger job's does not",
    ],
)
def test_a_standby_attempt_stays_within_the_limit(
    others: list[JobRecord], standing_by: tuple[str, ...], held: int, expected: bool
) -> None:
    me = job("me", phase="Running", created_at=5)
    limits = limits_of(me, *others, standing_by=standing_by)
    assert limits.admits_standby(POOL, me, held=held) is expected
    assert limits.admits_standby(CapacityRecord(name="pool", uid="p", model=capacity()), me, held=99)


def test_the_nodes_of_a_standby_attempt_count_for_other_jobs_once_it_is_launched() -> None:
    me, other, third = job("me", phase=""), job("a", **STANDS_BY), job("b", phase="Running")
    assert not limits_of(me, other, third).full(POOL, me), "an attempt that is to run goes first"
    assert limits_of(me, other, third, standing_by=("a",)).full(POOL, me)
    assert limits_of(me, other, third).room(POOL, me, held=0) == 0


class Pool:
    """Jobs on the pool that change. `counted` are the jobs whose workers were counted since the last call of `full`."""

    def __init__(self, *jobs: JobRecord, workers: int = 1) -> None:
        self.cache, self.launched = JobList(*jobs), set[str]()
        self.workers: dict[str, Any] = dict.fromkeys(self.cache.jobs, workers)
        self.left: dict[str, list[tuple[str, int]]] = {}
        self.counted: list[str] = []
        self.woken: list[str] = []
        made: Any = self.cache
        self.limits = Limits(
            made,
            workers=self._workers,
            standby_workers=self._workers,
            left=lambda job: self.left.get(job.name, ()),
            launched=lambda key: key[1] in self.launched,
            standby_launched=lambda _job: False,
            wake=lambda key: self.woken.append(key[1]),
        )
        for each in jobs:
            self.limits.touch(each.key)

    def _workers(self, job: JobRecord) -> int | None:
        self.counted.append(job.name)
        workers: int | None = self.workers[job.name]
        return workers

    def change(self, name: str, **changes: Any) -> list[str]:
        """Replace the job and return the jobs that this wakes."""
        self.woken.clear()
        self.cache.jobs[name] = job(name, created_at=int(self.cache.jobs[name].created_at) % 10, **changes)
        self.limits.touch(("ns", name))
        return self.woken

    def full(self, name: str, most: int, **more: Any) -> str:
        self.counted.clear()
        pool = CapacityRecord(name="pool", uid="p", model=capacity(limits={"nodes": most}, **more))
        return self.limits.full(pool, self.cache.jobs[name])


def test_a_check_counts_only_the_jobs_that_have_changed() -> None:
    pool = Pool(*(job(f"job-{number}", created_at=number) for number in range(9)))
    assert pool.full("job-8", 8).endswith("8 are in use, 1 are needed")
    assert sorted(set(pool.counted)) == [f"job-{number}" for number in range(9)]
    assert pool.full("job-8", 8).endswith("8 are in use, 1 are needed")
    assert pool.counted == ["job-8"], "only its own need"
    pool.workers["job-3"] = 4
    pool.limits.touch(("ns", "job-3"))
    assert pool.counted == ["job-8", "job-3"], "at once, because a job waits for nodes"
    assert pool.full("job-8", 8).endswith("11 are in use, 1 are needed")
    assert pool.counted == ["job-8"]


def test_the_sums_follow_jobs_that_start_move_and_end() -> None:
    pool = Pool(job("a", created_at=1), job("b", created_at=2), job("me", created_at=3))
    assert "2 are in use" in pool.full("me", 2)
    pool.cache.jobs["a"] = job("a", created_at=1, on="on-demand")
    pool.limits.touch(("ns", "a"))
    assert not pool.full("me", 2)
    pool.cache.jobs["a"] = job("a", created_at=1)
    pool.launched.add("b")
    for name in "ab":
        pool.limits.touch(("ns", name))
    assert "2 are in use" in pool.full("me", 2)
    for name in "ab":
        del pool.cache.jobs[name]
        pool.limits.touch(("ns", name))
    assert not pool.full("me", 1)
    assert pool.counted == ["me"]


@pytest.mark.parametrize(
    "changes", [{"phase": "Succeeded"}, {"on": "on-demand"}, {"phase": "Suspended"}], ids=["ends", "moves", "suspended"]
)
def test_the_oldest_jobs_that_fit_are_woken_when_a_job_releases_its_nodes(changes: dict[str, Any]) -> None:
    pool = Pool(job("a", phase="Running"), *(job(name, phase="", created_at=n) for n, name in enumerate("wxyz", 1)))
    pool.launched.add("a")
    pool.workers |= {"a": 4, "w": 5, "x": 2, "y": 3, "z": 2}
    pool.limits.touch(("ns", "a"))
    assert all(pool.full(name, 4) for name in "zyxw")
    assert pool.change("a", phase="Running") == []
    assert pool.change("a", **changes) == ["x", "z"], "w never fits, and y does not fit beside x"
    assert not any(pool.full(name, 4) for name in "xz")
    assert pool.change("a", phase="Running") == [], "its nodes are taken again"


def test_jobs_are_woken_when_the_job_with_the_nodes_is_gone_or_gets_smaller() -> None:
    pool = Pool(job("a", phase="Running"), job("b", phase="Running"), job("me", phase="", created_at=3))
    pool.launched |= {"a", "b"}
    pool.workers |= {"a": 2, "b": 2, "me": 2}
    for name in "ab":
        pool.limits.touch(("ns", name))
    assert pool.full("me", 4)
    pool.workers["a"] = 1
    assert pool.change("a", phase="Running") == [], "one node is not enough"
    del pool.cache.jobs["b"]
    pool.limits.touch(("ns", "b"))
    assert pool.woken == ["me"]
    pool.woken.clear()
    pool.limits.touch(("ns", "a"))
    assert pool.woken == [], "it is woken once"


def test_a_job_that_is_gone_is_not_woken() -> None:
    pool = Pool(job("a", phase="Running"), job("me", phase="", created_at=3))
    assert pool.full("me", 1)
    del pool.cache.jobs["me"]
    pool.limits.touch(("ns", "me"))
    assert pool.change("a", phase="Succeeded") == []


def test_heads_count_on_tiers_that_apply_to_them() -> None:
    pool = Pool(job("a", created_at=1), job("b", created_at=2), job("me", created_at=3))
    pool.launched.add("a")
    pool.limits.touch(("ns", "a"))
    assert not pool.full("me", 3)
    assert pool.full("me", 5, applyTo="WorkersAndHead").endswith("4 are in use, 2 are needed")
    assert not pool.full("me", 6, applyTo="WorkersAndHead")


def test_an_attempt_that_is_being_removed_holds_its_nodes() -> None:
    """The earlier attempt of the job `moved` still holds two nodes of the pool."""
    pool = Pool(job("moved", created_at=1, on="on-demand"), job("me", created_at=2))
    pool.left["moved"] = [("spot", 2)]
    pool.limits.touch(("ns", "moved"))
    assert pool.full("me", 2).endswith("2 are in use, 1 are needed")
    assert pool.full("me", 4, applyTo="WorkersAndHead").endswith("3 are in use, 2 are needed")
    assert not pool.full("moved", 2), "its attempt needs no node of the pool"
    assert not pool.limits.admits_standby(POOL, pool.cache.jobs["moved"], held=2)
    pool.left["moved"] = []
    pool.limits.touch(("ns", "moved"))
    assert not pool.full("me", 1)


def test_an_attempt_that_is_being_removed_holds_its_nodes_against_the_next_one_on_its_tier() -> None:
    pool = Pool(job("back", created_at=1))
    pool.left["back"] = [("spot", 2)]
    pool.limits.touch(("ns", "back"))
    assert pool.full("back", 2).endswith("2 are in use, 1 are needed")
    assert not pool.full("back", 3)


def test_an_attempt_on_a_tier_that_is_no_longer_in_the_spec_is_not_counted() -> None:
    pool = Pool(job("moved", created_at=1, on="on-demand"), job("me", created_at=2))
    pool.left["moved"] = [("removed", 2)]
    pool.limits.touch(("ns", "moved"))
    assert not pool.full("me", 1)


def test_a_job_with_an_invalid_spec_holds_no_nodes() -> None:
    pool = Pool(job("a", created_at=1), job("me", created_at=2))
    pool.workers["a"] = None
    assert not pool.full("me", 2, applyTo="WorkersAndHead")


def random_jobs(chance: Random) -> list[JobRecord]:
    phases = ["", "Pending", "Running", "Draining", "Succeeded"]
    return [
        job(
            f"job-{number}",
            phase=chance.choice(phases),
            created_at=chance.randrange(10),
            on=chance.choice(["spot", "on-demand"]),
            standby=chance.choice(["", "spot"]),
        )
        for number in range(6)
    ]


def expected_in_use(pool: Pool, me: JobRecord) -> int:
    """The number of nodes in use for `me`, counted over all jobs."""
    held = 0
    for other in pool.cache.jobs.values():
        waits_behind = me.capacity == "pool" and (other.created_at, other.uid) > (me.created_at, me.uid)
        counts = other.capacity == "pool" and (other.name in pool.launched or not waits_behind)
        held += pool.workers[other.name] if counts and other.uid != me.uid else 0
        if other.uid != me.uid or me.capacity == "pool":
            held += sum(nodes for tier, nodes in pool.left.get(other.name, ()) if tier == "spot")
    return held


@pytest.mark.parametrize("seed", range(20))
def test_the_sums_equal_a_count_over_all_jobs(seed: int) -> None:
    chance = Random(seed)
    pool = Pool(*random_jobs(chance))
    for _ in range(30):
        name, changed = chance.choice(list(pool.cache.jobs)), random_jobs(chance)
        pool.cache.jobs[name] = next(each for each in changed if each.name == name)
        pool.workers[name] = chance.randrange(1, 4)
        pool.left[name] = [(chance.choice(["spot", "on-demand"]), 2) for _ in range(chance.randrange(3))]
        (pool.launched.add if chance.random() < 0.5 else pool.launched.discard)(name)
        pool.limits.touch(("ns", name))
        me = chance.choice(list(pool.cache.jobs.values()))
        held, needed = expected_in_use(pool, me), pool.workers[me.name]
        assert not pool.full(me.name, held + needed)
        if held:
            assert f": {held} are in use, {needed} are needed" in pool.full(me.name, max(needed, held + needed - 1))
