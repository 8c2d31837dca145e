"""Invariants in random worlds with an admission queue, and with programs that hang."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.model import Exhausted
from spotladder.core.reasons import Reason
from tests.core.world_decider import Decider
from tests.core.world_invariants import (
    Returning,
    elastic_world,
    finishes_after_edits_and_suspensions,
    many,
    specs,
    world_with_hedges,
    world_with_overlap,
    worlds_contain,
)
from tests.core.worlds import RandomWorld

BUILDERS = ("plain", "elastic", "overlap", "hedges")


def world_of(kind: str, seed: int) -> RandomWorld:
    fixed: dict[str, object] = {"exhausted": Exhausted.RESTART, "backoff_limit": None}
    match kind:
        case "elastic":
            world = elastic_world(seed, **fixed)
            world.begins_with_all_workers = False  # Edits may leave no worker that its program can begin without.
            return world
        case "overlap":
            return world_with_overlap(seed, **fixed)
        case "hedges":
            return world_with_hedges(seed, **fixed)
    dice = Random(seed)
    return RandomWorld(specs(dice, **fixed), dice, silences=dice.choice([0.0, 30.0]), misleading=0.3)


def with_queue(world: RandomWorld) -> RandomWorld:
    """The world with an admission queue, and with a queueTimeout on some tiers."""
    dice, spec = world.random, world.spec
    tiers = tuple(replace(entry, queue_timeout=dice.choice([None, 30.0, 300.0])) for entry in spec.tiers)
    world.spec, world.queue = replace(spec, tiers=tiers), dice.choice([0.05, 0.15])
    return world


def with_hangs(world: RandomWorld) -> RandomWorld:
    """The world with programs that hang, and with a stallTimeout that ends those whose hang the backend misses."""
    world.spec = replace(world.spec, stall_timeout=world.random.choice([30.0, 60.0]))
    world.hangs, world.hang_timeout = 0.2, world.random.choice([10.0, 40.0])
    return world


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from(BUILDERS))
def test_a_queue_keeps_the_invariants_in_any_world(seed: int, crashes: float, kind: str) -> None:
    """An attempt that waits for quota is not lost and uses up no provisionTimeout (asserted by the decider), no failure
    is counted twice, and once there is quota the job finishes."""
    world = with_queue(world_of(kind, seed))
    finishes_after_edits_and_suspensions(Decider(world, crashes, Returning() if kind == "overlap" else None))


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from(BUILDERS), st.booleans())
def test_hangs_keep_the_invariants_in_any_world(seed: int, crashes: float, kind: str, queue: bool) -> None:
    """Each hang is one failure, and a job whose program hangs finishes by its own requeues."""
    world = with_hangs(world_of(kind, seed))
    world = with_queue(world) if queue else world
    finishes_after_edits_and_suspensions(Decider(world, crashes, Returning() if kind == "overlap" else None))


def test_many_worlds_contain_each_way_to_lose_quota() -> None:
    def contains(seed: int) -> dict[str, bool]:
        decider = Decider(with_queue(world_of("plain", seed)), 0.0)
        decider.run(60)
        return {record.reason: True for record in decider.state.history if record.reason is not None}

    ways = (Reason.PREEMPTED, Reason.QUOTA_WITHDRAWN, Reason.PODS_READY_TIMEOUT, Reason.QUEUE_TIMEOUT)
    worlds_contain(contains, seeds=240, **dict.fromkeys(ways, 5))


def test_many_worlds_contain_a_hang_that_is_reported_and_one_that_is_not() -> None:
    def contains(seed: int) -> dict[str, bool]:
        decider = Decider(with_hangs(world_of("overlap", seed)), 0.0)
        decider.run(60)
        stalled = sum(record.reason is Reason.STALLED for record in decider.state.history)
        return {"reported": decider.state.hangs > 0, "silent": stalled > decider.state.hangs}

    worlds_contain(contains, seeds=240, reported=5, silent=5)
