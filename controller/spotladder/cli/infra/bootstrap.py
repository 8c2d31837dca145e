"""`spotladder infra bootstrap`: creates the clusters of a fleet, or brings them to what the file says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from spotladder.cli.infra.applying import carry_out, confirm, finish, say_stopping, show
from spotladder.cli.infra.options import (
    FLEET,
    OUT,
    STATE,
    CloudOption,
    ClusterOption,
    FleetOption,
    StateOption,
    ToOption,
    YesOption,
    chosen,
    read,
)

if TYPE_CHECKING:
    from spotladder_infra.terraform.events import Planned
    from spotladder_infra.terraform.stack import TerraformStack


def bootstrap(
    fleet: FleetOption = FLEET,
    cluster: ClusterOption = None,
    cloud: CloudOption = None,
    *,
    yes: YesOption = False,
    to: ToOption = OUT,
    state: StateOption = STATE,
) -> None:
    """Create the clusters, one after the other, or change them to what the fleet file says.

    Shows the plan and asks for confirmation. After an interrupt, run the same command again to continue. When a cluster
    fails, the others are still created, and the exit code is 5.

    \b
    Examples:
      spotladder infra bootstrap
      spotladder infra bootstrap --cluster east --yes
    """
    from spotladder_infra.terraform.applied import planned, record, stacks_of
    from spotladder_infra.topology.cluster import Cloud

    found = read(fleet, warn=True).fleet
    clusters = chosen(found, cluster, cloud)
    stacks = stacks_of(found, clusters, to, state, on_interrupt=say_stopping)
    if not stacks:
        kinds = [f"kind create cluster --name {entry.name}" for entry in clusters if entry.cloud is Cloud.KIND]
        hint = f"; for a kind cluster, run: {', '.join(kinds)}" if kinds else ""
        typer.echo(f"nothing to create: Terraform creates clusters on aws and gcp{hint}")
        return
    plans = [(stack, planned(found, stack)) for stack in stacks]
    for stack, changes in plans:
        show(stack.cluster, changes)
    if any(changes for _, changes in plans):
        confirm("Create and change this?", yes=yes)

    def work(stack: TerraformStack, changes: list[Planned]) -> None:
        if changes:
            carry_out(stack, changes)
        stack.drop_plan()
        record(stack, state)

    finish([(stack.cluster, partial(work, stack, changes), stack) for stack, changes in plans], done="ready")
