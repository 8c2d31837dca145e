"""Shows what Terraform does to a stack: a bar on a terminal, one line for each resource elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from spotladder.cli.output import on_terminal

if TYPE_CHECKING:
    from spotladder_infra.terraform.events import Event

DONE = {"create": "created", "update": "changed", "delete": "deleted", "import": "taken over"}


class Progress:
    """Takes the events of one apply.

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

    def __enter__(self) -> Progress:
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
