"""Converts the options of `spotladder simulate` to a scenario of the simulator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import typer

from spotladder.cli.option_errors import option_errors, seconds
from spotladder.core.accounting import GIB
from spotladder.core.model import FOR_EVER, CapacityType, CommitSize, Instant, JobSpec, Price, Seconds, Tier
from spotladder.errors import InvalidSpec
from spotladder.planner.plan import check_budget
from spotladder.sim.compare import Scenario, ZoneSource, installed
from spotladder.sim.oracle import ORACLE
from spotladder.sim.readers import any_format
from spotladder.sim.readers import egress_prices as egress_file
from spotladder.sim.readers.any_format import Reading, read_trace
from spotladder.sim.readers.egress_prices import Egress
from spotladder.sim.readers.polarity import Polarity
from spotladder.sim.trace import Trace
from spotladder.sim.world.program import NO_COMMIT, ProgramPlan
from spotladder.sim.world.zone import ZonePlan
from spotladder.sim.zone_prices import KnownPrices, complete
from spotladder.sim.zone_traces import SyntheticSettings, ZoneTraces, assumptions

T = TypeVar("T")

SYNTHETIC = "synthetic"
HOUR = 3600
ON_DEMAND = "on-demand"

BAR_AFTER: Seconds = 1.0
"""Time after which a progress bar appears."""

BAR_EVERY: Seconds = 0.1
"""Minimum time between two updates of a progress bar."""


Traces = dict[str, ZoneTraces]
"""The traces by zone."""


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The options of the command, as they were given."""

    hours: float
    deadline: str | None
    start: Instant
    workers: int
    prices: KnownPrices
    synthetic: SyntheticSettings
    restart: str
    commit_interval: str | None
    commit_time: str
    provision_delay: str
    boot: str
    notice: str
    egress: Path | None
    checkpoint_gib: float
    atomic: bool
    surge: bool
    probed: bool


def read(given: list[str], polarity: str | None, *, sort: bool) -> Traces:
    """The traces that the options name. Raises InvalidSpec."""
    chosen, fitted = _polarity(polarity), f"{SYNTHETIC}:"

    def source(named: str, rest: str) -> dict[str, ZoneTraces]:
        if rest == SYNTHETIC:
            return {named or SYNTHETIC: ZoneTraces(synthetic=True)}
        zones, like = _zones(named, Path(rest.removeprefix(fitted)), chosen, sort=sort), rest.startswith(fitted)
        return {name: ZoneTraces(tuple(one.trace for one in found), synthetic=like) for name, found in zones.items()}

    forms = "[ZONE=]FILE, [ZONE=]synthetic or [ZONE=]synthetic:FILE"
    return _by_zone(given, source, forms, frozenset({"", fitted}), path="--trace")


def read_zones(given: list[str], polarity: str | None, *, sort: bool) -> dict[str, list[Reading]]:
    """The recorded traces that the arguments name, by zone, with their formats. Raises InvalidSpec."""
    chosen = _polarity(polarity)
    return _by_zone(given, lambda named, file: _zones(named, Path(file), chosen, sort=sort), "[ZONE=]FILE")


def _by_zone(
    given: list[str],
    read_one: Callable[[str, str], dict[str, T]],
    forms: str,
    incomplete: frozenset[str] = frozenset({""}),
    path: str = "",
) -> dict[str, T]:
    """What `read_one` finds for each argument, by zone. An argument is [ZONE=]REST, and `forms` says
    which; `incomplete` are values of REST that name no trace. Raises InvalidSpec, with the option `path`."""
    found: dict[str, T] = {}
    for text in given:
        named, _, rest = text.rpartition("=")
        if rest in incomplete or text.startswith("="):
            raise InvalidSpec(f"expected {forms}, got {text!r}: name a trace", path=path)
        for name, one in read_one(named, rest).items():
            if name in found:
                raise InvalidSpec(f"zone {name!r} is given twice: name one of them, as in b={rest}", path=path)
            found[name] = one
    return found


def _polarity(given: str | None) -> Polarity | None:
    if given is not None and given not in list(Polarity):
        raise InvalidSpec(f"expected available or preempted, got {given!r}", path="--polarity")
    return Polarity(given) if given else None


def _zones(named: str, file: Path, polarity: Polarity | None, *, sort: bool) -> dict[str, list[Reading]]:
    """The traces of a file or folder by zone. A name selects one of several zones, and names a single one. Warns of a
    polarity that may be wrong; raises InvalidSpec if it is, or for a name that is none of several zones."""
    zones = {
        found[0].trace.zone if len(found) == 1 else file.stem: found
        for found in any_format.read_zones(file, polarity, sort=sort)
    }
    if named and len(zones) > 1:
        if named not in zones:
            raise InvalidSpec(f"has no zone {named!r} (expected one of {', '.join(zones)})", where=str(file))
        zones = {named: zones[named]}
    for name, found in zones.items():
        doubt = None if polarity is not None else any_format.doubted(found)
        if doubt is not None:
            typer.echo(f"warning: {file if len(zones) == 1 else name}: {doubt.sentence}", err=True)
    return {named or name: found for name, found in zones.items()}


def policies(given: Sequence[str]) -> list[str]:
    """The policies of --policy, each once. Raises InvalidSpec for one that is not installed."""
    for name in given:
        try:
            if name != ORACLE:
                installed(name)
        except InvalidSpec as error:
            raise InvalidSpec(error.message, path="--policy") from None
    return list(dict.fromkeys(given))


def of_traces(traces: Traces, options: SimulationOptions) -> Scenario:
    """A job whose tiers are the zones of the traces, in their order, and then on-demand in the region of the first."""
    zones, tiers = [], []
    prices, assumed = complete({name: found.prices for name, found in traces.items()}, options.prices)
    notice = seconds("--notice", options.notice)
    for name, found in traces.items():
        price = prices[name]
        zones.append(found.source(_plan(name, price, notice, options), options.workers, options.synthetic))
        tiers.append(Tier(name, FOR_EVER, 600.0, CapacityType.SPOT, price, notice=notice, surge=options.surge))
    if ON_DEMAND in traces:
        raise InvalidSpec(f"{ON_DEMAND!r} is the tier that is added: name the zone otherwise", path="--trace")
    dearest = max(tier.price.on_demand for tier in tiers)
    fallback = _plan(ON_DEMAND, Price(dearest, dearest), 0.0, options)
    zones.append(ZoneSource(replace(fallback, region=zones[0].plan.region)))
    tiers.append(Tier(ON_DEMAND, FOR_EVER, 1800.0, CapacityType.ON_DEMAND, Price(dearest, dearest)))
    program = _program(options, seconds("--commit-interval", options.commit_interval or "5m"), options.workers)
    spec = JobSpec(tuple(tiers), workers=options.workers, stall_timeout=max(600.0, 5 * program.commit_interval))
    names = {tier.name: tier.name for tier in tiers}
    assumed += assumptions(traces, options.synthetic)
    return replace(_scenario(spec, program, zones, names, options), assumptions=assumed)


def of_job(file: Path, world: Path | None, traces: Traces, options: SimulationOptions) -> Scenario:
    """The job of a file, on the traces of its capacityTiers. Raises InvalidSpec."""
    from spotladder.api.checkpoint_fields import interval_seconds
    from spotladder.api.read import errors_located, read_job
    from spotladder.api.resolve import Capacity, capacity_of, job_spec, sizes
    from spotladder.cli.tier_facts import closed_periods, priced_world

    job = read_job(file)
    names = list(dict.fromkeys(entry.capacity_tier for entry in job.spec.tiers))
    if unknown := [name for name in traces if name not in names]:
        raise InvalidSpec(
            f"{unknown[0]!r} is not a capacityTier of the job (expected one of {', '.join(names)}): write NAME=FILE",
            path="--trace",
        )
    traced = {name: found.prices for name, found in traces.items()}
    unpriced = [name for name in names if name not in traced or traced[name].spot is None]
    given = None if world is None else priced_world(world, unpriced)
    capacity: dict[str, Capacity] = {} if given is None else capacity_of(given)
    closed = {} if given is None else {name: closed_periods(pool) for name, pool in given.pools.items()}
    for name, found in traced.items():
        if given is not None and name in given.pools and given.pools[name].price is None and found.spot is not None:
            capacity[name] = replace(capacity[name], price=Price.listed(found.spot, found.on_demand))
    listed = {name: KnownPrices(one.price.per_node_hour, one.price.on_demand) for name, one in capacity.items()}
    prices, assumed = complete(traced | {name: listed[name] for name in names if name in listed}, options.prices)
    dearest = max(price.on_demand for price in prices.values())
    fallback = dearest if options.prices.on_demand is None else options.prices.on_demand
    for name in names:
        if name in traces and name not in capacity:
            capacity[name] = Capacity(CapacityType.SPOT, prices[name], seconds("--notice", options.notice))
        capacity.setdefault(name, Capacity(CapacityType.ON_DEMAND, Price(fallback, fallback)))
    with errors_located(file):
        spec = _relative(job_spec(job, capacity, submitted_at=options.start), options)
    zones = [
        traces[name].source(
            _plan(name, capacity[name].price, capacity[name].notice, options), spec.workers, options.synthetic
        )
        if name in traces
        else ZoneSource(replace(_plan(name, capacity[name].price, 0.0, options), closed=closed.get(name, ())))
        for name in names
    ]
    interval = options.commit_interval or job.spec.checkpoints.interval
    if not options.commit_interval and interval_seconds(interval) is None:
        raise InvalidSpec(
            f"is in steps (got {interval}): specify --commit-interval",
            path="spec.checkpoints.interval",
            where=str(file),
        )
    program, elastic = _program(options, seconds("--commit-interval", interval), spec.workers), job.spec.elastic
    program = replace(program, stands_by=job.spec.overlap is not None)
    if elastic is not None:
        program = replace(program, hands_over=True, sizes=sizes(job), grow_after=elastic.grow_after)
    tiers = {tier.name: entry.capacity_tier for tier, entry in zip(spec.tiers, job.spec.tiers, strict=True)}
    with errors_located(file):
        scenario = _scenario(replace(spec, suspend=False), program, zones, tiers, options)
    return replace(scenario, assumptions=assumed + assumptions(traces, options.synthetic))


def _relative(spec: JobSpec, options: SimulationOptions) -> JobSpec:
    """The spec with its deadline as a duration from --start. Raises InvalidSpec for one before the end of the work."""
    if spec.deadline is None or options.deadline is not None:
        return replace(spec, deadline=None, submitted_at=0.0)
    left = spec.deadline - options.start
    if left < options.hours * HOUR:
        problem = f"leaves {left / HOUR:.4g} h" if left > 0 else "is in the past"
        raise InvalidSpec(
            f"{problem} (expected at least the work, {options.hours:g} h, from now on or from --start): set a later "
            "deadline, or specify --start or --deadline",
            path="spec.deadline",
        )
    limit = left if spec.max_duration is None else min(left, spec.max_duration)
    return replace(spec, deadline=None, max_duration=limit, submitted_at=0.0)


def instant(text: str | None, now: Instant) -> Instant:
    """The epoch second of `--start`; `now` without it. Raises InvalidSpec."""
    if text is None:
        return now
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidSpec(
            f"expected a date and a time with a time zone, as in 2026-12-01T00:00:00Z, got {text!r}", path="--start"
        )
    return moment.timestamp()


def _scenario(
    spec: JobSpec, program: ProgramPlan, zones: list[ZoneSource], tiers: dict[str, str], options: SimulationOptions
) -> Scenario:
    limit = spec.max_duration
    if options.deadline is not None:
        limit = seconds("--deadline", options.deadline)
        if limit < program.work:
            raise InvalidSpec(
                f"expected at least the work ({options.hours:g} h), got {limit / HOUR:g} h: give the job more time",
                path="--deadline",
            )
    elif limit is not None and limit < program.work:
        raise InvalidSpec(
            f"leaves {limit / HOUR:.4g} h (expected at least the work, {options.hours:g} h): set a longer one, or "
            "specify fewer --hours",
            path="spec.maxDuration",
        )
    check_budget(spec, options.hours, map(_least_price, zones))
    prices = _egress(options.egress, [source.plan.region for source in zones])
    return Scenario(
        replace(spec, max_duration=limit), program, tuple(zones), tiers, prices, options.atomic, options.probed
    )


def _least_price(source: ZoneSource) -> float:
    """The lowest price of the zone, in USD per node-hour."""
    prices = [float(trace.prices.min()) for trace in source.traces if trace.prices is not None]
    return min(prices, default=source.plan.price.per_node_hour)


def _egress(file: Path | None, regions: list[str]) -> Egress:
    """The prices between all of these regions. Raises InvalidSpec for one that is missing."""
    if file is None:
        return {}
    prices = egress_file.read(file)
    for source in regions:
        for target in regions:
            if source != target and (source, target) not in prices:
                raise InvalidSpec(f"has no price from {source} to {target}: add a line for it", where=str(file))
    return prices


def _program(options: SimulationOptions, interval: Seconds, workers: int) -> ProgramPlan:
    """The program; its commits have one file of each worker."""
    restart, commit_time = seconds("--restart", options.restart), seconds("--commit-time", options.commit_time)
    work = max(1, round(options.hours * HOUR))
    size = CommitSize(workers, round(options.checkpoint_gib * GIB)) if options.checkpoint_gib else NO_COMMIT
    with option_errors():
        return ProgramPlan(work, restart, interval, commit_time, commit_size=size, hands_over=options.surge)


def _plan(name: str, price: Price, notice: Seconds, options: SimulationOptions) -> ZonePlan:
    delay, boot = seconds("--provision-delay", options.provision_delay), seconds("--boot", options.boot)
    return ZonePlan(name, None, price, delay, boot, notice, region=region_of(name))


def region_of(zone: str) -> str:
    """The region of a zone: `us-east-1` of `us-east-1a`, `us-central1` of `us-central1-a`; else the name itself."""
    name = zone.partition("_")[0]
    if name[-2:-1] == "-" and name[-1:].isalpha():
        return name[:-2]
    return name[:-1] if name[-2:-1].isdigit() and name[-1:].isalpha() else name


def with_quotas(scenario: Scenario, given: list[str]) -> Scenario:
    """The scenario with the quotas of `--quota`. Raises InvalidSpec."""
    quotas: dict[str, Trace] = {}
    names = [source.plan.name for source in scenario.zones]
    for text in given:
        zone, _, file = text.partition("=")
        if zone not in names or not file:
            raise InvalidSpec(f"expected ZONE=FILE with a zone of {', '.join(names)}, got {text!r}", path="--quota")
        quotas[zone] = read_trace(Path(file))
    zones = tuple(
        replace(source, plan=replace(source.plan, quota=quotas.get(source.plan.name))) for source in scenario.zones
    )
    return replace(scenario, zones=zones)


def with_jobs(scenario: Scenario, jobs: int, interval: str) -> Scenario:
    """The scenario with the number of `--jobs` and their `--job-interval`. Raises InvalidSpec beside a quota: the
    simulated queues admit each job as if it were alone."""
    if jobs > 1 and any(source.plan.quota is not None for source in scenario.zones):
        raise InvalidSpec("cannot be used with --quota: remove one of the two", path="--jobs")
    apart = seconds("--job-interval", interval)
    if apart and jobs == 1:
        raise InvalidSpec("goes with --jobs", path="--job-interval")
    return replace(scenario, jobs=jobs, interval=apart)


def recorded(traces: Traces) -> list[tuple[str, tuple[Trace, ...]]]:
    """The zones with recorded traces. Raises InvalidSpec without one: there is nothing to compare with."""
    found = [(name, source.traces) for name, source in traces.items() if source.traces]
    if not found:
        raise InvalidSpec("needs a recorded trace: specify --trace FILE or --trace synthetic:FILE", path="--survival")
    return found


@contextmanager
def bar(total: int, now: Callable[[], float] = time.monotonic) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, for work that takes longer than BAR_AFTER. What it yields is called with the
    number of runs that have ended. The bar has no thread of its own, so that processes can be forked."""
    if not sys.stderr.isatty():
        yield lambda _runs: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False, get_time=now)
    task, due = progress.add_task("", total=total), now() + BAR_AFTER
    with ExitStack() as shown:

        def done(runs: int) -> None:
            nonlocal due
            progress.advance(task, runs)
            if now() < due:
                return
            if not progress.live.is_started:
                shown.enter_context(progress)
            progress.refresh()
            due = now() + BAR_EVERY

        yield done
