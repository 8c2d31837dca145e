"""`spotladder infra rollout|rollback`: installs and restores the platform components in the clusters of a fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.infra.comparison import print_rollout
from spotladder.cli.infra.progress import interruptible
from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.infra.rollout_site import RolloutTarget, rollout_site
from spotladder.cli.output import Format, OutputOption


def rollout(
    target: RolloutTarget,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the rollout would change. Changes nothing.")
    ] = False,
    smoke: Annotated[bool, typer.Option("--smoke/--no-smoke", help="Run the smoke job of the file.")] = True,
    output: OutputOption = Format.TABLE,
) -> None:
    """Install or upgrade Karpenter, the pools, KubeRay and the controller, cluster after cluster.

    The canaries go first. The other clusters follow when all releases of the canaries are ready and the smoke job has
    succeeded there. The first failure stops the rollout; run the same command again to continue. Manual changes of the
    installed objects are undone.

    \b
    Examples:
      spotladder infra rollout --dry-run
      spotladder infra rollout
      spotladder infra rollout --cluster east --charts mirror
      spotladder infra rollout --no-smoke --output json
    """
    place = rollout_site(target)
    if dry_run:
        print_rollout(place, output)
        return
    from spotladder_infra.rollout import smoke as smoke_job
    from spotladder_infra.rollout import waves

    asked = place.fleet.spec.rollout.smoke
    proof = smoke_job.read(target.fleet.parent / asked.job) if smoke and asked else None
    with interruptible() as progress:
        results = waves.rollout(place, proof, progress)
    print_results(results, output)


def rollback(
    target: RolloutTarget,
    *,
    output: OutputOption = Format.TABLE,
) -> None:
    """Restore the last good rollout of clusters: its versions and values. CustomResourceDefinitions stay.

    A cluster whose last rollout was good returns to the one before. The fleet file is not changed: correct it before
    the next rollout.

    \b
    Examples:
      spotladder infra rollback
      spotladder infra rollback --cluster east --output json
    """
    place = rollout_site(target)
    from spotladder_infra.rollout import waves

    with interruptible() as progress:
        results = waves.rollback(place, progress)
    print_results(results, output)
