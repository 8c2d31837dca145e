"""The report on a terminal: a short summary, then the attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.display.figures import count, count_of, money, percent, saved, span
from spotladder.display.report.facts import Facts

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("#", "tier", "lasted", "steps", "recomputed", "failures", "cost", "ended by")
RIGHT = frozenset({"#", "lasted", "steps", "recomputed", "failures", "cost"})
LEAST = {"recomputed": 90, "lasted": 76, "failures": 66, "cost": 56}
"""Terminal widths below which a column is left out. The page and the JSON have all columns."""


def rows(facts: Facts) -> list[tuple[str, ...]]:
    """One row for each attempt, in the order of `COLUMNS`."""
    dearest = max((attempt.cost for attempt in facts.attempts), default=0.0)
    return [
        (
            str(each.number),
            each.tier,
            span(each.end - each.start),
            f"{count(each.start_step)} → {count(each.end_step)}",
            count(each.recomputed),
            str(each.failures),
            money(each.cost, dearest),
            "running" if facts.going_on and each is facts.attempts[-1] else str(each.reason),
        )
        for each in facts.attempts
    ]


def sentences(facts: Facts) -> list[tuple[str, str]]:
    """The summary: label and text."""
    rows = [
        ("steps", f"{count_of(facts.steps, facts.total)}, {count(facts.recomputed)} recomputed"),
        ("time", f"{span(facts.time.total)}, goodput {percent(facts.time.goodput)}{_scaled(facts)}"),
    ]
    restarts = [attempt.overhead for attempt in facts.attempts[1:] if attempt.overhead is not None]
    if restarts:
        each = "" if len(restarts) == 1 else " each on average"
        rows.append(("restarts", f"{len(restarts)}, {span(sum(restarts) / len(restarts))}{each}"))
    if facts.on_demand > 0:
        rows.append(("paid", money(facts.spent)))
        if facts.uninterrupted is not None:
            share = percent(saved(facts.spent, facts.uninterrupted))
            rows.append(("saved", f"{share} against {money(facts.uninterrupted)} on-demand, uninterrupted"))
        share = percent(facts.saved)
        rows.append(("", f"{share} against {money(facts.on_demand)} for the same nodes on demand"))
    return rows


def _scaled(facts: Facts) -> str:
    step_time = facts.spec.step_time
    return f"; each step counts as {span(step_time)} of training" if step_time else ""


def print_report(facts: Facts, console: Console) -> None:
    """Print the report: fitted to the terminal, or as plain aligned lines elsewhere."""
    from rich.table import Table
    from rich.text import Text

    wide = console.is_terminal
    visible = [index for index, name in enumerate(COLUMNS) if not wide or console.width >= LEAST.get(name, 0)]
    lines = [[_plain(row[index]) for index in visible] for row in rows(facts)]
    summary = [(label, _plain(text)) for label, text in sentences(facts)]
    if not wide:
        heads = [COLUMNS[index] for index in visible]
        labels = max(len(label) for label, _ in summary)
        summary_lines = [f"{label.ljust(labels)}  {text}" for label, text in summary]
        for line in (*_aligned([heads, *lines]), "", *summary_lines):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index in visible:
        name = COLUMNS[index]
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True, overflow="ellipsis")
    for row in lines:
        table.add_row(*(Text(cell) for cell in row))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, text in summary:
        grid.add_row(Text(label, style="dim"), Text(text))
    console.print(table)
    console.print()
    console.print(grid)


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    right = [lines[0][index] in RIGHT for index in range(len(widths))]
    return [
        "  ".join(
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")
