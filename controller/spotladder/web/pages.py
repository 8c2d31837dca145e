"""The pages as HTML: the list of jobs, and one job. They look like the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spotladder.display import job_text
from spotladder.display.figures import money, numbered
from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.page import sections
from spotladder.places.place import Place
from spotladder.web.frame import framed, job_address, live, problems, table
from spotladder.web.rows import JobRow, Selection

if TYPE_CHECKING:
    from spotladder.display.report.facts import Facts

SHOWN = 200
"""Number of jobs that the list shows at once. The filter finds the others."""

HEADINGS = {
    "name": "Job",
    "phase": "Phase",
    "tier": "Tier",
    "progress": "Progress",
    "failures": "Failures",
    "cost": "Cost",
    "age": "Age",
}

NO_JOBS = "No jobs yet. spotladder run and spotladder submit start one."

TONES = {"Succeeded": "good", "Running": "good", "Failed": "bad"}
"""The tones of phases; of all others, caution."""


def jobs_page(places: Sequence[Place], rows: Sequence[JobRow], chosen: Selection, none: str = NO_JOBS) -> str:
    """The list of all jobs. `none` is what it says without any."""
    shown = chosen.applied(rows)
    return framed(
        "Jobs – spotladder",
        element("main", _summary(rows), _filter(rows, chosen), live(problems(places), _table(shown, chosen, none))),
        here="/",
    )


def job_page(place: Place, job: Mapping[str, Any], facts: Facts | None, now: float, gap: str = "") -> str:
    """One job: what its status says, and its report if the place has its records. `gap` says why it has none."""
    name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
    row = JobRow.of(place, job, now)
    output = element("a", "Program output", href=f"{job_address(row.place, row.namespace, row.name)}/output")
    status = element("section", _status(row, job, now), element("p", output), class_="status")
    title = element("header", element("h1", name), element("p", gap, class_="note") if gap else None)
    body = sections(facts) if facts is not None else title
    return framed(f"{name} – spotladder", element("main", live(problems([place]), status, body)))


def missing_page(title: str, message: str) -> str:
    """A page that says what is wrong, and where to go on."""
    back = element("p", element("a", "All jobs", href="/"))
    return framed(f"{title} – spotladder", element("main", element("h1", title), element("p", message), back))


def _summary(rows: Sequence[JobRow]) -> Markup:
    spent = sum(row.spent for row in rows)
    active = sum(row.phase not in job_text.ENDED for row in rows)
    failed = sum(row.phase == "Failed" for row in rows)
    parts = [numbered(len(rows), "job"), f"{active} active", f"{failed} failed", f"{money(spent)} spent"]
    return element("header", element("h1", "Jobs"), element("p", " · ".join(parts), class_="soft", id="summary"))


def _filter(rows: Sequence[JobRow], chosen: Selection) -> Markup:
    phases = sorted({row.phase for row in rows} | {chosen.phase} - {""})
    options = [element("option", "all phases", value="")]
    options += [
        element("option", each, value=each, selected="selected" if each == chosen.phase else None) for each in phases
    ]
    return element(
        "form",
        element("label", "Filter", for_="text"),
        element(
            "input", type="search", id="text", name="text", value=chosen.text, autocomplete="off",
            placeholder="name, tier, message", accesskey="f",
        ),
        element("label", "Phase", for_="phase"),
        element("select", *options, id="phase", name="phase"),
        element("input", type="hidden", name="sort", value=("-" if chosen.falling else "") + chosen.sort),
        element("button", "Show"),
        role="search", method="get", action="/", id="filter",
    )  # fmt: skip


def _table(rows: Sequence[JobRow], chosen: Selection, none: str) -> Markup:
    if not rows:
        return element("p", "No job matches." if chosen.text or chosen.phase else none, class_="soft")
    head = [_heading(column, text, chosen) for column, text in HEADINGS.items()]
    left = len(rows) - SHOWN
    more = element("p", f"{numbered(left, 'more job')}: use the filter.", class_="soft") if left > 0 else None
    return join(table("Jobs", head, map(_row, rows[:SHOWN])), more)


def _heading(column: str, text: str, chosen: Selection) -> Markup:
    order = None if column != chosen.sort else "descending" if chosen.falling else "ascending"
    return element("th", element("a", text, href=chosen.by(column)), scope="col", aria_sort=order)


def _row(row: JobRow) -> Markup:
    address = job_address(row.place, row.namespace, row.name)
    place = element("small", f"{row.namespace} · {row.where}")
    why = element("small", row.why) if row.why else None
    return element(
        "tr",
        element("th", element("a", row.name, href=address), place, scope="row"),
        element("td", _badge(row.phase), why, class_="text"),
        element("td", row.tier),
        element("td", _progress(row)),
        element("td", str(row.failures)),
        element("td", row.cost, element("small", f"{row.saved} saved") if row.saved else None),
        element("td", row.age),
    )


def _badge(phase: str) -> Markup:
    return element("span", phase, class_=f"badge {TONES.get(phase, 'caution')}")


def _progress(row: JobRow) -> Markup:
    if row.share is None:
        return element("span", row.progress)
    bar = element("span", class_="done", style=f"width:{row.share * 100:.1f}%")
    return join(row.progress, element("span", bar, class_="track", aria_hidden="true"))


def _status(row: JobRow, job: Mapping[str, Any], now: float) -> Markup:
    """What `spotladder get JOB` prints, as a list."""
    lines = [("where", f"{row.where}, namespace {row.namespace}"), *job_text.details(job, now)]
    found = [(label, text) for label, text in lines if text]
    return join(
        element(
            "p", _badge(row.phase), f" on {row.tier}" if row.tier else "", f", {row.progress}" if row.progress else ""
        ),
        element("dl", *(element("div", element("dt", label), element("dd", text)) for label, text in found)),
    )
