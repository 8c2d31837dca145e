"""How often plans come true: each plan knows a trace until its start, and the simulator runs the job on the rest.

`SPOTLADDER_TRACES` names the folder with the traces of single zones (`frontier-cs`) and of clusters (`bamboo`), which
have numbers of nodes. The job waits on one spot tier, or falls back to on-demand. Of the runs, 80 % should fall between
p10 and p90 of their plan. Many simulated runs have exactly the same figure, such as the earliest end. A real run with
this figure counts by the share of their places that is between p10 and p90 (C. Czado, T. Gneiting and L. Held, 2009).

The jobs are measured in a random order, so that `--jobs 80` is a sample. The results are kept in `.bench` until the
code changes: an interrupted measurement continues.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import FOR_EVER, CapacityType, Exhausted, JobSpec, KnownCapacity, Price, Tier
from spotladder.display.report.axes import Scale
from spotladder.display.report.markup import element
from spotladder.planner.parallel import spread
from spotladder.planner.plan import PlanInput, TierFacts, estimated
from spotladder.planner.simulated import Assumptions, simulator
from spotladder.planner.tier_capacity import with_traces
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace, of_ticks
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationOutcome
from spotladder.sim.world.zone import ZonePlan
from tests.bench import published, rows
from tests.bench.__main__ import OUT, ROOT
from tests.bench.rows import Row

TICK = published.TICK
STARTS = 48
"""Starts in each trace, at equal distances: runs of a trace nearly follow each other. The model of the capacity in a
plan was chosen on the first half of them."""

HISTORY = 0.3
"""Share of a trace before its first start."""

SHARE = 1 / 36
"""Hours of work of a job, per hour of its trace."""

LIMIT = 2.0
"""Longest run, as a multiple of the work."""

DEADLINES = tuple(1 + step / 20 for step in range(1, 20))
"""Multiples of the work. A plan has one chance for each."""

COVERED = (0.77, 0.83)

ASSUMED = Assumptions(restart=180.0, commit_time=10.0, ready_after=180.0, commit_interval=300.0)

SPOT = Tier("spot", FOR_EVER, price=Price(0.97, 3.06), capacity_type=CapacityType.SPOT)
ON_DEMAND = Tier("on-demand", FOR_EVER, price=Price(3.06, 3.06), capacity_type=CapacityType.ON_DEMAND)


@dataclass(frozen=True)
class Planned:
    """A run beside its plan. `day` is the day on which it began, the same for all zones; `late`: in the second half of
    the starts. `cost` is in USD and `end` in hours, of `work` hours of work; `costs` and `ends` are those of the
    simulated runs. `formula` is the end by the closed formula."""

    trace: str
    day: str
    late: bool
    gang: int
    kind: str
    work: float
    formula: float
    cost: float
    end: float
    costs: Sequence[float]
    ends: Sequence[float]

    @property
    def chances(self) -> list[tuple[float, float, bool]]:
        """For each deadline the chance by the plan, that by the closed formula (0 or 1), and whether the run kept
        it."""
        limits = [self.work * factor for factor in DEADLINES]
        return [
            (fmean(end <= limit for end in self.ends), float(self.formula <= limit), self.end <= limit)
            for limit in limits
        ]


def measure(runs: int, jobs: int) -> Sequence[Row]:
    traces = published.folder()
    assert traces is not None
    found = evaluated(series(traces), runs, jobs)
    return [
        *coverage("all", found),
        *reliability(found),
        *(brier(*half) for half in (("all", found), *halves(found).items())),
        *(
            replace(row, goal="", met=None)
            for name, some in (halves(found) | groups(found)).items()
            for row in of_group(name, some)
        ),
    ]


def halves(found: Sequence[Planned]) -> dict[str, list[Planned]]:
    names = {False: "first half of the starts", True: "second half, not used"}
    some = {names[late]: [one for one in found if one.late is late] for late in names}
    return {name: half for name, half in some.items() if half}


def groups(found: Sequence[Planned]) -> dict[str, list[Planned]]:
    """The runs by gang size, and by trace. They are few, so they have no goal."""
    some: dict[str, list[Planned]] = defaultdict(list)
    for one in found:
        some["one node" if one.gang == 1 else f"gangs of {one.gang}"].append(one)
    for one in found:
        some[one.trace].append(one)
    return some


def of_group(name: str, found: Sequence[Planned]) -> list[Row]:
    pairs = [(one, chance, kept) for one in found for chance, _formula, kept in one.chances]
    return [*coverage(name, found), kept_row(f"deadlines, {name} ({len(pairs)}): kept", pairs)]


def coverage(group: str, found: Sequence[Planned]) -> list[Row]:
    return [
        covered(
            f"cost, {group} ({len(found)} runs): between p10 and p90",
            found,
            [inside(one.cost, one.costs) for one in found],
        ),
        covered(
            f"end, {group} ({len(found)} runs): between p10 and p90",
            found,
            [inside(one.end, one.ends) for one in found],
        ),
    ]


def inside(value: float, simulated: Sequence[float]) -> float:
    """The share of the places that the value can have among the simulated ones that is between p10 and p90: of n, n + 1
    places are equally likely. Equal values differ by rounding errors."""
    places = len(simulated) + 1
    first = sum(one < value and not math.isclose(one, value) for one in simulated) / places
    last = first + (sum(math.isclose(one, value) for one in simulated) + 1) / places
    return max(0.0, min(last, 0.9) - max(first, 0.1)) / (last - first)


def covered(what: str, found: Sequence[Planned], within: Sequence[float]) -> Row:
    share, (low, high) = fmean(within), COVERED
    goal = f"{100 * low:.0f} to {100 * high:.0f} %"
    also = {ERROR: standard_error(found, within)}
    return Row(what, 100 * share, "%", "expected", 80.0, goal, low <= share <= high, also)


ERROR = "standard error, points"
INDEPENDENT = "worth independent outcomes"
"""A column: as many independent deadlines, each with the mean chance, have the same standard error."""


def standard_error(found: Sequence[Planned], values: Sequence[float]) -> float | None:
    """That of the mean of the values, one for each run, in points. Runs on one trace are not independent, and neither
    are runs on one day, because zones gain and lose capacity together. They are clustered both ways (A. C. Cameron,
    J. B. Gelbach and D. L. Miller, 2011). None for one day of one trace, and for equal values."""
    by_trace = variance([one.trace for one in found], values)
    by_day = variance([one.day for one in found], values)
    both = variance([(one.trace, one.day) for one in found], values)
    found_variance = max(by_trace, by_day, by_trace + by_day - both)
    return 100 * math.sqrt(found_variance) if found_variance else None


def variance(clusters: Sequence[Hashable], values: Sequence[float]) -> float:
    """That of the mean of the values, if only those of different clusters are independent; 0 for one cluster."""
    mean, sums = fmean(values), defaultdict[Hashable, float](float)
    for cluster, value in zip(clusters, values, strict=True):
        sums[cluster] += value - mean
    count = len(sums)
    return 0.0 if count == 1 else sum(one * one for one in sums.values()) * count / (count - 1) / len(values) ** 2


def reliability(found: Sequence[Planned]) -> list[Row]:
    """The runs that kept a deadline, by the chance of their plan."""
    bins: dict[int, list[tuple[Planned, float, bool]]] = defaultdict(list)
    for one in found:
        for chance, _formula, kept in one.chances:
            bins[min(4, int(5 * chance))].append((one, chance, kept))
    return [
        kept_row(f"deadlines with a chance of {20 * index} to {20 * index + 20} % ({len(pairs)}): kept", pairs)
        for index, pairs in sorted(bins.items())
    ]


def kept_row(name: str, pairs: Sequence[tuple[Planned, float, bool]]) -> Row:
    """The share of the deadlines that were kept, beside the mean chance of these deadlines by their plans. The error is
    that of the difference."""
    share, mean = 100 * fmean(kept for _, _, kept in pairs), 100 * fmean(chance for _, chance, _ in pairs)
    error = standard_error([one for one, _, _ in pairs], [kept - chance for _, chance, kept in pairs])
    also = {ERROR: error, INDEPENDENT: round(mean * (100 - mean) / error**2) if error else None}
    return Row(name, share, "%", "mean chance", mean, "± 5 points", abs(share - mean) <= 5, also)


def brier(name: str, found: Sequence[Planned]) -> Row:
    pairs = [pair for one in found for pair in one.chances]
    mine, formula = (fmean((pair[index] - pair[2]) ** 2 for pair in pairs) for index in (0, 1))
    also = {TRUE: expected_brier([chance for chance, _, _ in pairs], len(found[0].ends))}
    return Row(
        f"Brier score of the chances, {name}", mine, "", "closed formula", formula, "lower", mine < formula, also
    )


TRUE = "expected if the chances are true"


def expected_brier(chances: Sequence[float], runs: int) -> float:
    """The Brier score of these chances, each the share of `runs` simulated runs, if the job is one more such run. It
    measures how uncertain the jobs are, so that scores of different jobs cannot be compared."""
    return fmean(chance * (1 - chance) for chance in chances) * (runs + 1) / (runs - 1)


SIDE = 260
"""Width and height of the picture's square, in pixels."""


def draw(found: Sequence[Row], file: Path) -> None:
    """The share of the deadlines that were kept over the mean chance by the plan, within 5 points of equal or not."""
    x, y = Scale(0.0, 100.0, 40, 40 + SIDE), Scale(0.0, 100.0, 10 + SIDE, 10)
    band = [(0, 5), (0, 0), (5, 0), (100, 95), (100, 100), (95, 100)]
    parts = [
        element("rect", width=SIDE + 60, height=SIDE + 50, fill="white"),
        element("polygon", points=" ".join(f"{x(a):g},{y(b):g}" for a, b in band), fill="#ddd"),
        element("text", "chance by the plan, %", x=x(50), y=y(0) + 34, text_anchor="middle"),
        element("text", "deadlines kept, %", x=x(2), y=y(94)),
    ]
    for value in range(0, 101, 20):
        parts.append(element("text", str(value), x=x(value), y=y(0) + 16, text_anchor="middle"))
        parts.append(element("text", str(value), x=x(0) - 6, y=y(value) + 4, text_anchor="end"))
    parts += [
        element("circle", cx=x(row.reference), cy=y(row.measured), r=4, fill="#1f77b4")
        for row in found
        if row.goal and row.compared_with == "mean chance" and row.reference is not None
    ]
    namespace = {"xmlns": "http://www.w3.org/2000/svg", "font_family": "sans-serif", "font_size": 11}
    size = f"0 0 {SIDE + 60} {SIDE + 50}"
    file.write_text(element("svg", *parts, viewBox=size, width=SIDE + 60, **namespace) + "\n", encoding="utf-8")


def evaluated(traces: Mapping[str, tuple[Trace, Sequence[int]]], runs: int, jobs: int) -> list[Planned]:
    order = [
        (trace, index, gang, kind)
        for trace, gangs in traces.values()
        for gang in gangs
        for index in range(STARTS)
        for kind in ("spot only", "with on-demand")
    ]
    Random(0).shuffle(order)
    kept = OUT / f"calibration-{digest(runs)}.jsonl"
    known = dict(map(json.loads, kept.read_text().splitlines())) if kept.exists() else {}

    OUT.mkdir(exist_ok=True)

    def measured(number: int) -> Planned:
        if number in known:
            return Planned(**known[number])
        found = planned(*order[number], runs)
        with kept.open("a") as file:
            file.write(json.dumps([number, asdict(found)]) + "\n")
        return found

    return spread(measured, range(min(jobs, len(order))))


def digest(runs: int) -> str:
    """Of the code that a result depends on, and of the number of simulated runs of a plan."""
    product = ROOT / "controller" / "spotladder"
    files = sorted(file for part in ("core", "planner", "sim") for file in (product / part).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in (Path(__file__), *files)) + b"%d" % runs).hexdigest()[
        :8
    ]


def planned(trace: Trace, index: int, gang: int, kind: str, runs: int) -> Planned:
    """One plan, and the run on what came then."""
    start = float(np.linspace(HISTORY * trace.end, trace.end * (1 - LIMIT * SHARE), STARTS)[index])
    work = SHARE * trace.end / HOUR
    spot = with_traces(TierFacts(SPOT, "spot"), (before(trace, start),), gang, until_now=True)
    if kind != "spot only":
        spot = replace(spot, tier=replace(spot.tier, max_failures=2))
    tiers = (spot,) if kind == "spot only" else (spot, TierFacts(ON_DEMAND, "on-demand", KnownCapacity(evictions=0.0)))
    spec = JobSpec(
        tiers=tuple(facts.tier for facts in tiers),
        workers=gang,
        grace=30.0,
        max_duration=LIMIT * work * HOUR,
        exhausted=Exhausted.RESTART,
    )
    plan_input = PlanInput(spec, tiers, work, 0.1, ASSUMED.commit_interval, ASSUMED.commit_time)
    run = simulator(plan_input, ASSUMED)
    simulated = [run(seed) for seed in range(1, runs + 1)]
    program = ProgramPlan(
        round(work * HOUR), ASSUMED.restart, ASSUMED.commit_interval, ASSUMED.commit_time, commits_wake=False
    )
    zones = [ZonePlan(spot.tier.name, after(trace, start), spot.tier.price, ASSUMED.ready_after)]
    zones += [ZonePlan(facts.tier.name, None, facts.tier.price, ASSUMED.ready_after) for facts in tiers[1:]]
    scenario = Scenario(
        replace(spec, stall_timeout=1e9), program, tuple(zones), {tier.name: tier.name for tier in spec.tiers}
    )
    real = simulate(scenario, "ordered", 0)
    formula = estimated(plan_input)
    expected = formula.scenario.total_hours if formula else work
    return Planned(
        trace.zone,
        f"{'zones' if trace.zone in published.ZONES else trace.zone}, {start // (24 * HOUR):g}",
        index >= STARTS // 2,
        gang,
        kind,
        work,
        expected,
        real.cost,
        ended(real, work),
        [one.cost for one in simulated],
        [ended(one, work) for one in simulated],
    )


def ended(outcome: SimulationOutcome, work: float) -> float:
    """The hours of a run that succeeded; more than any other for one that did not."""
    return outcome.finished / HOUR if outcome.succeeded else LIMIT * work


def before(trace: Trace, start: float) -> Trace:
    part = slice(0, max(1, int(np.searchsorted(trace.times, start))))
    return replace(trace, times=trace.times[part], nodes=trace.nodes[part], end=start)


def after(trace: Trace, start: float) -> Trace:
    first = max(0, int(np.searchsorted(trace.times, start, side="right")) - 1)
    times = np.maximum(trace.times[first:] - start, 0.0)
    return replace(trace, times=times, nodes=trace.nodes[first:], end=trace.end - start)


# --- traces ---------------------------------------------------------------------------------------------------------


def series(folder: Path) -> dict[str, tuple[Trace, Sequence[int]]]:
    """The traces, with the sizes of the gangs for which they are used."""
    zones: dict[str, dict[int, bool]] = defaultdict(dict)
    for name, content in published.zone_windows(folder / "frontier-cs"):
        window = json.loads(content)
        first = window["metadata"]["start_time"]
        zones[name.split("/")[-4]].update({first + index: not lost for index, lost in enumerate(window["data"])})
    found: dict[str, tuple[Trace, Sequence[int]]] = {
        zone: (of_ticks(zone, np.array([ticks[key] for key in sorted(ticks)]), TICK), (1,))
        for zone, ticks in sorted(zones.items())
    }
    for file in sorted((folder / "bamboo").glob("*1-east1*.txt")) + sorted((folder / "bamboo").glob("*-trace.csv")):
        trace = counted(file)
        found[trace.zone] = trace, (4, 16, 32)
    return found


def counted(file: Path) -> Trace:
    """A trace of a cluster: counts of nodes, or their additions and removals."""
    counts: dict[float, int] = {}
    with file.open(newline="") as opened:
        held = 0
        for row in csv.reader(opened, skipinitialspace=True):
            if file.suffix == ".txt":
                counts[datetime.fromisoformat(f"{row[0]}T{row[1]}+00:00").timestamp()] = int(row[2])
            else:
                held += 1 if row[1] == "add" else -1
                counts[float(row[0]) / 1000] = held
    times = np.array(sorted(counts))
    nodes = np.array([counts[moment] for moment in times], dtype=np.int64)
    return Trace(file.stem, times - times[0], nodes, end=float(times[-1] - times[0]))


if __name__ == "__main__":
    named = published.folder()
    rows.main(
        measure,
        "Calibration of plans",
        skipped="" if named else "SPOTLADDER_TRACES is not set",
        note="Each plan knows the trace until its start. With on-demand, the third loss on spot moves the job there. "
        "The standard error counts runs of one trace as one, and runs on one day as one; that of deadlines is of the "
        "difference to the plan.",
        draw=draw,
        runs=40,
        jobs=1920,
    )
