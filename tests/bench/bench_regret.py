"""The cost of policies on traces that `adaptive` was not fitted on, beside a buyer who knows the trace.

`SPOTLADDER_TRACES` names the folder. For the zones of 2022 the model is fitted on the zones of the other GPU. The model
of the package has not seen the clusters (`bamboo`): other GPUs, years and clouds, with gangs. The world is that of the
published benchmark: its oracle is exact, and incomplete gangs cost nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np

from spotladder.core.policies import Policy
from spotladder.core.policies.adaptive import Adaptive
from spotladder.display.report.axes import Scale
from spotladder.display.report.markup import element
from spotladder.planner.parallel import spread
from spotladder.policies import registry
from spotladder.sim.trace import Floats, Trace
from tests.bench import bench_calibration, fit_adaptive, published, rows
from tests.bench.rows import Row
from tests.bench.ticks import drive, oracle
from tests.bench.ticks.job import TickJob, TickTier

HOUR, TICK = published.HOUR, published.TICK

POLICIES = ("adaptive", "uniform-progress", "greedy")

FACTORS = (1.1, 1.5)
"""Time to the deadline, as multiples of the work."""

GANGS = (1, 4, 16, 64)
"""Sizes of gangs. A cluster is used for those that it ever had nodes for."""

MAX_RATIO = 1.12
"""The largest ratio to the oracle that meets the goal."""

VOLATILITY, RETURN = 0.1, 0.05
"""Of the logarithm of a price that moves: its standard deviation from tick to tick, and the part of its distance from
the mean by which it returns in a tick. After long it varies by a factor of 1.4."""


@dataclass(frozen=True)
class Case:
    """A trace for one gang: `available` and `prices` by tick; None is a fixed price. `hours` is the work of each job,
    and `adaptive` makes the policy with a model that has not seen the trace."""

    group: str
    trace: str
    gang: int
    hours: int
    available: Sequence[bool]
    prices: Sequence[float] | None
    adaptive: Callable[[], Policy]

    def jobs(self, starts: int) -> Iterator[TickJob]:
        """Jobs from equally distant starts. One node stands for the gang, which has all of its nodes or none."""
        last = len(self.available) - round(FACTORS[-1] * self.hours * HOUR / TICK)
        for start in np.linspace(0, last, starts).astype(int).tolist():
            prices = None if self.prices is None else self.prices[start:]
            spot = TickTier(published.SPOT_TIER, self.available[start:], prices)
            for factor in FACTORS:
                for overhead in published.OVERHEADS:
                    yield TickJob(
                        (spot, published.ON_DEMAND_TIER),
                        self.hours * HOUR,
                        round(overhead * HOUR),
                        round(factor * self.hours * HOUR),
                        TICK,
                    )


@dataclass(frozen=True)
class Costs:
    """The mean cost of the jobs of a case by policy, in USD for each node, with the missed deadlines."""

    case: Case
    usd: dict[str, float]
    missed: dict[str, int]


def measure(starts: int) -> Sequence[Row]:
    traces = published.folder()
    assert traces is not None
    some = cases(traces)
    found = spread(lambda index: costs(some[index], starts), range(len(some)), least=1)
    groups: dict[str, list[Costs]] = defaultdict(list)
    for one in found:
        groups[one.case.group].append(one)
    return [
        *(row(group, together) for group, together in groups.items()),
        *(replace(row(_named(one.case), [one]), goal="", met=None) for one in found if one.case.prices is None),
    ]


def _named(case: Case) -> str:
    return case.trace + (f" with {case.gang} nodes" if case.gang > 1 else "")


def costs(case: Case, starts: int) -> Costs:
    """Every policy on every job of the case."""
    usd: dict[str, list[float]] = defaultdict(list)
    missed: dict[str, int] = dict.fromkeys(POLICIES, 0)
    entrants = {name: partial(registry.by_name, name) for name in POLICIES} | {"adaptive": case.adaptive}
    for job in case.jobs(starts):
        usd["oracle"].append(oracle.run(job).cost)
        for name, entrant in entrants.items():
            result = drive.run(job, entrant())
            usd[name].append(result.cost)
            missed[name] += not result.met
    return Costs(case, {name: fmean(values) for name, values in usd.items()}, missed)


def row(name: str, found: Sequence[Costs]) -> Row:
    usd = {policy: fmean(one.usd[policy] for one in found) for policy in (*POLICIES, "oracle")}
    ratios = {policy: usd[policy] / usd["oracle"] for policy in POLICIES}
    missed = sum(one.missed["adaptive"] for one in found)
    met = missed == 0 and ratios["adaptive"] <= min(MAX_RATIO, *ratios.values())
    also = {f"{policy} / oracle": ratios[policy] for policy in POLICIES[1:]} | {"deadlines missed": float(missed)}
    goal = f"no deadline missed, ratio ≤ {MAX_RATIO:g} and no other policy's"
    return Row(name, usd["adaptive"], "USD", "oracle", usd["oracle"], goal, met, also)


def cases(folder: Path) -> list[Case]:
    """All cases: with a fixed price, then with one that moves."""
    zones = fit_adaptive.load(folder)
    unseen = {
        gpu: fit_adaptive.fitted([trace for zone, trace in zones.items() if gpu not in zone]) for gpu in ("k80", "v100")
    }
    fixed = []
    for name, (trace, _gangs) in bench_calibration.series(folder).items():
        if name in zones:
            gpu = next(gpu for gpu in unseen if gpu in name)
            group = f"AWS 2022, {gpu.upper()}"
            fixed.append(Case(group, name, 1, 24, by_tick(trace, 1), None, partial(Adaptive, unseen[gpu])))
            continue
        cloud = "GCP" if "east1" in name else "AWS"
        for gang in GANGS:
            available = by_tick(trace, gang)
            if any(available):
                group = f"{cloud} clusters, {f'gangs of {gang}' if gang > 1 else 'one node'}"
                fixed.append(Case(group, name, gang, 4, available, None, partial(registry.by_name, "adaptive")))
    moving = [
        replace(case, group=f"{case.group}, moving price", prices=moved(len(case.available), index))
        for index, case in enumerate(fixed)
    ]
    return [*fixed, *moving]


def by_tick(trace: Trace, gang: int) -> list[bool]:
    """Whether the trace has the nodes during the whole of each tick."""
    moments = np.union1d(trace.times, np.arange(0.0, trace.end, TICK))
    ticks = (moments // TICK).astype(int)
    least = np.full(int(trace.end // TICK) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, ticks, trace.at(moments))
    flags: list[bool] = (least[: int(trace.end // TICK)] >= gang).tolist()
    return flags


def moved(ticks: int, seed: int) -> list[float]:
    """A price by tick, around that of the published benchmark: the traces have none."""
    dice = np.random.default_rng(seed)
    level: float = dice.normal(0.0, VOLATILITY / (2 * RETURN) ** 0.5)
    logs: Floats = np.empty(ticks)
    for tick, step in enumerate(dice.normal(0.0, VOLATILITY, ticks).tolist()):
        logs[tick] = level = (1 - RETURN) * level + step
    prices: list[float] = np.minimum(published.SPOT * np.exp(logs), published.ON_DEMAND).tolist()
    return prices


BAR, LEFT, WIDTH = 7, 250, 760
"""Height of a bar, width of the names and of the picture, in pixels."""

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c")


def draw(found: Sequence[Row], file: Path) -> None:
    """The regret of each policy on each trace with a fixed price: its cost above that of the oracle."""
    single = [row for row in found if not row.goal]
    regrets = [
        [100 * ((ratio or 1.0) - 1) for ratio in (row.ratio, *list(row.also.values())[: len(POLICIES) - 1])]
        for row in single
    ]
    x = Scale(0.0, max(max(some) for some in regrets), LEFT, WIDTH - 50)
    height = 4 * BAR * len(single) + 40
    parts = [element("rect", width=WIDTH, height=height, fill="white")]
    for place, (policy, colour) in enumerate(zip(POLICIES, COLOURS, strict=True)):
        parts.append(element("rect", x=LEFT + 150 * place, y=8, width=10, height=10, fill=colour))
        parts.append(element("text", policy, x=LEFT + 150 * place + 14, y=17))
    for index, (row, some) in enumerate(zip(single, regrets, strict=True)):
        top = 30 + 4 * BAR * index
        parts.append(element("text", row.name, x=LEFT - 6, y=top + 2 * BAR, text_anchor="end"))
        for place, (regret, colour) in enumerate(zip(some, COLOURS, strict=True)):
            at = top + BAR * place
            parts.append(element("rect", x=LEFT, y=at, width=max(0.0, x(regret) - LEFT), height=BAR, fill=colour))
            parts.append(element("text", f"{regret:.0f} %", x=x(max(0.0, regret)) + 4, y=at + BAR, font_size=8))
    namespace = {"xmlns": "http://www.w3.org/2000/svg", "font_family": "sans-serif", "font_size": 11}
    size = f"0 0 {WIDTH} {height}"
    file.write_text(element("svg", *parts, viewBox=size, width=WIDTH, **namespace) + "\n", encoding="utf-8")


NOTE = (
    f"Ratio: cost relative to a buyer who knows the trace. Deadlines are {FACTORS[0]:g} and {FACTORS[1]:g} times the "
    "work, a start takes 0.05 or 0.2 h. Work is 24 h on the zones and 4 h on the clusters, whose traces have 10 to "
    "27 h. The K80 zones of 2022 are run with a model that is fitted on the V100 zones, and the reverse; the clusters "
    "with the model of the package, which has not seen them. A *moving price* is drawn: the traces have none."
)

if __name__ == "__main__":
    skipped = "SPOTLADDER_TRACES is not set" if published.folder() is None else ""
    rows.main(measure, "Regret of policies on held-out traces", skipped=skipped, note=NOTE, draw=draw, starts=4)
