"""The page with what the programs of one attempt have printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from spotladder.checkpoints.outputs import KEPT_ATTEMPTS, end_of
from spotladder.display.job_text import ENDED
from spotladder.display.report.markup import Markup, element
from spotladder.places.place import Place, Printed
from spotladder.web.frame import framed, job_address, live, problems

SHOWN = 65_536
"""Maximum bytes of one output on the page, the end of it."""

FOLLOW_INTERVAL = 2
"""Seconds after which the page requests the output of a program that runs again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt whose output is shown, the newest one of its job, and whether it may still print."""

    number: int
    newest: int
    live: bool

    @classmethod
    def of(cls, job: Mapping[str, Any], query: Mapping[str, str]) -> Self:
        """The attempt that the query of an address names; the newest one if it names none of the job."""
        status = job.get("status") or {}
        newest = int(status.get("attempt") or 0)
        named = query.get("attempt", "")
        number = int(named) if named.isdecimal() and len(named) < 9 and 1 <= int(named) <= newest else newest
        return cls(number, newest, number == newest and status.get("phase") not in ENDED)


def output_page(place: Place, job: Mapping[str, Any], attempt: Attempt, texts: Sequence[Printed], gap: str = "") -> str:
    """The output of the attempt, each source's last lines. `gap` says why it cannot be read."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    address = job_address(place.name, namespace, name)
    first = max(1, attempt.newest - KEPT_ATTEMPTS + 1)
    links = [_link(address, number, attempt) for number in range(first, attempt.newest + 1)]
    shown = [_printed(text) for text in texts if text.text]
    exists = not job.get("deleted")
    none = element("p", gap or _why_none(attempt), class_="note") if not shown else None
    return framed(
        f"Output of {namespace}/{name} – spotladder",
        element(
            "main",
            element("h1", "Output of ", element("a", f"{namespace}/{name}", href=address)),
            live(
                problems([place]),
                element("nav", *links, class_="attempts", aria_label="Attempts") if links else None,
                *shown,
                none,
                element("p", f"spotladder logs {name} prints all of it.", class_="soft") if exists else None,
                every=FOLLOW_INTERVAL if attempt.live else None,
            ),
        ),
    )


def _link(address: str, number: int, attempt: Attempt) -> Markup:
    current = "page" if number == attempt.number else None
    return element("a", f"Attempt {number}", href=f"{address}/output?attempt={number}", aria_current=current)


def _printed(printed: Printed) -> Markup:
    text = end_of(printed.text, SHOWN)
    return element(
        "section",
        element("h2", printed.source),
        element("pre", text, tabindex="0", role="region", aria_label=f"Output of {printed.source}", class_="output"),
    )


def _why_none(attempt: Attempt) -> str:
    if not attempt.newest:
        return "The job has no attempt yet."
    if attempt.live:
        return f"Attempt {attempt.number} has printed nothing yet. This page follows it."
    return f"No output of attempt {attempt.number} is kept."
