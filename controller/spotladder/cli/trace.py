"""`spotladder trace`: describes recorded capacity, before it is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.simulate_options import PolarityOption, SortOption, SurvivalOption
from spotladder.cli.written_files import check_file, check_picture
from spotladder.errors import EnvironmentFailure


def trace(
    *,
    traces: Annotated[
        list[str],
        typer.Argument(metavar="[ZONE=]FILE...", help="A zone's trace: a file, or a folder of windows."),
    ],
    workers: Annotated[int, typer.Option(min=1, max=10_000, help="Nodes that must be available at once.")] = 1,
    polarity: PolarityOption = None,
    sort: SortOption = False,
    fit: Annotated[
        bool, typer.Option("--fit", help="Describe a synthetic trace beside each, from the market fitted to it.")
    ] = False,
    survival: SurvivalOption = None,
    convert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the trace as CSV: time,available or time,nodes.")
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Describe traces of spot capacity: format, time, availability, prices, and how long capacity lasts.

    \b
    Examples:
      spotladder trace us-west-2b.json
      spotladder trace us-west-2b.json nodes.csv --workers 4 --fit --survival survival.svg
      spotladder trace events.json --convert nodes.csv
    """
    try:
        from spotladder.cli import simulation
        from spotladder.sim import conversion, trace_table
        from spotladder.sim.description import describe, generated
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise EnvironmentFailure("trace needs numpy: pip install 'spotladder[sim]'") from None

    check_picture("--survival", survival)
    check_file("--convert", convert)
    zones = simulation.read_zones(traces, polarity, sort=sort)
    if convert is not None:
        conversion.write(convert, zones)
    found, notes = [], []
    for name, readings in zones.items():
        found.append(describe(name, readings, workers))
        if fit:
            found.append(describe(f"{name}, fitted", [generated(name, readings, workers)], 1))
            notes.append(trace_table.fit_note(*found[-2:]))
    if survival is not None:
        from spotladder.sim.plots import draw_survival

        draw_survival(survival, [(name, [one.trace for one in readings]) for name, readings in zones.items()], workers)
    if output is not Format.TABLE:
        print_data({"workers": workers, "zones": [trace_table.plain(one) for one in found]}, output)
        return
    print_table(trace_table.COLUMNS, trace_table.rows(found))
    for available in (True, False):
        typer.echo()
        title = trace_table.title(workers, available=available)
        print_table(trace_table.SPELL_COLUMNS, trace_table.spell_rows(found, available=available), title)
    for sentence in trace_table.notes(found) + notes:
        typer.echo(f"\nnote: {sentence}")
    for name, file in (("Survival curves", survival), ("Converted trace", convert)):
        if file is not None:
            typer.echo(f"\n{name}: {file}")
