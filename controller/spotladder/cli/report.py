"""`spotladder report`: shows the attempts, tiers, time and cost of a job from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.folders import to_folder
from spotladder.cli.local.selection import StateDirOption
from spotladder.cli.output import Format, OutputOption, print_data
from spotladder.cli.recorded import JobOrAddress, recorded_of
from spotladder.cli.report_table import planned, print_report
from spotladder.cli.target import ClusterTarget
from spotladder.display.report import gather, write_report
from spotladder.display.report.data import as_data


def report(
    name: JobOrAddress,
    *,
    to: Annotated[
        Path | None,
        to_folder("Also write report.html and report.json to this folder."),
    ] = None,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    target: ClusterTarget,
) -> None:
    """Show the attempts, tiers, steps, time and cost of a job, running or not.

    A job of this machine (spotladder run) takes precedence over a job of a cluster. --context or --kubeconfig selects
    the cluster.

    The records of a job of a cluster are beside its checkpoints, so this machine needs credentials for the bucket, as
    for `spotladder checkpoints`. They outlive the job: name its folder to report a job that was deleted.

    \b
    Examples:
      spotladder report digits
      spotladder report digits --to digits-report
      spotladder report digits --output json
      spotladder report s3://bucket/prefix/digits
    """
    facts = planned(gather(recorded_of(name, target, state_dir)))
    if output is not Format.TABLE:
        print_data(as_data(facts), output)
    else:
        print_report(facts)
    if to:
        write_report(to, facts)
        typer.echo(f"report: {to / 'report.html'}", err=output is not Format.TABLE)
