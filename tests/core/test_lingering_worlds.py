"""Invariants in random worlds in which attempts run on for a time while they are removed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.core.accounting.held_nodes import held_nodes
from spotladder.core.model import Exhausted, Handover, Stage
from tests.core.world_decider import Decider
from tests.core.world_invariants import finishes_after_edits_and_suspensions, many, specs, worlds_contain
from tests.core.worlds import RandomWorld
from tests.searching import examples


def lingering_world(seed: int, *, notices_only: bool = False) -> RandomWorld:
    """Attempts run for a time after their deletion was requested."""
    dice = Random(seed)
    fenced = dice.random() < 0.8
    job = specs(
        dice,
        handover=Handover.FENCED if fenced else Handover.WHEN_GONE,
        exhausted=Exhausted.RESTART,
        backoff_limit=None,
    )
    return RandomWorld(
        job,
        dice,
        notices_only=notices_only,
        silences=0.0 if notices_only else dice.choice([0.0, 30.0]),
        lingers=dice.choice([5.0, 30.0, 300.0]),
    )


@many
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.3]))
def test_attempts_that_are_left_behind_keep_the_invariants_in_any_world(seed: int, crashes: float) -> None:
    """The fence holds, no failure is counted twice, the job finishes, and no object of an ended attempt remains."""
    world = lingering_world(seed)
    decider = Decider(world, crashes)
    finishes_after_edits_and_suspensions(decider)
    decider.look()
    decider.look()
    assert world.programs == {}
    assert decider.state.left == ()


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_a_job_pays_for_each_node_until_it_is_gone(seed: int) -> None:
    world = lingering_world(seed, notices_only=True)
    decider = Decider(world, 0.0)
    held, since, expected = 0, world.now, 0.0
    for _ in range(120):
        decider.run(1)
        if decider.state.stage is Stage.SUCCEEDED:
            break
        expected += held * (world.now - since)
        held, since = sum(held_nodes(seen) for seen in decider.observations[-1].attempts), world.now
        assert decider.state.node_seconds == pytest.approx(expected)


def test_most_lingering_worlds_contain_an_attempt_that_is_left_behind() -> None:
    def contains(seed: int) -> dict[str, bool]:
        decider, left = Decider(lingering_world(seed, notices_only=True), 0.0), 0
        for _ in range(60):
            decider.run(1)
            left += any(one.nodes for one in decider.state.left)
        return {"left": left > 0}

    worlds_contain(contains, seeds=40, left=10)
