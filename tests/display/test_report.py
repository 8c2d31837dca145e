"""The numbers of the report match a run of the real core."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.core.accounting.savings import savings
from spotladder.core.model import JobSpec, Loss, Move, Stage, Tier
from spotladder.core.reasons import Cause, Reason
from spotladder.display.report import charts, gather
from spotladder.display.report.data import as_data, as_json
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.page import page
from spotladder.display.report.work import Stretch
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import Beat, Began, Billed, Committed, Ended, LeftBill, Lost, Moved, Noted, Specified
from spotladder.records.recorded import Recorded
from tests.core.builders import START
from tests.display.builders import TOTAL, CloudEvents, PlayedRun
from tests.display.report_checks import check_json, check_page, facts_of
from tests.searching import examples


def rounded(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in numbers.items()}


def test_the_data_have_the_figures_of_the_run(digits: RunFacts) -> None:
    data = check_json(as_json(digits))
    assert data["outcome"] == {"exitCode": 0, "reason": "Completed", "message": ""}
    assert data["steps"] == {"reached": 400, "total": 400, "committed": 400, "recomputed": 40}
    assert rounded(data["time"]) == {
        "total": 121, "new": 80, "recomputed": 8, "waiting": 21, "starting": 9, "handover": 2, "idle": 1,
        "goodput": 0.661157,
    }  # fmt: skip
    cost = data["cost"]
    sums = "paid", "nodeHours", "onDemandSameNodes", "onDemandUninterrupted"
    assert rounded({name: cost[name] for name in sums}) == {
        "paid": 0.04985, "nodeHours": 0.055833, "onDemandSameNodes": 0.078725, "onDemandUninterrupted": 0.065748,
    }  # fmt: skip
    assert (cost["extra"], cost["unpricedTiers"]) == ({"heads": 0, "storage": 0, "egress": 0}, [])
    assert data["failures"] == {"total": 2, "byCause": {"Interruption": 1, "NodeLost": 1}}
    assert [(tier["name"], tier["failures"], tier["attempts"], tier["spent"]) for tier in data["tiers"]] == [
        ("spot-a", 2, 2, "MaxFailuresExceeded"),
        ("spot-b", 0, 1, "InsufficientCapacity"),
        ("on-demand", 0, 1, None),
    ]
    assert [(each["at"], each["attempt"], each["what"]) for each in data["evictions"]] == [
        (31, 1, "spot-a-1-1 (Interruption)"),
        (58, 2, "spot-a-2-1 (NodeLost)"),
    ]
    assert [(each["at"], each["what"]) for each in data["notices"]] == [(31, "spot-a-1-1")]
    assert data["noCapacity"] == {"spot-b": [{"start": 58, "end": 122}]}


def test_the_data_have_each_attempt_and_the_curves(digits: RunFacts) -> None:
    data = check_json(as_json(digits))
    fields = "tier", "start", "end", "startStep", "committedStep", "recomputedSteps", "overhead", "newSeconds"
    assert [tuple(attempt[field] for field in fields) for attempt in data["attempts"]] == [
        ("spot-a", 0, 33, 0, 125, 0, 6, 25),
        ("spot-a", 33, 58, 125, 175, 0, 8, 18),
        ("spot-b", 58, 70, 175, 175, 0, None, 0),
        ("on-demand", 70, 121, 175, 400, 40, 27, 37),
    ]
    last = data["attempts"][-1]
    assert (last["whole"], last["work"]) == ([{"start": 73, "end": 121}], [{"start": 76, "end": 121}])
    assert [commit["step"] for commit in data["commits"]] == [50, 100, 125, 175, 225, 275, 325, 375, 400]
    assert data["bill"][-1] == {"at": 121, "paid": data["cost"]["paid"], "onDemand": data["cost"]["onDemandSameNodes"]}
    assert [(curve["attempt"], len(curve["points"])) for curve in data["loss"]] == [(1, 25), (2, 18), (4, 45)]
    assert [event["at"] for event in data["events"] if event["tone"] == "caution"] == [31, 31, 58, 58, 70]


@pytest.mark.parametrize(
    "world", [CloudEvents(), CloudEvents(suspended=frozenset(range(40, 50)))], ids=["plain", "suspended"]
)
def test_the_attempts_of_the_report_agree_with_the_history_in_the_state(world: CloudEvents) -> None:
    run = PlayedRun(world=world).play()
    reported = [
        (each.number, each.tier, each.start, each.end, each.reason, each.failures, each.start_step)
        for each in facts_of(run).attempts
    ]
    kept = [
        (own.number, own.tier, own.started_at - START, own.ended_at - START, own.reason, own.failures, own.start_step)
        for own in run.state.history
    ]
    assert reported == kept
    assert len(reported) >= 4


@pytest.mark.parametrize("paused", [10, 900])
def test_the_time_in_which_a_job_is_suspended_is_no_wait_and_no_part_of_a_restart(paused: int) -> None:
    world = CloudEvents(notices={}, kills=frozenset(), suspended=frozenset(range(40, 40 + paused)))
    facts = facts_of(PlayedRun(world=world).play())
    assert (facts.time.waiting, facts.time.idle) == (6, 0)
    assert [each.overhead for each in facts.attempts] == [6, 6]


def test_the_costs_of_attempts_add_up_to_those_of_tiers_and_the_total(digits: RunFacts) -> None:
    assert math.isclose(sum(each.cost for each in digits.attempts), digits.spent)
    assert math.isclose(sum(each.on_demand_cost for each in digits.attempts), digits.on_demand)
    for tier, record in digits.tiers:
        on_tier = [each.cost for each in digits.attempts if each.tier == tier.name]
        assert math.isclose(sum(on_tier), record.cost, abs_tol=1e-12)


def test_the_cost_of_a_standby_attempt_that_was_given_up_is_part_of_the_attempt_beside_it() -> None:
    run = PlayedRun().play()
    bills = [at for at, record in enumerate(run.records) if isinstance(record, Billed)]
    at = bills[len(bills) // 2]
    bill = cast("Billed", run.records[at])
    run.records[at] = replace(bill, left=(LeftBill(99, run.tier, 0.01, 0.02),))
    facts = facts_of(run)
    assert math.isclose(sum(each.cost for each in facts.attempts), facts.spent)
    assert 99 not in [each.number for each in facts.attempts]


@pytest.mark.parametrize(
    "world", [CloudEvents(), CloudEvents(notices={}, kills=frozenset())], ids=["interrupted", "uninterrupted"]
)
def test_the_report_has_the_savings_that_the_live_view_and_status_show(world: CloudEvents) -> None:
    run = PlayedRun(world=world).play()
    printed = savings(run.spec, run.state)
    assert printed is not None
    assert as_data(facts_of(run))["cost"]["savedAgainstUninterrupted"] == pytest.approx(printed)


def interrupted_and_resumed(run: PlayedRun, at: int, away: float) -> Recorded:
    """The run with Ctrl-C at the second `at`, resumed `away` seconds later."""
    cut = START + at
    early = [record for record in run.records if record.at <= cut]
    late = [record for record in run.records if record.at > cut]
    shifted = [replace(record, at=record.at + away) for record in late]
    again = replace(cast("Any", run.records[0]), at=cut + away, resumed=True)
    return Recorded((*early, Ended(cut, 75, Reason.INTERRUPTED), again, *shifted))


def test_the_time_between_a_stop_and_the_resume_is_not_counted(run: PlayedRun) -> None:
    facts = gather(interrupted_and_resumed(run, 45, 86_400.0))
    straight = facts_of(run)
    assert facts.sessions == 2
    assert facts.breaks == ((45.0, 86_400.0),)
    assert facts.time == straight.time
    assert facts.attempts == straight.attempts
    assert facts.exit_code == 0
    assert "1d 00h" not in page(facts)
    assert "24h 00m" in page(facts)


def test_an_unfinished_run_is_reported_up_to_its_last_record() -> None:
    run = PlayedRun().play(until=50)
    facts = facts_of(run)
    assert facts.exit_code is None
    assert facts.attempts[-1].end == facts.length == 49.0
    assert facts.attempts[-1].all_ready[-1].end == 49.0
    assert facts.time.total == pytest.approx(49.0)
    check_page(page(facts))
    assert "Broken off" in page(facts)


def test_progress_of_a_program_without_heartbeats_is_taken_from_its_commits(run: PlayedRun) -> None:
    silent = Recorded(tuple(record for record in run.records if not isinstance(record, Beat)))
    facts = gather(silent)
    assert facts.steps == TOTAL
    assert facts.recomputed is None, "steps without a commit are unknown"
    assert "– recomputed" in page(facts)
    assert json.loads(as_json(facts))["steps"]["recomputed"] is None
    assert 0 < facts.time.new < facts.time.total
    assert list(facts.losses) == [1, 2, 4]


@pytest.mark.parametrize(
    ("counts", "failures"),
    [([1, 2], 2), ([2, 2], 2), ([1, 1, 2], 2), ([1, 2, 1], 3)],
    ids=["one by one", "two at once", "two that are one interruption", "reset in between"],
)
def test_failures_are_the_increments_of_the_tiers_count(counts: list[int], failures: int) -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    start = Moved(1.0, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "a"))
    lost = [Lost(2.0, Loss(f"w{index}", Cause.UNKNOWN, 1, "a"), number) for index, number in enumerate(counts)]
    assert gather(Recorded((began, start, *lost))).failures == failures


def test_a_heartbeat_that_repeats_the_loss_of_the_last_commit_is_not_plotted() -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    records = (
        began,
        Beat(1.0, 1, 10),
        Committed(2.0, 1, "a", 20, metrics={"loss": 0.5}),
        Beat(3.0, 1, 30, metrics={"loss": 0.5}),
        Beat(4.0, 1, 40, metrics={"loss": 0.4}),
        Beat(5.0, 1, 50, metrics={"loss": math.nan}),
    )
    assert gather(Recorded(records)).losses == {1: ((20, 0.5), (40, 0.4))}


def test_the_loss_is_one_line_from_the_commit_that_each_attempt_continues() -> None:
    began = Began(0.0, "j", "n", JobSpec((Tier("a"),)))
    losses = ((1, 20, 0.9), (1, 40, 0.5), (2, 30, 0.8), (3, 50, 0.4))
    records = tuple(Committed(1.0, each, "a", step, metrics={"loss": loss}) for each, step, loss in losses)
    drawn = str(charts.loss(gather(Recorded((began, Beat(0.5, 1, 1), *records))), 400))
    lines = [line.split() for line in re.findall(r'<polyline points="([^"]*)"', drawn)]
    assert [len(line) for line in lines] == [2, 2, 2]
    assert lines[1][0] == lines[0][0]
    assert lines[2][0] == lines[1][1]


def test_records_whose_beginning_is_lost_are_reported_from_the_next_spec(run: PlayedRun) -> None:
    specified = Specified(START + 10, "digits", "team-a", run.spec)
    late = [record for record in run.records if record.at >= START + 10]
    facts = gather(Recorded((specified, *late)))
    assert (facts.job, facts.sessions, facts.breaks) == ("digits", 1, ())
    assert facts.spent == run.state.spent_usd


def test_a_timeline_without_its_first_record_is_rejected() -> None:
    with pytest.raises(EnvironmentFailure, match="so there is no report"):
        gather(Recorded((Noted(1.0, "x"),)))


worlds = st.builds(
    CloudEvents,
    notices=st.dictionaries(st.integers(0, 120), st.floats(1, 8), max_size=3),
    kills=st.frozensets(st.integers(0, 120), max_size=3),
    dry=st.frozensets(st.sampled_from(["spot-a", "spot-b"])),
    provision=st.integers(0, 8),
    start=st.integers(0, 8),
    suspended=st.frozensets(st.integers(0, 120), max_size=4),
)


@settings(max_examples=examples(24), deadline=None)
@given(world=worlds, until=st.integers(1, 400))
def test_the_numbers_of_any_run_are_consistent(world: CloudEvents, until: int) -> None:
    facts = facts_of(PlayedRun(world=world).play(until))
    time = facts.time
    assert all(part >= 0 for part in (time.new, time.recomputed, time.waiting, time.starting, time.handover, time.idle))
    assert time.total <= facts.length + 1e-6
    assert sum(each.recomputed or 0 for each in facts.attempts) == (facts.recomputed or 0)
    assert sum(each.failures for each in facts.attempts) == facts.state.failures
    assert facts.committed <= facts.steps
    assert all(each.start <= each.end for each in facts.attempts)
    assert math.isclose(sum(each.cost for each in facts.attempts), facts.spent, abs_tol=1e-9)
    check_json(as_json(facts))
    check_page(page(facts))


def test_a_long_run_with_a_step_time_is_reported_in_time_that_grows_with_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed, steps_until = [], Stretch.steps_until

    def counted(stretch: Stretch, at: float) -> float:
        computed.append(at)
        return steps_until(stretch, at)

    monkeypatch.setattr(Stretch, "steps_until", counted)
    spec = JobSpec(tiers=(Tier("spot-a"),), step_time=60.0)
    start = Moved(START, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "spot-a"))
    beats = [Beat(START + step, 1, step, 300) for step in range(301)]
    facts = gather(Recorded((Began(START, "digits", "team-a", spec), start, *beats)))
    assert facts.length == 300 * 61
    assert len(computed) < 10 * len(beats)
