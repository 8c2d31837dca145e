"""The progress of a rollout: one line for each change."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer

Progress = Callable[[str, str, str, str], None]
"""Called with a cluster, a component, its state and details."""


def lines() -> Progress:
    """The callback that prints progress to stderr, with the seconds since this call."""
    begun = time.monotonic()
    last: dict[tuple[str, str], tuple[str, str]] = {}

    def show(cluster: str, component: str, state: str, details: str) -> None:
        if last.get((cluster, component)) == (state, details):
            return
        last[cluster, component] = (state, details)
        typer.echo(f"{time.monotonic() - begun:6.1f} s  {cluster}  {component}: {state} {details}".rstrip(), err=True)

    return show
