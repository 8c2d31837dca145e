"""Prints the output of a local run's programs, attempt by attempt."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

import typer

from spotladder.cli.local.selection import print_place
from spotladder.errors import Refused
from spotladder.local.local_run import LocalRun
from spotladder.local.output import LogReader

POLL_INTERVAL = 0.25
"""Seconds between two reads of the log with --follow."""


def print_logs(run: LocalRun, attempt: int | None, *, follow: bool, tail: int | None) -> None:
    """Print the output of one attempt, or of all; with `follow` until the run has ended or stopped.

    Raises Refused if the attempt does not exist.
    """
    if attempt is not None and attempt not in run.attempts() and not (follow and run.process is not None):
        raise Refused(f"{run.name} has no attempt {attempt}: its newest attempt is {max(run.attempts(), default=0)}")
    print_place(run)
    if not run.attempts() and not follow:
        typer.echo(f"{run.name} has no attempts yet", err=True)
    number = attempt or 1
    while True:
        known = [each for each in run.attempts() if each >= number]
        if known:
            _print_attempt(run, known[0], follow=follow, tail=tail)
            number = known[0] + 1
            if attempt is not None:
                return
        elif not follow or run.process is None:
            return
        else:
            time.sleep(POLL_INTERVAL)


def _print_attempt(run: LocalRun, number: int, *, follow: bool, tail: int | None) -> None:
    typer.echo(f"==> {_title(run, number)} <==", err=True)
    reader = LogReader(run.log(number))
    kept: deque[str] = deque(maxlen=tail)
    while lines := reader.lines():
        if tail is None:
            _print(lines)
        else:
            kept.extend(lines)
    live = follow and _is_live(run, number)
    _print(kept if live else deque([*kept, *reader.rest()], maxlen=tail))
    while live:
        time.sleep(POLL_INTERVAL)
        live = _is_live(run, number)  # check before the last read, which then includes all output
        while lines := reader.lines():
            _print(lines)
        if not live:
            _print(reader.rest())


def _is_live(run: LocalRun, number: int) -> bool:
    """Whether the attempt's program may still write."""
    return run.process is not None and max(run.attempts(), default=0) <= number


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _title(run: LocalRun, number: int) -> str:
    state = run.state()
    ended = next((record for record in state.history if record.number == number), None)
    if ended is None:
        return f"attempt {number} on {state.tier or '?'}"
    return f"attempt {number} on {ended.tier}: {ended.reason}, steps {ended.start_step} → {ended.end_step}"
