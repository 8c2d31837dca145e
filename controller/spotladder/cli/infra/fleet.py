"""`spotladder infra validate|schema|render`: the fleet file, its checks and the objects of its pools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spotladder.api.problems import InvalidDocument
from spotladder.cli.infra.options import FLEET, FleetOption, read
from spotladder.cli.infra.rollout_site import RolloutTarget
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder_infra.rendering.values import values
from spotladder_infra.topology.schema import schema as of_fleets


def validate(
    fleet: FleetOption = FLEET,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check a fleet file and its smoke job, offline: `doctor` asks the clouds for zones, types and versions.

    Every problem is printed with file, line, column, field and remedy; warnings name risks and costs. Exit code 2 if
    there is any problem.

    \b
    Examples:
      spotladder infra validate
      spotladder infra validate --fleet fleet.yaml --output json
    """
    try:
        found = read(fleet, warn=output is Format.TABLE, smoke=True)
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


def schema() -> None:
    """Print the JSON schema of a fleet file.

    \b
    Example:
      spotladder infra schema > fleet.schema.json
    """
    print_data(of_fleets(), Format.JSON)


def render(
    target: RolloutTarget,
    *,
    all_to: Annotated[
        Path | None,
        typer.Option(
            "--all",
            file_okay=False,
            help="Write all releases and CRDs to this folder, for Argo CD and Flux; needs helm.",
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format: yaml or json.")] = Format.YAML,
) -> None:
    """Print the values of the chart spotladder-pools: NodePools or ComputeClasses, CapacityTiers and teams.

    The values of several clusters are printed by the name of the cluster. --all writes the objects of all charts that a
    rollout installs, in one folder for each wave.

    \b
    Examples:
      spotladder infra render
      spotladder infra render --cluster east --output json
      spotladder infra render --all clusters
    """
    found, clusters = target.read(warn=False)
    if all_to is not None:
        from spotladder_infra.programs import require
        from spotladder_infra.rollout import charts as known_charts
        from spotladder_infra.rollout import rendered

        require("helm")
        local = target.charts_folder(found)
        for entry in clusters:
            rendered.write(found, entry, lambda chart: known_charts.find(chart, local, target.state / "charts"), all_to)
        typer.echo(f"{all_to}: {', '.join(entry.name for entry in clusters)}")
        named = {entry.name for entry in found.spec.clusters}
        for folder in sorted(path.parent for path in all_to.glob("*/flux.yaml") if path.parent.name not in named):
            typer.echo(f"warning: {folder} is of no cluster of the fleet file: delete it when that is gone", err=True)
        return
    data = {entry.name: values(found, entry) for entry in clusters}
    print_data(
        data[clusters[0].name] if len(target.cluster or ()) == 1 else data,
        Format.YAML if output is Format.TABLE else output,
    )


def _plain(problems: Any) -> list[dict[str, str]]:
    return [{"where": entry.where, "path": entry.path, "message": entry.message} for entry in problems]
