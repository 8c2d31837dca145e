"""The simulated part of `spotladder plan`: its options, tables and data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spotladder.cli.output import print_table
from spotladder.cli.what_if import FIELDS, WhatIf
from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import FOR_EVER
from spotladder.display.figures import NONE, span
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.cli.tier_facts import KnownFacts
    from spotladder.core.model import JobState
    from spotladder.planner.advice import IntervalAdvice
    from spotladder.planner.plan import Question
    from spotladder.planner.search import Curves, Proposal, Tried
    from spotladder.planner.simulated import Assumptions, Distribution, Forecast

LEAST_WAITING = 0.01
"""Share of the cost from which the cost of waiting nodes is shown."""

COLUMNS = ("Of the runs", "Mean", "p10", "p50", "p90", "p99")


@dataclass(frozen=True, slots=True)
class Simulated:
    """The forecast of the job, those of its variants, and the settings that follow from them and from the
    statistics."""

    assumptions: Assumptions
    seed: int
    own: Forecast
    variants: tuple[tuple[WhatIf, tuple[tuple[str, Forecast], ...]], ...]
    proposal: Proposal | None
    curves: Curves
    interval: IntervalAdvice | None
    on_demand_usd: float | None


def with_traces(known: KnownFacts, given: Sequence[str], polarity: str | None) -> KnownFacts:
    """The facts with the recorded traces of --trace, as TIER=FILE. Raises InvalidSpec."""
    if not given:
        if polarity is not None:
            raise InvalidSpec("goes with --trace", path="--polarity")
        return known
    if find_spec("numpy") is None:
        raise InvalidSpec("install 'spotladder[sim]'", path="--trace")
    from spotladder.cli.simulation import read
    from spotladder.planner import tier_capacity

    found = read(list(given), polarity, sort=False)
    names = [facts.tier.name for facts in known.tiers]
    if unknown := [name for name in found if name not in names]:
        raise InvalidSpec(
            f"the job has no tier {unknown[0]!r} (expected one of {', '.join(names)}): write TIER=FILE", path="--trace"
        )
    if invented := [name for name, source in found.items() if source.synthetic]:
        raise InvalidSpec(
            f"{invented[0]}: runs without a trace are synthetic already: name a file, or omit it", path="--trace"
        )
    tiers = tuple(
        tier_capacity.with_traces(facts, found[facts.tier.name].traces, known.spec.workers)
        if facts.tier.name in found
        else facts
        for facts in known.tiers
    )
    return replace(known, tiers=tiers, spec=replace(known.spec, tiers=tuple(facts.tier for facts in tiers)))


def simulate(question: Question, assumptions: Assumptions, runs: int, seed: int, asked: list[WhatIf]) -> Simulated:
    """Simulate the job and its variants, each with the same seeds. Raises InvalidSpec."""
    from spotladder.cli.simulation import bar
    from spotladder.planner.advice import interval
    from spotladder.planner.runs import Runs
    from spotladder.planner.search import advised, most_runs
    from spotladder.planner.simulated import expected_uninterrupted_usd, summed, with_tier

    seeds, best = range(seed, seed + runs), interval(question, assumptions.commit_time)
    wanted = None if best is None or question.interval is None else rounded(best.interval)
    total = runs * (1 + sum(len(one.values) for one in asked)) + most_runs(question, runs)
    with bar(total) as done:
        known = Runs(done)

        def variant(one: WhatIf, value: float) -> Forecast:
            changed = with_tier(question, one.tier, **{FIELDS[one.field]: value})
            return summed(changed, known.of(changed, assumptions, seeds))

        own = known.of(question, assumptions, seeds)
        variants = tuple((one, tuple((text, variant(one, value)) for text, value in one.values)) for one in asked)
        found = advised(question, assumptions, known, seeds, wanted)
    usd = expected_uninterrupted_usd(question, assumptions)
    before = summed(question, own)
    return Simulated(assumptions, seed, before, variants, found.proposal, found.curves, best, usd)


def print_forecast(found: Simulated, question: Question, run: JobState | None) -> None:
    """The tables of the terminal. `run` is the state of the job's last run."""
    from spotladder.planner.assumptions import assumed, observed
    from spotladder.planner.last_run import compared

    own = found.own
    share = f"{100 * own.success:.0f} % ({100 * own.success_range[0]:.0f}–{100 * own.success_range[1]:.0f} %)"
    limited = question.spec.deadline is not None or question.spec.max_duration is not None
    typer.echo()
    title = f"Simulated: {own.runs} runs, {share} succeed" + (" before the deadline" if limited else "")
    ends = "Ends after" if own.success in (0.0, 1.0) else "Ends after, if it succeeds"
    rows = [_row("Cost", own.cost, "${:.2f}".format), _row(ends, own.hours, _hours)]
    rows += [_row(f"Cost on {tier.name}", tier.cost, "${:.2f}".format) for tier in own.tiers]
    rows += [_row(f"Time on {tier.name}", tier.hours, _hours) for tier in own.tiers]
    print_table(COLUMNS, rows, title)
    typer.echo()
    used = ", ".join(f"{tier.name} {100 * tier.used:.0f} %" for tier in own.tiers)
    typer.echo(
        f"used by: {used} of the runs; {own.losses.mean:.1f} losses, {_hours(own.recomputed.mean)} recomputed (means)"
    )
    of_share = f", that of the share of runs ±{100 * own.success_error:.1f} %" if own.success_error else ""
    typer.echo(f"confidence: the standard error of the mean cost is ±${own.cost.error:.2f}{of_share}")
    if own.waiting >= LEAST_WAITING * own.cost.mean > 0:
        typer.echo(
            f"of that, ${own.waiting:.2f} are for nodes that wait until their gang is complete and the program starts"
        )
    if parts := [f"${usd:.2f} for {name}" for name, usd in asdict(own.extra).items() if usd]:
        typer.echo(f"of that, {', '.join(parts)}, which the closed formulas do not include")
    if found.on_demand_usd and own.success:
        saved = f"{100 * (1 - own.cost.mean / found.on_demand_usd):.1f} %".replace("-", "−")
        typer.echo(f"on demand without interruptions: ${found.on_demand_usd:.2f}; the mean saves {saved}")
    if (last := compared(found.own, question, run)) is not None:
        typer.echo(f"compared: {last}")
    for one, results in found.variants:
        typer.echo()
        headings = (one.field, "Succeed", "Cost", "p90", "Ends after", "Losses")
        print_table(headings, [_variant_row(text, result) for text, result in results], f"What if: {one.option}")
    typer.echo()
    for sentence in advice(found, question):
        typer.echo(f"advice: {sentence}")
    for sentence in observed(question):
        typer.echo(f"observed: {sentence}")
    for sentence in assumed(found.assumptions, question):
        typer.echo(f"assumed: {sentence}")


def draw(file: Path, found: Simulated) -> None:
    """Write the picture of the forecast. Raises EnvironmentFailure."""
    from spotladder.planner import plots

    after = None if found.proposal is None else found.proposal.after
    curves = [plots.of_what_if(one.option, results) for one, results in found.variants] + plots.of_search(found.curves)
    plots.draw(file, found.own, after, curves, found.interval)


def advice(found: Simulated, question: Question) -> list[str]:
    """Suggestions, one sentence each."""
    sentences = []
    for facts in question.tiers:
        ready, timeout = facts.ready_after, facts.tier.provision_timeout
        ready = found.assumptions.ready_after if ready is None else ready
        if timeout < ready:
            why = f"it is {format_duration(timeout)}, and a node is ready after {format_duration(ready)}"
            sentences.append(f"raise provisionTimeout of {facts.tier.name}: {why}")
    if found.proposal is not None:
        sentences.append(_proposed(found.proposal, question))
    if (best := found.interval) is not None:
        young = best.curve[-1]
        sentences.append(
            f"commit every {_rounded(best.interval)}, which costs {100 * best.share:.1f} % of the time"
            + ("" if best.own_share is None else f" (the job's interval: {100 * best.own_share:.1f} %)")
            + f"; every {_rounded(young.interval)} on capacity older than {_rounded(young.age)}, by {best.source}"
        )
    limit = _limit(question)
    spot = [facts for facts in question.tiers if facts.spot]
    if limit is not None and spot and (hours := found.own.ends_within(0.9)) is not None:
        slack = limit - hours * HOUR
        if slack > 0:
            sentences.append(
                f"provisionTimeout: the deadline leaves {_rounded(slack)} after nine of ten runs; keep the sum of the "
                "timeouts of the spot tiers below that"
            )
    return sentences


def _proposed(found: Proposal, question: Question) -> str:
    """The changed settings and their effect."""
    known = {facts.tier.name: facts.tier for facts in question.tiers}
    names = [facts.tier.name for facts in found.tiers]
    changes = [f"the order {', '.join(names)}"] if names != list(known) else []
    spot = [facts.tier for facts in found.tiers if facts.spot]
    same = len(spot) > 1 and len({tier.max_failures for tier in spot}) == 1
    if same and any(tier.max_failures != known[tier.name].max_failures for tier in spot):
        changes.append(f"maxFailures {spot[0].max_failures} on all spot tiers")
    for facts in found.tiers:
        old, new = known[facts.tier.name], facts.tier
        if new.max_failures != old.max_failures and not (same and facts.spot):
            changes.append(f"maxFailures {new.max_failures} on {new.name}")
        if new.provision_timeout != old.provision_timeout:
            changes.append(f"provisionTimeout {format_duration(new.provision_timeout)} on {new.name}")
    if found.commit_interval is not None:
        changes.append(f"commits every {format_duration(found.commit_interval)}")
    before, after = found.before, found.after
    effect = f"${after.cost.mean:.2f} instead of ${before.cost.mean:.2f}"
    saving = f"a saving of ${found.saving:.2f} ± {found.error:.2f}".replace("$-", "−$")
    if after.success != before.success:
        effect += f", and {100 * after.success:.0f} % of the runs succeed instead of {100 * before.success:.0f} %"
    means = f"{saving}, mean and standard error of {after.runs} pairs of runs; {found.candidates} settings tried"
    return f"use {'; '.join(changes)}: {effect} ({means}); --write FILE writes this job"


def plain(found: Simulated, question: Question, run: JobState | None) -> dict[str, Any]:
    """The forecast as data for JSON and YAML. `run` is the state of the job's last run."""
    from spotladder.planner.assumptions import assumed, observed
    from spotladder.planner.last_run import compared

    last = compared(found.own, question, run)
    return {
        "seed": found.seed,
        **_plain(found.own),
        "onDemandUsd": None if found.on_demand_usd is None else round(found.on_demand_usd, 4),
        "lastRun": None
        if last is None
        else {
            "reason": last.reason,
            "costUsd": round(last.cost, 4),
            "hours": round(last.hours, 4),
            "workHours": round(last.work, 4),
            "cheaperRunsShare": None if last.shares is None else round(last.shares[0], 4),
            "fasterRunsShare": None if last.shares is None else round(last.shares[1], 4),
        },
        "whatIf": [
            {
                "tier": one.tier,
                "field": one.field,
                "values": [{"value": text, **_plain(result)} for text, result in results],
            }
            for one, results in found.variants
        ],
        "advice": {
            "tierOrder": _order(found, question),
            "proposal": None if found.proposal is None else _plain_proposal(found.proposal),
            **_plain_curves(found.curves),
            "commitIntervalSeconds": None if found.interval is None else round(found.interval.interval, 1),
            "commitIntervalByAgeSource": None if found.interval is None else found.interval.source,
            "commitIntervalByAge": []
            if found.interval is None
            else [
                {
                    "ageSeconds": round(at.age, 1),
                    "secondsBetweenLosses": round(at.between_losses, 1),
                    "intervalSeconds": round(at.interval, 1),
                }
                for at in found.interval.curve
            ],
            "sentences": advice(found, question),
        },
        "observations": observed(question),
        "assumptions": assumed(found.assumptions, question),
    }


def _order(found: Simulated, question: Question) -> list[str] | None:
    """The names of the tiers in the proposed order; None if it is the job's."""
    names = [] if found.proposal is None else [facts.tier.name for facts in found.proposal.tiers]
    return None if names in ([], [facts.tier.name for facts in question.tiers]) else names


def _plain_proposal(found: Proposal) -> dict[str, Any]:
    return {
        "tiers": [
            {
                "name": facts.tier.name,
                "maxFailures": facts.tier.max_failures,
                "provisionTimeout": format_duration(facts.tier.provision_timeout),
            }
            for facts in found.tiers
        ],
        "commitInterval": None if found.commit_interval is None else format_duration(found.commit_interval),
        "before": _plain(found.before),
        "after": _plain(found.after),
        "savingUsd": round(found.saving, 4),
        "savingUsdStandardError": round(found.error, 4),
        "settingsTried": found.candidates,
    }


def _plain_curves(found: Curves) -> dict[str, Any]:
    """The curves from which the advice follows."""
    return {
        "tierOrderCurve": [{"tiers": list(names), **_plain_tried(one)} for names, one in found.orders.items()],
        "maxFailuresCurve": [{"maxFailures": value, **_plain_tried(one)} for value, one in found.max_failures.items()],
        "provisionTimeoutCurves": [
            {
                "tier": name,
                "values": [
                    {"provisionTimeout": format_duration(value), **_plain_tried(one)} for value, one in values.items()
                ],
            }
            for name, values in found.provision_timeouts.items()
        ],
    }


def _plain_tried(one: Tried) -> dict[str, Any]:
    return {"meanCostUsd": round(one.usd, 4), "successProbability": round(one.success, 4), "runs": one.runs}


def _plain(result: Forecast) -> dict[str, Any]:
    return {
        "runs": result.runs,
        "successProbability": round(result.success, 4),
        "successProbabilityRange": [round(value, 4) for value in result.success_range],
        "successProbabilityStandardError": round(result.success_error, 4),
        "costUsd": _distribution(result.cost),
        "costUsdStandardError": round(result.cost.error, 4),
        "finishHours": None if result.hours is None else _distribution(result.hours),
        "losses": round(result.losses.mean, 4),
        "lossesPercentiles": _percentiles(result.losses),
        "recomputedHours": round(result.recomputed.mean, 4),
        "recomputedHoursPercentiles": _percentiles(result.recomputed),
        "waitingUsd": round(result.waiting, 4),
        "extraUsd": {name: round(usd, 4) for name, usd in asdict(result.extra).items()},
        "tiers": [
            {
                "name": tier.name,
                "usedBy": round(tier.used, 4),
                "hours": round(tier.hours.mean, 4),
                "hoursPercentiles": _percentiles(tier.hours),
                "costUsd": _distribution(tier.cost),
                "losses": round(tier.losses.mean, 4),
                "lossesPercentiles": _percentiles(tier.losses),
                "recomputedHours": round(tier.recomputed.mean, 4),
                "recomputedHoursPercentiles": _percentiles(tier.recomputed),
            }
            for tier in result.tiers
        ],
    }


def _distribution(values: Distribution) -> dict[str, float]:
    return {"mean": round(values.mean, 4), **_percentiles(values)}


def _percentiles(values: Distribution) -> dict[str, float]:
    return {f"p{percent}": round(value, 4) for percent, value in values.at.items()}


def _row(name: str, values: Distribution | None, text: Callable[[float], str]) -> tuple[str, ...]:
    if values is None:
        return (name, *[NONE] * (len(COLUMNS) - 1))
    return (name, text(values.mean), *(text(value) for value in values.at.values()))


def _hours(hours: float) -> str:
    return span(hours * HOUR)


def _variant_row(text: str, result: Forecast) -> tuple[str, ...]:
    return (
        "unlimited" if text == str(FOR_EVER) else text,
        f"{100 * result.success:.0f} %",
        f"${result.cost.mean:.2f}",
        f"${result.cost.at[90]:.2f}",
        NONE if result.hours is None else _hours(result.hours.mean),
        f"{result.losses.mean:.1f}",
    )


def _limit(question: Question) -> float | None:
    spec = question.spec
    limits = [] if spec.max_duration is None else [spec.max_duration]
    if spec.deadline is not None:
        limits.append(spec.deadline - spec.submitted_at)
    return min(limits, default=None)


def rounded(seconds: float) -> float:
    """Rounds to whole seconds, at least 1, and from ten minutes to whole minutes."""
    return max(1.0, float(round(seconds)) if seconds < 600 else 60.0 * round(seconds / 60))


def _rounded(seconds: float) -> str:
    return format_duration(rounded(seconds))
