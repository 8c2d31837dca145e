"""Prints the report of a run on this machine, ended or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spotladder.cli.local.selection import print_place
from spotladder.cli.output import Format, print_data

if TYPE_CHECKING:
    from spotladder.local.local_run import LocalRun


def print_report_of(run: LocalRun, to: Path | None, output: Format) -> None:
    """Print the report; with `to`, also write its files to that folder."""
    from spotladder.cli.terminal import console
    from spotladder.display.report import gather, write_report
    from spotladder.display.report.data import as_data
    from spotladder.display.report.table import print_report

    recorded, state = run.recorded(), run.state()
    facts = gather(recorded, state)
    print_place(run)
    if output is not Format.TABLE:
        print_data(as_data(facts), output)
    else:
        print_report(facts, console())
    if to:
        write_report(to, recorded, state)
        typer.echo(f"report: {to / 'report.html'}", err=output is not Format.TABLE)
