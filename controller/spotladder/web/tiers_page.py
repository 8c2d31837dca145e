"""The page of the tiers: what each provides now, what all jobs have observed on it, and who holds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from spotladder.api.status import CapacityTierStatus
from spotladder.api.tier_history import number_in, prices_of, read_status, waits_of
from spotladder.core.history.waits import usual_wait
from spotladder.core.model import PricePoint
from spotladder.display.figures import money, numbered, percent, span
from spotladder.display.job_text import ENDED
from spotladder.display.report.markup import Markup, element
from spotladder.places.place import Object, Place
from spotladder.web.availability import DAYS, heat_map, spells_by_tier
from spotladder.web.frame import framed, job_address, live, problems, table

WIDTH, HEIGHT = 120, 24
"""The size of a price history in pixels."""

SHOWN_MAPS = 60
"""Number of tiers whose capacity is shown by hour."""

SHOWN_HOLDERS = 8
"""Number of jobs that a tier names."""

HEADINGS = ("Tier", "Capacity", "Jobs", "Price per node-hour", "Requests met", "Wait", "Evictions per node-hour")


def tiers_page(places: Sequence[Place], now: float) -> str:
    """All tiers of these places."""
    rows = [row for place in places for row in _rows(place, now)]
    none = "No tier is listed for you. The page of a job shows the tiers of the job."
    title = element("header", element("h1", "Tiers"))
    body = table("Tiers", HEADINGS, rows) if rows else element("p", none, class_="soft")
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


def _rows(place: Place, now: float) -> list[Markup]:
    held = jobs_by_tier(place.jobs())
    return [tier_row(place, tier, held.get(tier["metadata"]["name"], ()), now) for tier in place.tiers()]


def jobs_by_tier(jobs: Iterable[Object]) -> dict[str, list[Object]]:
    """The jobs that hold or wait for nodes of each CapacityTier, by its name."""
    held: dict[str, list[Object]] = defaultdict(list)
    for job in jobs:
        held[_held_by(job)].append(job)
    return held


def tier_row(place: Place, tier: Object, holders: Sequence[Object], now: float) -> Markup:
    """The row of a CapacityTier of this place, which these jobs hold or wait for."""
    status = read_status(to_json(tier.get("status") or {}))
    met, waits = number_in(status.availability), waits_of(status)
    half, most = (span(usual_wait(waits, share)) for share in (0.5, 0.9))
    requests = element("small", f"of {status.attempts}") if status.attempts else None
    return element(
        "tr",
        element("th", tier["metadata"]["name"], element("small", place.title), scope="row"),
        element("td", *_capacity(status, now), class_="text"),
        element("td", *_holders(place, holders, status.nodes_in_use), class_="text"),
        element("td", *_price(status)),
        element("td", percent(met), requests),
        element("td", *(f"half ≤ {half}", element("small", f"90 % ≤ {most}")) if sum(waits) else "–"),
        element("td", status.evictions_per_node_hour or "–"),
    )


def _capacity(status: CapacityTierStatus, now: float) -> tuple[Markup | None, ...]:
    found = next((each for each in status.conditions if each.type == "Available"), None)
    words = {"True": ("available", "good"), "False": ("none", "bad")}
    word, tone = words.get("" if found is None else found.status, ("not known", "caution"))
    text = ""
    if found is not None:
        since = f"for {span(now - found.last_transition_time.timestamp())}" if found.status in words else ""
        text = ": ".join(filter(None, (since, found.message)))
    return element("span", word, class_=f"badge {tone}"), element("small", text) if text else None


def _holders(place: Place, jobs: Sequence[Object], held: int) -> tuple[Markup | None, ...]:
    named = [(job["metadata"]["namespace"], job["metadata"]["name"]) for job in jobs[:SHOWN_HOLDERS]]
    links = [element("li", element("a", name, href=job_address(place.name, space, name))) for space, name in named]
    left = len(jobs) - len(links)
    links += [element("li", f"{left} more")] if left > 0 else []
    nodes = element("small", numbered(held, "node")) if held else None
    return element("ul", *links, class_="holders") if links else element("span", "–"), nodes


def _price(status: CapacityTierStatus) -> tuple[Markup | str | None, ...]:
    price, on_demand = number_in(status.price), number_in(status.on_demand_price)
    if price is None:
        return ("not known", None)
    beside = None if on_demand is None else element("small", f"on demand {money(on_demand)}")
    return money(price), beside, _history(prices_of(status))


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
