"""Options shared by the commands of `spotladder infra`, and the reader of the fleet file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.errors import InvalidSpec
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.read import FleetFile, read_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

FleetOption = Annotated[Path, typer.Option("--fleet", "-f", help="The fleet file; - is stdin.")]
ToOption = Annotated[
    Path, typer.Option("--to", file_okay=False, help="Folder for the stacks; replaces existing stacks.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
FLEET = Path("fleet.yaml")
OUT = Path("cdktf.out")
STATE = Path(".spotladder")
"""Folder for the state of fleets that keep it in local files."""


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """The clusters of a fleet for which a command runs. A command with a parameter of this type has these options."""

    fleet: FleetOption = FLEET
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="Only this cluster of the fleet; may be repeated.")
    ] = None
    cloud: Annotated[
        str | None, typer.Option("--cloud", help="Only the clusters of this cloud: aws, gcp, existing or kind.")
    ] = None
    state: Annotated[
        Path, typer.Option("--state", file_okay=False, help="Folder for local state, outputs and kubeconfigs.")
    ] = STATE

    def read(self, *, warn: bool) -> tuple[Fleet, list[Cluster]]:
        """The checked fleet, and the chosen clusters in the order of the file. With `warn`, warnings are printed to
        stderr.

        Raises:
            InvalidDocument: The file has problems.
            InvalidSpec: A cluster or the cloud is unknown, or no cluster has both.
        """
        found = read(self.fleet, warn=warn).fleet
        return found, chosen(found, self.cluster, self.cloud)


def read(path: Path, *, warn: bool, smoke: bool = False) -> FleetFile:
    """The fleet file, checked; with `smoke`, also the file of its smoke job. With `warn`, warnings are printed to
    stderr.

    Raises:
        InvalidDocument: The file has problems.
    """
    found = read_fleet(path, datetime.now(UTC).date(), smoke=smoke)
    if warn:
        for problem in found.warnings:
            typer.echo(f"warning: {problem}", err=True)
    return found


def chosen(fleet: Fleet, names: Sequence[str] | None, cloud: str | None = None) -> list[Cluster]:
    """The clusters of these names in the order of the file, or all; with `cloud`, those of that cloud.

    Raises:
        InvalidSpec: A name or the cloud is unknown, or no cluster has both.
    """
    named = {fleet.cluster(name).name for name in names or ()}
    return _of_cloud([entry for entry in fleet.spec.clusters if not named or entry.name in named], cloud)


def _of_cloud(clusters: Sequence[Cluster], cloud: str | None) -> list[Cluster]:
    if cloud is None:
        return list(clusters)
    if cloud not in list(Cloud):
        raise InvalidSpec(f"--cloud {cloud}: expected {', '.join(Cloud)}")
    found = [entry for entry in clusters if entry.cloud == cloud]
    if not found:
        clouds = ", ".join(f"{entry.name}: {entry.cloud}" for entry in clusters)
        raise InvalidSpec(f"--cloud {cloud}: no cluster has this cloud ({clouds})")
    return found
