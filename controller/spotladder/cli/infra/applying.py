"""Shows the plan of a stack, asks for confirmation, and applies it, one cluster after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spotladder.cli.output import print_table
from spotladder.errors import EnvironmentFailure, InvalidSpec, SpotladderError
from spotladder_infra.checkpoints import CONTENT, resources
from spotladder_infra.terraform.changes import WORDS, by_type, counted, lost
from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.terraform.stack import TerraformInterrupted, TerraformStack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spotladder_infra.topology.cluster import Cluster
    from spotladder_infra.topology.fleet import Fleet


def say_stopping() -> None:
    """Prints the effect of the first Ctrl-C."""
    typer.echo(
        "stopping: Terraform finishes the operations that it has started; press Ctrl-C again to kill it", err=True
    )


def refuse_losses(fleet: Fleet, stack: TerraformStack, changes: list[Planned]) -> None:
    """Raises EnvironmentFailure if the changes of a stack delete what running jobs or their checkpoints need."""
    refuse_loss(fleet.cluster(stack.cluster), changes)
    _refuse_loss_of_checkpoints(fleet, stack, changes)


def refuse_loss(cluster: Cluster, changes: list[Planned]) -> None:
    """Raises EnvironmentFailure if the changes delete the cluster or the subnets of its nodes: its jobs would end, and
    the nodes that Karpenter has launched would stay."""
    needed = ", ".join(lost(changes))
    if needed and cluster.existing is not None:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: existing names a cluster of yours, but this stack has created the cluster, and "
            f"this would delete it ({needed}): remove existing"
        )
    if needed:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: this would delete what its jobs need ({needed}): undo the change in the fleet "
            f"file, or run spotladder infra destroy --cluster {cluster.name} first"
        )


def _refuse_loss_of_checkpoints(fleet: Fleet, stack: TerraformStack, changes: list[Planned]) -> None:
    """Raises EnvironmentFailure if the changes delete a protected checkpoint bucket or its key: Terraform itself
    protects only what the stack still has."""
    deleted = resources(entry.address for entry in changes if entry.action is Action.DELETE)
    lost = [address for address in deleted if address.partition(".")[0] in CONTENT]
    if not lost:
        return
    ids = stack.ids()
    name = ids.get("aws_s3_bucket.checkpoints") or ids.get("google_storage_bucket.checkpoints")
    if any(bucket.name == name and not bucket.deletion_protection for bucket in fleet.spec.buckets):
        return
    raise EnvironmentFailure(
        f"cluster {stack.cluster}: this would delete the checkpoint bucket {name} or its key ({', '.join(lost)}), "
        "which the fleet file no longer has in this cluster: correct the file, or keep them in the cloud without this "
        f"stack: {stack.command('state', 'rm', *deleted)}"
    )


def show(cluster: str, changes: list[Planned]) -> None:
    """Prints a plan by type of resource."""
    typer.echo(f"{cluster}: {counted(changes)}")
    if rows := by_type(changes):
        print_table((cluster, *(word.capitalize() for word in WORDS.values())), rows)


def confirm(question: str, *, yes: bool) -> None:
    """Asks for confirmation unless `yes`. Raises InvalidSpec when stdin is not a terminal."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidSpec("no terminal to confirm on: run spotladder infra plan, then add --yes (with make: YES=yes)")
    typer.confirm(question, abort=True)


def carry_out(stack: TerraformStack) -> None:
    """Applies the stored plan of a stack. Prints what Terraform prints, with the name of the cluster."""
    stack.apply(lambda line: typer.echo(f"{stack.cluster}: {line}"))


def finish(tasks: Sequence[tuple[str, Callable[[], None], TerraformStack | None]], *, done: str) -> None:
    """Runs the tasks of the clusters one after the other and prints the result of each.

    The tasks after a failed one still run. An interrupt ends the loop.

    Args:
        tasks: Cluster, task, and the cluster's stack if it has one.
        done: The result that is printed for a task that succeeded.

    Raises:
        EnvironmentFailure: At least one task failed. The message has one line for each error.
    """
    results = dict.fromkeys((name for name, _, _ in tasks), "not begun")
    errors: list[SpotladderError] = []
    try:
        for name, work, stack in tasks:
            try:
                work()
                results[name] = done
            except (TerraformInterrupted, KeyboardInterrupt) as stop:
                results[name] = f"interrupted{_held(stack)}"
                if isinstance(stop, KeyboardInterrupt):
                    typer.echo(f"cluster {name}: interrupted: run the same command again to continue", err=True)
                raise
            except SpotladderError as error:
                results[name] = f"failed{_held(stack)}"
                errors.append(error)
    finally:
        if len(tasks) > 1 or set(results.values()) != {done}:
            print_table(("Cluster", "Result"), list(results.items()))
    if errors:
        lines = "\n".join(str(error) for error in errors)
        recorded = any(stack is not None and results[name].startswith("failed") for name, _, stack in tasks)
        kept = "completed changes are in the state: " if recorded else ""
        raise EnvironmentFailure(f"{lines}\n{kept}run the same command again to continue")


def _held(stack: TerraformStack | None) -> str:
    """The number of resources in the stack's state, as a suffix of a result."""
    if stack is None:
        return ""
    try:
        return f" with {len(stack.ids())} resources in the state"
    except SpotladderError:
        return " with a state that cannot be read"
