"""`spotladder sim`: the commands of the simulator."""

from __future__ import annotations

import typer

from spotladder.cli.invocation import refuse_without_command
from spotladder.cli.replay import replay
from spotladder.cli.sim.run import run
from spotladder.cli.sim.trace import trace

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Compare policies on recorded spot capacity, through the decisions of the controller. Nothing is started.

    \b
    Examples:
      spotladder sim trace us-west-2b.csv
      spotladder sim run job.yaml --world world.yaml --hours 5 --trace spot-a=us-west-2b.csv --policy adaptive
      spotladder sim replay digits --policy adaptive
    """
    refuse_without_command(context)


app.command("run")(run)
app.command("trace")(trace)
app.command("replay")(replay)
