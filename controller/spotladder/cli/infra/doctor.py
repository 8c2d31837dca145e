"""`spotladder infra doctor`: checks whether this machine and the accounts meet the requirements of a fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.infra.options import FleetTarget
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.terminal import show_status
from spotladder_infra.doctor.result import Status


def doctor(
    target: FleetTarget,
    *,
    offline: Annotated[bool, typer.Option("--offline", help="Check only the programs on this machine.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check programs, credentials, quotas and names before bootstrap. Changes nothing.

    Each line has the result of a check and the remedy. A check that is not possible is skipped, with the reason. Exit
    code 5 if a check fails, 2 if the fleet file is invalid.

    \b
    Examples:
      spotladder infra doctor
      spotladder infra doctor --cluster east --output json
      spotladder infra doctor --offline
    """
    from collections import Counter
    from dataclasses import asdict

    from spotladder_infra.doctor.examination import examine

    found, clusters = target.read(warn=output is Format.TABLE)
    results = []
    for result in examine(found, clusters, target.state, offline=offline):
        show_status(f"{result.scope}: {result.check}")
        results.append(result)
    show_status("")
    counts = Counter(result.status for result in results)
    if output is Format.TABLE:
        rows = [(result.status, result.scope, result.check, result.found, result.fix) for result in results]
        print_table(("Result", "Where", "Check", "Found", "What to do"), rows)
        typer.echo(", ".join(f"{counts[status]} {status}" for status in Status if counts[status]))
    else:
        print_data({"ok": not counts[Status.FAILED], "checks": [asdict(result) for result in results]}, output)
    if counts[Status.FAILED]:
        raise typer.Exit(5)
