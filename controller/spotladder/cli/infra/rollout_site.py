"""The fleet file of a rollout: the chosen clusters and their working directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder import extras
from spotladder.cli.infra.options import FleetTarget
from spotladder_infra.topology.fleet import Fleet

if TYPE_CHECKING:
    from spotladder_infra.rollout.cluster_rollout import RolloutSite


@dataclass(frozen=True, slots=True)
class RolloutTarget(FleetTarget):
    """The clusters and the charts of a rollout. A command with a parameter of this type has these options."""

    charts: Annotated[
        Path | None,
        typer.Option("--charts", metavar="DIR", help="Folder with the charts, instead of their public repositories."),
    ] = None

    def charts_folder(self, fleet: Fleet) -> Path | None:
        """The folder of the charts: of the option, or of the fleet file; None for the public repositories."""
        if self.charts is None and fleet.spec.platform.charts:
            return self.fleet.parent / fleet.spec.platform.charts
        return self.charts


def rollout_site(target: RolloutTarget) -> RolloutSite:
    """The chosen clusters and the working directories of the rollout.

    Raises:
        InvalidSpec: A cluster or the cloud is unknown.
        EnvironmentFailure: A program or a package is missing.
    """
    from spotladder_infra.programs import require

    fleet, clusters = target.read(warn=True)
    require("pulumi", "helm", "kubectl")
    extras.require("infra", "pulumi")
    from spotladder_infra.rollout.cluster_rollout import RolloutSite

    names = tuple(entry.name for entry in clusters)
    return RolloutSite(fleet, target.state, target.charts_folder(fleet), names)
