"""The fleet file of a rollout: the chosen clusters, their working directories and the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from spotladder import extras
from spotladder.cli.infra.options import FleetTarget
from spotladder.errors import EnvironmentFailure
from spotladder_infra.topology.fleet import Fleet

if TYPE_CHECKING:
    from spotladder_infra.rollout.cluster_rollout import ClusterPlatform, RolloutSite
    from spotladder_infra.rollout.waves import RolloutOptions

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class RolloutTarget(FleetTarget):
    """The clusters and the charts of a rollout. A command with a parameter of this type has these options."""

    charts: Annotated[
        Path | None, typer.Option("--charts", help="Folder with the charts, instead of their public repositories.")
    ] = None

    def charts_folder(self, fleet: Fleet) -> Path | None:
        """The folder of the charts: of the option, or of the fleet file; None for the public repositories."""
        if self.charts is None and fleet.spec.platform.charts:
            return self.fleet.parent / fleet.spec.platform.charts
        return self.charts


def rollout_site(target: RolloutTarget) -> tuple[RolloutSite, list[str]]:
    """The working directories of the rollout and the names of the chosen clusters.

    Raises:
        InvalidSpec: A cluster or the cloud is unknown.
        EnvironmentFailure: A program or a package is missing.
    """
    from spotladder_infra.rollout.tools import require

    fleet, clusters = target.read(warn=True)
    require("pulumi", "helm", "kubectl")
    extras.require("infra", "pulumi")
    from spotladder_infra.rollout.cluster_rollout import RolloutSite

    return RolloutSite(fleet, target.state, target.charts_folder(fleet)), [entry.name for entry in clusters]


def rollout_options(fleet: Fleet, path: Path, targets: list[str], *, smoke: bool) -> RolloutOptions:
    """The options in the fleet file at `path`, for these clusters. Raises InvalidSpec if the smoke job is invalid."""
    from spotladder_infra.rollout import smoke as smoke_job
    from spotladder_infra.rollout.waves import RolloutOptions

    asked = fleet.spec.rollout
    document = smoke_job.read(path.parent / asked.smoke.job) if smoke and asked.smoke else None
    return RolloutOptions(
        targets=tuple(targets),
        concurrency=asked.concurrency,
        timeout=asked.timeout,
        smoke=document,
        smoke_timeout=asked.smoke.timeout if asked.smoke else 0.0,
    )


def platform_of(place: RolloutSite, name: str) -> ClusterPlatform:
    """The platform layer of the cluster with this name."""
    from spotladder_infra.rollout.cluster_rollout import ClusterPlatform

    return ClusterPlatform(place, place.fleet.cluster(name))


def inspected(
    place: RolloutSite, names: Sequence[str], inspect_one: Callable[[str], Iterable[Row]]
) -> tuple[list[Row], list[str]]:
    """The rows of the clusters, and one line for each cluster that cannot be read."""
    from spotladder_infra.rollout.inspection import inspect_all

    return inspect_all(names, place.fleet.spec.rollout.concurrency, inspect_one)


def raise_failures(failures: list[str]) -> None:
    """Raises EnvironmentFailure with these lines, if there are any."""
    if failures:
        raise EnvironmentFailure("\n".join(failures))
