"""Prints the report of a run on this machine, ended or not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spotladder.cli.local.selection import say_where
from spotladder.cli.output import Format, print_data
from spotladder.cli.plan_outcome import print_plan, read_plan

if TYPE_CHECKING:
    from spotladder.local.local_run import LocalRun


def print_report_of(run: LocalRun, to: Path | None, output: Format, plan: Path | None = None) -> None:
    """Print the report; with `to`, also write its files to that folder; with `plan`, compare this plan with the run."""
    from rich.console import Console

    from spotladder.display.report import gather, write_report
    from spotladder.display.report.data import as_data
    from spotladder.display.report.plan_comparison import compare
    from spotladder.display.report.table import print_report

    read = None if plan is None else read_plan(plan)
    recorded, state = run.recorded(), run.state()
    facts = gather(recorded, state)
    compared = None if read is None else compare(read, state, time.time(), facts)
    say_where(run)
    if output is not Format.TABLE:
        print_data(as_data(facts, compared), output)
    else:
        print_report(facts, Console())
        if compared is not None:
            typer.echo()
            print_plan(compared)
    if to:
        write_report(to, recorded, state, compared)
        typer.echo(f"report: {to / 'report.html'}", err=output is not Format.TABLE)
