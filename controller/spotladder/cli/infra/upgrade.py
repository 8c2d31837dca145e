"""`spotladder infra upgrade`: the stages of an upgrade, the upgrade of the releases, the images of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.infra.options import (
    FLEET,
    STATE,
    CloudOption,
    ClusterOption,
    FleetOption,
    StateOption,
)
from spotladder.cli.infra.progress import interruptible
from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.infra.rollout_site import (
    ChartsOption,
    inspected,
    platform_of,
    raise_failures,
    rollout_options,
    rollout_site,
)
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.errors import InvalidSpec
from spotladder_infra.amazon import connect
from spotladder_infra.rollout.plan import waves as order

if TYPE_CHECKING:
    from spotladder_infra.rollout.cluster_rollout import RolloutSite
    from spotladder_infra.rollout.images import PoolImage


def upgrade(
    fleet: FleetOption = FLEET,
    cluster: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Upgrade the releases; otherwise nothing is changed.")] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Show the node image of each pool instead. Changes nothing.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="With --images: ask AWS for the newest image.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the stages of an upgrade and the requirement of each; with --apply, upgrade the releases.

    Meanwhile Karpenter removes no nodes, so no job loses a node because of the upgrade. Kubernetes itself is
    upgraded by Terraform afterwards, and nodes get a new image when they are empty. Exit code 5 when a cluster cannot
    be read or upgraded.

    \b
    Examples:
      spotladder infra upgrade
      spotladder infra upgrade --cluster east --apply
      spotladder infra upgrade --images --online
    """
    _refuse_options(apply=apply, images=images, online=online)
    place, targets = rollout_site(fleet, charts, state, cluster, cloud)
    from dataclasses import asdict

    from spotladder_infra.rollout import waves
    from spotladder_infra.rollout.upgrade import stages

    if apply:
        with interruptible() as progress:
            results = waves.upgrade(
                place, rollout_options(place.fleet, fleet, targets, concurrency=None, smoke=False), progress
            )
        print_results(results, output)
        return
    names = [name for wave in order(place.fleet, tuple(targets)) for name in wave]
    if images:
        _print_images(place, names, output, online=online)
        return
    listed, failures = inspected(place, names, lambda name: stages(platform_of(place, name)))
    if output is Format.TABLE:
        rows = [(stage.cluster, stage.stage, stage.change, stage.gate, stage.by) for stage in listed]
        print_table(("Cluster", "Stage", "Change", "When", "Done by"), rows)
    else:
        print_data([asdict(stage) for stage in listed], output)
    raise_failures(failures)


def _refuse_options(*, apply: bool, images: bool, online: bool) -> None:
    """Raises InvalidSpec for options of `upgrade` that do not belong together."""
    if apply and images:
        raise InvalidSpec(
            "--images changes nothing: set image on the pools in the fleet file, then run upgrade with --apply alone"
        )
    if online and not images:
        raise InvalidSpec("--online asks for the newest node image: specify --images, too")


def _print_images(place: RolloutSite, names: list[str], output: Format, *, online: bool) -> None:
    from dataclasses import asdict

    from spotladder_infra.rollout.images import pool_images
    from spotladder_infra.rollout.tools import Tools

    def images(name: str) -> list[PoolImage]:
        cluster = place.fleet.cluster(name)
        return pool_images(Tools(place.target(cluster)), cluster, connect if online else None)

    found, failures = inspected(place, names, images)
    if output is not Format.TABLE:
        print_data([asdict(image) for image in found], output)
        raise_failures(failures)
        return
    rows = [
        (image.cluster, image.pool, image.pinned, image.installed, image.newest,
         f"{image.old_nodes} of {image.nodes}", image.advice)
        for image in found
    ]  # fmt: skip
    if rows:
        print_table(("Cluster", "Pool", "Fleet file", "Cluster has", "Newest", "Old nodes", "To do"), rows)
    elif not failures:
        typer.echo("no pool of these clusters has nodes of Karpenter; their images come with the nodes")
    raise_failures(failures)
