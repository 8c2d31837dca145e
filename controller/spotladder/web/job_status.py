"""What the status of a job says, for a page without the records of the job: figures, tiers and attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.display import job_text
from spotladder.display.figures import NONE, count, span
from spotladder.display.report.markup import Markup, element, join, table
from spotladder.display.report.page import UNINTERRUPTED, figures
from spotladder.timestamps import seconds_of
from spotladder.web.rows import JobRow

TIERS = ("tier", "attempts", "failures", "node-hours", "cost", "left or ended by")
ATTEMPTS = ("attempt", "tier", "waited", "trained", "steps", "failures", "ended by")


def status_figures(row: JobRow) -> Markup:
    """The figures at the top."""
    return figures(
        ("progress", row.progress or NONE, "", ""),
        ("workers lost", count(row.failures), "", ""),
        ("paid", row.cost or NONE, "", ""),
        ("saved", row.saved or NONE, f"against {UNINTERRUPTED}" if row.saved else "", ""),
    )


def status_tables(job: Mapping[str, Any]) -> Markup:
    """The ladder of tiers with what each was used for, and the newest ended attempts."""
    status = job.get("status") or {}
    tiers, attempts = (status.get(key) or () for key in ("tiers", "attempts"))
    return join(
        _section("Tiers", TIERS, [_tier(each) for each in tiers], (0, 5)),
        _section("Ended attempts", ATTEMPTS, [_attempt(each) for each in attempts], (0, 1, 6)),
    )


def _section(title: str, columns: tuple[str, ...], rows: list[list[str]], left: tuple[int, ...]) -> Markup | None:
    return element("section", element("h2", title), table(columns, rows, left)) if rows else None


def _tier(tier: Mapping[str, Any]) -> list[str]:
    hours = (tier.get("nodeSeconds") or 0) / HOUR
    numbers = [str(tier.get(key) or 0) for key in ("attempts", "failures")]
    return [
        tier["name"],
        *numbers,
        f"{hours:,.2f}",
        job_text.money(tier.get("cost")) or NONE,
        _why(tier, "spent", "lastReason"),
    ]


def _attempt(attempt: Mapping[str, Any]) -> list[str]:
    started, running, ended = (
        seconds_of(attempt[key]) if attempt.get(key) else None for key in ("startedAt", "runningAt", "endedAt")
    )
    steps = f"{count(attempt.get('startStep') or 0)} → {count(attempt.get('endStep') or 0)}"
    ready = ended if running is None else running
    return [
        str(attempt["number"]),
        attempt.get("tier") or NONE,
        NONE if started is None or ready is None else span(ready - started),
        NONE if running is None or ended is None else span(ended - running),
        steps,
        str(attempt.get("failures") or 0),
        _why(attempt, "reason"),
    ]


def _why(of: Mapping[str, Any], *keys: str) -> str:
    return next((of[key] for key in keys if of.get(key)), NONE)
