"""`spotladder infra bootstrap`: creates the clusters of a fleet, or changes them to match the file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from spotladder.cli.infra.applying import (
    carry_out,
    confirm,
    finish,
    refuse_losses,
    say_stopping,
    show,
)
from spotladder.cli.infra.options import OUT, FleetTarget, ToOption, YesOption
from spotladder.errors import EnvironmentFailure
from spotladder_infra import account
from spotladder_infra.amazon import connect
from spotladder_infra.terraform.applied import planned, record, stacks_of, write_home
from spotladder_infra.terraform.events import Planned
from spotladder_infra.terraform.stack import TerraformStack
from spotladder_infra.topology.cluster import Cloud, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable


def bootstrap(
    target: FleetTarget,
    *,
    yes: YesOption = False,
    to: ToOption = OUT,
) -> None:
    """Create the clusters, one after the other, or change them to match the fleet file.

    Terraform creates clusters on aws and gcp, kind those of cloud kind. Shows the plan and asks for confirmation. After
    an interrupt, run the same command again to continue. When a cluster fails, the others are still created, and the
    exit code is 5. If a resource already exists, the error has the terraform import command for it.

    \b
    Examples:
      spotladder infra bootstrap
      spotladder infra bootstrap --cluster east --yes
    """
    from spotladder_infra.kind import ensure

    found, clusters = target.read(warn=True)
    stacks = stacks_of(found, clusters, to, target.state, on_interrupt=say_stopping)
    stacks.sort(key=lambda stack: stack.cluster != found.spec.home)  # others allow its addresses
    for entry in clusters:
        if entry.cloud is Cloud.AWS and entry.api.admins:
            reason = account.locked_out(entry, account.caller(connect, entry.region or ""))
            if reason:
                typer.echo(f"warning: cluster {entry.name}: {reason}", err=True)
    kinds = [entry for entry in clusters if entry.cloud is Cloud.KIND]
    if not stacks and not kinds:
        typer.echo("nothing to create: these clusters exist")
        return
    plans = [(stack, planned(stack)) for stack in stacks]
    for stack, changes in plans:
        show(stack.cluster, changes)
        refuse_losses(found, stack, changes)
    new = [entry for entry in kinds if _is_new(entry)]
    if new or any(changes for _, changes in plans):
        confirm("Create and change this?", yes=yes)

    def work(stack: TerraformStack, changes: list[Planned]) -> None:
        created = found.cluster(stack.cluster)
        if account.uses_spot([created]):
            account.ensure_spot_role(connect, created.region or "")
        if write_home(found, stack, target.state):  # this run has created the home cluster
            changes = planned(stack)
        if changes:
            carry_out(stack)
        stack.drop_plan()
        record(stack, target.state)

    tasks: list[tuple[str, Callable[[], None], TerraformStack | None]] = [
        (stack.cluster, partial(work, stack, changes), stack) for stack, changes in plans
    ]
    tasks += [(entry.name, partial(ensure, found, entry, target.state), None) for entry in kinds]
    finish(tasks, done="ready")


def _is_new(cluster: Cluster) -> bool:
    """Prints what will be done to a kind cluster. Returns whether it will be created."""
    from spotladder_infra.kind import configuration, exists

    try:
        exists_already = exists(cluster)
    except EnvironmentFailure:  # reported with the result of the cluster
        exists_already = False
    nodes = len(configuration(cluster)["nodes"])
    typer.echo(f"{cluster.name}: kind cluster {'exists' if exists_already else f'with {nodes} nodes to create'}")
    return not exists_already
