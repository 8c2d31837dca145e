"""The notable differences between two reads of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spotladder.core.reasons import Reason
from spotladder.display.job_text import condition, money

BUDGET_SHARES = (0.8, 1.0)
"""A notice says when a job has spent one of these shares of its budget."""


class Kind(StrEnum):
    """What has happened to a job."""

    FELL_BACK = "FellBack"
    RETURNED = "Returned"
    EXHAUSTED = "Exhausted"  # every tier, and the job begins again: without that it is FAILED
    DEGRADED = "Degraded"
    DEADLINE = "DeadlineAtRisk"
    BUDGET = "BudgetSpent"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that has happened to a job. `at` is in seconds since the epoch; `detail` distinguishes notices of one
    kind about one attempt. `text` is one sentence for people."""

    kind: Kind
    where: str
    namespace: str
    job: str
    uid: str
    attempt: int
    detail: str
    at: float
    text: str

    @property
    def id(self) -> str:
        """An ID that all notices of one event share, so that a receiver can drop a repetition."""
        return "/".join((self.uid or f"{self.namespace}/{self.job}", str(self.attempt), self.kind, self.detail))


def notices(where: str, before: Mapping[str, Any], after: Mapping[str, Any], now: float) -> list[Notice]:
    """The events between two reads of the TieredJob object of one job. `before` is empty for a new job."""
    metadata, status = after["metadata"], after.get("status") or {}
    name = metadata["name"]
    return [
        Notice(
            kind=kind,
            where=where,
            namespace=metadata["namespace"],
            job=name,
            uid=metadata.get("uid", ""),
            attempt=int(status.get("attempt") or 0),
            detail=detail,
            at=now,
            text=f"{metadata['namespace']}/{name} {text}",
        )
        for kind, detail, text in _changes(before, after)
    ]


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Kind, str, str]]:
    """The kind, the detail and the text of each change."""
    yield from _moved(before, after)
    yield from _turned(before, after, Kind.DEGRADED, "is degraded ({})")
    yield from _turned(before, after, Kind.DEADLINE, "has no time to lose before its deadline")
    yield from _spent(before, after)
    yield from _ended(before, after)


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Kind, str, str]]:
    names = [tier.get("name") for tier in (after.get("spec") or {}).get("tiers") or []]
    old, new = _status(before).get("tier"), _status(after).get("tier")
    known, message = old in names and new in names, _status(after).get("message")
    back = known and names.index(new) < names.index(old)
    reason = _reason(after)
    # Only a job without a tier starts on an earlier one: it paused since the last look, or not at all.
    paused = reason == Reason.WAITING_TO_BEGIN_AGAIN and _reason(before) != reason
    if paused or (back and reason == Reason.STARTED):
        yield Kind.EXHAUSTED, "", _said("has exhausted all tiers and begins again", message)
    elif known and old != new:
        kind, verb = (Kind.RETURNED, "returned") if back else (Kind.FELL_BACK, "fell back")
        yield kind, str(new), _said(f"{verb} from {old} to {new}", message)


def _reason(job: Mapping[str, Any]) -> str:
    """Why the stage of the job last changed: the status of a local run says it, in a cluster a condition."""
    return str(_status(job).get("reason") or condition(job, "Running").get("reason") or "")


def _turned(
    before: Mapping[str, Any], after: Mapping[str, Any], kind: Kind, what: str
) -> Iterator[tuple[Kind, str, str]]:
    """The condition of this type has become true, or has another reason than before."""
    old, new = condition(before, kind), condition(after, kind)
    if new.get("status") != "True" or (old.get("status"), old.get("reason")) == ("True", new.get("reason")):
        return
    yield kind, str(new.get("reason")), _said(what.format(new.get("reason")), new.get("message"))


def _spent(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Kind, str, str]]:
    budget = float((after.get("spec") or {}).get("budget") or 0)
    if budget <= 0:
        return
    old, new = _usd(before), _usd(after)
    passed = [share for share in BUDGET_SHARES if old < share * budget <= new]
    if passed:
        amount = money(f"{new:.2f}")
        yield Kind.BUDGET, f"{passed[-1]:.0%}", f"has spent {amount} of its budget of {money(f'{budget:.2f}')}"


def _ended(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Kind, str, str]]:
    old, new = _status(before).get("phase"), _status(after).get("phase")
    if new == old or new not in (Kind.SUCCEEDED, Kind.FAILED):
        return
    completed, spent = condition(after, "Completed"), (_status(after).get("cost") or {}).get("spent")
    cost = f" for {money(spent)}" if spent else ""
    steps = (
        f" with step {_status(after)['progress']['text']}" if (_status(after).get("progress") or {}).get("text") else ""
    )
    yield Kind(new), "", _said(f"has {str(new).lower()}{steps}{cost}", _why(completed))


def _why(completed: Mapping[str, Any]) -> str:
    return ": ".join(str(completed[key]) for key in ("reason", "message") if completed.get(key))


def _said(what: str, why: object) -> str:
    return f"{what}: {why}" if why else what


def _status(job: Mapping[str, Any]) -> Mapping[str, Any]:
    return job.get("status") or {}


def _usd(job: Mapping[str, Any]) -> float:
    """The minimum cost of the job so far; 0 if that is unknown."""
    text = str((_status(job).get("cost") or {}).get("spent") or "").removeprefix(">")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0
