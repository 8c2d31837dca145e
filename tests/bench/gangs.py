"""Policies compared on gangs of several nodes, in the simulator's world, beside on-demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from spotladder.core.model import FOR_EVER, CapacityType, JobSpec, Price, Tier
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace, mean_price
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationOutcome
from spotladder.sim.world.zone import ZonePlan
from tests.bench import published
from tests.bench.rows import Row

HOUR = 3600

DELAY = 120.0
"""Seconds until a node joins, and then until a pod on it is ready."""

POLICIES = ("uniform-progress", "adaptive")
"""The policies that are compared. They have the same goal."""


@dataclass(frozen=True)
class Gang:
    """A job that needs this number of `workers`; if it is elastic, at least `least` of them."""

    name: str
    workers: int
    least: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of workers with which an elastic gang trains; none for another one."""
        return () if self.least is None else tuple(range(self.least, self.workers + 1))


MAX_RATIO = 1.01
"""The largest ratio to the cost of on-demand that meets the goal: the first try of a spot tier may fail."""

GOAL = f"no deadline missed, ratio ≤ {MAX_RATIO:g}"

GANGS = (Gang("1 node", 1), Gang("16 of 16", 16), Gang("8 to 16", 16, 8))


@dataclass(frozen=True)
class Place:
    """Zones by their names, with a trace for each seed, which has prices. The first one is in the region of
    on-demand."""

    name: str
    zones: Mapping[str, Sequence[Trace]]


def region_of(zone: str) -> str:
    """The region of a zone: `us-east-1` of `us-east-1a`."""
    return zone[:-1]


ON_DEMAND = "on-demand"


def scenario(gang: Gang, place: Place, hours: int, deadline: int, seed: int = 0) -> Scenario:
    """The job of this gang."""
    zones = [ZonePlan(name, traces[seed], _price(traces), DELAY, DELAY) for name, traces in place.zones.items()]
    direct = Price(published.ON_DEMAND, published.ON_DEMAND)
    zones.append(ZonePlan(ON_DEMAND, None, direct, DELAY, DELAY))
    tiers = [Tier(zone.name, FOR_EVER, 600.0, CapacityType.SPOT, zone.price) for zone in zones[:-1]]
    tiers.append(Tier(ON_DEMAND, FOR_EVER, 1800.0, CapacityType.ON_DEMAND, direct))
    program = ProgramPlan(hours * HOUR, 360.0, 600.0, 120.0, hands_over=bool(gang.sizes), sizes=gang.sizes)
    spec = JobSpec(tuple(tiers), workers=gang.workers, stall_timeout=3000.0, max_duration=deadline * HOUR)
    names = {tier.name: tier.name for tier in tiers}
    return Scenario(spec, program, tuple(zones), names)


def _price(traces: Sequence[Trace]) -> Price:
    return Price(mean_price(traces) or 0.0, published.ON_DEMAND)


Outcomes = Sequence[SimulationOutcome]
"""The outcome of each seed."""


def outcomes(worlds: Sequence[Scenario], policy: str) -> Outcomes:
    """The runs of one policy in the world of each seed."""
    return [simulate(world, policy, seed) for seed, world in enumerate(worlds)]


def compared(gang: Gang, places: Sequence[Place], hours: int, deadline: int, seeds: int) -> Iterator[Row]:
    """A row for on-demand, and for each policy in each place."""
    worlds = [[scenario(gang, place, hours, deadline, seed) for seed in range(seeds)] for place in places]
    direct = outcomes(worlds[0], ON_DEMAND)
    yield _row(f"{gang.name}: on-demand", direct, None, "", None)
    for place, world in zip(places, worlds, strict=True):
        for name in POLICIES:
            runs = outcomes(world, name)
            met = all(one.succeeded for one in runs) and _cost(runs) <= MAX_RATIO * _cost(direct)
            yield _row(f"{gang.name}: {name}, {place.name}", runs, direct, GOAL, met)


def _cost(runs: Outcomes) -> float:
    return fmean(one.cost for one in runs)


def _row(name: str, runs: Outcomes, direct: Outcomes | None, goal: str, met: bool | None) -> Row:
    ends = [one.finished / HOUR for one in runs if one.succeeded]
    also = {
        "deadlines missed": float(len(runs) - len(ends)),
        "evictions": fmean(one.evictions for one in runs),
        "hours": fmean(ends) if ends else None,
    }
    reference, compared_with = (None, "–") if direct is None else (_cost(direct), "on-demand")
    return Row(name, _cost(runs), "USD", compared_with, reference, goal, met, also)
