"""`spotladder infra state|synth|permissions|explain`: the Terraform stacks of the clusters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.infra.options import FLEET, OUT, FleetOption, FleetTarget, ToOption, read
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder_infra.permissions import of_stack
from spotladder_infra.stacks.synth import read_stack
from spotladder_infra.stacks.synth import synth as write
from spotladder_infra.state import ensure

StackArgument = Annotated[str, typer.Argument(metavar="CLUSTER", help="A cluster whose stack was written.")]
FromOption = Annotated[Path, typer.Option("--from", metavar="DIR", help="Folder that synth wrote.")]


def state(fleet: FleetOption = FLEET) -> None:
    """Create the bucket for Terraform's state: once, before the first stack. Safe to repeat.

    \b
    Example:
      spotladder infra state
    """
    typer.echo(ensure(read(fleet, warn=False).fleet))


def synth(
    target: FleetTarget,
    *,
    to: ToOption = OUT,
) -> None:
    """Write the Terraform stacks of the clusters on aws and gcp: one folder for each.

    Run terraform or tofu on them as on any other configuration. Existing clusters (cloud existing) have no stack.

    \b
    Examples:
      spotladder infra synth
      spotladder infra synth --cluster east --to build
      terraform -chdir=cdktf.out/stacks/east init
    """
    found, clusters = target.read(warn=True)
    for folder in write(found, clusters, to, target.state):
        typer.echo(folder)


def permissions(cluster: StackArgument, fleet: FleetOption = FLEET, source: FromOption = OUT) -> None:
    """Print the least permissions of the identity that applies a cluster's stack, as JSON: a policy of AWS, or roles of
    Google Cloud.

    \b
    Example:
      spotladder infra permissions east
    """
    found = read(fleet, warn=False).fleet
    print_data(of_stack(found, found.cluster(cluster), read_stack(source, cluster)), Format.JSON)


def explain(
    cluster: StackArgument,
    fleet: FleetOption = FLEET,
    source: FromOption = OUT,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the bring-up of a cluster hop by hop, from the APIs to the notice of a reclaim.

    Each hop names the resource of the stack, or the release, that allows it. Exit code 5 if a hop is not possible.

    \b
    Example:
      spotladder infra explain east
    """
    from spotladder_infra.bringup import walk

    found = read(fleet, warn=False).fleet
    walked = walk.hops(found, found.cluster(cluster), read_stack(source, cluster))
    if output is Format.TABLE:
        rows = [
            (str(number), each.step, ", ".join(each.missing) or "–", ", ".join(each.allowed_by))
            for number, each in enumerate(walked, start=1)
        ]
        print_table(("", "Step", "Missing", "Allowed by"), rows)
    else:
        print_data([asdict(each) for each in walked], output)
    if any(each.missing for each in walked):
        raise typer.Exit(5)
