"""`spotladder infra destroy`: deletes the clusters of a fleet and lists the remaining resources."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder import extras
from spotladder.cli.infra.applying import carry_out, confirm, finish, refuse_loss, say_stopping, show
from spotladder.cli.infra.options import OUT, FleetTarget, ToOption, YesOption
from spotladder.cli.infra.progress import progress_lines
from spotladder.cli.output import print_table
from spotladder.errors import EnvironmentFailure
from spotladder_infra.checkpoints import identities, resources
from spotladder_infra.leftovers import find, nodes
from spotladder_infra.terraform.applied import discard, stacks_of
from spotladder_infra.terraform.changes import lost_clusters
from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.terraform.stack import TerraformStack
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

if TYPE_CHECKING:
    from pathlib import Path


def destroy(
    target: FleetTarget,
    *,
    delete_checkpoints: Annotated[
        bool,
        typer.Option(
            "--delete-checkpoints",
            envvar="DELETE_CHECKPOINTS",
            help="Also delete the checkpoint buckets with all their objects.",
        ),
    ] = False,
    skip_platform: Annotated[
        bool,
        typer.Option(
            "--skip-platform", help="Leave the objects in the clusters in place, for a cluster that does not answer."
        ),
    ] = False,
    yes: YesOption = False,
    to: ToOption = OUT,
) -> None:
    """Delete the clusters and everything that belongs to them; checkpoint buckets are kept.

    Shows what will be deleted and asks for confirmation. First it stops the jobs, lets Karpenter delete its nodes, and
    uninstalls the components that a rollout installed. Then Terraform deletes the resources of the stacks, and kind its
    clusters; existing clusters remain. At the end the command lists the resources of each cluster that are left in the
    account or project, and fails with exit code 5 if there are any. After an interrupt, run the same command again to
    continue.

    \b
    Examples:
      spotladder infra destroy --cluster east
      spotladder infra destroy --yes --delete-checkpoints
    """
    from spotladder_infra import checkpoints, kind

    found, clusters = target.read(warn=False)
    clusters.sort(key=lambda entry: entry.name == found.spec.home)  # jobs are stopped there
    if skip_platform:
        for entry in clusters:
            _refuse_while_nodes_run(entry)
    stacks = {stack.cluster: stack for stack in stacks_of(found, clusters, to, target.state, on_interrupt=say_stopping)}
    plans = {name: _to_delete(stack) for name, stack in stacks.items()}
    for entry in clusters:
        if entry.cloud is Cloud.KIND:
            typer.echo(f"{entry.name}: the kind cluster is deleted")
            continue
        if entry.cloud not in WITH_STACK:
            kept = "nothing is done" if skip_platform else "what a rollout installed is uninstalled"
            typer.echo(f"{entry.name}: was not created here: {kept}")
            continue
        show(entry.name, plans[entry.name])
        _refuse_protected(entry, plans[entry.name])
        if entry.existing is not None:
            refuse_loss(entry, plans[entry.name])
            typer.echo(f"{entry.name}: the cluster {entry.existing} and its network are kept")
        bucket = found.created_bucket(entry)
        if bucket is not None:
            what = "deleted with everything in it" if delete_checkpoints else "kept, with its key"
            typer.echo(f"{entry.name}: bucket {bucket.name} is {what}")
    running = {
        entry.name
        for entry in ([] if skip_platform else clusters)
        if (entry.name not in stacks and not _is_gone(entry))
        or (plans.get(entry.name) if entry.existing else lost_clusters(plans.get(entry.name, ())))
    }
    confirm("Delete this?", yes=yes)
    if running:
        _require_rollout()

    def work(entry: Cluster) -> None:
        stack = stacks.get(entry.name)
        if entry.name in running:
            _remove_platform(found, entry, target.state)
        if entry.cloud is Cloud.KIND:
            kind.delete(entry)
        if stack is None:
            return
        _refuse_while_nodes_run(entry)
        _forget_checkpoints(stack, kept=not delete_checkpoints)
        if plans[entry.name]:
            stack.plan(destroy=True)
            carry_out(stack)
        bucket = found.created_bucket(entry)
        if delete_checkpoints and bucket is not None:
            checkpoints.delete(bucket, entry)
        discard(entry.name, target.state)
        _check_nothing_is_left(found, entry, keep=not delete_checkpoints)

    finish([(entry.name, partial(work, entry), stacks.get(entry.name)) for entry in clusters], done="done")


def _to_delete(stack: TerraformStack) -> list[Planned]:
    """The deletion of every resource of the stack except those of its checkpoint bucket."""
    stack.init()
    stack.drop_plan()
    addresses = stack.ids()
    kept = set(resources(addresses))
    return [Planned(address, Action.DELETE) for address in addresses if address not in kept]


def _refuse_protected(cluster: Cluster, changes: list[Planned]) -> None:
    """Raises EnvironmentFailure for a protected cluster: the cloud would refuse it only after its jobs, nodes and roles
    are gone."""
    if cluster.deletion_protection and lost_clusters(changes):
        raise EnvironmentFailure(
            f"cluster {cluster.name}: deletionProtection refuses its deletion: set it to false, and run spotladder "
            f"infra bootstrap --cluster {cluster.name} first"
        )


def _forget_checkpoints(stack: TerraformStack, *, kept: bool) -> None:
    """Removes the checkpoint bucket from the state. If it is kept, prints the commands that import it again."""
    ids = stack.ids()
    found = resources(ids)
    if kept and found:
        typer.echo(f"{stack.cluster}: to use the bucket in a new cluster, run after plan and before bootstrap:")
        for address in identities(found):
            typer.echo(stack.command("import", address, ids[address]))
    stack.forget(found)


def _is_gone(cluster: Cluster) -> bool:
    """Whether a kind cluster does not exist, so that there is nothing to uninstall."""
    from spotladder_infra.kind import exists

    return cluster.cloud is Cloud.KIND and not exists(cluster)


def _refuse_while_nodes_run(cluster: Cluster) -> None:
    if cluster.cloud not in WITH_STACK:
        return
    running = nodes(cluster)
    if running:
        named = ", ".join(entry.identifier for entry in running[:5]) + (" …" if len(running) > 5 else "")
        raise EnvironmentFailure(
            f"cluster {cluster.name}: {len(running)} nodes that Karpenter launched still run ({named}): delete the "
            "NodePools and wait until no NodeClaim is left; instances without a cluster are terminated manually"
        )


def _require_rollout() -> None:
    """Raises EnvironmentFailure if a program or package that uninstalling a rollout needs is missing."""
    from spotladder_infra.programs import require

    try:
        require("helm", "kubectl")
        extras.require("infra", "pulumi")
    except EnvironmentFailure as error:
        raise EnvironmentFailure(
            f"{error}; --skip-platform does not need it, for a cluster that does not answer or has no rollout"
        ) from None


def _remove_platform(fleet: Fleet, cluster: Cluster, state: Path) -> None:
    from spotladder_infra.rollout.inspection import failure_of
    from spotladder_infra.rollout.remove import remove

    try:
        remove(fleet, cluster, state, partial(progress_lines(), cluster.name))
    except EnvironmentFailure as error:
        left = (
            "not everything that a rollout installed is removed"
            if cluster.cloud is Cloud.EXISTING
            else "its jobs and nodes still exist; if it does not answer, --skip-platform skips this step"
        )
        raise EnvironmentFailure(f"{failure_of(cluster.name, str(error))}\ncluster {cluster.name}: {left}") from None


def _check_nothing_is_left(fleet: Fleet, cluster: Cluster, *, keep: bool) -> None:
    place = "project" if cluster.project else "account"
    left = find(fleet, cluster, keep_checkpoints=keep)
    if left:
        print_table(("Left", "Id", "Name"), [(entry.kind, entry.identifier, entry.detail) for entry in left])
        raise EnvironmentFailure(
            f"cluster {cluster.name}: {len(left)} resources are left in the {place}: delete them, then run the "
            "command again to check"
        )
    kept = ", except the checkpoint bucket" if keep and fleet.created_bucket(cluster) else ""
    typer.echo(f"{cluster.name}: no resources of the cluster are left in the {place}{kept}")
