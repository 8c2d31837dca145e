from __future__ import annotations

from typing import Any

import pytest

from spotladder.custom_resources import CapacityRecord, JobRecord
from spotladder.operator.reconcile.node_limits import Limits
from tests.workloads.builders import capacity

POOL = CapacityRecord(name="pool", uid="p", model=capacity(limits={"nodes": 4}))


class JobList:
    def __init__(self, *jobs: JobRecord) -> None:
        self._jobs = jobs

    def all(self) -> tuple[JobRecord, ...]:
        return self._jobs


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
    return Limits(
        made,
        size=lambda _job, _tier: size,
        standby_size=lambda _job, _tier: size,
        launched=lambda key: key[1] in launched,
        standby_launched=lambda job: job.name in standing_by,
    )


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


STANDS_BY = {"phase": "Running", "on": "on-demand", "standby": "spot"}


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
