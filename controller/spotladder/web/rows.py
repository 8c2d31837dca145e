"""One row of the list for each job, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from spotladder.display import job_text
from spotladder.places.place import Object, Place
from spotladder.timestamps import seconds_of

ROW_AGE = 10.0
"""Seconds after which the row of an unchanged job is computed again, since it says how long things have lasted."""


STATES: Mapping[str, frozenset[str]] = {
    "waiting": frozenset(),
    "training": frozenset({"Running"}),
    "failed": frozenset({"Failed"}),
    "ended": job_text.ENDED | {"Suspended"},
}
"""The states in the order of the list, with their phases. Jobs in all other phases wait for something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as the list shows it. `share` is the part of the steps that is committed, None if the total is unknown.
    `spent` is in USD, and `uninterrupted` what the same steps cost on demand without a loss, 0 if it is not known.
    `created` is in seconds since the epoch. `why` is why the job does not train, or what is wrong with it."""

    place: str
    where: str
    namespace: str
    name: str
    phase: str
    tier: str
    failures: int
    progress: str
    share: float | None
    spent: float
    uninterrupted: float
    cost: str
    saved: str
    created: float
    age: str
    why: str

    @classmethod
    def of(cls, place: Place, job: Mapping[str, Any], now: float) -> Self:
        """The row of a TieredJob object of this place."""
        status, metadata, now = job.get("status") or {}, job["metadata"], job.get("until", now)
        cells = dict(zip(job_text.COLUMNS, job_text.row(job, now), strict=True))
        progress = status.get("progress") or {}
        step, total = progress.get("step") or 0, progress.get("total") or 0
        cost = status.get("cost") or {}
        return cls(
            place=place.name,
            where=place.title,
            namespace=metadata["namespace"],
            name=metadata["name"],
            phase=cells["Phase"] or "New",
            tier=cells["Tier"],
            failures=status.get("failures") or 0,
            progress=cells["Progress"],
            share=min(1.0, step / total) if total else None,
            spent=_usd(cost.get("spent")),
            uninterrupted=_usd(cost.get("uninterrupted")),
            cost=cells["Cost"],
            saved=cells["Saved"],
            created=seconds_of(metadata["creationTimestamp"]) if "creationTimestamp" in metadata else 0.0,
            age=cells["Age"],
            why=job_text.problem(job, now),
        )

    @property
    def key(self) -> tuple[str, str, str]:
        return self.namespace, self.name, self.place

    @property
    def state(self) -> int:
        """The position of its phase in `STATES`."""
        return next((index for index, phases in enumerate(STATES.values()) if self.phase in phases), 0)


class Rows:
    """The rows of all jobs. A request only selects among them, so that it is quick with thousands of jobs."""

    def __init__(self) -> None:
        self.all: Sequence[JobRow] = ()
        self._kept: dict[tuple[str, str, str], tuple[Object, float, JobRow]] = {}

    def renew(self, jobs: Iterable[tuple[Place, Object]], now: float) -> None:
        """Compute the rows of jobs that have changed, and those that are older than `ROW_AGE`."""
        kept = {}
        for place, job in jobs:
            key = (place.name, job["metadata"]["namespace"], job["metadata"]["name"])
            before = self._kept.get(key)
            if before is None or before[0] is not job or now - before[1] >= ROW_AGE:
                before = (job, now, JobRow.of(place, job, now))
            kept[key] = before
        self._kept = kept
        self.all = [row for _, _, row in kept.values()]


ORDERS: Mapping[str, Callable[[JobRow], Any]] = {
    "age": lambda row: -row.created,
    "name": lambda row: (row.namespace, row.name),
    "phase": lambda row: (row.state, -row.created),
    "tier": lambda row: row.tier,
    "progress": lambda row: -1.0 if row.share is None else row.share,
    "failures": lambda row: row.failures,
    "cost": lambda row: row.spent,
}
"""The sort key of the list for each column."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What the list shows: jobs with all words of `text` in their name, namespace, tier or message, of one phase or of
    all (""), sorted by a column."""

    text: str = ""
    phase: str = ""
    sort: str = "phase"
    falling: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """The selection that the query of an address names. What it does not know, it ignores."""
        sort = query.get("sort", "phase")
        known = sort.removeprefix("-") in ORDERS
        return cls(
            text=query.get("text", "")[:200],
            phase=query.get("phase", "")[:40],
            sort=sort.removeprefix("-") if known else "phase",
            falling=known and sort.startswith("-"),
        )

    def by(self, column: str) -> str:
        """The address of the list sorted by that column; in the other direction if it is sorted by it."""
        falling = column == self.sort and not self.falling
        chosen = {"text": self.text, "phase": self.phase, "sort": f"-{column}" if falling else column}
        return "?" + urlencode({key: value for key, value in chosen.items() if value})

    def applied(self, rows: Iterable[JobRow]) -> list[JobRow]:
        """The rows that are shown, in their order."""
        words = self.text.lower().split()
        found = [row for row in rows if self.phase in ("", row.phase) and _has(row, words)]
        return sorted(found, key=lambda row: (ORDERS[self.sort](row), row.key), reverse=self.falling)


def _usd(amount: object) -> float:
    """An amount of the status, 0 if it is not known."""
    text = str(amount or "").strip(">")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0


def _has(row: JobRow, words: Sequence[str]) -> bool:
    text = " ".join((row.namespace, row.name, row.phase, row.tier, row.where, row.why)).lower()
    return all(word in text for word in words)
