"""`spotladder infra`: what the make targets for infrastructure call.

The packages of a cloud are imported only by the command that needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotladder.cli.output import Format, OutputOption, print_data, print_table

if TYPE_CHECKING:
    from spotladder_infra.topology.read import FleetFile

app = typer.Typer(add_completion=False)

FleetOption = Annotated[Path, typer.Option("--fleet", "-f", help="The fleet file; - is stdin.")]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Only this cluster of the fleet.")]
FLEET = Path("fleet.yaml")
OUT = Path("cdktf.out")
STATE = Path(".spotladder")
"""Folder for the state of fleets that keep it in local files."""


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Create clusters, pools and checkpoint buckets from one fleet file.

    \b
    Examples:
      spotladder infra validate --fleet fleet.yaml
      spotladder infra synth --cluster east
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command()
def validate(
    fleet: FleetOption = FLEET,
    *,
    online: Annotated[bool, typer.Option("--online", help="Ask AWS which zones and instance types there are.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check a fleet file, offline unless --online is given.

    Every problem is printed with file, line, column, field and remedy; warnings name risks and costs. Exit code 2 when
    there is any problem.

    \b
    Examples:
      spotladder infra validate
      spotladder infra validate --fleet fleet.yaml --output json
      spotladder infra validate --online
    """
    from spotladder.api.problems import InvalidDocument

    try:
        found = _read(fleet, warn=output is Format.TABLE, online=online)
    except InvalidDocument as error:
        if output is Format.TABLE:
            raise
        print_data({"valid": False, "problems": _plain(error.problems), "warnings": []}, output)
        raise typer.Exit(2) from None
    if output is not Format.TABLE:
        print_data({"valid": True, "problems": [], "warnings": _plain(found.warnings)}, output)
        return
    rows = [
        (
            entry.name,
            str(entry.cloud),
            entry.region or "–",
            entry.kubernetes,
            str(len(entry.pools)),
            entry.bucket or "–",
        )
        for entry in found.fleet.spec.clusters
    ]
    print_table(("Cluster", "Cloud", "Region", "Kubernetes", "Pools", "Bucket"), rows)


@app.command()
def schema() -> None:
    """Print the JSON schema of a fleet file.

    \b
    Example:
      spotladder infra schema > fleet.schema.json
    """
    from spotladder_infra.topology.schema import schema as of_fleets

    print_data(of_fleets(), Format.JSON)


@app.command()
def plan(fleet: FleetOption = FLEET, cluster: ClusterOption = None, *, output: OutputOption = Format.TABLE) -> None:
    """Show what a fleet costs: each cluster while it is idle, and an hour of a node of each tier.

    Prices are on-demand list prices of one region of each cloud, from a table with its date; nothing is asked.

    \b
    Examples:
      spotladder infra plan
      spotladder infra plan --cluster east --output json
    """
    from spotladder_infra import costs
    from spotladder_infra.facts.prices import AS_OF
    from spotladder_infra.topology.cluster import CREATED

    found = _read(fleet, warn=output is Format.TABLE).fleet
    chosen = [found.cluster(cluster)] if cluster else found.spec.clusters
    idle = {entry.name: costs.idle(found, entry) for entry in chosen if entry.cloud in CREATED}
    rates = [rate for rate in costs.rates(found) if rate.cluster in {entry.name for entry in chosen}]
    if output is not Format.TABLE:
        from dataclasses import asdict

        data = {
            "pricesOf": str(AS_OF),
            "idle": {name: [asdict(item) for item in items] for name, items in idle.items()},
            "tiers": [asdict(rate) for rate in rates],
        }
        print_data(data, output)
        return
    for name, items in idle.items():
        rows = [(item.what, str(item.count), _usd(item.hourly)) for item in items]
        total = None if any(item.hourly is None for item in items) else sum(item.hourly or 0 for item in items)
        print_table((name, "Count", "USD/h idle"), [*rows, ("in all", "", _usd(total))])
    prices = [(rate.pool, rate.cluster, rate.capacity_type, _usd(rate.hourly), _usd(rate.on_demand)) for rate in rates]
    print_table(("Tier", "Cluster", "Capacity", "USD/node-h", "On demand"), prices)
    typer.echo(f"Prices of {AS_OF}. A spot price of AWS without a figure is looked up by the controller.")


@app.command()
def state(fleet: FleetOption = FLEET) -> None:
    """Create the bucket for Terraform's state: once, before the first stack. Safe to repeat.

    \b
    Example:
      spotladder infra state
    """
    from spotladder_infra.state import ensure

    typer.echo(ensure(_read(fleet, warn=False).fleet))


@app.command()
def synth(
    fleet: FleetOption = FLEET,
    cluster: ClusterOption = None,
    *,
    to: Annotated[Path, typer.Option("--to", help="Folder for the stacks; replaced when it is there.")] = OUT,
) -> None:
    """Write the Terraform stacks of the clusters that are created: one folder for each.

    Run terraform or tofu on them as on any other configuration. Clusters that exist already have no stack.

    \b
    Examples:
      spotladder infra synth
      spotladder infra synth --cluster east --to build
      terraform -chdir=cdktf.out/stacks/east init
    """
    from spotladder_infra.stacks.synth import synth as write

    found = _read(fleet, warn=True).fleet
    chosen = [found.cluster(cluster)] if cluster else found.spec.clusters
    for folder in write(found, chosen, to, STATE):
        typer.echo(folder)


@app.command()
def picture(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="A cluster whose stack was written.")],
    source: Annotated[Path, typer.Option("--from", help="Folder that synth wrote.")] = OUT,
) -> None:
    """Print a diagram (Mermaid) of what a cluster's stack creates.

    \b
    Examples:
      spotladder infra picture east > east.mmd
      spotladder infra picture east --from build
    """
    import json

    from spotladder.errors import InvalidSpec
    from spotladder_infra.picture import mermaid

    path = source / "stacks" / cluster / "cdk.tf.json"
    try:
        stack = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidSpec("is not a stack: write it with spotladder infra synth", where=str(path)) from None
    typer.echo(mermaid(stack, cluster), nl=False)


@app.command()
def render(
    fleet: FleetOption = FLEET,
    cluster: ClusterOption = None,
    *,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print them: yaml or json.")] = Format.YAML,
) -> None:
    """Print the NodePools or ComputeClasses, and the CapacityTiers, of each cluster.

    They are printed as values of the chart spotladder-pools, by the name of the cluster.

    \b
    Examples:
      spotladder infra render
      spotladder infra render --cluster east --output json
    """
    from spotladder_infra.rendering.values import values

    found = _read(fleet, warn=False).fleet
    chosen = [found.cluster(cluster)] if cluster else found.spec.clusters
    data = {entry.name: values(found, entry) for entry in chosen}
    print_data(data, Format.YAML if output is Format.TABLE else output)


def _read(path: Path, *, warn: bool, online: bool = False) -> FleetFile:
    from datetime import UTC, datetime

    from spotladder_infra.topology.read import read_fleet

    found = read_fleet(path, datetime.now(UTC).date(), online=online)
    if warn:
        for problem in found.warnings:
            typer.echo(f"warning: {problem}", err=True)
    return found


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.3f}"


def _plain(problems: Any) -> list[dict[str, str]]:
    return [{"where": entry.where, "path": entry.path, "message": entry.message} for entry in problems]
