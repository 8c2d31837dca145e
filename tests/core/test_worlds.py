"""Invariants in random worlds. A failing example prints the seed of its world; add it as `@example` to keep it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from spotladder.core.history.crashes import CRASH_LIMIT, LONGEST_BACKOFF
from spotladder.core.history.losses import UNCOUNTED
from spotladder.core.model import (
    CapacityType,
    Exhausted,
    FailureUnit,
    Stage,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import AVOIDANCE_TIMEOUT
from spotladder.policies import registry
from tests.core.builders import START, spec, tier
from tests.core.world_decider import Decider
from tests.core.world_invariants import (
    Returning,
    elastic_world,
    elastic_world_with_overlap,
    finishes_after_edits_and_suspensions,
    many,
    no_loss_is_counted_twice,
    specs,
    success_has_evidence,
    world_with_hedges,
    world_with_overlap,
    worlds_contain,
)
from tests.core.worlds import TOTAL, RandomWorld, edit, suspend
from tests.searching import examples


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_the_decider_keeps_its_invariants_in_any_world(seed: int, crashes: float) -> None:
    """At most one program without a fence, one tier for each attempt number, growing numbers, no busy loop and no
    transition from a terminal stage (asserted by the world and the decider), and every failure is counted once."""
    dice = Random(seed)
    world = RandomWorld(
        specs(dice),
        dice,
        silences=dice.choice([0.0, 30.0, 300.0]),
        misleading=dice.choice([0.0, 0.5]),
        maintenance=dice.choice([0.0, 0.05]),
    )
    decider = Decider(world, crashes)
    for _ in range(4):
        decider.run(15)
        suspend(world, dice.random() < 0.2)
        edit(world)
    no_loss_is_counted_twice(decider)
    if world.spec.failure_unit is FailureUnit.POD:
        counted = [loss for loss in decider.losses if loss.cause not in UNCOUNTED]
        assert decider.state.failures == len(counted)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from([0.3, 1.0]))
def test_a_job_never_succeeds_at_an_interruption_that_exit_code_0_hides(
    seed: int, crashes: float, masked: float
) -> None:
    dice = Random(seed)
    world = RandomWorld(
        specs(dice, attribution_window=dice.choice([0.0, 10.0])),
        dice,
        notices_only=dice.random() < 0.5,
        maintenance=dice.choice([0.0, 0.05]),
        masked=masked,
    )
    decider = Decider(world, crashes)
    for _ in range(4):
        decider.run(30)
        suspend(world, dice.random() < 0.2)
        edit(world)
    success_has_evidence(decider)
    no_loss_is_counted_twice(decider)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.sampled_from(["greedy", "uniform-progress", "adaptive", "on-demand"]),
)
def test_policies_that_wait_keep_the_invariants_in_any_world(seed: int, crashes: float, name: str) -> None:
    """The invariants hold, and such a policy never exhausts a tier for lack of capacity."""
    dice = Random(seed)
    limits = {"deadline": START + dice.choice([300.0, 900.0, 3600.0]), "work": dice.choice([None, 120.0, 400.0])}
    job = specs(dice, overhead=dice.choice([0.0, 30.0]), decision_interval=dice.choice([1.0, 60.0]), **limits)
    tiers = (*job.tiers[:-1], replace(job.tiers[-1], capacity_type=CapacityType.ON_DEMAND))
    world = RandomWorld(replace(job, tiers=tiers), dice, silences=dice.choice([0.0, 30.0]))
    decider = Decider(world, crashes, registry.by_name(name))
    for _ in range(4):
        decider.run(15)
        suspend(world, dice.random() < 0.2)
        edit(world)
    note(f"{decider.state}")
    assert all(record.exhausted_by is not Reason.INSUFFICIENT_CAPACITY for record in decider.state.tiers)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from([0.0, 0.1]), st.sampled_from([0.0, 0.1])
)
def test_a_job_finishes_when_nodes_are_only_reclaimed_with_notice_suspected_or_drained(
    seed: int, crashes: float, suspicions: float, maintenance: float
) -> None:
    """Replacements within the attempt, with a decider that crashes between any two effects: every notice, and every
    node that is replaced or lost, is one failure, unless an administrator drains it, and the job finishes."""
    world = world_of_notices(seed, suspicions, maintenance)
    decider = Decider(world, crashes)
    decider.run(120)
    no_loss_is_counted_twice(decider)
    assert decider.state.failures == sum(loss.cause not in UNCOUNTED for loss in decider.losses)
    world.calm_down("spot-a")
    decider.crashes = 0.0
    decider.wake_at = decider.wake_at if decider.wake_at is not None else world.now
    decider.run_on_timers_only(300)
    assert (decider.state.stage, world.committed) == (Stage.SUCCEEDED, TOTAL)


def world_of_a_pool(seed: int) -> RandomWorld:
    """One tier with one or two nodes on which starts often crash."""
    dice = Random(seed)
    job = specs(dice, exhausted=Exhausted.RESTART, backoff_limit=None)
    job = replace(job, tiers=(replace(job.tiers[0], provision_timeout=3600.0),))
    return RandomWorld(job, dice, pool=dice.randint(1, 2), crashing={"tier-0"})


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_avoided_nodes_keep_no_job_from_its_pool(seed: int, crashes: float) -> None:
    """Once the pool works, the job trains after a backoff, the end of an attempt and the timeout of an avoidance, long
    before provisionTimeout."""
    world = world_of_a_pool(seed)
    decider = Decider(world, crashes)
    decider.run(60)
    world.calm_down("tier-0")
    decider.crashes, calm_since = 0.0, world.now
    decider.wake_at = world.now  # clusters can be reached again
    while decider.state.stage not in {Stage.RUNNING, Stage.SUCCEEDED}:
        decider.run(1)  # Pods that become ready are events.
        note(f"{decider.state}")
        assert world.now - calm_since < LONGEST_BACKOFF + AVOIDANCE_TIMEOUT + 240.0
    decider.run_on_timers_only(300)
    assert (decider.state.stage, world.committed) == (Stage.SUCCEEDED, TOTAL)


def test_many_worlds_of_a_pool_contain_an_attempt_that_no_other_node_can_take() -> None:
    def contains(seed: int) -> dict[str, bool]:
        decider = Decider(world_of_a_pool(seed), 0.0)
        decider.run(120)
        return {"one": any(record.reason is Reason.INSUFFICIENT_CAPACITY for record in decider.state.history)}

    worlds_contain(contains, seeds=60, one=10)


def test_many_worlds_with_notices_contain_a_handover_and_maintenance_one_without_a_failure() -> None:
    def contains(seed: int) -> dict[str, bool]:
        noticed, maintained = world_of_notices(seed), world_of_notices(seed, maintenance=0.1)
        maintained.notices = 0.0
        deciders = [Decider(world, 0.0) for world in (noticed, maintained)]
        for decider in deciders:
            decider.run(120)
        without_failure = maintained.handovers > 0 and deciders[1].state.failures == 0
        return {"handover": noticed.handovers > 0, "without_failure": without_failure}

    worlds_contain(contains, seeds=40, handover=10, without_failure=10)


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_elastic_jobs_keep_the_invariants_in_any_world(seed: int, crashes: float) -> None:
    """A program that restarts with fewer workers and grows again: each loss is one failure, and after any disturbance
    the job finishes by its own requeues."""
    world = elastic_world(seed, exhausted=Exhausted.RESTART, backoff_limit=None)
    decider = Decider(world, crashes)
    for _ in range(4):
        decider.run(15)
        suspend(world, world.random.random() < 0.2)
    no_loss_is_counted_twice(decider)
    suspend(world, False)
    world.calm_down(world.random.choice(world.spec.tiers).name)
    decider.crashes = 0.0
    decider.wake_at = decider.wake_at if decider.wake_at is not None else world.now
    decider.run_on_timers_only(600)
    note(f"{decider.state}")
    assert (decider.state.stage, world.committed) == (Stage.SUCCEEDED, TOTAL)


def test_many_elastic_worlds_contain_a_start_and_a_restart_with_fewer_workers() -> None:
    def contains(seed: int) -> dict[str, bool]:
        world = elastic_world(seed)
        decider = Decider(world, 0.0)
        for world.calm, passes in ((True, 10), (False, 50)):  # Scarce workers need time before a loss.
            decider.run(passes)
        return {"restart": world.shrinks > 0, "start": world.begun_smaller > 0}

    worlds_contain(contains, seeds=40, restart=10, start=2)


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_standby_attempts_keep_the_invariants_in_any_world(seed: int, crashes: float) -> None:
    """Only the program of the live attempt starts, no failure is counted twice, the bounds of the overlap hold, and
    after any disturbance the job finishes by its own requeues."""
    world = world_with_overlap(seed, exhausted=Exhausted.RESTART, backoff_limit=None)
    finishes_after_edits_and_suspensions(Decider(world, crashes, Returning()))


def test_many_worlds_with_overlap_contain_a_takeover() -> None:
    def contains(seed: int) -> dict[str, bool]:
        world = world_with_overlap(seed)
        decider = Decider(world, 0.0, Returning())
        for _ in range(15):
            decider.run(4)
            edit(world)
        return {"takeover": world.takeovers > 0}

    worlds_contain(contains, seeds=120, takeover=10)


def test_many_worlds_with_overlap_contain_a_takeover_after_a_notice() -> None:
    def contains(seed: int) -> dict[str, bool]:
        world = world_with_overlap(seed, exhausted=Exhausted.RESTART, backoff_limit=None)
        Decider(world, 0.0).run(60)
        return {"takeover": world.takeovers > 0}

    worlds_contain(contains, seeds=120, takeover=10)


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_standby_attempts_of_elastic_jobs_keep_the_invariants_in_any_world(seed: int, crashes: float) -> None:
    world = elastic_world_with_overlap(seed)
    finishes_after_edits_and_suspensions(Decider(world, crashes, Returning()))


def test_many_elastic_worlds_contain_a_takeover_and_a_standby_that_begins_with_fewer_workers() -> None:
    def contains(seed: int) -> dict[str, bool]:
        world = elastic_world_with_overlap(seed)
        decider = Decider(world, 0.0, Returning())
        world.calm = seed % 2 == 0  # Scarce workers need time before a loss.
        for _ in range(5):
            decider.run(8)
            edit(world)
        return {"takeover": world.takeovers > 0, "smaller": world.held_smaller > 0}

    worlds_contain(contains, seeds=240, takeover=10, smaller=2)


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_hedges_keep_the_invariants_in_any_world(seed: int, crashes: float) -> None:
    """One writer, no failure counted twice, the budget holds (asserted by the decider), and after any disturbance the
    job finishes by its own requeues."""
    world = world_with_hedges(seed, exhausted=Exhausted.RESTART, backoff_limit=None)
    finishes_after_edits_and_suspensions(Decider(world, crashes))


def test_many_worlds_contain_a_hedge_that_is_ready_first() -> None:
    def contains(seed: int) -> dict[str, bool]:
        decider = Decider(world_with_hedges(seed, exhausted=Exhausted.RESTART, backoff_limit=None), 0.0)
        decider.run(60)
        return {"hedge": decider.hedged > 0}

    worlds_contain(contains, seeds=120, hedge=10)


def world_of_notices(seed: int, suspicions: float = 0.0, maintenance: float = 0.0) -> RandomWorld:
    dice = Random(seed)
    grace = dice.choice([5.0, 30.0])
    # The decider's clock jumps in these worlds, and provisionTimeout with it.
    job = spec(tier("spot-a", -1), workers=dice.randint(1, 3), grace=grace, exhausted=Exhausted.RESTART)
    return RandomWorld(job, dice, notices_only=True, suspicions=suspicions, maintenance=maintenance)


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_a_job_finishes_if_one_tier_works_permanently(seed: int, crashes: float) -> None:
    """After any disturbance: if one tier works permanently, the job finishes, driven by its own requeues alone."""
    dice = Random(seed)
    lasting = dice.choice([Exhausted.RESTART, Exhausted.WAIT])
    world = RandomWorld(
        specs(dice, exhausted=lasting, backoff_limit=None),
        dice,
        silences=dice.choice([0.0, 30.0, 300.0]),
        maintenance=dice.choice([0.0, 0.05]),
    )
    decider = Decider(world, crashes)
    decider.run(25)
    suspend(world, False)
    edit(world)
    world.calm_down(dice.choice(world.spec.tiers).name)
    decider.crashes = 0.0
    decider.wake_at = decider.wake_at if decider.wake_at is not None else world.now  # the edit itself wakes it
    decider.run_on_timers_only(600)
    note(f"{decider.state}")
    assert (decider.state.stage, world.committed) == (Stage.SUCCEEDED, TOTAL)


@many
@given(st.integers(0, 2**32))
def test_a_job_fails_only_when_its_limits_or_all_tiers_are_exhausted(seed: int) -> None:
    dice = Random(seed)
    world = RandomWorld(specs(dice, exhausted=Exhausted.FAIL), dice)
    decider = Decider(world, 0.0)
    decider.run(60)
    state = decider.state
    if state.stage is not Stage.FAILED:
        return
    assert state.reason in (Reason.TIERS_EXHAUSTED, Reason.BACKOFF_LIMIT_EXCEEDED, Reason.CRASH_LOOP)
    assert state.reason is not Reason.CRASH_LOOP or state.failed_starts.crashes >= CRASH_LIMIT
    if state.reason is Reason.TIERS_EXHAUSTED:
        assert all(state.record(entry.name).exhausted_by for entry in world.spec.tiers)
    for record in state.tiers:
        allowed = next(entry.max_failures for entry in world.spec.tiers if entry.name == record.name)
        assert record.exhausted_by is not Reason.MAX_FAILURES_EXCEEDED or record.failures > allowed >= 0


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_losses_of_contact_below_contact_timeout_cause_no_failure_and_no_new_attempt(seed: int) -> None:
    dice = Random(seed)
    world = RandomWorld(spec(tier("spot-a", 0), contact_timeout=60.0), dice, calm=True, silences=59.0)
    decider = Decider(world, 0.0)
    for _ in range(400):
        if decider.state.stage is Stage.SUCCEEDED:
            break
        world.pass_time(dice.choice([0.5, 1.0, 5.0]))
        decider.look()
    note(f"{decider.state}")
    assert (decider.state.stage, decider.state.failures, decider.state.last_number) == (Stage.SUCCEEDED, 0, 1)


@pytest.mark.parametrize("unit", list(FailureUnit))
def test_a_job_without_disturbances_succeeds_in_one_attempt(unit: FailureUnit) -> None:
    world = RandomWorld(spec(failure_unit=unit), Random(1), calm=True)
    decider = Decider(world, 0.0)
    decider.run_on_timers_only(200)
    assert (decider.state.stage, decider.state.failures, decider.state.last_number) == (Stage.SUCCEEDED, 0, 1)
