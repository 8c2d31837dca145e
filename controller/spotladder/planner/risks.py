"""Finds risky settings of a job, each described in one sentence with its field."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.facts.notice_fit import notice_misfits
from spotladder.core.model import FOR_EVER, Exhausted
from spotladder.display.figures import numbered
from spotladder.planner.plan import Estimated, PlanInput, between_failures

FEW_HOURS = 24.0
"""Node-hours of observation below which an eviction rate is unreliable."""


def risks(given: PlanInput, own: Estimated | None) -> list[str]:
    """All risks of the job. `own` is the estimate of the job, None if unknown."""
    found = [sentence for check in _CHECKS for sentence in check(given)]
    return found + (list(_outlook(given, own)) if own is not None else [])


def _tiers(given: PlanInput) -> Iterator[str]:
    last = len(given.tiers) - 1
    for index, facts in enumerate(given.tiers):
        at, tier = f"spec.tiers[{index}] ({facts.tier.name})", facts.tier
        if facts.known.unavailable:
            yield f"{at}: is unavailable now: {facts.known.unavailable}"
        if facts.never_open:
            yield f"{at}: its pool never provides a node: the tier is never used"
        elif not given.uses(facts):
            least = min(given.sizes, default=given.spec.workers)
            if facts.known.room is not None and facts.known.room < least:
                nodes = numbered(facts.known.room, "node")
                yield f"{at}: has at most {nodes}, but the job needs {least}: the tier is never used"
            else:
                most = max(int(trace.nodes.max()) for trace in facts.traces)
                yield f"{at}: its traces never have more than {most} of {least} nodes: the closed formulas leave it out"
        if not tier.price.known:
            yield f"{at}: its price is unknown, so the estimate does not include its cost"
        elif facts.spot and 0 < tier.price.on_demand <= tier.price.per_node_hour:
            yield f"{at}: spot costs as much as on demand"
        if facts.spot and facts.known.evictions is None:
            yield f"{at}: its eviction rate is unknown: set --evictions-per-node-hour"
        elif facts.spot and 0 < facts.known.observed < FEW_HOURS:
            yield f"{at}: its eviction rate is based on only {facts.known.observed:.1f} node-hours"
        if facts.spot and tier.max_failures == FOR_EVER and index < last:
            yield f"{at}: maxFailures is -1: the job reaches later tiers only after provisionTimeout without capacity"
        if facts.spot and 0 < tier.notice < given.spec.grace:
            yield (
                f"{at}: its notice is {format_duration(tier.notice)}, grace is "
                f"{format_duration(given.spec.grace)}: commits that take longer than the notice are lost"
            )


def _end(given: PlanInput) -> Iterator[str]:
    spec, last = given.spec, given.tiers[-1]
    if spec.exhausted is not Exhausted.FAIL:
        return
    if all(facts.spot for facts in given.tiers) and last.tier.max_failures != FOR_EVER:
        yield (
            "spec.tiers: all tiers are spot: the job fails when the last one is exhausted; add on-demand, or set "
            "exhausted"
        )
    elif not last.spot and last.tier.max_failures == 0:
        at = f"spec.tiers[{len(given.tiers) - 1}] ({last.tier.name})"
        yield f"{at}: it is the last tier, and the first lost pod fails the job: set maxFailures"


def _commits(given: PlanInput) -> Iterator[str]:
    if given.interval is None:
        return
    between = between_failures(given) * HOUR
    if given.interval > between:
        yield (
            f"spec.checkpoints.interval: {format_duration(given.interval)} is longer than the "
            f"{format_duration(round(between))} between two failures: the job may never progress"
        )
    if given.spec.stall_timeout < given.interval:
        yield "spec.stallTimeout is shorter than spec.checkpoints.interval: a healthy job counts as stalled"


def _notices(given: PlanInput) -> Iterator[str]:
    """Tiers whose notice ends before a commit is complete."""
    rates = {facts.tier.name: facts.known.evictions for facts in given.tiers if facts.known.evictions}
    tiers = [facts.tier for facts in given.tiers]
    for misfit in notice_misfits(tiers, given.commit_time, given.spec.workers, rates):
        yield f"spec.tiers[{misfit.index}]: {misfit.message}"


_CHECKS: tuple[Callable[[PlanInput], Iterator[str]], ...] = (_tiers, _end, _commits, _notices)


def _outlook(given: PlanInput, own: Estimated) -> Iterator[str]:
    """Risks that follow from the estimate."""
    spec, hours = given.spec, own.scenario.total_hours
    if own.expected.left > 0 and spec.exhausted is Exhausted.FAIL:
        yield f"all tiers are likely to be exhausted with {own.expected.left:.1f} h of work left"
    if spec.max_duration is not None and hours * HOUR > spec.max_duration:
        yield f"spec.maxDuration {format_duration(spec.max_duration)} is shorter than the expected {hours:.1f} h"
    if spec.deadline is not None and spec.submitted_at + hours * HOUR > spec.deadline:
        yield f"spec.deadline is before the end of the expected {hours:.1f} h"
    if spec.budget is not None and own.usd is not None and own.usd > spec.budget:
        yield f"spec.budget {spec.budget:.2f} USD is less than the expected {own.usd:.2f} USD"
    limit = own.cost.break_even_failures
    if own.scenario.max_failures > limit:
        yield f"{own.scenario.max_failures} failures are expected, but more than {limit:.0f} save nothing"
    if spec.backoff_limit is not None and own.expected.failures > spec.backoff_limit:
        yield f"spec.backoffLimit {spec.backoff_limit} is less than the expected number of failures"
