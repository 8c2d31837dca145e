"""`spotladder infra bootstrap`: creates the clusters of a fleet, or brings them to what the file says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from spotladder.cli.infra.applying import Progress
from spotladder.cli.infra.options import (
    FLEET,
    OUT,
    STATE,
    ClusterOption,
    FleetOption,
    StateOption,
    ToOption,
    YesOption,
    chosen,
    read,
)
from spotladder.cli.output import print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spotladder_infra.terraform.events import Planned
    from spotladder_infra.terraform.stack import Stack


def bootstrap(
    fleet: FleetOption = FLEET,
    cluster: ClusterOption = None,
    *,
    yes: YesOption = False,
    to: ToOption = OUT,
    state: StateOption = STATE,
) -> None:
    """Create the clusters, one after the other, or change them to what the fleet file says.

    Shows what will be done and asks. Safe to repeat and to interrupt: the same command goes on. When a cluster fails,
    the others are created all the same, and the exit code is 5.

    \b
    Examples:
      spotladder infra bootstrap
      spotladder infra bootstrap --cluster east --yes
    """
    from spotladder_infra.terraform.applied import planned, record, stacks_of

    found = read(fleet, warn=True).fleet
    stacks = stacks_of(found, chosen(found, cluster), to, state, on_interrupt=say_stopping)
    if not stacks:
        typer.echo("nothing to create: these clusters exist already")
        return
    plans = [(stack, planned(found, stack)) for stack in stacks]
    for stack, changes in plans:
        show(stack.cluster, changes)
    if any(changes for _, changes in plans):
        confirm("Create and change this?", yes=yes)

    def work(stack: Stack, changes: list[Planned]) -> None:
        if changes:
            carry_out(stack, changes)
        stack.drop_plan()
        record(stack, state)

    finish([(stack.cluster, partial(work, stack, changes), stack) for stack, changes in plans], done="ready")


def say_stopping() -> None:
    """Tells a user who pressed Ctrl-C what happens now."""
    typer.echo("stopping: Terraform finishes what it has begun; press Ctrl-C again to kill it", err=True)


def show(cluster: str, changes: list[Planned]) -> None:
    """Prints a plan by concern."""
    from spotladder_infra.terraform.changes import by_concern, counted

    typer.echo(f"{cluster}: {counted(changes)}")
    rows = [
        (line.concern, str(line.created), str(line.changed), str(line.replaced), str(line.deleted))
        for line in by_concern(changes)
    ]
    if rows:
        print_table((cluster, "Create", "Change", "Replace", "Delete"), rows)


def confirm(question: str, *, yes: bool) -> None:
    """Asks unless `yes`. Raises InvalidSpec where nobody can answer."""
    import sys

    from spotladder.errors import InvalidSpec

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidSpec("no terminal to confirm on: look at spotladder infra plan, then add --yes")
    typer.confirm(question, abort=True)


def carry_out(stack: Stack, changes: list[Planned]) -> None:
    """Applies the kept plan of a stack and prints progress."""
    from spotladder_infra.terraform.events import Action

    silent = (Action.FORGET, Action.IMPORT)  # Terraform says nothing when it does these
    total = sum(2 if entry.action is Action.REPLACE else 1 for entry in changes if entry.action not in silent)
    with Progress(stack.cluster, total) as progress:
        stack.apply(progress)


def finish(tasks: Sequence[tuple[str, Callable[[], None], Stack | None]], *, done: str) -> None:
    """Carries out one cluster's task after the other and says what became of each.

    A failure does not keep the others from being carried out; an interrupt does.

    Raises:
        EnvironmentFailure: One of them failed; one line for each error.
    """
    from spotladder.errors import EnvironmentFailure, SpotladderError
    from spotladder_infra.terraform.stack import Interrupted

    results = dict.fromkeys((name for name, _, _ in tasks), "not begun")
    errors: list[SpotladderError] = []
    try:
        for name, work, stack in tasks:
            try:
                work()
                results[name] = done
            except Interrupted:
                results[name] = f"interrupted{_held(stack)}"
                raise
            except SpotladderError as error:
                results[name] = f"failed{_held(stack)}"
                errors.append(error)
    finally:
        if len(tasks) > 1 or set(results.values()) != {done}:
            print_table(("Cluster", "Result"), list(results.items()))
    if errors:
        lines = "\n".join(str(error) for error in errors)
        raise EnvironmentFailure(f"{lines}\nwhat was done so far is in the state: the same command goes on")


def _held(stack: Stack | None) -> str:
    """How many resources the state of a stack has."""
    from spotladder.errors import SpotladderError

    if stack is None:
        return ""
    try:
        return f" with {len(stack.addresses())} resources in the state"
    except SpotladderError:
        return " with a state that cannot be read"
