"""The pages as HTML: the list of jobs, and one job. They look like the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spotladder.core.model import Phase
from spotladder.display import job_text
from spotladder.display.figures import count, money, numbered, percent, saved
from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.page import figures, sections
from spotladder.places.place import Place
from spotladder.web.frame import framed, job_address, live, problems, table
from spotladder.web.job_status import status_figures, status_tables
from spotladder.web.rows import STATES, JobRow, Selection

if TYPE_CHECKING:
    from spotladder.display.report.facts import RunFacts

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

NUMBERS = frozenset({"failures", "cost", "age"})
"""The columns that are aligned at the right."""

TONES = dict(zip(STATES, ("caution", "good", "bad", "ended"), strict=True))
"""The tones of the states."""


def jobs_page(places: Sequence[Place], rows: Sequence[JobRow], chosen: Selection, none: str = NO_JOBS) -> str:
    """The list of all jobs. `none` is the text of an empty list."""
    shown = chosen.applied(rows)
    return framed(
        "Jobs – spotladder",
        element("main", _summary(rows), _filter(rows, chosen), live(problems(places), _table(shown, chosen, none))),
        here="/",
    )


def job_page(place: Place, job: Mapping[str, Any], facts: RunFacts | None, now: float, gap: str = "") -> str:
    """One job: what its status says, and its report if the place has its records. `gap` says why it has none."""
    name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
    row = JobRow.of(place, job, now)
    output = element("a", "Program output", href=f"{job_address(row.place, row.namespace, row.name)}/output")
    told = facts is not None and row.phase in job_text.ENDED
    status = element(
        "section", None if told else _now(row), _status(row, job, now), element("p", output), class_="status"
    )
    if facts is not None:
        body = sections(facts, status)
    else:
        why = element("p", gap, class_="note") if gap else None
        body = join(element("header", element("h1", name), status_figures(row)), status, why, status_tables(job))
    return framed(f"{name} – spotladder", element("main", live(problems([place]), body)))


def missing_page(title: str, message: str) -> str:
    """A page with an error and a link to the next page."""
    back = element("p", element("a", "All jobs", href="/"))
    return framed(f"{title} – spotladder", element("main", element("h1", title), element("p", message), back))


def _summary(rows: Sequence[JobRow]) -> Markup:
    """The number of jobs in each state, their losses and their cost."""
    found = Counter(row.state for row in rows)
    states = [
        (state, count(found[index]), "", TONES[state] if found[index] else "") for index, state in enumerate(STATES)
    ]
    priced = [row for row in rows if row.uninterrupted]
    share = saved(sum(row.spent for row in priced), sum(row.uninterrupted for row in priced))
    spent = money(sum(row.spent for row in rows), like=10)
    note = "" if share is None else f"{percent(share)} saved"
    lost = ("workers lost", count(sum(row.failures for row in rows)), "", "")
    return element("header", element("h1", "Jobs"), figures(*states, lost, ("spent", spent, note, ""), id_="summary"))


def _filter(rows: Sequence[JobRow], chosen: Selection) -> Markup:
    phases = sorted({*Phase, *(row.phase for row in rows), chosen.phase} - {""})
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
    return join(table("Jobs", head, map(_row, rows[:SHOWN]), cards=True), more)


def _heading(column: str, text: str, chosen: Selection) -> Markup:
    order = None if column != chosen.sort else "descending" if chosen.falling else "ascending"
    kind = "n" if column in NUMBERS else None
    return element("th", element("a", text, href=chosen.by(column)), scope="col", aria_sort=order, class_=kind)


def _row(row: JobRow) -> Markup:
    address = job_address(row.place, row.namespace, row.name)
    place = element("small", f"{row.namespace} · {row.where}")
    why = element("small", row.why) if row.why else None
    return element(
        "tr",
        element("th", element("a", row.name, href=address), place, scope="row"),
        element("td", _badge(row), why, class_="text"),
        element("td", row.tier),
        element("td", _progress(row)),
        element("td", str(row.failures), class_="n", data_label="failures"),
        element("td", row.cost, element("small", f"{row.saved} saved") if row.saved else None, class_="n"),
        element("td", row.age, class_="n", data_label="age"),
    )


def _badge(row: JobRow) -> Markup:
    return element("span", row.phase, class_=f"badge {[*TONES.values()][row.state]}")


def _progress(row: JobRow) -> Markup:
    if row.share is None:
        return element("span", row.progress)
    bar = element("span", class_="done", style=f"width:{row.share * 100:.1f}%")
    return join(row.progress, element("span", bar, class_="track", aria_hidden="true"))


def _status(row: JobRow, job: Mapping[str, Any], now: float) -> Markup:
    """What `spotladder get JOB` prints, as a list."""
    lines = [("where", f"{row.where}, namespace {row.namespace}"), *job_text.details(job, now)]
    found = [(label, text) for label, text in lines if text]
    return element("dl", *(element("div", element("dt", label), element("dd", text)) for label, text in found))


def _now(row: JobRow) -> Markup:
    where = f" on {row.tier}" if row.tier else ""
    return element("p", _badge(row), where, f", {row.progress}" if row.progress else "")
