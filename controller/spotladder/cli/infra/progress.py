"""The progress of a rollout: a table that is refreshed on a terminal, one line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

Progress = Callable[[str, str, str, str], None]
"""Called with a cluster, a component, its state and details."""

STYLES = {"ready": "green", "removed": "green", "failed": "red"}


@contextmanager
def progress() -> Iterator[Progress]:
    """Yields the callback that prints progress to stderr."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.live import Live

    seen: dict[tuple[str, str], tuple[str, str, float]] = {}
    with Live(console=Console(stderr=True), get_renderable=lambda: table(seen, time.monotonic()), refresh_per_second=4):

        def show(cluster: str, component: str, state: str, details: str) -> None:
            begun = seen[cluster, component][2] if (cluster, component) in seen else time.monotonic()
            seen[cluster, component] = (state, details, begun)

        yield show


def _lines() -> Progress:
    begun = time.monotonic()
    last: dict[tuple[str, str], tuple[str, str]] = {}

    def show(cluster: str, component: str, state: str, details: str) -> None:
        if last.get((cluster, component)) == (state, details):
            return
        last[cluster, component] = (state, details)
        typer.echo(f"{time.monotonic() - begun:6.1f} s  {cluster}  {component}: {state} {details}".rstrip(), err=True)

    return show


def table(seen: dict[tuple[str, str], tuple[str, str, float]], now: float) -> Any:
    """State, details and begin (seconds, as `now`) of each component, by cluster and component."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("Cluster", "Component", "State", "Details"):
        table.add_column(heading)
    previous = ""
    for (cluster, component), (state, details, begun) in sorted(seen.copy().items(), key=lambda item: item[0][0]):
        style = STYLES.get(state)
        cell = state if style else f"{state} {now - begun:.0f} s"
        table.add_row(
            "" if cluster == previous else cluster,
            component,
            f"[{style}]{cell}[/]" if style else cell,
            escape(details),
        )
        previous = cluster
    return table
