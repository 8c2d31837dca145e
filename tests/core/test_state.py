"""Which changes of a job's state cause a status write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import (
    Attempt,
    Impeded,
    JobState,
    KnownPods,
    Progress,
    Stage,
    SurplusCosts,
    TierRecord,
    Timers,
)
from spotladder.core.reasons import Reason

STATE = JobState(
    stage=Stage.RUNNING,
    attempt=Attempt(1, "spot", created_at=10.0, seen=True, known=KnownPods(("a", "b"))),
    tier="spot",
    tiers=(TierRecord("spot", attempts=1, node_seconds=60.0, cost=0.5, on_demand_cost=1.5),),
    timers=Timers(waiting_since=12.0, recovering_since=13.0),
    revision=4,
    clock=70.0,
    nodes=2,
)


@pytest.mark.parametrize(
    "later",
    [
        replace(STATE, clock=80.0),
        replace(STATE, revision=5),
        replace(STATE, nodes=1),
        replace(STATE, attempt=replace(STATE.attempt, known=KnownPods(("a",)))),  # type: ignore[type-var]
        replace(STATE, timers=replace(STATE.timers, waiting_since=22.0)),
        replace(STATE, timers=replace(STATE.timers, recovering_since=23.0)),
        replace(STATE, tiers=(replace(STATE.tiers[0], cost=0.6, on_demand_cost=1.8, node_seconds=80.0),)),
        replace(STATE, tiers=(replace(STATE.tiers[0], unpriced=20.0),)),
        replace(STATE, surplus=SurplusCosts(surge=0.1)),
    ],
)
def test_changes_by_time_alone_need_no_status_write(later: JobState) -> None:
    assert later != STATE
    assert later.lasting == STATE.lasting


@pytest.mark.parametrize(
    "later",
    [
        replace(STATE, stage=Stage.RECOVERING),
        replace(STATE, attempt=replace(STATE.attempt, known=KnownPods(("a", "b"), ("a",)))),  # type: ignore[type-var]
        replace(STATE, timers=replace(STATE.timers, waiting_since=None)),
        replace(STATE, timers=replace(STATE.timers, recovering_since=None)),
        replace(STATE, tiers=(replace(STATE.tiers[0], attempts=2),)),
        replace(STATE, tiers=(replace(STATE.tiers[0], failures=1),)),
        replace(STATE, tiers=(replace(STATE.tiers[0], exhausted_by=Reason.MAX_FAILURES_EXCEEDED),)),
        replace(STATE, progress=Progress(step=7)),
        replace(STATE, impeded=Impeded(Reason.STORE_UNAVAILABLE, 60.0)),
        replace(STATE, message="something else"),
    ],
)
def test_all_other_changes_need_a_status_write(later: JobState) -> None:
    assert later.lasting != STATE.lasting
