"""What a forecast rests on: the observations of the tiers, and the assumptions where there are none."""

from __future__ import annotations

import math

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import Seconds, Tier
from spotladder.display.figures import hours
from spotladder.planner.plan import PlanInput, TierFacts, longest
from spotladder.planner.simulated import Assumptions
from spotladder.planner.tier_capacity import OUTAGE, beyond_record, comparable_record
from spotladder.sim.trace import share_of

Z = 1.96
"""Standard deviations of a 95 % interval."""


def observed(given: PlanInput) -> list[str]:
    """The observations of the spot tiers, one sentence for each, with the 95 % interval of the loss rate."""
    return [sentence for facts in given.tiers if facts.spot and (sentence := _observed(facts, given.spec.workers))]


def _observed(facts: TierFacts, workers: int) -> str:
    if facts.known.evictions is None or not facts.rate_is_observed:
        return ""
    losses = round(facts.known.evictions * facts.known.observed)
    low, high = (limit / facts.known.observed for limit in poisson_range(losses))
    rate = f"{facts.known.evictions:.3g} per node and hour (95 %: {low:.2g} to {high:.2g})"
    if not facts.traces:
        return f"{facts.tier.name}: {_count(losses, 'loss', 'losses')} in {facts.known.observed:.0f} node-hours, {rate}"
    traced = sum(trace.end for trace in facts.traces) / HOUR
    share = 100 * share_of(facts.traces, workers)
    files = ", ".join(dict.fromkeys(trace.source or trace.zone for trace in facts.traces[:3]))
    more = f" and {len(facts.traces) - 3} more" if len(facts.traces) > 3 else ""
    return (
        f"{facts.tier.name}: {hours(traced)} h of {files}{more}, {share:.0f} % of them with nodes for all workers, "
        f"which were lost {_count(losses, 'time', 'times')}: {rate}"
    )


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def poisson_range(count: int) -> tuple[float, float]:
    """The 95 % confidence interval of the mean of a Poisson count (Byar's approximation, in Breslow and Day, 1987)."""
    low = count * (1 - 1 / (9 * count) - Z / (3 * math.sqrt(count))) ** 3 if count else 0.0
    more = count + 1
    return low, more * (1 - 1 / (9 * more) + Z / (3 * math.sqrt(more))) ** 3


def assumed(assumptions: Assumptions, given: PlanInput) -> list[str]:
    """What is assumed of the program and of the tiers, one sentence each."""
    restart = format_duration(assumptions.restart)
    interval, commit = format_duration(assumptions.commit_interval), format_duration(assumptions.commit_time)
    takes = f"a commit takes {commit}" + (", the longest that a run of the job measured" if given.measured else "")
    sentences = [f"the program restarts in {restart}; it commits every {interval}, and {takes}"]
    sentences += _capacity([facts for facts in given.tiers if facts.spot], given.spec.workers, longest(given))
    sentences += [_closed(facts) for facts in given.tiers if facts.known.closed]
    sentences += [_steady(facts.tier) for facts in given.tiers if _varied(facts.tier)]
    if unpriced := [facts.tier.name for facts in given.tiers if not facts.tier.price.known]:
        sentences.append(f"the price of {', '.join(unpriced)} is unknown: the simulated runs count it as $0.00")
    spot = [facts.tier for facts in given.tiers if facts.spot]
    if spot and not any(tier.price.known and tier.price.on_demand for tier in spot):
        sentences.append("the closed formulas take spot to cost 10 % of on demand, whose price is unknown or 0")
    if assumptions.commit_size is None and _priced_commits(given):
        sentences.append("commits cost nothing: their size is unknown, set --checkpoint-gib")
    if guessed := [facts.tier.name for facts in given.tiers if facts.known.ready_after is None]:
        sentences.append(f"a node of {', '.join(guessed)} is ready after {format_duration(assumptions.ready_after)}")
    return sentences


def _capacity(spot: list[TierFacts], workers: int, horizon: Seconds) -> list[str]:
    """The assumptions about the capacity of the spot tiers in runs of at most `horizon` seconds."""
    sentences = []
    if drawn := [facts for facts in spot if not facts.traces]:
        sentences.append("losses come at the tier's rate, and less often on older capacity, as in public spot traces")
        if uncertain := [facts for facts in drawn if facts.rate_is_observed]:
            known = ", ".join(f"{hours(facts.known.observed)} of {facts.tier.name}" for facts in uncertain)
            sentences.append(f"each run draws its loss rate from those that the observed node-hours allow ({known})")
        if unknown := [facts.tier.name for facts in drawn if facts.known.evictions is None]:
            sentences.append(
                f"nothing is known about losses on {', '.join(unknown)}: each run draws a rate, which differ as widely "
                "as those of public spot traces, so that the range is wide"
            )
        sentences.append(f"a request that fails waits {format_duration(OUTAGE)} beyond provisionTimeout on average")
    if traced := [facts for facts in spot if facts.traces]:
        names = ", ".join(facts.tier.name for facts in traced)
        begins, like_now = f"each run begins at a random moment of the traces of {names}", ""
        if all(facts.until_now for facts in traced):
            begins = f"each run goes on as the traces of {names} did when capacity was like now and in the hours before"
            like_now = " like now"
        sentences.append(begins)
        comparable = comparable_record(traced, workers)
        runs = 1 / beyond_record(comparable, horizon)
        rare = f"in 1 of {runs:.2g} runs" if runs < 100 else f"in 1 of {runs:.0f} runs"
        sentences.append(
            f"{rare} capacity is lost for good at a random moment, and {rare} it comes for good: "
            f"{hours(comparable / HOUR)} h of trace{like_now} do not show all that can happen in "
            f"{hours(horizon / HOUR)} h"
        )
    for closed, when in ((False, "always succeed"), (True, "succeed at all other times")):
        unknown = [
            facts.tier.name
            for facts in drawn
            if facts.known.availability is None and bool(facts.known.closed) is closed and not facts.never_open
        ]
        if unknown:
            sentences.append(f"requests for nodes on {', '.join(unknown)} {when}: their capacity is unknown")
    return sentences


def _varied(tier: Tier) -> bool:
    """Whether the recorded price of the tier has changed."""
    return len({point.usd for point in tier.prices}) > 1


def _steady(tier: Tier) -> str:
    """The assumption that the price of the tier no longer changes."""
    usd = [point.usd for point in tier.prices]
    return (
        f"the price of {tier.name} stays at ${tier.price.per_node_hour:.4g} per node-hour, as now; it was "
        f"${min(usd):.4g} to ${max(usd):.4g}"
    )


def _closed(facts: TierFacts) -> str:
    """When the pool of the tier provides no new nodes."""
    periods = " and ".join(
        f"from {format_duration(begins)} " + ("on" if ends == math.inf else f"to {format_duration(ends)}")
        for begins, ends in facts.known.closed
    )
    return f"{facts.tier.name} provides no new nodes {periods}, after the start of the job"


def _priced_commits(given: PlanInput) -> bool:
    """Whether stored commits or egress have a price."""
    return bool(given.spec.storage_per_gib_month) or any(facts.tier.egress_per_gib for facts in given.tiers)


def chosen_by(policy: str) -> str:
    """Which policy the runs and the closed formulas describe."""
    runs = f"the policy {policy} chooses the tiers"
    return runs if policy == "ordered" else f"{runs} of the simulated runs; the closed formulas describe ordered"
