"""A comparison as rows of text: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.display.figures import NONE, numbered, span
from spotladder.sim.compare import Scenario, Summary

COLUMNS = ("Policy", "Succeeded", "Cost", "p90", "Saved", "Ends after", "Evictions", "Recomputed", "Starts")


def on_demand_cost(scenario: Scenario) -> float:
    """USD for the work of the scenario on demand, without interruptions."""
    price = max(tier.price.on_demand for tier in scenario.spec.tiers)
    return scenario.spec.workers * price * scenario.program.work / HOUR


def title(scenario: Scenario) -> str:
    """A description of the comparison in one sentence."""
    nodes = numbered(scenario.spec.workers, "node")
    work = f"{scenario.program.work / HOUR:g} h of work on {nodes}"
    if scenario.jobs > 1:
        apart = f", one every {format_duration(scenario.interval)}" if scenario.interval else ""
        work = f"{scenario.jobs} jobs that share the capacity{apart}, each {work}"
    return f"{work}; on demand without interruptions: ${on_demand_cost(scenario):.2f}"


def rows(summaries: Sequence[Summary], scenario: Scenario) -> list[tuple[str, ...]]:
    """One row for each policy, in the order of `COLUMNS`."""
    least = on_demand_cost(scenario)
    return [
        (
            summary.policy,
            f"{summary.succeeded} of {len(summary.outcomes)}",
            f"${summary.cost:.2f}",
            f"${summary.cost_at(90):.2f}",
            f"{100 * (1 - summary.cost / least):.1f} %".replace("-", "−") if least and summary.succeeded else NONE,
            NONE if summary.hours is None else span(summary.hours * HOUR),
            f"{summary.evictions:.1f}",
            span(summary.recomputed * HOUR),
            span(summary.overhead * HOUR),
        )
        for summary in summaries
    ]


JOB_COLUMNS = ("Policy", "Job", "Begins after", "Succeeded", "Cost", "Ends after", "Evictions", "Starts")

JOB_TITLE = "Each job, means over the runs"


def job_rows(summaries: Sequence[Summary], scenario: Scenario) -> list[tuple[str, ...]]:
    """One row for each job of each policy, in the order of `JOB_COLUMNS`; none for a single job."""
    if scenario.jobs == 1:
        return []
    return [
        (
            one.policy,
            str(job),
            span(job * scenario.interval),
            f"{one.succeeded} of {len(one.outcomes)}",
            f"${one.cost:.2f}",
            NONE if one.hours is None else span(one.hours * HOUR),
            f"{one.evictions:.1f}",
            span(one.overhead * HOUR),
        )
        for summary in summaries
        for job in range(scenario.jobs)
        for one in [summary.of_job(job, scenario.jobs)]
    ]


def failures(summaries: Sequence[Summary]) -> list[str]:
    """For each policy with failed runs, a sentence with the reasons, and one for runs that reached their limit."""
    found = []
    for summary in summaries:
        reasons = sorted({str(one.reason) for one in summary.outcomes if not one.succeeded and one.ended})
        if reasons:
            found.append(f"{summary.policy}: runs without success ended with {', '.join(reasons)}")
        if longest := max((one.finished for one in summary.outcomes if not one.ended), default=0.0):
            found.append(f"{summary.policy}: runs without an end were stopped after {span(longest)}")
    return found
