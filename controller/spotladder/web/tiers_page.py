"""The page of the tiers: what each provides now, what all jobs have observed on it, and who holds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic_core import to_json

from spotladder.api.tier_history import prices_of, read_status, waits_of
from spotladder.core.model import PricePoint, Seconds
from spotladder.core.waits import usual_wait
from spotladder.display.figures import money, numbered, percent, span
from spotladder.display.job_text import ENDED
from spotladder.display.report.markup import Markup, element
from spotladder.places.place import Object, Place
from spotladder.web.availability import DAYS, heat_map, spells_by_tier
from spotladder.web.frame import framed, job_address, live, problems

WIDTH, HEIGHT = 120, 24
"""The size of a price history in pixels."""

SHOWN_MAPS = 60
"""Number of tiers whose capacity is shown by hour."""

SHOWN_HOLDERS = 8
"""Number of jobs that a tier names."""

HEADINGS = ("Tier", "Capacity", "Jobs", "Price per node-hour", "Requests met", "Usual wait", "Evictions per node-hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRow:
    """A CapacityTier as the list shows it; None or "" where something is unknown.

    `wait` is in seconds, prices are in USD per node and hour, `evictions` counts those of one node in one hour.
    `holders` are the places, namespaces and names of the jobs that hold or wait for nodes of the tier.
    """

    where: str
    name: str
    available: str
    since: float | None
    message: str
    nodes: int
    price: str
    on_demand: str
    prices: tuple[PricePoint, ...]
    met: float | None
    requests: int
    wait: Seconds
    evictions: str
    holders: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, place: Place, tier: Mapping[str, Any], holders: Iterable[Object]) -> Self:
        """The row of a CapacityTier object of this place, which these jobs hold."""
        status = read_status(to_json(tier.get("status") or {}))
        available = next((each for each in status.conditions if each.type == "Available"), None)
        name = tier["metadata"]["name"]
        return cls(
            where=place.title,
            name=name,
            available="" if available is None else available.status,
            since=None if available is None else available.last_transition_time.timestamp(),
            message="" if available is None else available.message,
            nodes=status.nodes_in_use,
            price=status.price,
            on_demand=status.on_demand_price,
            prices=prices_of(status),
            met=float(status.availability) if status.availability else None,
            requests=status.attempts,
            wait=usual_wait(waits_of(status)),
            evictions=status.evictions_per_node_hour,
            holders=tuple((place.name, job["metadata"]["namespace"], job["metadata"]["name"]) for job in holders),
        )


def tiers_page(places: Sequence[Place], now: float) -> str:
    """All tiers of these places."""
    rows = [row for place in places for row in _rows(place)]
    table = element(
        "table",
        element("thead", element("tr", *(element("th", text, scope="col") for text in HEADINGS))),
        element("tbody", *(_row(row, now) for row in rows)),
        class_="jobs",
    )
    none = "Clusters have tiers. A run on this machine shows its tiers on its own page."
    shown = element("div", table, class_="scroll", tabindex="0", role="region", aria_label="Tiers")
    title = element("header", element("h1", "Tiers"))
    body = shown if rows else element("p", none, class_="soft")
    maps = _maps(places, now)
    return framed("Tiers – spotladder", element("main", title, live(problems(places), body, maps)), here="/tiers")


def _maps(places: Sequence[Place], now: float) -> Markup | None:
    """When each tier had nodes, by hour; None if no attempt of the listed jobs says so."""
    found = [
        heat_map(spells, name, now)
        for place in places
        for name, spells in sorted(spells_by_tier(place.jobs(), now).items())
    ]
    shown = [each for each in found if each is not None][:SHOWN_MAPS]
    text = (
        f"The last {DAYS} days in UTC, as the attempts of the listed jobs found it. Each cell is filled from below by "
        "the share of the time in which they had their nodes; in the outlined rest they waited in vain."
    )
    if not shown:
        return None
    return element(
        "section",
        element("h2", "Capacity by hour"),
        element("p", text, class_="note"),
        element("div", *shown, class_="maps"),
    )


def _rows(place: Place) -> list[TierRow]:
    held = jobs_by_tier(place.jobs())
    return [TierRow.of(place, tier, held.get(tier["metadata"]["name"], ())) for tier in place.tiers()]


def jobs_by_tier(jobs: Iterable[Object]) -> dict[str, list[Object]]:
    """The jobs that hold or wait for nodes of each CapacityTier, by its name."""
    held: dict[str, list[Object]] = defaultdict(list)
    for job in jobs:
        held[_held_by(job)].append(job)
    return held


def _row(row: TierRow, now: float) -> Markup:
    return element(
        "tr",
        element("th", row.name, element("small", row.where), scope="row"),
        element("td", *_capacity(row, now), class_="text"),
        element("td", *_holders(row), class_="text"),
        element("td", *_price(row)),
        element("td", percent(row.met), element("small", f"of {row.requests}") if row.requests else None),
        element("td", f"≤ {span(row.wait)}" if row.wait else "–"),
        element("td", row.evictions or "–"),
    )


def _capacity(row: TierRow, now: float) -> tuple[Markup | None, ...]:
    words = {"True": ("available", "good"), "False": ("none", "bad")}
    word, tone = words.get(row.available, ("not known", "caution"))
    since = f"for {span(now - row.since)}" if row.since is not None and row.available in words else ""
    text = ": ".join(filter(None, (since, row.message)))
    return element("span", word, class_=f"badge {tone}"), element("small", text) if text else None


def _holders(row: TierRow) -> tuple[Markup | None, ...]:
    links = [element("li", element("a", job[-1], href=job_address(*job))) for job in row.holders[:SHOWN_HOLDERS]]
    left = len(row.holders) - len(links)
    links += [element("li", f"{left} more")] if left > 0 else []
    nodes = element("small", numbered(row.nodes, "node")) if row.nodes else None
    return element("ul", *links, class_="holders") if links else element("span", "–"), nodes


def _price(row: TierRow) -> tuple[Markup | str | None, ...]:
    if not row.price:
        return ("not known", None)
    beside = element("small", f"on demand {money(float(row.on_demand))}") if row.on_demand else None
    return money(float(row.price)), beside, _history(row.prices)


def _history(prices: Sequence[PricePoint]) -> Markup | None:
    """The prices as a line of steps, each until the next one."""
    if len(prices) < 2:
        return None
    first, last = prices[0].since, prices[-1].since
    low, high = min(point.usd for point in prices), max(point.usd for point in prices)
    x = [WIDTH * (point.since - first) / (last - first or 1) for point in prices]
    y = [1 + (HEIGHT - 2) * (1 - (point.usd - low) / (high - low or 1)) for point in prices]
    path = f"M{x[0]:.1f} {y[0]:.1f}" + "".join(f"H{at:.1f}V{level:.1f}" for at, level in zip(x[1:], y[1:], strict=True))
    text = f"from {money(low)} to {money(high)} in {span(last - first)}"
    return element(
        "svg", element("title", text), element("path", d=path), class_="prices", role="img", aria_label=text,
        width=WIDTH, height=HEIGHT, viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )  # fmt: skip


def _held_by(job: Mapping[str, Any]) -> str:
    """The CapacityTier that a job holds or waits for; "" if it has ended or does not say so."""
    status = job.get("status") or {}
    if status.get("phase") in ENDED:
        return ""
    tiers = (job.get("spec") or {}).get("tiers") or []
    return next((str(tier.get("capacityTier", "")) for tier in tiers if tier.get("name") == status.get("tier")), "")
