"""The simulated world: costs, lost work and waiting times, compared with values computed by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.model import Overlap, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.policies import registry
from spotladder.sim.world.market import Market
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from spotladder.sim.world.zone import ZonePlan
from tests.searching import examples
from tests.sim.builders import HOUR, market, runner, trace, zone


def outcome(job: SimulationRun, limit: float = 100 * HOUR) -> SimulationOutcome:
    return run(job.backend.market, [job], limit)[0]


def test_an_uninterrupted_run_is_billed_from_its_first_node_to_its_last_commit() -> None:
    found = outcome(runner(market(zone("spot", provision_delay=30.0, boot=20.0)), workers=2))
    assert (found.succeeded, found.evictions, found.attempts, found.recomputed) == (True, 0, 1, 0)
    assert found.finished == 30 + 20 + 60 + HOUR + 10
    assert found.cost == pytest.approx(2 * (20 + 60 + HOUR + 10) / HOUR)
    assert found.overhead == 60


def test_without_a_notice_work_since_the_last_commit_is_lost() -> None:
    """The commit after 600 s of training is complete at 670 s; the node is lost at 1000 s and replaced at 1100 s."""
    found = outcome(runner(market(zone("spot", (0, 1), (1000, 0), (1100, 1)))))
    assert (found.succeeded, found.evictions, found.attempts) == (True, 1, 1)
    assert found.recomputed == 1000 - 60 - 600
    assert found.finished == 1100 + 60 + (HOUR - 600) + 10
    assert found.cost == pytest.approx((found.finished - 100) / HOUR)


def test_the_path_has_the_committed_work_and_the_losses_have_their_causes() -> None:
    """Two nodes get a notice of two minutes at 1000 s, in which the program commits."""
    spot = zone("spot", (0, 2), (1000, 0), (3000, 2), notice=120.0)
    found = outcome(runner(market(spot, zone("on-demand", price=3.0)), workers=2))
    losses = [(one.at, one.loss.cause, one.loss.tier, one.loss.noticed) for one in found.losses]
    assert losses == [(1000.0, Cause.INTERRUPTION, "spot", True)] * 2
    starts = [(one.at, one.committed) for one in found.path if one.move.target is Stage.STARTING]
    assert starts[:2] == [(0.0, 0.0), (1010.0, 940.0)]
    assert found.path[-1].committed == HOUR


@pytest.mark.parametrize("commit_time", [0.0, 10.0, 900.0])
def test_the_result_does_not_depend_on_reconciling_at_every_commit(commit_time: float) -> None:
    steps = ((0, 2), (1000, 1), (1100, 2), (2500, 1), (2700, 2))

    def run_once(commits_wake: bool) -> SimulationOutcome:
        plans = market(zone("spot", *steps), zone("on-demand", price=3.0))
        job = runner(plans, workers=2, commits_wake=commits_wake, commit_time=commit_time, spec={"stall_timeout": 1e9})
        return outcome(job)

    every, few = run_once(True), run_once(False)
    assert few.decisions < every.decisions
    assert replace(few, decisions=0) == replace(every, decisions=0)


def test_the_controller_decides_at_a_commit_and_not_at_its_snapshot() -> None:
    at_once, later = (outcome(runner(market(zone("spot")), commit_time=seconds)) for seconds in (0.0, 10.0))
    assert later.decisions == at_once.decisions


def test_a_notice_longer_than_a_commit_saves_the_work() -> None:
    found = outcome(runner(market(zone("spot", (0, 1), (1000, 0), (1200, 1), notice=30.0))))
    assert (found.succeeded, found.recomputed, found.attempts, found.evictions) == (True, 0, 2, 1)
    assert found.finished == 1200 + 60 + (HOUR - 940) + 10


def test_a_notice_shorter_than_a_commit_loses_the_work() -> None:
    found = outcome(runner(market(zone("spot", (0, 1), (1000, 0), (1200, 1), notice=5.0))))
    assert (found.succeeded, found.recomputed) == (True, 340)


def test_a_closed_zone_gives_no_node_until_it_opens() -> None:
    found = outcome(runner(market(zone("spot", closed=((0, 600),)))))
    assert (found.succeeded, found.attempts) == (True, 1)
    assert found.finished == 600 + 60 + HOUR + 10


def test_the_cost_follows_prices_that_change_over_time() -> None:
    rising = ZonePlan("spot", trace((0, 1), (1800, 1), prices=(1.0, 2.0)))
    found = outcome(runner(market(rising)))
    assert found.cost == pytest.approx((2 * found.finished - 1800) / HOUR)


def test_two_jobs_share_the_capacity_of_a_zone() -> None:
    here = market(zone("spot", (0, 1)), zone("on-demand", price=3.0))
    first, second = runner(here), runner(here)
    found = run(here, [first, second], 100 * HOUR)
    assert [result.node_hours["spot"] > 0 for result in found] == [True, False]
    assert all(result.succeeded for result in found)
    assert found[1].finished == 900 + 60 + HOUR + 10


def test_missing_capacity_refuses_an_attempt_and_is_not_known_earlier() -> None:
    job = runner(market(zone("spot", (0, 1)), zone("on-demand", price=3.0)), workers=2)
    job.decide()
    seen = job.backend.observe()
    assert [attempt.refused for attempt in seen.attempts] == [True]
    assert not seen.unavailable


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "on-demand"])
def test_policies_meet_the_deadline_when_all_spot_capacity_is_lost(name: str) -> None:
    """10 h of work, a deadline of 12 h: spot capacity for 3 h, then for two short spells, then never again."""
    steps = [(0, 1), (3 * HOUR, 0), (4 * HOUR, 1), (4.5 * HOUR, 0), (6 * HOUR, 1), (6.2 * HOUR, 0)]
    plans = zone("spot", *steps, provision_delay=60.0), zone("on-demand", price=3.0, provision_delay=60.0)
    limits = {"max_duration": 12.0 * HOUR, "work": 10.0 * HOUR, "overhead": 130.0}
    job = runner(market(*plans), work=10 * HOUR, policy=registry.by_name(name), spec=limits)
    found = outcome(job)
    assert found.succeeded
    assert found.finished <= 12 * HOUR
    assert (found.node_hours["spot"] > 3 * 59 / 60 - 0.1) == (name != "on-demand")


def test_adaptive_returns_to_spot_capacity_that_is_unknown() -> None:
    """Spot capacity exists after 6 h, and no probe reports it. The job waits, moves to on-demand once, and tries spot
    again at most every half hour. A policy that needs known capacity stays on on-demand."""

    def outcome_of(name: str) -> SimulationOutcome:
        plans = zone("spot", (0, 0), (6 * HOUR, 1), provision_delay=60.0), zone("on-demand", price=3.0)
        limits = {"max_duration": 24.0 * HOUR, "work": 20.0 * HOUR, "overhead": 130.0}
        return outcome(runner(market(*plans), work=20 * HOUR, policy=registry.by_name(name), spec=limits))

    adaptive, other = outcome_of("adaptive"), outcome_of("uniform-progress")
    assert adaptive.succeeded
    assert adaptive.node_hours["spot"] > 12
    assert other.node_hours["spot"] == 0
    assert adaptive.cost < 0.6 * other.cost
    left = [step.at for step in adaptive.path if step.move.target is Stage.DRAINING]
    assert 1 < len(left) < 8
    assert all(after - before >= 1800 for before, after in pairwise(left))
    first = next(step.at for step in adaptive.path if step.move.tier == "on-demand")
    early = [step for step in adaptive.path if step.move.target is Stage.STARTING and step.at < first]
    assert len(early) <= first / 900 + 1, "a spot attempt for each provisionTimeout, not for each minute"


@pytest.mark.parametrize("overlap", [None, Overlap()], ids=["moves", "standby attempts"])
def test_adaptive_returns_to_cheaper_spot_capacity_that_is_unknown(overlap: Overlap | None) -> None:
    """The cheap spot tier has no capacity from 1 h to 6 h, and no probe reports it. The job trains on the dear one,
    and tries the cheap one every half hour at most."""

    def outcome_of(name: str) -> SimulationOutcome:
        cheap = zone("spot-cheap", (0, 1), (HOUR, 0), (6 * HOUR, 1), price=0.8, provision_delay=60.0)
        dear = zone("spot-dear", price=2.0, provision_delay=60.0)
        limits = {"max_duration": 60.0 * HOUR, "work": 30.0 * HOUR, "overhead": 130.0, "overlap": overlap}
        program: dict[str, Any] = {"work": 30 * HOUR, "stands_by": overlap is not None, "resume": 20.0}
        here = market(cheap, dear, zone("on-demand", price=3.0))
        return outcome(runner(here, policy=registry.by_name(name), spec=limits, **program))

    adaptive, other = outcome_of("adaptive"), outcome_of("uniform-progress")
    assert adaptive.succeeded
    assert adaptive.node_hours["on-demand"] == 0
    assert adaptive.node_hours["spot-cheap"] > 24
    assert other.node_hours["spot-cheap"] < 1
    assert adaptive.cost < 0.6 * other.cost
    assert adaptive.attempts <= 22
    left = [step.at for step in adaptive.path if (step.move.target, step.move.tier) == (Stage.DRAINING, "spot-dear")]
    assert all(after - before >= 1800 for before, after in pairwise(left))
    if overlap is not None:
        assert len(left) == 1, "a try that fails stops no training"
        assert adaptive.overlap < 0.05


def test_adaptive_finishes_within_a_budget_that_on_demand_would_exceed() -> None:
    """Without one, it does some of the work on demand while spot has no capacity, and costs more."""

    def outcome_with(budget: float | None) -> SimulationOutcome:
        plans = zone("spot", (0, 0), (3 * HOUR, 1), provision_delay=60.0), zone("on-demand", price=3.0)
        limits = {"max_duration": 14.0 * HOUR, "work": 10.0 * HOUR, "overhead": 130.0, "budget": budget}
        return outcome(runner(market(*plans), work=10 * HOUR, policy=registry.by_name("adaptive"), spec=limits))

    free, bounded = outcome_with(None), outcome_with(11.0)
    assert free.cost > 11.0
    assert (bounded.succeeded, bounded.node_hours["on-demand"]) == (True, 0.0)
    assert bounded.cost < 11.0
    assert bounded.finished < 14 * HOUR


@settings(max_examples=examples(30), phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32), name=st.sampled_from(["greedy", "uniform-progress", "adaptive"]))
def test_no_deadline_is_missed_that_on_demand_can_meet(seed: int, name: str) -> None:
    """Through `decide`, with changing capacity, provisioning delays, notices, and uncommitted work that is
    lost. The deadline leaves time for one start on on-demand, the grace period and one decision interval."""
    dice = Random(seed)
    delay, work = dice.choice([0.0, 90.0, 600.0]), dice.choice([0.5, 2.0, 5.0]) * HOUR
    plans = [
        zone(
            f"spot-{index}",
            *changes(dice),
            price=dice.choice([0.5, 1.0]),
            notice=dice.choice([0.0, 5.0, 120.0]),
            provision_delay=delay,
        )
        for index in range(dice.choice([1, 2]))
    ]
    here = market(*plans, zone("on-demand", price=3.0, provision_delay=delay), seed=seed)
    start, grace, interval = delay + 60.0 + 10.0, 90.0, 60.0
    deadline = work + start + grace + interval + dice.choice([1.0, 600.0, 7200.0])
    limits = {
        "max_duration": deadline,
        "work": work,
        "overhead": start,
        "grace": grace,
        "decision_interval": interval,
    }
    job = runner(here, workers=dice.randint(1, 3), work=int(work), policy=registry.by_name(name), spec=limits)
    found = outcome(job)
    assert found.succeeded, found.path
    assert found.finished <= deadline


@settings(max_examples=examples(40), phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_invariants_hold_in_any_world(seed: int) -> None:
    """The cost is that of the held nodes, only evictions lose work, one program trains at a time, and a job that does
    not fail ends with all of its work committed."""
    dice = Random(seed)
    plans = [
        zone(f"spot-{index}", *changes(dice), price=dice.choice([0.5, 1.0]), notice=dice.choice([0.0, 5.0, 120.0]))
        for index in range(dice.choice([1, 2]))
    ]
    here = market(*plans, zone("on-demand", price=3.0, provision_delay=dice.choice([0.0, 90.0])), seed=seed)
    jobs = [
        runner(here, workers=dice.randint(1, 3), max_failures=dice.choice([-1, 2])) for _ in range(dice.choice([1, 2]))
    ]

    def check(_market: Market) -> None:
        for job in jobs:
            programs = [one for one in job.backend._attempts.values() if one.program and one.exit is None]
            assert len(programs) <= 1
        for name, found in here.zones.items():
            staying = [node for node in here._held if node.zone is found and node.gone_at is None]
            assert len(staying) <= found.nodes(here.now), name

    for job, result in zip(jobs, run(here, jobs, 400 * HOUR, check), strict=True):
        prices = {name: found.price(0.0) for name, found in here.zones.items()}
        held = sum(hours * prices[name] for name, hours in result.node_hours.items())
        assert result.cost == pytest.approx(held)
        assert result.succeeded == (job.backend.log.committed == HOUR)
        assert result.succeeded or result.reason is Reason.TIERS_EXHAUSTED
        assert result.recomputed == 0 or result.evictions
    assert not here._held


def changes(dice: Random) -> list[tuple[float, int]]:
    """Capacity that changes at random times and is constant at the end."""
    times = sorted(dice.sample(range(1, 20_000), 12))
    return [(0.0, dice.randint(0, 4)), *((float(time), dice.randint(0, 4)) for time in times), (20_000.0, 6)]


HEDGES = {
    "the next tier is ready first": (zone("spot", (0, 0)), 30.0, 60 + 30, 3.0),
    "the first tier is ready first": (zone("spot", (0, 0), (300, 1)), 1000.0, 300, 1.0),
    "the first tier is exhausted before the next one is ready": (zone("spot", (0, 0)), 1000.0, 60 + 1000, 3.0),
}


@pytest.mark.parametrize(("spot", "delay", "ready_at", "price"), HEDGES.values(), ids=HEDGES)
def test_the_next_tier_is_started_beside_one_without_capacity(
    spot: ZonePlan, delay: float, ready_at: float, price: float
) -> None:
    """With `hedgeAfter` of 60 s. Only the attempt that trains holds nodes, so nothing is paid twice."""
    here = market(spot, zone("on-demand", price=3.0, provision_delay=delay))
    found = outcome(runner(here, spec={"overlap": Overlap(budget=100.0, hedge_after=60.0)}))
    assert (found.succeeded, found.evictions, found.finished) == (True, 0, ready_at + 60 + HOUR + 10)
    assert found.cost == pytest.approx(price * (60 + HOUR + 10) / HOUR)
