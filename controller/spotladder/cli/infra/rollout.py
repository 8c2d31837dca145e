"""`spotladder infra rollout|preview|status|drift|rollback`: the platform components in the clusters of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from spotladder.cli.infra.options import (
    FLEET,
    STATE,
    CloudOption,
    ClusterOption,
    FleetOption,
    StateOption,
    read,
    targets_of,
)
from spotladder.cli.output import Format, OutputOption, print_data, print_table

if TYPE_CHECKING:
    from spotladder.cli.infra.progress import Progress
    from spotladder_infra.rollout.cluster import RolloutSite
    from spotladder_infra.rollout.engine import Change
    from spotladder_infra.rollout.images import PoolImage
    from spotladder_infra.rollout.inspection import ComponentRow
    from spotladder_infra.rollout.waves import ClusterResult, RolloutOptions
    from spotladder_infra.topology.fleet import Fleet

Row = TypeVar("Row")
ChartsOption = Annotated[
    Path | None, typer.Option("--charts", help="Folder with the charts, instead of their public repositories.")
]


def rollout(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
    *,
    canary: Annotated[list[str] | None, typer.Option("--canary", help="First wave, instead of the file's.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Maximum number of clusters at the same time.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke/--no-smoke", help="Run the smoke job of the file.")] = True,
) -> None:
    """Install or upgrade Karpenter, the pools, KubeRay and the controller, cluster after cluster.

    The canaries go first. The other clusters follow when all releases of the canaries are ready and the smoke job has
    succeeded there. The first failure stops the rollout; run the same command again to continue. Manual changes of the
    installed objects are undone.

    \b
    Examples:
      spotladder infra rollout
      spotladder infra rollout --target east --charts mirror
    """
    place, targets = _place(fleet, charts, state, target, cloud, canary=canary)
    from spotladder_infra.rollout import waves

    options = _options(place.fleet, fleet, targets, concurrency=concurrency, smoke=smoke)
    with _progress() as progress:
        results = waves.rollout(place, options, progress)
    _finish(results, "run the same command again when the cause is gone, or spotladder infra rollback")


def preview(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show what a rollout would change in each cluster. Nothing is changed. Exit code 5 when a cluster cannot be
    read; the others are shown.

    \b
    Examples:
      spotladder infra preview
      spotladder infra preview --target east --output json
    """
    place, targets = _place(fleet, charts, state, target, cloud)
    from spotladder_infra.rollout.plan import waves

    numbers = {name: number for number, wave in enumerate(waves(place.fleet, tuple(targets)), 1) for name in wave}

    def changes(name: str) -> list[dict[str, str]]:
        found = _platform(place, name).preview(lambda *_: None)
        return [{"wave": str(numbers[name]), "cluster": name, **_described(change)} for change in found]

    entries, failures = _inspected(place, list(numbers), changes)
    if output is Format.TABLE:
        _print_changes(entries)
    else:
        print_data(entries, output)
    _raise(failures)


def status(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the version of each component in each cluster, and whether it is ready. Exit code 5 if a cluster cannot be
    read; the others are shown.

    \b
    Examples:
      spotladder infra status
      spotladder infra status --target east --output json
    """
    place, targets = _place(fleet, charts, state, target, cloud)
    rows, failures = _components(place, targets, compare=False)
    _print_rows(rows, output)
    _raise(failures)


def drift(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Find manual changes in the clusters. Exit code 1 if there is a difference; a rollout undoes it.

    \b
    Examples:
      spotladder infra drift
      spotladder infra drift --target east --output json
    """
    place, targets = _place(fleet, charts, state, target, cloud)
    rows, failures = _components(place, targets, compare=True)
    _print_rows(rows, output)
    _raise(failures)
    if not all(row.up_to_date for row in rows):
        raise typer.Exit(1)


def rollback(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
    cloud: CloudOption = None,
    charts: ChartsOption = None,
    state: StateOption = STATE,
) -> None:
    """Restore the last good rollout of clusters: its versions and values. CustomResourceDefinitions stay.

    A cluster whose last rollout was good returns to the one before. The fleet file is not changed: correct it before
    the next rollout.

    \b
    Examples:
      spotladder infra rollback
      spotladder infra rollback --target east
    """
    place, targets = _place(fleet, charts, state, target, cloud)
    from spotladder_infra.rollout import waves

    with _progress() as progress:
        results = waves.rollback(place, _options(place.fleet, fleet, targets, concurrency=None, smoke=False), progress)
    _finish(results, "correct the cause and run the same command again")


def upgrade(
    fleet: FleetOption = FLEET,
    target: ClusterOption = None,
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
      spotladder infra upgrade --target east --apply
      spotladder infra upgrade --images --online
    """
    _refuse_options(apply=apply, images=images, online=online)
    place, targets = _place(fleet, charts, state, target, cloud)
    from dataclasses import asdict

    from spotladder_infra.rollout import waves
    from spotladder_infra.rollout.plan import waves as order
    from spotladder_infra.rollout.upgrade import stages

    if apply:
        with _progress() as progress:
            results = waves.upgrade(
                place, _options(place.fleet, fleet, targets, concurrency=None, smoke=False), progress
            )
        _finish(results, "run the same command again when the cause is gone, or spotladder infra rollback")
        return
    names = [name for wave in order(place.fleet, tuple(targets)) for name in wave]
    if images:
        _print_images(place, names, output, online=online)
        return
    listed, failures = _inspected(place, names, lambda name: stages(_platform(place, name)))
    if output is Format.TABLE:
        rows = [(stage.cluster, stage.stage, stage.change, stage.gate, stage.by) for stage in listed]
        print_table(("Cluster", "Stage", "Change", "When", "Done by"), rows)
    else:
        print_data([asdict(stage) for stage in listed], output)
    _raise(failures)


def _refuse_options(*, apply: bool, images: bool, online: bool) -> None:
    """Raises InvalidSpec for options of `upgrade` that do not belong together."""
    from spotladder.errors import InvalidSpec

    if apply and images:
        raise InvalidSpec(
            "--images changes nothing: set image on the pools in the fleet file, then run upgrade with --apply alone"
        )
    if online and not images:
        raise InvalidSpec("--online asks for the newest node image: give --images, too")


def _print_images(place: RolloutSite, names: list[str], output: Format, *, online: bool) -> None:
    from dataclasses import asdict

    from spotladder_infra.amazon import connect
    from spotladder_infra.rollout.images import pool_images
    from spotladder_infra.rollout.tools import Tools

    def images(name: str) -> list[PoolImage]:
        cluster = place.fleet.cluster(name)
        return pool_images(Tools(place.target(cluster)), cluster, connect if online else None)

    found, failures = _inspected(place, names, images)
    if output is not Format.TABLE:
        print_data([asdict(image) for image in found], output)
        _raise(failures)
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
    _raise(failures)


def _place(
    path: Path,
    charts: Path | None,
    state: Path,
    target: list[str] | None,
    cloud: str | None,
    *,
    canary: list[str] | None = None,
) -> tuple[RolloutSite, list[str]]:
    """The working directories of the rollout and the names of the chosen clusters; empty for all clusters.

    Raises:
        InvalidSpec: A cluster or the cloud is unknown.
        EnvironmentFailure: A program or a package is missing.
    """
    from spotladder_infra.packages import require_packages
    from spotladder_infra.rollout.tools import require

    fleet = read(path, warn=True).fleet
    targets = targets_of(fleet, target, cloud)
    for name in canary or ():
        fleet.cluster(name)
    if canary:
        rollout = fleet.spec.rollout.model_copy(update={"canary": canary})
        fleet = fleet.model_copy(update={"spec": fleet.spec.model_copy(update={"rollout": rollout})})
    require("pulumi", "helm", "kubectl")
    require_packages("pulumi")
    folder = charts
    if folder is None and fleet.spec.platform.charts:
        folder = path.parent / fleet.spec.platform.charts
    from spotladder_infra.rollout.cluster import RolloutSite

    return RolloutSite(fleet, state, folder), targets


def _options(fleet: Fleet, path: Path, targets: list[str], *, concurrency: int | None, smoke: bool) -> RolloutOptions:
    from spotladder_infra.rollout import smoke as smoke_job
    from spotladder_infra.rollout.waves import RolloutOptions

    asked = fleet.spec.rollout
    document = smoke_job.read(path.parent / asked.smoke.job) if smoke and asked.smoke else None
    return RolloutOptions(
        targets=tuple(targets),
        concurrency=concurrency or asked.concurrency,
        timeout=asked.timeout,
        smoke=document,
        smoke_timeout=asked.smoke.timeout if asked.smoke else 0.0,
    )


def _platform(place: RolloutSite, name: str) -> Any:
    from spotladder_infra.rollout.cluster import ClusterPlatform

    return ClusterPlatform(place, place.fleet.cluster(name))


def _inspected(
    place: RolloutSite, names: Sequence[str], inspect_one: Callable[[str], Iterable[Row]]
) -> tuple[list[Row], list[str]]:
    """The rows of the clusters, and one line for each cluster that cannot be read."""
    from spotladder_infra.rollout.inspection import inspect_all

    return inspect_all(names, place.fleet.spec.rollout.concurrency, inspect_one)


def _components(place: RolloutSite, targets: list[str], *, compare: bool) -> tuple[list[ComponentRow], list[str]]:
    from spotladder_infra.rollout.inspection import inspect

    names = [entry.name for entry in place.fleet.spec.clusters if not targets or entry.name in targets]
    return _inspected(place, names, lambda name: inspect(_platform(place, name), compare=compare))


def _raise(failures: list[str]) -> None:
    """Raises EnvironmentFailure with these lines, if there are any."""
    from spotladder.errors import EnvironmentFailure

    if failures:
        raise EnvironmentFailure("\n".join(failures))


def _described(change: Change) -> dict[str, str]:
    from spotladder_infra.rollout.changes import details

    return {"component": change.resource, "change": change.operation, "details": details(change)}


def _print_changes(entries: list[dict[str, str]]) -> None:
    rows = [
        (entry["wave"], entry["cluster"], entry["component"], entry["change"], entry["details"])
        for entry in entries
        if entry["change"] != "same"
    ]
    if rows:
        print_table(("Wave", "Cluster", "Component", "Change", "Details"), rows)
    if entries:
        typer.echo(f"{len(rows)} to change, {len(entries) - len(rows)} unchanged.")


def _print_rows(rows: list[ComponentRow], output: Format) -> None:
    if not rows and output is Format.TABLE:
        return
    if output is not Format.TABLE:
        from dataclasses import asdict

        print_data([{**asdict(row), "drift": list(row.drift)} for row in rows], output)
        return
    cells = [
        (row.cluster, row.component, row.version, row.wanted, row.ready, ", ".join(row.drift) or "–") for row in rows
    ]
    print_table(("Cluster", "Component", "Version", "Wanted", "Ready", "Drift"), cells)


@contextmanager
def _progress() -> Iterator[Progress]:
    from spotladder.cli.infra.progress import progress

    try:
        with progress() as show:
            yield show
    except KeyboardInterrupt:
        typer.echo("interrupted: run the same command again to continue", err=True)
        raise


def _finish(results: list[ClusterResult], remedy: str) -> None:
    from spotladder.errors import EnvironmentFailure
    from spotladder_infra.rollout.inspection import failure_of
    from spotladder_infra.rollout.waves import ClusterOutcome

    failed = [found for found in results if found.outcome is ClusterOutcome.FAILED]
    notes = {found.cluster: f", {found.message}" for found in results if found.message and found not in failed}
    print_table(("Cluster", "Result"), [(at.cluster, f"{at.outcome}{notes.get(at.cluster, '')}") for at in results])
    if failed:
        lines = [failure_of(found.cluster, found.message) for found in failed]
        raise EnvironmentFailure("\n".join(lines if all(found.final for found in failed) else [*lines, remedy]))
