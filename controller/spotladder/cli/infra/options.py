"""Options shared by the commands of `spotladder infra`, and the reader of the fleet file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spotladder_infra.topology.cluster import Cluster
    from spotladder_infra.topology.fleet import Fleet
    from spotladder_infra.topology.read import FleetFile

FleetOption = Annotated[Path, typer.Option("--fleet", "-f", help="The fleet file; - is stdin.")]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Only this cluster of the fleet.")]
ToOption = Annotated[Path, typer.Option("--to", help="Folder for the stacks; written anew.")]
StateOption = Annotated[Path, typer.Option("--state", help="Folder for local state, outputs and kubeconfigs.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
FLEET = Path("fleet.yaml")
OUT = Path("cdktf.out")
STATE = Path(".spotladder")
"""Folder for the state of fleets that keep it in local files."""


def read(path: Path, *, warn: bool, online: bool = False) -> FleetFile:
    """The fleet file, checked. Warnings go to stderr where `warn` is set.

    Raises:
        InvalidDocument: The file has problems.
    """
    from spotladder_infra.topology.read import read_fleet

    found = read_fleet(path, datetime.now(UTC).date(), online=online)
    if warn:
        for problem in found.warnings:
            typer.echo(f"warning: {problem}", err=True)
    return found


def chosen(fleet: Fleet, cluster: str | None) -> list[Cluster]:
    """The cluster of that name, or all clusters of the fleet."""
    return [fleet.cluster(cluster)] if cluster else list(fleet.spec.clusters)
