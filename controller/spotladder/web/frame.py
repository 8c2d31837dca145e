"""What all pages have: the document, the bar at the top, problems, and the part that follows changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.page import document
from spotladder.places.place import Place

PAGES = {"/": "Jobs", "/tiers": "Tiers", "/fleet": "Fleet"}
"""The pages in the bar at the top."""


def framed(title: str, *body: Markup, here: str = "") -> str:
    """A whole page with this body below the bar. `here` is its address if it is one of `PAGES`."""
    head = join(
        element("link", rel="stylesheet", href="/static/web.css"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("script", src="/static/live.js", defer="defer"),
    )
    state = element("span", "", id="connection", role="status")
    links = [
        element("a", text, href=address, aria_current="page" if address == here else None)
        for address, text in PAGES.items()
    ]
    bar = element("nav", element("span", "spotladder", class_="brand"), *links, state, aria_label="Main")
    return document(title, bar, *body, head=head)


def live(*children: Markup | None, every: int | None = None) -> Markup:
    """The part of a page that the script replaces after a change, and at a fixed interval."""
    return element("div", *children, id="live", data_every=every)


def problems(places: Sequence[Place]) -> Markup | None:
    """Why jobs of these places may be old or missing."""
    found = [f"{place.title}: {place.problem}" for place in places if place.problem]
    return element("ul", *(element("li", text) for text in found), class_="problems", role="alert") if found else None


def table(label: str, headings: Iterable[Markup | str], rows: Iterable[Markup], *, cards: bool = False) -> Markup:
    """A table. `headings` are cells, or their texts. On a narrow page, its rows are `cards` or scroll sideways."""
    head = (text if isinstance(text, Markup) else element("th", text, scope="col") for text in headings)
    parts = element("thead", element("tr", *head)), element("tbody", *rows)
    shown = element("table", *parts, class_="jobs cards" if cards else "jobs")
    return element("div", shown, class_="scroll", tabindex="0", role="region", aria_label=label)


def job_address(place: str, namespace: str, name: str) -> str:
    """The address of the page of a job."""
    return "/jobs/" + "/".join(quote(part, safe="") for part in (place, namespace, name))
