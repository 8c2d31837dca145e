"""When a tier had nodes, hour by hour, as the attempts of all listed jobs found it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from spotladder.core.model import Instant, Seconds, Spell
from spotladder.core.reasons import Reason
from spotladder.display.figures import percent, span
from spotladder.display.report.markup import Markup, element
from spotladder.places.place import Object
from spotladder.timestamps import seconds_of, utc_timestamp

DAYS = 7
"""Number of days that a map shows, today included."""

HOUR: Seconds = 3600.0
DAY: Seconds = 24 * HOUR
CELL, GAP, LEFT, TOP = 13, 2, 46, 16
"""The size of a cell, the space between cells, and the margins for the labels, in pixels."""


def spells_by_tier(jobs: Iterable[Object], now: Instant) -> dict[str, list[Spell]]:
    """The spells of each CapacityTier within the days of the map, by its name: a job held nodes of it (`available`), or
    waited for them until it gave up or now."""
    found: dict[str, list[Spell]] = defaultdict(list)
    oldest = utc_timestamp(_first_day(now))
    for job in jobs:
        tiers = {each.get("name"): each.get("capacityTier") for each in (job.get("spec") or {}).get("tiers") or ()}
        for attempt in (job.get("status") or {}).get("attempts") or ():
            name = tiers.get(attempt.get("tier"))
            if name and str(attempt.get("endedAt") or "") > oldest:
                found[name] += _spells(attempt)
        current = _current(job, now)
        if current and (name := tiers.get((job.get("status") or {}).get("tier"))):
            found[name].append(current)
    return found


def _spells(attempt: Mapping[str, Any]) -> Iterator[Spell]:
    ended = seconds_of(attempt["endedAt"])
    if attempt.get("runningAt"):
        yield Spell(True, seconds_of(attempt["runningAt"]), ended)
    elif attempt.get("startedAt") and attempt.get("reason") == Reason.INSUFFICIENT_CAPACITY:
        yield Spell(False, seconds_of(attempt["startedAt"]), ended)


def _current(job: Mapping[str, Any], now: Instant) -> Spell | None:
    """What the current attempt has found: its workers are ready since then, or it waits for capacity."""
    status = job.get("status") or {}
    waiting = status.get("waiting") or {}
    if waiting.get("reason") == Reason.WAITING_FOR_CAPACITY:
        return Spell(False, seconds_of(waiting["since"]), now)
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("Running", "True"):
            return Spell(True, seconds_of(condition["lastTransitionTime"]), now)
    return None


def by_hour(spells: Iterable[Spell], now: Instant) -> dict[tuple[int, int], tuple[Seconds, Seconds]]:
    """The seconds with nodes and the seconds without, summed over all jobs, for each day of the map, the oldest 0, and
    each hour of it."""
    first, found = _first_day(now), defaultdict[tuple[int, int], list[Seconds]](lambda: [0.0, 0.0])
    for spell in spells:
        at = max(spell.since, first)
        while at < min(spell.until, now):
            day, hour = divmod(int((at - first) // HOUR), 24)
            until = min(first + day * DAY + (hour + 1) * HOUR, spell.until, now)
            found[day, hour][0 if spell.available else 1] += until - at
            at = until
    return {cell: (up, down) for cell, (up, down) in found.items()}


def heat_map(spells: Sequence[Spell], name: str, now: Instant) -> Markup | None:
    """Days from top to bottom, hours from left to right. Each cell is filled from below by the share of the time with
    nodes, so that it does not need colours; None without an observation."""
    hours = by_hour(spells, now)
    if not hours:
        return None
    first, step = _first_day(now), CELL + GAP
    width, height = LEFT + 24 * step, TOP + DAYS * step
    labels = [
        element("text", f"{hour:02d}", x=LEFT + hour * step, y=TOP - 5, class_="tick") for hour in range(0, 24, 6)
    ]
    labels += [
        element("text", _day(first + day * DAY), x=0, y=TOP + day * step + CELL - 2.5, class_="tick")
        for day in range(DAYS)
    ]
    lanes = [
        element("rect", x=LEFT, y=TOP + day * step, width=24 * step - GAP, height=CELL, class_="lane")
        for day in range(DAYS)
    ]
    cells = [_cell(day, hour, *hours[day, hour], first) for day, hour in sorted(hours)]
    held, dry = (sum(each[index] for each in hours.values()) for index in (0, 1))
    text = f"{name}: nodes for {percent(held / (held + dry))} of the observed time in {DAYS} days"
    return element(
        "figure",
        element("figcaption", element("b", name), f" {percent(held / (held + dry))}"),
        element(
            "svg", element("title", text), *lanes, *labels, *cells, class_="hours", role="img", aria_label=text,
            viewBox=f"0 0 {width} {height}",
        ),
    )  # fmt: skip


def _cell(day: int, hour: int, held: Seconds, dry: Seconds, first: Instant) -> Markup:
    x, y = LEFT + hour * (CELL + GAP), TOP + day * (CELL + GAP)
    share = held / (held + dry)
    begin = first + day * DAY
    text = f"{_day(begin)}, {hour:02d}:00 UTC: nodes for {percent(share)} of {span(held + dry)}"
    full = round(CELL * share, 2)
    return element(
        "g",
        element("title", text),
        element("rect", x=x, y=y, width=CELL, height=CELL, class_="none") if dry else None,
        element("rect", x=x, y=y + CELL - full, width=CELL, height=full, class_="spot") if full else None,
    )


def _first_day(now: Instant) -> Instant:
    return now // DAY * DAY - (DAYS - 1) * DAY


def _day(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%b %d")
