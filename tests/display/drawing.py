"""A snapshot of a run, and the lines of its picture."""

from __future__ import annotations

import io

from rich.console import Console

from spotladder.display.picture import draw
from spotladder.display.view_state import RunSummary, ViewSnapshot
from tests.core.builders import START
from tests.display.builders import PlayedRun


def at(run: PlayedRun, second: int) -> tuple[ViewSnapshot, RunSummary]:
    snapshot = next(shot for shot in run.shots if shot.now == START + second)
    summary = RunSummary()
    for record in run.records:
        if record.at <= snapshot.now:
            summary.add(record)
    return snapshot, summary


def drawn(snapshot: ViewSnapshot, summary: RunSummary, width: int = 80, height: int = 24) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=None)
    console.print(draw(snapshot, summary, width, height))
    return out.getvalue().splitlines()


WAITS = (
    "pods wait for nodes and images: 0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint "
    "(for 5m 50s; provisionTimeout in 4m 10s: the tier is left)"
)
