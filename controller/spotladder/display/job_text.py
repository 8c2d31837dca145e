"""Formats TieredJobs as table rows or as objects for `--output`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from spotladder.core.model import LeftAttempt, Phase
from spotladder.core.model.codec import load_state
from spotladder.core.reasons import FAILED_EXIT_CODES, Reason
from spotladder.display.figures import span
from spotladder.display.narrate import removal_text, waiting_text
from spotladder.display.unattended import no_status, reconciled_at, silent_since
from spotladder.errors import InvalidSpec
from spotladder.records.model import Waited
from spotladder.timestamps import seconds_of

Object = dict[str, Any]

ENDED = frozenset({"Succeeded", "Failed", "Deleted"})
"""The phases of jobs that have ended. Deleted is a job that was deleted before it had ended, from its records."""

COLUMNS = ("Name", "Phase", "Tier", "Attempt", "Failures", "Progress", "Cost", "Saved", "Age")


def row(job: Mapping[str, Any], now: float) -> tuple[str, ...]:
    """One row of `get`, with the columns of `kubectl get tieredjobs`."""
    status = job.get("status") or {}
    cost = status.get("cost") or {}
    saved = cost.get("savingsPercent")
    return (
        job["metadata"]["name"],
        _phase(job),
        status.get("tier") or "",
        str(status.get("attempt") or ""),
        str(status.get("failures", "")),
        (status.get("progress") or {}).get("text") or "",
        money(cost.get("spent")),
        f"{saved} %".replace("-", "−") if saved else "",
        age(job["metadata"].get("creationTimestamp"), now),
    )


def _phase(job: Mapping[str, Any]) -> str:
    """The phase of the status, or Deleting for a job with a deletion timestamp, whose status has the phase
    Suspended."""
    phase = (job.get("status") or {}).get("phase") or ""
    ended = phase in ENDED
    return "Deleting" if job["metadata"].get("deletionTimestamp") and not ended else phase


def money(amount: str | None) -> str:
    """An amount of the status: $1.20, >$1.20 or unknown."""
    if not amount or not amount.strip(">").replace(".", "").isdigit():
        return amount or ""
    return f">${amount[1:]}" if amount.startswith(">") else f"${amount}"


def rows(jobs: Sequence[Mapping[str, Any]], *, namespaces: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows, with the namespace first if `namespaces`, and with a message last if any job waits, is degraded
    or has no controller."""
    now = time.time()
    columns: tuple[str, ...] = COLUMNS
    found = [row(job, now) for job in jobs]
    messages = [problem(job, now) for job in jobs]
    if any(messages):
        columns, found = (*columns, "Message"), [(*cells, why) for cells, why in zip(found, messages, strict=True)]
    if namespaces:
        spaces = [job["metadata"]["namespace"] for job in jobs]
        columns, found = ("Namespace", *columns), [(space, *cells) for space, cells in zip(spaces, found, strict=True)]
    return columns, found


def problem(job: Mapping[str, Any], now: float) -> str:
    """The sentence about the deletion of the job, else about a controller that does not answer, else about what the job
    waits for or what is wrong with it; "" if nothing is."""
    if job.get("deleted"):
        return "; ".join(filter(None, ("deleted", message(job.get("status") or {}, now))))
    return _unattended(job, now) or message(job.get("status") or {}, now)


def _unattended(job: Mapping[str, Any], now: float) -> str:
    status, created = job.get("status") or {}, _instant(job["metadata"].get("creationTimestamp"))
    if not status.get("phase"):
        return no_status(now if created is None else created, now)
    return "" if status.get("phase") in ENDED else silent_since(_reconciled_at(status.get("state") or ""), now)


@lru_cache(maxsize=4096)
def _reconciled_at(stored: str) -> float | None:
    """When the job with this stored state was last reconciled, as `reconciled_at`; None if the state is a newer
    controller's. The page asks repeatedly for unchanged jobs."""
    try:
        return reconciled_at(load_state(stored)) if stored else None
    except InvalidSpec:
        return None


def message(status: Mapping[str, Any], now: float) -> str:
    """Why the job does not train, or what is wrong with it, why it has failed, and the attempts that are being removed;
    "" if none applies."""
    ended = status.get("phase") in ENDED
    parts = (_ended(status) if ended else _impeded(status, now), _removing(status.get("removing"), now))
    return "; ".join(part for part in parts if part)


def _ended(status: Mapping[str, Any]) -> str:
    """Why the job has failed, and that its last commit is not known."""
    completed, log = (condition({"status": status}, kind) for kind in ("Completed", "Checkpointing"))
    failed = (completed.get("reason"), completed.get("message")) if status.get("phase") == "Failed" else ()
    unread = log.get("message") if log.get("status") == "Unknown" else ""
    return "; ".join(filter(None, (": ".join(filter(None, failed)), unread)))


def _impeded(status: Mapping[str, Any], now: float) -> str:
    """`status.waiting`, else that the spec is invalid or the job degraded, else that a standby attempt starts, workers
    of an elastic job are missing, or the program does not use spotladder.train."""
    waiting = waits(status.get("waiting"), now)
    beside = _standby(status.get("standby"), now) or _smaller(status.get("elastic"))
    return waiting or _fault(status, now) or beside or _unused(status)


def wrong(status: Mapping[str, Any], now: float) -> str:
    """What is wrong with a job, also with one that trains; "" if nothing is."""
    return _fault(status, now) or _unused(status)


def _fault(status: Mapping[str, Any], now: float) -> str:
    """The condition `Valid` if it is False, else the condition `Degraded`; "" if nothing is wrong."""
    for kind, bad in (("Valid", "False"), ("Degraded", "True")):
        found = condition({"status": status}, kind)
        if found.get("status") == bad:
            return f"{found['reason']}: {found.get('message')} (for {age(found.get('lastTransitionTime'), now)})"
    return ""


def _unused(status: Mapping[str, Any]) -> str:
    """The warning that the program does not use spotladder.train; "" if it does."""
    log = condition({"status": status}, "Checkpointing")
    return str(log.get("message") or "") if log.get("reason") == "NoStartEntry" else ""


def details(job: Mapping[str, Any], now: float) -> list[tuple[str, str]]:
    """What `get` prints below the row of one job, as labels and texts."""
    status, run = job.get("status") or {}, job.get("run")
    ended = status.get("phase") in ENDED
    fault = _unattended(job, now) or (_ended(status) if ended else wrong(status, now))
    last = ": ".join(part for part in (status.get("reason"), status.get("message")) if part)
    progress = status.get("progress") or {}
    committed = f"step {progress.get('text')}, {progress.get('committedAt')}, {progress.get('uri')}"
    lines = [
        ("why", last if status.get("message") and last not in fault else ""),
        ("problem", fault),
        ("waits", waits(status.get("waiting"), now)),
        ("workers", _size(status.get("elastic"))),
        ("standby", _standby(status.get("standby"), now)),
        ("ended", _removing(status.get("removing"), now)),
        ("commit", committed if progress.get("committedAt") else ""),
    ]
    if run is not None:
        lines += [("runner", f"process {run['process']}" if run["process"] else "none"), ("folder", run["folder"])]
    return [(label, text) for label, text in lines if text]


def _standby(standby: Mapping[str, Any] | None, now: float) -> str:
    if not standby:
        return ""
    since = age(standby.get("since"), now)
    return (
        f"attempt {standby.get('number')} on {standby.get('tier')} starts as standby ({standby.get('reason')}, {since})"
    )


def _smaller(elastic: Mapping[str, Any] | None) -> str:
    smaller = elastic is not None and elastic["workers"] < elastic["wanted"]
    return f"continues with {elastic['workers']} of {elastic['wanted']} workers" if elastic and smaller else ""


def _size(elastic: Mapping[str, Any] | None) -> str:
    """The number of workers of an elastic job, as text; "" for another job."""
    return _smaller(elastic) or (f"trains with all {elastic['workers']} workers" if elastic else "")


def _removing(attempts: Sequence[Mapping[str, Any]] | None, now: float) -> str:
    """`status.removing` as text."""
    if not attempts:
        return ""
    left = [
        LeftAttempt(one["number"], one["tier"], _instant(one.get("since")) or now, one.get("nodes", 0))
        for one in attempts
    ]
    return removal_text(left, now)


def waits(waiting: Mapping[str, Any] | None, now: float) -> str:
    """`status.waiting` as text: the message, the duration, and the timeout with its action; "" if the job does not
    wait."""
    if not waiting:
        return ""
    since, until = (_instant(waiting.get(name)) for name in ("since", "until"))
    message, timer, then = (str(waiting.get(name) or "") for name in ("message", "timer", "then"))
    return waiting_text(Waited(now, message, now if since is None else since, timer, until, then), now)


def _instant(written: str | None) -> float | None:
    return seconds_of(written) if written else None


def age(written: str | None, now: float) -> str:
    """The time since a timestamp, such as 5m."""
    instant = _instant(written)
    return "" if instant is None else span(now - instant)


def cleaned(thing: Object) -> Object:
    """The object without `managedFields`, as kubectl shows it."""
    metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
    return {"apiVersion": thing["apiVersion"], "kind": thing["kind"], **thing, "metadata": metadata}


def listed(things: Sequence[Object]) -> Object:
    """The objects as a Kubernetes List."""
    return {"apiVersion": "v1", "kind": "List", "items": [cleaned(thing) for thing in things]}


def condition(job: Mapping[str, Any], kind: str) -> Object:
    """The condition of that type; empty if it does not exist."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == kind), {})


def exit_code(job: Mapping[str, Any]) -> int:
    """The exit code for the outcome of an ended job."""
    if (job.get("status") or {}).get("phase") == Phase.SUCCEEDED:
        return 0
    reason = condition(job, "Completed").get("reason", "")
    return FAILED_EXIT_CODES.get(Reason(reason), 1) if reason in set(Reason) else 1
