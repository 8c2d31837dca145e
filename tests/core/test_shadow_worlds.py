"""Invariants of shadow policies in random worlds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.core.model import CapacityType, Price
from spotladder.core.policies import Policy
from spotladder.policies import registry
from tests.core.builders import START
from tests.core.world_decider import Decider
from tests.core.world_invariants import specs
from tests.core.worlds import RandomWorld, edit, suspend
from tests.searching import examples


def played(seed: int, crashes: float, shadow: Policy | None) -> Decider:
    """A decider after a while in the world of this seed. Its last tier is on demand, and each tier has its price."""
    dice = Random(seed)
    spec = specs(dice)
    tiers = [replace(tier, price=Price(1.0 + number, 9.0)) for number, tier in enumerate(spec.tiers)]
    tiers = [replace(tier, capacity_type=CapacityType.SPOT) for tier in tiers[:-1]] + tiers[-1:]
    world = RandomWorld(replace(spec, tiers=tuple(tiers)), dice)
    decider = Decider(world, crashes, shadow=shadow)
    for _ in range(3):
        decider.run(15)
        suspend(world, dice.random() < 0.2)
        edit(world)
    return decider


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.sampled_from(["ordered", "greedy", "uniform-progress", "on-demand"]),
)
def test_a_shadow_policy_changes_no_decision_and_counts_no_time_twice(seed: int, crashes: float, name: str) -> None:
    decider = played(seed, crashes, registry.by_name(name))
    state, shadow = decider.state, decider.state.shadow
    assert replace(state, shadow=None) == played(seed, crashes, None).state
    if shadow is None:
        return
    if not crashes:  # then the clock does not step back
        assert shadow.agreed + shadow.differed <= decider.world.now - START + 1e-6
    assert sum(tier.actual_usd for tier in shadow.tiers) <= state.spent_usd + 1e-6
    for tier in shadow.tiers:
        assert tier.assumed + tier.uncounted <= tier.seconds + 1e-6
