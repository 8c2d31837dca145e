"""The cheapest run of a job in a world whose future is known: the lower bound for the cost of every policy.

Rules
 1. A gang of W nodes is requested in a zone while the zone is open and has capacity for it. Training begins after
    `provision_delay`, `boot` and `restart`. It stops at any time before the capacity, and the notice after it, ends;
    the commit then takes `commit_time`. All W nodes are billed from `boot` until the commit is complete.
 2. No work is lost. One attempt follows the other; nodes of a gang that is not complete only add to its cost.
 3. Dynamic programming backward over a grid of times and amounts of remaining work finds the cheapest sequence of
    attempts.

The amounts on the grid divide the work without a rest. What does not fit into the grid is rounded in favour of the job:
capacity begins earlier and ends later, delays are shorter, the price in a cell is its lowest, and a start or a commit
costs what is the least around its time. Between such rounded values an optimal schedule has all of its times on the
grid, because every constraint is a difference of two times, except the sum of the work. So no run of the world is
cheaper than the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spotladder.core.accounting import GIB, HOUR
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec
from spotladder.sim.trace import Flags, Floats
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import Zone

MOST_STATES = 30_000_000
"""Limit of times × amounts of remaining work × zones and regions, one byte each."""

MOST_CELLS = 20_000
"""Limit of times, if the work is not shorter than one of them."""

EXACT: Seconds = 1e-6
"""Seconds. Times that differ by less are equal."""

TIE = 1e-9
"""USD. Of actions whose costs differ by less, the run starts or continues to train."""

WAIT, STOP = -1, -2
"""The action of the cheapest run: stay without nodes, or stop the running gang. Values from 0 on start, or continue in,
the zone with this index."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One attempt of the cheapest run, in seconds after the start: it requests its nodes, trains, and commits at the
    end of the training. `usd` is its cost, of which `egress` is for reading the checkpoint."""

    zone: str
    requests_at: Seconds
    trains_at: Seconds
    stops_at: Seconds
    usd: float
    egress: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """The cheapest run. `cost` is in USD."""

    cost: float
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True)
class BoundedJob:
    """A gang of `workers` nodes that has until `limit`, in seconds after the start. `egress` is in USD per GiB, by
    source and destination region."""

    zones: Sequence[Zone]
    workers: int
    program: ProgramPlan
    limit: Seconds
    egress: Mapping[tuple[str, str], float] = field(default_factory=dict)


def cheapest(job: BoundedJob) -> Schedule | None:
    """The cheapest run that ends before the limit; None if no run does. Raises InvalidSpec for a limit that is out of
    proportion to the work."""
    return _Solution(job).schedule()


class _Grid:
    """Divides time into cells of `size` seconds. The work takes `units` cells, the time until the limit `cells`.
    `exact`: all times of the world are on the grid."""

    def __init__(self, job: BoundedJob) -> None:
        work, modes = job.program.work, 2 * len(job.zones) + 1
        if job.limit > MOST_CELLS * work:
            raise InvalidSpec(f"expected a deadline of {MOST_CELLS} times the work or less: set an earlier one")
        # units × cells × modes = MOST_STATES, unless there are too many cells
        finest = min(math.sqrt(MOST_STATES / modes * work / job.limit), MOST_CELLS * work / job.limit)
        self.units, self.exact = _units(job, max(1, int(finest)))
        self.size: Seconds = work / self.units
        self.cells = self.above(job.limit)

    def below(self, time: Seconds) -> int:
        """The number of whole cells in this time."""
        return math.floor((time + EXACT) / self.size)

    def above(self, time: Seconds) -> int:
        """The number of cells that cover this time."""
        return math.ceil((time - EXACT) / self.size)


def _units(job: BoundedJob, most: int) -> tuple[int, bool]:
    """The number of units, at most `most`, with which as few times as possible are rounded, and whether none is: else
    none but the commit time, none but delays, or all, if no unit of sufficient length divides them."""
    program = job.program
    delays = [zone.plan.provision_delay + zone.plan.boot + program.restart for zone in job.zones]
    delays += [seconds for zone in job.zones for seconds in (zone.plan.provision_delay, zone.plan.notice)]
    changes = [moment for zone in job.zones for moment in _changes(zone) if 0.0 < moment < job.limit]
    everything = [*changes, *delays, program.commit_time]
    for times in (everything, [*changes, *delays], changes):
        if all(abs(time - round(time)) <= EXACT for time in times):
            fewest = program.work // math.gcd(program.work, *(round(time) for time in times))
            if fewest <= most:
                return fewest * (most // fewest), times is everything
    return most, False


class _ZoneCells:
    """A zone on the grid: whether each cell has capacity for the gang, and its lowest price. `delay` is the number of
    cells from the request to the training. By the cell at whose beginning training begins or stops, `starts` and
    `commits` are the cost of boot and restart before it, and of the commit after it, in USD."""

    def __init__(self, job: BoundedJob, zone: Zone, grid: _Grid) -> None:
        plan, program = zone.plan, job.program
        self.zone = zone
        self.delay = grid.below(plan.provision_delay + plan.boot + program.restart)
        commit = grid.below(program.commit_time)
        self.has = np.zeros(grid.cells, dtype=np.bool_)
        prices = np.full(grid.cells, np.inf)
        for begins, ends, has, price in _periods(job, zone):
            until = grid.above(min(ends + plan.notice, job.limit)) if ends < math.inf else grid.cells
            if has:
                self.has[grid.below(begins) : until] = True
            cells = slice(grid.below(begins), grid.above(min(ends, job.limit)))
            prices[cells] = np.minimum(prices[cells], price)
        self.usd: Floats = job.workers * prices * grid.size / HOUR
        start = plan.boot + program.restart
        self.starts = job.workers * _least_paid(zone, grid, -start, 0.0)
        self.commits = job.workers * _least_paid(zone, grid, 0.0, program.commit_time)
        self.may_start = _all_of_next(self.has, self.delay)
        for begins, ends in plan.closed:
            self.may_start[grid.above(begins) : grid.below(min(ends, job.limit)) + (ends >= job.limit)] = False
        self.may_commit = _all_of_next(self.has, commit)


def _periods(job: BoundedJob, zone: Zone) -> Iterator[tuple[Seconds, Seconds, bool, float]]:
    """The beginning, the end, whether there is capacity for the gang, and the price, between the changes of the zone
    before the limit."""
    moments = [0.0, *(moment for moment in _changes(zone) if 0.0 < moment < job.limit), math.inf]
    for begins, ends in pairwise(moments):
        yield begins, ends, zone.nodes(begins) >= job.workers, zone.price(begins)


def _changes(zone: Zone) -> list[Seconds]:
    """The times at which the capacity or the price changes, or the zone opens or closes, ascending."""
    return sorted({*zone.times, *zone.turns})


def _least_paid(zone: Zone, grid: _Grid, since: Seconds, until: Seconds) -> Floats:
    """Shape (cells + 1,): the USD for a node that is held between these times relative to the beginning of a cell; the
    least of this for the moments from one cell before it to one after it, unless the grid is exact."""

    def paid(moment: Seconds) -> float:
        return zone.cost(max(0.0, moment + since), max(0.0, moment + until))

    at = np.array([paid(cell * grid.size) for cell in range(-1, grid.cells + 2)])
    if grid.exact:
        return at[1:-1]
    # Between these moments the cost is linear.
    turns = [change - shift for change in zone.times for shift in (since, until)]
    least = np.full(grid.cells + 2, np.inf)
    for moment in [turn for turn in turns if 0.0 <= turn < grid.cells * grid.size]:
        cell = int(moment // grid.size)
        least[cell + 1] = min(least[cell + 1], paid(moment))
    found: Floats = np.min((at[:-2], at[1:-1], at[2:], least[:-1], least[1:]), axis=0)
    return found


def _all_of_next(has: Flags, cells: int) -> Flags:
    """Shape (cells of the grid + 1,): whether so many cells from each time on have capacity."""
    lacking = np.concatenate(([0], np.cumsum(~has)))
    found = np.zeros(len(has) + 1, dtype=np.bool_)
    if cells <= len(has):
        found[: len(has) + 1 - cells] = lacking[cells:] == lacking[: len(has) + 1 - cells]
    return found


class _Solution:
    """The cheapest actions. `idle[cell, region, units]` is the action without nodes, where region 0 is that of a job
    without a commit; `runs[cell, zone, units]` that of a gang that trains; units are the remaining work."""

    def __init__(self, job: BoundedJob) -> None:
        self.job, self.grid = job, _Grid(job)
        self.zones = [_ZoneCells(job, zone, self.grid) for zone in job.zones]
        self.regions = list(dict.fromkeys(["", *(zone.plan.region for zone in job.zones)]))
        self.home = [self.regions.index(zone.plan.region) for zone in job.zones]
        self.commit = self.grid.below(job.program.commit_time)
        shape = self.grid.cells + 1, self.grid.units + 1
        self.idle: NDArray[np.int8] = np.full((shape[0], len(self.regions), shape[1]), WAIT, dtype=np.int8)
        self.runs: NDArray[np.int8] = np.full((shape[0], len(self.zones), shape[1]), STOP, dtype=np.int8)
        self.cost = self._solve()

    def moves(self, region: int, zone: int) -> float:
        """USD to read the checkpoint of this region in that zone."""
        source, target = self.regions[region], self.zones[zone].zone.plan.region
        gib = self.job.program.commit_size.bytes / GIB
        return self.job.egress.get((source, target), 0.0) * gib if source != target else 0.0

    def _solve(self) -> float:
        units, deepest = self.grid.units, max([self.commit, *(zone.delay for zone in self.zones)])
        never = np.full(units + 1, np.inf)
        over = never.copy()
        over[0] = 0.0
        # later[n] has the values of the cell after the n-th next one.
        later_idle = [[over] * len(self.regions) for _ in range(deepest + 1)]
        later_runs = [[never] * len(self.zones) for _ in range(deepest + 1)]
        for cell in range(self.grid.cells, -1, -1):
            on = [self._continued(index, cell, later_runs[0][index]) for index in range(len(self.zones))]
            idle = [
                self._idle(region, cell, later_idle[0][region], on, later_runs) for region in range(len(self.regions))
            ]
            after = idle if not self.commit else later_idle[self.commit - 1]
            runs = [self._stopped(index, cell, on[index], after[self.home[index]]) for index in range(len(self.zones))]
            later_idle, later_runs = [idle, *later_idle[:-1]], [runs, *later_runs[:-1]]
        return float(later_idle[0][0][-1])

    def _continued(self, index: int, cell: int, after: Floats) -> Floats:
        """The cost, by remaining units, of training in this zone in this cell."""
        found = np.full(self.grid.units + 1, np.inf)
        zone = self.zones[index]
        if cell < self.grid.cells and zone.has[cell]:
            found[1:] = zone.usd[cell] + after[:-1]
        return found

    def _stopped(self, index: int, cell: int, on: Floats, after: Floats) -> Floats:
        """The cost of a gang that may stop at this time, and records where it does."""
        zone = self.zones[index]
        if not zone.may_commit[cell]:
            self.runs[cell, index] = index
            return on
        stops = zone.commits[cell] + after
        self.runs[cell, index, on <= stops + TIE] = index
        found: Floats = np.minimum(on, stops)
        return found

    def _idle(
        self, region: int, cell: int, waits: Floats, on: Sequence[Floats], later_runs: Sequence[Sequence[Floats]]
    ) -> Floats:
        """The cost without nodes, and records in which zone a gang starts."""
        best = waits
        for index, zone in enumerate(self.zones):
            if not zone.may_start[cell]:
                continue
            trains = later_runs[zone.delay - 1][index] if zone.delay else on[index]
            starts = zone.starts[cell + zone.delay] + self.moves(region, index) + trains
            self.idle[cell, region, starts <= best + TIE] = index
            best = np.minimum(best, starts)
        return best

    def schedule(self) -> Schedule | None:
        """Follow the actions from the start."""
        if math.isinf(self.cost):
            return None
        cell, left, region, found = 0, self.grid.units, 0, []
        while left:
            index = int(self.idle[cell, region, left])
            if index == WAIT:
                cell += 1
                continue
            zone, size = self.zones[index], self.grid.size
            requested, begins, egress = cell, cell + zone.delay, self.moves(region, index)
            usd, cell = float(zone.starts[begins]) + egress, begins
            # A start without a delay is followed by training: `_idle` does not compare it with a stop at once.
            while (cell == begins and not zone.delay) or self.runs[cell, index, left] != STOP:
                usd, cell, left = usd + float(zone.usd[cell]), cell + 1, left - 1
            usd += float(zone.commits[cell])
            name = zone.zone.plan.name
            found.append(Stretch(name, requested * size, begins * size, cell * size, usd, egress))
            cell, region = cell + self.commit, self.home[index]
        return Schedule(self.cost, tuple(found))
