"""The benchmark of gangs over regions: its zones, its scenarios and its rows."""

from __future__ import annotations

import numpy as np
import pytest

from spotladder.sim.scenario import simulate
from spotladder.sim.trace import Trace
from tests.bench import gangs
from tests.bench.gangs import Gang, Place

HOURS, DEADLINE = 1, 2


def steady(zone: str, nodes: int, hours: int = DEADLINE) -> Trace:
    return Trace(zone, np.array([0.0]), np.array([nodes]), 3600.0 * hours, prices=np.array([1.0]))


@pytest.mark.parametrize(("gang", "trains"), [(Gang("rigid", 4), False), (Gang("elastic", 4, 2), True)])
def test_only_an_elastic_gang_trains_with_fewer_nodes(gang: Gang, trains: bool) -> None:
    place = Place("1 zone", {"us-east-1a": [steady("us-east-1a", 3)]})
    found = simulate(gangs.scenario(gang, place, HOURS, DEADLINE), "adaptive", 0)
    assert (found.node_hours["us-east-1a"] > 1.0) is trains


@pytest.mark.parametrize("policy", ["greedy", "uniform-progress", "adaptive"])
def test_an_elastic_gang_stays_on_a_zone_with_enough_nodes_for_its_smallest_size(policy: str) -> None:
    zones = {name: [steady(name, 3)] for name in ("us-east-1a", "us-east-1b")}
    place = Place("2 zones", zones)
    done = simulate(gangs.scenario(Gang("elastic", 4, 2), place, HOURS, DEADLINE), policy, 0)
    assert (done.succeeded, done.attempts, done.node_hours["on-demand"]) == (True, 1, 0.0)


@pytest.mark.parametrize("deadline", [25, 30, 48])
@pytest.mark.parametrize("policy", ["greedy", "uniform-progress", "adaptive"])
def test_a_gang_of_its_smallest_size_leaves_its_zone_in_time_for_the_deadline(policy: str, deadline: int) -> None:
    place = Place("1 zone", {"us-east-1a": [steady("us-east-1a", 2, deadline)]})
    done = simulate(gangs.scenario(Gang("elastic", 4, 2), place, 24, deadline), policy, 0)
    assert (done.succeeded, done.attempts) == (True, 2)
    assert done.node_hours["us-east-1a"] > 3.5 * (deadline - 24) - 2, "it uses nearly all of its slack there"
