"""`spotladder infra upgrade`: the upgrade of the releases while nodes are held."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.infra.comparison import print_rollout
from spotladder.cli.infra.progress import interruptible
from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.infra.rollout_site import RolloutTarget, rollout_site
from spotladder.cli.output import Format, OutputOption


def upgrade(
    target: RolloutTarget,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Upgrade the releases; otherwise nothing is changed.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show what an upgrade would change in the releases; with --apply, upgrade them.

    Meanwhile Karpenter removes no nodes, so no job loses a node because of the upgrade. Kubernetes itself is
    upgraded by Terraform afterwards, and nodes get a new image when they are empty. Exit code 5 when a cluster cannot
    be read or upgraded.

    \b
    Examples:
      spotladder infra upgrade
      spotladder infra upgrade --cluster east --apply
    """
    place = rollout_site(target)
    if not apply:
        print_rollout(place, output)
        return
    from spotladder_infra.rollout import waves

    with interruptible() as progress:
        results = waves.upgrade(place, progress)
    print_results(results, output)
