"""The resolved tiers of a job are kept until their input changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.clusters.cache import Cache
from spotladder.core.model import Price
from spotladder.operator.reconcile import load
from spotladder.operator.reconcile.resolved_tiers import ResolvedTiers
from spotladder.operator.reconcile.specs import PARSED_SPECS_LIMIT
from spotladder.resources import CAPACITYTIERS
from tests.clusters.fake import FakeApiServer, FakeClient
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import job, ray_template

JOB = job(ray_template())
RECORD = JobRecord(name="digits", namespace="team-a", uid="u", generation=1)
TIER = JOB.spec.tiers[0].capacity_tier


class Resolving:
    """The tiers of the job, and how often they were resolved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.price = 0, Price.listed(1.0, 4.0)
        clock = SteppedClock()
        self.cache = Cache(FakeClient(FakeApiServer(clock), clock), CAPACITYTIERS, CapacityRecord.of, clock=clock)
        self.known: dict[str, CapacityRecord] = {}
        self.tiers = ResolvedTiers(self.cache, clusters=frozenset({"home"}), price=self._price)
        resolve: Callable[..., Any] = load.resolve

        def counted(*given: Any) -> Any:
            self.count += 1
            return resolve(*given)

        monkeypatch.setattr(load, "resolve", counted)
        self.put(version=1)

    def _price(self, _capacity: CapacityTier) -> Price:
        return self.price

    def put(self, *, version: int, name: str = TIER, **more: Any) -> None:
        spec = {"capacityType": "spot", "price": {"perNodeHour": "1", "onDemandPerNodeHour": "4"}, **more}
        self.cache.put({"metadata": {"name": name, "uid": "c", "resourceVersion": str(version)}, "spec": spec})

    def of(self, record: JobRecord = RECORD) -> Any:
        for tier in JOB.spec.tiers:
            if found := self.cache.get(tier.capacity_tier):
                self.known[tier.capacity_tier] = found
        tiers = self.tiers.of(record, JOB, self.known)
        return tiers, self.tiers.spec(record, JOB, tiers)


@pytest.fixture
def resolving(monkeypatch: pytest.MonkeyPatch) -> Resolving:
    return Resolving(monkeypatch)


def test_the_same_input_is_resolved_once(resolving: Resolving) -> None:
    first = resolving.of()
    again = resolving.of(replace(RECORD, resource_version="9", phase="Running"))
    assert resolving.count == 1
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_a_new_generation_of_the_spec_is_resolved_again(resolving: Resolving) -> None:
    resolving.of()
    resolving.of(replace(RECORD, generation=2))
    resolving.of(replace(RECORD, generation=2, uid="another job of this name"))
    assert resolving.count == 3


def test_a_deleted_capacitytier_is_missing_and_keeps_its_last_price(resolving: Resolving) -> None:
    resolving.of()
    resolving.cache._replace({})
    tiers, spec = resolving.of()
    assert JOB.spec.tiers[0].name in tiers.missing
    assert spec.tiers[0].price.per_node_hour == 1.0


def test_the_spec_belongs_to_the_tiers_that_are_given(resolving: Resolving) -> None:
    """A CapacityTier may change in the middle of a reconcile."""
    before = resolving.tiers.of(RECORD, JOB, resolving.known)
    resolving.put(version=2, notice="45s")
    resolving.of()
    assert resolving.tiers.spec(RECORD, JOB, before).tiers[0].notice != 45.0


def test_the_number_of_kept_jobs_is_limited(resolving: Resolving) -> None:
    for number in range(PARSED_SPECS_LIMIT + 1):
        resolving.of(replace(RECORD, name=f"job-{number}"))
    assert len(resolving.tiers._jobs) == PARSED_SPECS_LIMIT
    resolving.tiers.forget(("team-a", f"job-{PARSED_SPECS_LIMIT}"))
    assert len(resolving.tiers._jobs) == PARSED_SPECS_LIMIT - 1
