"""`spotladder infra upgrade`: the stages of an upgrade, and the upgrade of the releases."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.infra.progress import interruptible
from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.infra.rollout_site import (
    RolloutTarget,
    inspected,
    platform_of,
    raise_failures,
    rollout_options,
    rollout_site,
)
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder_infra.rollout.plan import waves as order


def upgrade(
    target: RolloutTarget,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Upgrade the releases; otherwise nothing is changed.")] = False,
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
    """
    place, targets = rollout_site(target)
    from dataclasses import asdict

    from spotladder_infra.rollout import waves
    from spotladder_infra.rollout.upgrade import stages

    if apply:
        with interruptible() as progress:
            results = waves.upgrade(place, rollout_options(place.fleet, target.fleet, targets, smoke=False), progress)
        print_results(results, output)
        return
    names = [name for wave in order(place.fleet, tuple(targets)) for name in wave]
    listed, failures = inspected(place, names, lambda name: stages(platform_of(place, name)))
    if output is Format.TABLE:
        rows = [(stage.cluster, stage.stage, stage.change, stage.gate, stage.by) for stage in listed]
        print_table(("Cluster", "Stage", "Change", "When", "Done by"), rows)
    else:
        print_data([asdict(stage) for stage in listed], output)
    raise_failures(failures)
