"""The fields of a job's status: those of a new job, and those of a job with a history."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_core import to_json

from spotladder.api.status import Condition
from spotladder.api.stored import JobRecord, status_of
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    ExtraCosts,
    JobState,
    LeftAttempt,
    Progress,
    Stage,
    Standby,
    SurplusCosts,
    TierRecord,
)
from spotladder.core.reasons import Reason
from spotladder.operator.reconcile import status
from tests.core.builders import START

FIRST = AttemptRecord(1, "spot-a", START, START + 60.9, START + 3600, Reason.MAX_FAILURES_EXCEEDED, 2, 0, 40)
LATER = JobState(
    stage=Stage.RUNNING,
    attempt=Attempt(2, "on-demand", START + 3700, seen=True),
    tier="on-demand",
    last_number=2,
    failures=2,
    message="why\nit runs",
    tiers=(
        TierRecord(
            "spot-a",
            failures=2,
            attempts=1,
            node_seconds=7200.04,
            cost=1.23456,
            on_demand_cost=8.0,
            last_reason=Reason.MAX_FAILURES_EXCEEDED,
            exhausted_by=Reason.MAX_FAILURES_EXCEEDED,
        ),
        TierRecord("on-demand", attempts=1, cost=0.5, on_demand_cost=0.5),
    ),
    history=(FIRST,),
    progress=Progress(40, 100, START + 3000.7),
    standby=Standby(Attempt(3, "spot-b", START + 3800.2), Reason.POLICY),
    surplus=SurplusCosts(0.128, 0.00212),
    left=(LeftAttempt(1, "spot-a", START + 3600.4, 3),),
    clock=START + 4000,
)
CLUSTERS = {"spot-a": "east", "spot-b": "west", "on-demand": "home"}
GIVEN: dict[str, Any] = {"generation": 7, "uri": "s3://bucket/digits", "clusters": CLUSTERS, "tiers": CLUSTERS}
RUNNING = Condition(
    type="Running", status="True", reason="AllReady", last_transition_time=datetime(2026, 11, 21, tzinfo=UTC)
)


def written(state: JobState, **more: Any) -> dict[str, Any]:
    fields = status.plain(status.of_state(state, [], **{**GIVEN, **more}))
    del fields["state"]
    to_json(fields)  # It has only values that an API server accepts.
    return fields


def test_fields_of_a_newer_controller_in_a_status_are_ignored() -> None:
    """After a return to this version: the conditions keep their times, and Events are not repeated."""
    own = status.plain(status.of_state(LATER, [RUNNING], **GIVEN))
    newer = {**own, "restoredAt": "2026-11-21T12:00:00Z", "cost": {**own["cost"], "network": "0.10"}}
    newer["conditions"] = [{**entry, "observedBy": "x"} for entry in own["conditions"]]
    held, expected = (
        status_of(JobRecord(name="digits", namespace="team-a", uid="u", status=json.dumps(text).encode()))
        for text in (newer, own)
    )
    assert held == expected
    assert held.conditions == [RUNNING]


def test_text_of_a_program_that_is_not_unicode_does_not_keep_the_status_from_being_written() -> None:
    """Such as the name of a file in the description of a hang."""
    fields = written(replace(LATER, message="no step for 60 s in caf\udce9.py"))
    assert fields["message"] == "no step for 60 s in caf?.py"


def test_the_status_has_the_live_attempt_the_tiers_and_the_history() -> None:
    fields = written(LATER)
    assert (fields["phase"], fields["message"], fields["attempt"]) == ("Running", "why; it runs", 2)
    assert (fields["tier"], fields["cluster"], fields["failures"]) == ("on-demand", "home", 2)
    assert fields["tiers"] == [
        {
            "name": "spot-a", "failures": 2, "attempts": 1, "nodeSeconds": 7200.0,
            "cost": "1.2346", "lastReason": "MaxFailuresExceeded", "spent": "MaxFailuresExceeded", "removed": False,
        },
        {
            "name": "on-demand", "failures": 0, "attempts": 1, "nodeSeconds": 0.0,
            "cost": "0.5000", "lastReason": "", "spent": "", "removed": False,
        },
    ]  # fmt: skip
    assert fields["attempts"] == [
        {
            "number": 1, "tier": "spot-a", "cluster": "east", "startedAt": "2027-01-15T08:00:00Z",
            "runningAt": "2027-01-15T08:01:00Z", "endedAt": "2027-01-15T09:00:00Z", "reason": "MaxFailuresExceeded",
            "failures": 2, "startStep": 0, "endStep": 40,
        }
    ]  # fmt: skip
    assert fields["standby"] == {
        "number": 3, "tier": "spot-b", "cluster": "west", "since": "2027-01-15T09:03:20Z", "reason": "Policy",
    }  # fmt: skip
    assert fields["removing"] == [
        {"number": 1, "tier": "spot-a", "cluster": "east", "since": "2027-01-15T09:00:00Z", "nodes": 3}
    ]


LIVE = Attempt(2, "spot-b", START, seen=True, workers=4, min_workers=2)


@pytest.mark.parametrize(
    ("live", "attempt", "workers", "size"),
    [
        (LIVE, 2, 3, {"workers": 3, "wanted": 4}),
        (LIVE, 2, 0, None),
        (LIVE, 1, 3, None),
        (None, 2, 3, None),
    ],
    ids=["elastic", "not elastic", "not started yet", "ended"],
)
def test_the_status_has_the_size_of_an_elastic_job(
    live: Attempt | None, attempt: int, workers: int, size: dict[str, int] | None
) -> None:
    state = replace(LATER, attempt=live, progress=Progress(40, 100, START, attempt=attempt, workers=workers))
    assert written(state)["elastic"] == size


@pytest.mark.parametrize(
    ("progress", "text", "uri"),
    [
        (Progress(40, 100, START), "40/100", "s3://bucket/digits"),
        (Progress(40, 0, START), "40", "s3://bucket/digits"),
        (Progress(40, 100), "", ""),
    ],
    ids=["known total", "unknown total", "nothing committed"],
)
def test_the_progress_is_that_of_the_newest_commit(progress: Progress, text: str, uri: str) -> None:
    found = written(replace(LATER, progress=progress))["progress"]
    assert (found["step"], found["total"], found["text"], found["uri"]) == (40, progress.total, text, uri)
    assert found.get("committedAt") == ("2027-01-15T08:00:00Z" if text else None)


def test_the_cost_is_compared_with_that_of_the_same_steps_on_demand() -> None:
    assert written(LATER, uninterrupted=4.0)["cost"] == {
        "spent": "1.73", "onDemandEquivalent": "8.50", "savingsPercent": "57", "uninterrupted": "4.00",
        "overlap": "0.1301", "heads": "", "storage": "", "egress": "", "unpriced": [],
    }  # fmt: skip


def test_the_cost_has_the_parts_beside_the_workers_nodes() -> None:
    cost = written(replace(LATER, extra=ExtraCosts(1.5, 0.00004, 12.0)), uninterrupted=20.0)["cost"]
    assert cost["spent"] == "15.23"
    assert {name: cost[name] for name in ("heads", "storage", "egress")} == {
        "heads": "1.5000", "storage": "0.0000", "egress": "12.0000",
    }  # fmt: skip
    assert cost["savingsPercent"] == "24"


def test_savings_of_nothing_have_no_sign() -> None:
    assert written(LATER, uninterrupted=1.73)["cost"]["savingsPercent"] == "0"


@pytest.mark.parametrize(("cost", "spent", "of_tier"), [(0.0, "unknown", "unknown"), (1.5, ">1.50", ">1.5000")])
def test_a_cost_without_all_prices_is_a_lower_bound_or_unknown(cost: float, spent: str, of_tier: str) -> None:
    fields = written(JobState(tiers=(TierRecord("free", cost=cost, unpriced=True),)), tiers=["free"])
    assert (fields["cost"]["spent"], fields["cost"]["unpriced"]) == (spent, ["free"])
    assert fields["tiers"][0]["cost"] == of_tier
