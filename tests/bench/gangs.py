"""Policies compared on gangs of several nodes, in the scenarios of `spotladder simulate`, beside on-demand and the
oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from statistics import fmean

from spotladder.cli.simulation import SimulationOptions, of_traces, region_of
from spotladder.sim.compare import Scenario, Summary, compare
from spotladder.sim.oracle import ORACLE
from spotladder.sim.trace import Trace
from spotladder.sim.zone_prices import KnownPrices
from spotladder.sim.zone_traces import SyntheticSettings, ZoneTraces
from tests.bench.rows import Row

EGRESS = 0.02
"""USD per GiB between two regions."""

CHECKPOINT = 100.0
"""GiB."""

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


MOST = 1.01
"""The largest ratio to the cost of on-demand that meets the goal: the first try of a spot tier may fail."""

GOAL = f"no deadline missed, ratio ≤ {MOST:g}"

CENT = 0.01
"""USD. Less is a difference of rounding."""

GANGS = (Gang("1 node", 1), Gang("16 of 16", 16), Gang("8 to 16", 16, 8))


@dataclass(frozen=True)
class Place:
    """Zones by their names, with a trace for each seed, which has prices. The first one is in the region of
    on-demand. `egress` is the file with the prices between their regions. `known`: the capacity of all zones is always
    known; otherwise only attempts show it."""

    name: str
    zones: Mapping[str, Sequence[Trace]]
    egress: Path | None = None
    known: bool = False

    def __str__(self) -> str:
        return ", ".join([self.name, *(["egress"] if self.egress else []), *(["known capacity"] if self.known else [])])


def egress_file(zones: Sequence[str], folder: Path) -> Path:
    """A file in this folder with equal prices between all regions of these zones."""
    found = folder / "egress.csv"
    pairs = permutations(sorted({region_of(zone) for zone in zones}), 2)
    lines = [f"{source},{target},{EGRESS}" for source, target in pairs]
    found.write_text("\n".join(["from_region,to_region,price_usd_per_gb", *lines, ""]))
    return found


def scenario(gang: Gang, place: Place, hours: int, deadline: int) -> Scenario:
    """The job of this gang. All of its times are multiples of two minutes: so the oracle is exact if those of the
    traces are, too."""
    options = SimulationOptions(
        hours=hours,
        deadline=f"{deadline}h",
        start=0.0,
        workers=gang.workers,
        prices=KnownPrices(),
        synthetic=SyntheticSettings(),
        restart="6m",
        commit_interval="10m",
        commit_time="2m",
        provision_delay="2m",
        boot="2m",
        notice="0s",
        egress=place.egress,
        checkpoint_gib=CHECKPOINT if place.egress else 0.0,
        atomic=False,
        surge=False,
        probed=place.known,
    )
    found = of_traces({name: ZoneTraces(tuple(traces)) for name, traces in place.zones.items()}, options)
    if not gang.sizes:
        return found
    return replace(found, program=replace(found.program, hands_over=True, sizes=gang.sizes))


def compared(gang: Gang, places: Sequence[Place], hours: int, deadline: int, seeds: int) -> Iterator[Row]:
    """A row for on-demand, and for each policy in each place. A gang that is not elastic has one for the oracle, for
    which the known capacity makes no difference."""
    (direct,) = compare(scenario(gang, places[0], hours, deadline), ["on-demand"], seeds)
    yield _row(f"{gang.name}: on-demand", direct, None, "", None)
    for place in places:
        names = [*POLICIES, *([] if gang.sizes or place.known else [ORACLE])]
        found = compare(scenario(gang, place, hours, deadline), names, seeds)
        for one in found:
            if one.policy == ORACLE:
                goal, met = "no policy is cheaper", not any(dearer(one, other) for other in found)
            else:
                on_time = one.succeeded == len(one.outcomes)
                goal, met = GOAL, on_time and one.cost <= MOST * direct.cost
            yield _row(f"{gang.name}: {one.policy}, {place}", one, direct, goal, met)


def dearer(one: Summary, other: Summary) -> bool:
    """Whether the first one costs more with one of the seeds with which both succeed."""
    both = zip(one.outcomes, other.outcomes, strict=True)
    return any(a.cost > b.cost + CENT for a, b in both if a.succeeded and b.succeeded)


def _row(name: str, found: Summary, direct: Summary | None, goal: str, met: bool | None) -> Row:
    also = {
        "deadlines missed": float(len(found.outcomes) - found.succeeded),
        "evictions": found.evictions,
        "hours": found.hours,
        "egress, USD": fmean(outcome.egress for outcome in found.outcomes),
    }
    reference, compared_with = (None, "–") if direct is None else (direct.cost, "on-demand")
    return Row(name, found.cost, "USD", compared_with, reference, goal, met, also)
