"""`spotladder sim trace`: describes recorded capacity, before it is simulated."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.display.figures import numbered
from spotladder.extras import needs


def trace(
    *,
    traces: Annotated[
        list[str],
        typer.Argument(metavar="[ZONE=]FILE...", help="A zone's trace: a file, or a folder of windows."),
    ],
    workers: Annotated[int, typer.Option(min=1, max=10_000, help="Nodes that must be available at once.")] = 1,
    output: OutputOption = Format.TABLE,
) -> None:
    """Describe traces of spot capacity: format, time, availability, prices, and how long capacity lasts.

    \b
    Examples:
      spotladder sim trace us-west-2b.csv nodes.csv --workers 4
      spotladder sim trace events.json --output json
    """
    with needs("sim"):
        from spotladder.cli.traces import recorded
        from spotladder.sim.description import COLUMNS, describe

    zones = recorded(traces)
    found = [describe(name, readings, workers) for name, readings in zones.items()]
    if output is not Format.TABLE:
        print_data({"workers": workers, "zones": [one.data for one in found]}, output)
        return
    print_table(COLUMNS, [one.row for one in found], f"Capacity for {numbered(workers, 'node')} at once")
    for one in found:
        for sentence in one.notes:
            typer.echo(f"\nnote: {sentence}")
