"""The progress bar of commands that simulate runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from spotladder.cli.terminal import console
from spotladder.core.model import Seconds

BAR_AFTER: Seconds = 1.0
"""Time after which a progress bar appears."""

BAR_EVERY: Seconds = 0.1
"""Minimum time between two updates of a progress bar."""


@contextmanager
def bar(total: int, now: Callable[[], float] = time.monotonic) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, for work that takes longer than BAR_AFTER. What it yields is called with the
    number of runs that have ended. The bar has no thread of its own, so that processes can be forked."""
    if not sys.stderr.isatty():
        yield lambda _runs: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console(stderr=True), transient=True, auto_refresh=False, get_time=now)
    task, due = progress.add_task("", total=total), now() + BAR_AFTER
    with ExitStack() as shown:

        def done(runs: int) -> None:
            nonlocal due
            progress.advance(task, runs)
            if now() < due:
                return
            if not progress.live.is_started:
                shown.enter_context(progress)
            progress.refresh()
            due = now() + BAR_EVERY

        yield done
