"""report.json: the figures of the report for programs. `schema.json`, beside this file, describes each of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from spotladder.display.figures import saved
from spotladder.display.report.attempts import AttemptFacts, Span
from spotladder.display.report.facts import Mark, RunFacts

FORMAT = "spotladder.report/v1"
"""Version of the document. Fields are only added within one version."""


def as_json(facts: RunFacts) -> str:
    """The document, as strict JSON."""
    return json.dumps(as_data(facts), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_data(facts: RunFacts) -> dict[str, Any]:
    """The document as plain data. Times are in seconds of the run, money in USD."""
    uninterrupted = facts.uninterrupted
    return {
        "format": FORMAT,
        "job": facts.job,
        "namespace": facts.namespace,
        "phase": str(facts.state.phase),
        "outcome": {"exitCode": facts.exit_code, "reason": str(facts.reason), "message": facts.message},
        "beganAt": facts.began_at,
        "sessions": facts.sessions,
        "steps": {
            "reached": facts.steps,
            "total": facts.total,
            "committed": facts.committed,
            "recomputed": facts.recomputed,
        },
        "time": {
            "total": facts.time.total,
            "new": facts.time.new,
            "recomputed": facts.time.recomputed,
            "waiting": facts.time.waiting,
            "starting": facts.time.starting,
            "handover": facts.time.handover,
            "idle": facts.time.idle,
            "goodput": facts.time.goodput,
        },
        "cost": {
            "paid": facts.spent,
            "unpricedTiers": list(facts.unpriced),
            "nodeHours": facts.node_hours,
            "extra": asdict(facts.state.extra),
            "onDemandSameNodes": facts.on_demand,
            "onDemandUninterrupted": uninterrupted,
            "savedAgainstSameNodes": facts.saved,
            "savedAgainstUninterrupted": None if uninterrupted is None else saved(facts.spent, uninterrupted),
        },
        "plan": None if facts.plan is None else asdict(facts.plan),
        "failures": {
            "total": facts.failures,
            "byCause": {str(key): value for key, value in facts.causes.items()},
        },
        "tiers": [
            {
                "name": tier.name,
                "capacityType": str(tier.capacity_type),
                "maxFailures": tier.max_failures,
                "failures": record.failures,
                "attempts": record.attempts,
                "nodeHours": record.node_seconds / 3600,
                "perNodeHour": tier.price.per_node_hour,
                "cost": record.cost,
                "onDemandCost": record.on_demand_cost,
                "spent": None if record.exhausted_by is None else str(record.exhausted_by),
            }
            for tier, record in facts.tiers
        ],
        "attempts": [_attempt(attempt) for attempt in facts.attempts],
        "restarts": [
            {
                "attempt": restart.attempt,
                "complete": restart.complete,
                "seconds": restart.seconds,
                "parts": [{"name": part.name, "beganAt": part.begin, "endedAt": part.end} for part in restart.parts],
            }
            for restart in facts.restarts
        ],
        "evictions": [_mark(mark) for mark in facts.evictions],
        "notices": [_mark(mark) for mark in facts.notices],
        "commits": [
            {"at": mark.at, "attempt": mark.attempt, "tier": mark.tier, "step": mark.step} for mark in facts.commits
        ],
        "noCapacity": {tier: [_span(span) for span in spans] for tier, spans in facts.dry.items()},
        "breaks": [{"at": at, "seconds": length} for at, length in facts.breaks],
        "loss": [
            {"attempt": number, "points": [{"step": step, "loss": loss} for step, loss in curve]}
            for number, curve in facts.losses.items()
        ],
        "bill": [{"at": at, "paid": paid, "onDemand": on_demand} for at, paid, on_demand in facts.bill],
        "events": [{"at": at, "tone": str(sentence.tone), "text": sentence.text} for at, sentence in facts.events],
        "output": [
            {"attempt": number, "source": source, "lines": list(lines)} for number, source, lines in facts.printed
        ],
        "damagedLines": facts.damaged,
        "gaps": list(facts.gaps),
    }


def _attempt(attempt: AttemptFacts) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "tier": attempt.tier,
        "capacityType": str(attempt.capacity_type),
        "start": attempt.start,
        "end": attempt.end,
        "reason": str(attempt.reason),
        "message": attempt.message,
        "failures": attempt.failures,
        "startStep": attempt.start_step,
        "endStep": attempt.end_step,
        "committedStep": attempt.committed_step,
        "recomputedSteps": attempt.recomputed,
        "overhead": attempt.overhead,
        "newSeconds": attempt.new,
        "whole": [_span(span) for span in attempt.all_ready],
        "work": [_span(span) for span in attempt.work],
        "cost": attempt.cost,
        "onDemandCost": attempt.on_demand_cost,
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {"at": mark.at, "tier": mark.tier, "attempt": mark.attempt, "what": mark.what}


def _span(span: Span) -> dict[str, float]:
    return {"start": span.start, "end": span.end}
