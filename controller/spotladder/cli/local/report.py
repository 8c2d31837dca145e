"""Prints the report of a run on this machine, ended or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spotladder.cli.local.selection import say_where
from spotladder.cli.output import Format, print_data
from spotladder.cli.plan_outcome import plain_plan, plan_rows, print_plan, read_plan

if TYPE_CHECKING:
    from spotladder.local.local_run import LocalRun


def print_report_of(run: LocalRun, to: Path | None, output: Format, plan: Path | None = None) -> None:
    """Print the report; with `to`, also write its files to that folder; with `plan`, compare this plan with the run."""
    from rich.console import Console

    from spotladder.core.model import TERMINAL
    from spotladder.display.report import gather, write_report
    from spotladder.display.report.data import as_data
    from spotladder.display.report.table import print_report

    rows = None if plan is None else plan_rows(read_plan(plan), run.state())
    say_where(run)
    recorded, state = run.recorded(), run.state()
    facts = gather(recorded, state)
    if output is not Format.TABLE:
        print_data(as_data(facts) | ({} if rows is None else {"plan": plain_plan(rows)}), output)
    else:
        print_report(facts, Console())
        if rows is not None:
            typer.echo()
            print_plan(rows, ended=state.stage in TERMINAL)
    if to:
        write_report(to, recorded, state)
        typer.echo(f"report: {to / 'report.html'}", err=output is not Format.TABLE)
