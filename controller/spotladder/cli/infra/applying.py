"""Shows the plan of a stack, asks for confirmation, and applies it with progress, one cluster after the other."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from spotladder.cli.output import on_terminal, print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spotladder_infra.terraform.events import Event, Planned
    from spotladder_infra.terraform.stack import TerraformStack

DONE = {"create": "created", "update": "changed", "delete": "deleted", "import": "taken over"}


class ApplyProgress:
    """Prints the events of one apply: a progress bar on a terminal, one line per resource elsewhere.

    Args:
        cluster: The cluster's name, printed on every line.
        total: How many resources the plan changes; a replaced one counts twice.
    """

    def __init__(self, cluster: str, total: int) -> None:
        self._cluster = cluster
        self._total = total
        self._done = 0
        self._running: list[str] = []
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ApplyProgress:
        if on_terminal():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.fields[cluster]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._bar = Bar(*columns, transient=True)
            self._task = self._bar.add_task("", total=self._total, cluster=self._cluster)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        from spotladder_infra.terraform.events import Finished, Started

        if isinstance(event, Started):
            self._running.append(event.address)
        elif isinstance(event, Finished):
            if event.address in self._running:
                self._running.remove(event.address)
            if not event.failed:
                self._done += 1
            self._line(event)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=self._running[0] if self._running else "")

    def _line(self, event: Any) -> None:
        what = f"{event.action} failed" if event.failed else DONE.get(event.action, event.action)
        text = f"{self._cluster}: {what} {event.address} ({event.seconds} s, {self._done} of {self._total})"
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            typer.echo(text)


def say_stopping() -> None:
    """Prints the effect of the first Ctrl-C."""
    typer.echo(
        "stopping: Terraform finishes the operations that it has started; press Ctrl-C again to kill it", err=True
    )


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
    """Asks for confirmation unless `yes`. Raises InvalidSpec when stdin is not a terminal."""
    import sys

    from spotladder.errors import InvalidSpec

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidSpec("no terminal to confirm on: run spotladder infra plan, then add --yes (with make: YES=yes)")
    typer.confirm(question, abort=True)


def carry_out(stack: TerraformStack, changes: list[Planned]) -> None:
    """Applies the stored plan of a stack and prints progress."""
    from spotladder_infra.terraform.events import Action

    silent = (Action.FORGET, Action.IMPORT)  # Terraform prints no event for these
    total = sum(2 if entry.action is Action.REPLACE else 1 for entry in changes if entry.action not in silent)
    with ApplyProgress(stack.cluster, total) as progress:
        stack.apply(progress)


def finish(tasks: Sequence[tuple[str, Callable[[], None], TerraformStack | None]], *, done: str) -> None:
    """Runs the tasks of the clusters one after the other and prints the result of each.

    The tasks after a failed one still run. An interrupt ends the loop.

    Args:
        tasks: Cluster, task, and the cluster's stack if it has one.
        done: The result that is printed for a task that succeeded.

    Raises:
        EnvironmentFailure: At least one task failed. The message has one line for each error.
    """
    from spotladder.errors import EnvironmentFailure, SpotladderError
    from spotladder_infra.terraform.stack import TerraformInterrupted

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
    from spotladder.errors import SpotladderError

    if stack is None:
        return ""
    try:
        return f" with {len(stack.addresses())} resources in the state"
    except SpotladderError:
        return " with a state that cannot be read"
