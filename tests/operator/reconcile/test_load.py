"""An attempt whose CapacityTier was deleted may be in any cluster: it is not lost while a cluster is unreachable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    CapacityType,
    JobSpec,
    JobState,
    Measured,
    Observation,
    PodRole,
    PodSeen,
    PricePoint,
    Stage,
    Tier,
)
from spotladder.core.reasons import Cause
from spotladder.operator.inventory.clusters import Clusters, JobObjects
from spotladder.operator.loaded import Tiers
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import load
from spotladder.output.outage import Outage
from spotladder.resources import APIResource
from spotladder.workloads.core_spec import core_spec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.tiers import price_of
from tests.workloads.builders import job, ray_template

JOB = job(ray_template())
LIVE = JOB.spec.tiers[0].name
STATE = JobState(stage=Stage.RUNNING, tier=LIVE, attempt=Attempt(1, LIVE, created_at=0.0, seen=True), last_number=1)


class TwoClusters:
    """The home cluster and a member cluster in the given condition, both without attempts."""

    names = frozenset({"home", "east"})
    suspects = frozenset({"node-7"})

    def __init__(self, *, synced: bool = True, problem: str = "") -> None:
        self._synced = synced
        self._problem = problem

    def has_synced(self, name: str) -> bool:
        return self._synced or name == "home"

    def problem(self, name: str, _kinds: Iterable[APIResource] = (), _namespace: str = "") -> str:
        return self._problem if name == "east" else ""

    def attempts(self, *_: object) -> JobObjects:
        return JobObjects({}, ())


def tiers_of(known: TwoClusters, capacity: CapacityRecord | None = None) -> Tiers:
    """The tiers of the job, whose CapacityTiers are this one; by default, none exists."""
    return load.resolve(JOB, lambda _: capacity, lambda _: None, known.names, price_of)


def observed(known: TwoClusters, capacity: CapacityRecord | None = None, state: JobState = STATE) -> Observation:
    record = JobRecord(name="digits", namespace="team-a", uid="u", resource_version="8")
    clusters: Any = known
    seen, _ = load.observe(
        record, state, workload=workload_of(JOB), clusters=clusters, tiers=tiers_of(known, capacity),
        reading=Reading(True), blocked=None, outage=lambda _: None,
        quiet_for=lambda _: None, now=0.0, ticks=0.0,
    )  # fmt: skip
    return seen


@pytest.mark.parametrize(("synced", "waits"), [(False, True), (True, False)])
def test_an_attempt_is_not_judged_before_every_cluster_has_synced(synced: bool, waits: bool) -> None:
    known = TwoClusters(synced=synced)
    clusters = cast("Clusters", known)
    assert load.awaits_sync(clusters, tiers_of(known), STATE) == waits
    assert not load.awaits_sync(clusters, tiers_of(known), JobState())  # the job has no attempt


def test_what_other_jobs_have_observed_on_a_tier_is_read_from_its_status() -> None:
    status = {
        "lastAvailableAt": "1970-01-01T00:01:00Z",
        "waits": [{"upTo": "5m", "count": 2}],
        "prices": [{"since": "1970-01-01T00:00:00Z", "price": "0.5"}],
    }
    thing = {"metadata": {"name": "pool", "uid": "u"}, "spec": {"capacityType": "spot"}, "status": status}
    record = CapacityRecord.of(thing)
    assert observed(TwoClusters(), record).granted == dict.fromkeys((tier.name for tier in JOB.spec.tiers), 60.0)
    tier = core_spec(
        JobRecord(name="digits", namespace="a", uid="u"), JOB, tiers_of(TwoClusters(), record).resolved
    ).tiers[0]
    assert (tier.wait, tier.prices) == (300.0, (PricePoint(0.0, 0.5),))
    assert observed(TwoClusters()).granted == {}


def test_an_attempt_of_unknown_cluster_is_unreachable_while_any_cluster_is() -> None:
    assert observed(TwoClusters(problem="no answer")).unavailable[LIVE] == "cluster east cannot be used: no answer"
    assert LIVE not in observed(TwoClusters()).unavailable  # no cluster has the attempt: it is gone


@pytest.mark.parametrize(("stage", "seen", "available"), [
    (Stage.STARTING, False, False),
    (Stage.STARTING, True, True),
    (Stage.ENDING, False, True),
    (Stage.ENDING, True, True),
])  # fmt: skip
def test_without_its_capacity_tier_an_attempt_is_not_launched_but_known_to_be_gone(
    stage: Stage, seen: bool, available: bool
) -> None:
    state = JobState(stage=stage, tier=LIVE, attempt=Attempt(1, LIVE, created_at=0.0, seen=seen), last_number=1)
    assert (LIVE not in observed(TwoClusters(), state=state).unavailable) == available


def test_an_attempt_in_a_cluster_that_is_no_longer_registered_is_unreachable() -> None:
    spec = {"capacityType": "spot", "cluster": "west"}
    record = CapacityRecord.of({"metadata": {"name": "pool", "uid": "u"}, "spec": spec})
    assert 'is in cluster "west"; known: east, home' in observed(TwoClusters(), record).unavailable[LIVE]


NO_ROUTE = Reading(True, unreadable="no route", away_since=10.0)
NO_RIGHTS = Reading(True, unreadable="no rights")
SAID = Outage(20.0, "refused")


@pytest.mark.parametrize(
    ("reading", "outage", "since", "message"),
    [
        (NO_ROUTE, None, 10.0, "no route"),
        (NO_ROUTE, SAID, 10.0, "no route"),
        (NO_RIGHTS, None, None, ""),
        (NO_RIGHTS, SAID, 20.0, "the program reports: refused"),
        (Reading(True), SAID, 20.0, "the program reports: refused"),
    ],
)
def test_bucket_outages_are_recorded_in_the_observed_attempt(
    reading: Reading, outage: Outage | None, since: float | None, message: str
) -> None:
    seen = load._with_store(AttemptSeen(1), reading, outage)
    assert (seen.store_unavailable_since, seen.store_message) == (since, message)


def test_a_cordon_of_worker_nodes_of_a_spot_tier_is_a_reclaim() -> None:
    pods = [PodSeen(name, role, noticed=True, cause=Cause.MAINTENANCE) for name, role in
            (("head", PodRole.HEAD), ("w-0", PodRole.WORKER))]  # fmt: skip
    found = load.reclaimed(AttemptSeen(1, (*pods, PodSeen("w-1"))))
    assert [pod.cause for pod in found.pods] == [Cause.MAINTENANCE, Cause.INTERRUPTION, Cause.UNKNOWN]


def test_a_commit_that_does_not_fit_into_a_notice_degrades_the_job() -> None:
    spec = JobSpec((Tier("spot-a", capacity_type=CapacityType.SPOT, notice=30.0), Tier("on-demand")))
    assert load.too_short_notice(spec, JobState(measured=Measured(commit_seconds=30.0))) is None
    found = load.too_short_notice(spec, JobState(measured=Measured(commit_seconds=94.0)))
    assert found is not None
    assert found.reason == "NoticeTooShort"
    assert found.message.startswith("spec.tiers[0]: a commit takes 1m34s, tier spot-a gives 30s notice")
