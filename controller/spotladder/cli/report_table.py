"""The report on a terminal: a short summary, then the attempts."""

from __future__ import annotations

from dataclasses import replace

import typer

from spotladder.cli.output import print_table
from spotladder.display.figures import count, count_of, money, paid, percent, saved, span
from spotladder.display.report import plan
from spotladder.display.report.facts import RunFacts
from spotladder.records.restarts import average

COLUMNS = ("#", "tier", "lasted", "steps", "recomputed", "failures", "cost", "ended by")


def rows(facts: RunFacts) -> list[tuple[str, ...]]:
    """One row for each attempt, in the order of `COLUMNS`."""
    dearest = max((attempt.cost for attempt in facts.attempts), default=0.0)
    return [
        (
            str(each.number),
            each.tier,
            span(each.end - each.start),
            f"{count(each.start_step)} → {count(each.end_step)}",
            count(each.recomputed),
            str(each.failures),
            money(each.cost, dearest),
            facts.ended_by(each),
        )
        for each in facts.attempts
    ]


def sentences(facts: RunFacts) -> list[tuple[str, str]]:
    """The summary: label and text."""
    rows = [
        ("steps", f"{count_of(facts.steps, facts.total)}, {count(facts.recomputed)} recomputed"),
        ("time", f"{span(facts.time.total)}, goodput {percent(facts.time.goodput)}{_scaled(facts)}"),
    ]
    restarts = [attempt.overhead for attempt in facts.attempts[1:] if attempt.overhead is not None]
    if restarts:
        each = "" if len(restarts) == 1 else " each on average"
        rows.append(("restarts", f"{len(restarts)}, {span(sum(restarts) / len(restarts))}{each} until a new step"))
    means = average(facts.restarts)
    if parts := [f"{name} {span(seconds)}" for name, seconds in means if round(seconds)]:
        label, real = "" if restarts else "restarts", " of real time" if facts.spec.step_time else ""
        until = f"{span(sum(seconds for _, seconds in means))}{real} until the first step"
        rows.append((label, f"{until}: {', '.join(parts)}"))
    if facts.on_demand > 0:
        rows.append(("paid", paid(facts.spent, unpriced=bool(facts.unpriced))))
        if facts.uninterrupted is not None:
            share = percent(saved(facts.spent, facts.uninterrupted))
            rows.append(("saved", f"{share} against {money(facts.uninterrupted)} on-demand, uninterrupted"))
        if facts.saved is not None:
            share = percent(facts.saved)
            rows.append(("", f"{share} against {money(facts.on_demand)} for the same nodes on demand"))
    if facts.plan is not None:
        rows += [("" if index else "plan", sentence) for index, sentence in enumerate(plan.sentences(facts.plan))]
    return rows


def planned(facts: RunFacts) -> RunFacts:
    """The facts with the place of the run in its plan, if the packages of the simulator are installed."""
    from spotladder.cli.plan_input import simulator_installed

    if not simulator_installed():
        return facts
    from spotladder.planner.hindsight import hindsight

    return replace(facts, plan=hindsight(facts))


def _scaled(facts: RunFacts) -> str:
    step_time = facts.spec.step_time
    return f"; each step counts as {span(step_time)} of training" if step_time else ""


def print_report(facts: RunFacts) -> None:
    """Print the report."""
    print_table(COLUMNS, [[_plain(cell) for cell in row] for row in rows(facts)])
    typer.echo()
    for label, text in sentences(facts):
        typer.echo(f"{label:<10}{_plain(text)}".rstrip())


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")
