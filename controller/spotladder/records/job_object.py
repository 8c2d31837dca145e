"""A recorded job as an object like the TieredJob of a cluster, so that all are shown alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spotladder.core.accounting.savings import uninterrupted_usd
from spotladder.core.facts.deadline_risk import CONDITION, deadline_risk
from spotladder.core.facts.elastic import trains_with
from spotladder.core.model import TERMINAL, Instant, JobSpec, JobState
from spotladder.records.model import Began, Record, Specified, Waited
from spotladder.resources import TIEREDJOBS
from spotladder.timestamps import utc_timestamp


def job_object(
    namespace: str,
    name: str,
    phase: str,
    created: Instant | None,
    *,
    state: JobState,
    records: Sequence[Record],
    active: bool,
) -> dict[str, Any]:
    """The job with the fields of a TieredJob. `active`: a runner decides about it now."""
    begun = {} if created is None else {"creationTimestamp": utc_timestamp(created)}
    return {
        "apiVersion": TIEREDJOBS.api_version,
        "kind": TIEREDJOBS.kind,
        "metadata": {"namespace": namespace, "name": name, **begun},
        "spec": _spec(records),
        "status": {"phase": phase, **_status(state, records, active=active)},
    }


def _spec(records: Sequence[Record]) -> dict[str, Any]:
    """The tiers and the budget of the run."""
    spec = _began(records)
    if spec is None:
        return {}
    tiers = [{"name": tier.name} for tier in spec.tiers]
    return {"tiers": tiers} if spec.budget is None else {"tiers": tiers, "budget": f"{spec.budget:.15g}"}


def _began(records: Sequence[Record]) -> JobSpec | None:
    return next((record.spec for record in reversed(records) if isinstance(record, Began | Specified)), None)


def _status(state: JobState, records: Sequence[Record], *, active: bool) -> dict[str, Any]:
    progress, size, standby = state.progress, trains_with(state), state.standby.attempt
    waited = _waited(records) if active else None
    text = f"{progress.step}/{progress.total}" if progress.total else str(progress.step)
    status = {
        "reason": str(state.reason),
        "message": state.message,
        "attempt": state.number,
        "tier": state.tier,
        "failures": state.failures,
        "conditions": _conditions(_began(records), state),
        "progress": {"step": progress.step, "total": progress.total, "text": text},
        "elastic": None if size is None else {"workers": size[0], "wanted": size[1]},
        "cost": _cost(records, state),
        "standby": None
        if standby is None
        else {
            "number": standby.number,
            "tier": standby.tier,
            "since": utc_timestamp(standby.created_at),
            "reason": str(state.standby.reason),
        },
        "removing": [
            {"number": left.number, "tier": left.tier, "since": utc_timestamp(left.since), "nodes": left.nodes}
            for left in state.left
        ],
        "waiting": None if waited is None else _waiting(waited),
    }
    return {name: value for name, value in status.items() if value not in (None, [], "")}


def _conditions(spec: JobSpec | None, state: JobState) -> list[dict[str, str]]:
    if state.stage not in TERMINAL:
        risk = None if spec is None else deadline_risk(spec, state)
        if risk is None or not risk.at_risk:
            return []
        return [{"type": CONDITION, "status": "True", "reason": risk.reason, "message": risk.message}]
    return [{"type": "Completed", "status": "True", "reason": str(state.reason), "message": state.message}]


def _cost(records: Sequence[Record], state: JobState) -> dict[str, Any]:
    spec = _began(records)
    return cost_fields(state, None if spec is None else uninterrupted_usd(spec, state), places=4)


def cost_fields(state: JobState, uninterrupted: float | None, *, places: int) -> dict[str, Any]:
    """`status.cost` of a TieredJob, with this number of decimals. `uninterrupted` is that of `savings`."""
    unpriced, extra = state.unpriced, state.extra
    fields = {
        "spent": usd(state.spent_usd, unpriced=bool(unpriced), places=places),
        "onDemandEquivalent": usd(state.on_demand_usd, unpriced=bool(unpriced), places=places),
        "savingsPercent": f"{100 * (1 - state.spent_usd / uninterrupted):z.0f}" if uninterrupted else "",
        "uninterrupted": f"{uninterrupted:.{places}f}" if uninterrupted else "",
        "heads": _part(extra.heads),
        "storage": _part(extra.storage),
        "egress": _part(extra.egress),
        "overlap": _part(state.surplus.total),
        "unpriced": list(unpriced),
    }
    return {name: value for name, value in fields.items() if value}


def _part(amount: float) -> str:
    """A part of the cost, which may be small."""
    return f"{amount:.4f}" if amount else ""


def usd(amount: float, *, unpriced: bool, places: int) -> str:
    """In US dollars; ">12.30" if a part has no price, "unknown" if no part has one."""
    if unpriced:
        return f">{amount:.{places}f}" if amount else "unknown"
    return f"{amount:.{places}f}"


def _waited(records: Sequence[Record]) -> Waited | None:
    """What the job waits for now, while a runner is active; None if it does not wait."""
    newest = next((record for record in reversed(records) if isinstance(record, Began | Waited)), None)
    return newest if isinstance(newest, Waited) and newest.message else None


def _waiting(waited: Waited) -> dict[str, str]:
    fields = {"message": waited.message, "since": utc_timestamp(waited.since)}
    if waited.until is None:
        return fields
    return {**fields, "timer": waited.timer, "until": utc_timestamp(waited.until), "then": waited.then}
