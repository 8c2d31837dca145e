"""The progress of a rollout or a removal: one line for each change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from spotladder_infra.rollout.waves import Progress


def progress_lines() -> Progress:
    """The callback that prints progress to stderr, with the seconds since this call."""
    begun = time.monotonic()
    last: dict[tuple[str, str], tuple[str, str]] = {}

    def show(cluster: str, component: str, state: str, details: str) -> None:
        if last.get((cluster, component)) == (state, details):
            return
        last[cluster, component] = (state, details)
        typer.echo(f"{time.monotonic() - begun:6.1f} s  {cluster}  {component}: {state} {details}".rstrip(), err=True)

    return show


@contextmanager
def interruptible() -> Iterator[Progress]:
    """Yields such a callback. After an interrupt, prints how to continue."""
    try:
        yield progress_lines()
    except KeyboardInterrupt:
        typer.echo("interrupted: run the same command again to continue", err=True)
        raise
