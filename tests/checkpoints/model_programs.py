"""The programs that the model checker runs concurrently: writers, a controller, a reader."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spotladder.checkpoints import garbage
from spotladder.errors import StoreUnavailable
from tests.checkpoints.model_checker import Program, ProgramContext


def writer(attempt: int, *steps: int, keep: int = 0, files: bool = False) -> Program:
    """Starts the attempt and commits `steps`, with one file each if `files`. Then collects garbage if
    `keep`."""

    def program(context: ProgramContext) -> None:
        log = context.log()
        mine = log.start(attempt, "spot-a")
        knew = {commit.path for commit in mine.history.commits} | set(mine.history.dropped)
        context.events.append(("started", mine.start.nonce, mine.start.seq, frozenset(knew)))
        for step in steps:
            path = mine.folder(step)
            uploaded = [log.store.put_file(f"{path}/w", Path())] if files else []
            commit = mine.commit(step, uploaded, total=9)
            context.events.append(("acknowledged", mine.start.nonce, commit.path))
        if keep:
            would = tuple(commit.path for commit in garbage.garbage(log, mine.history, keep))
            context.events.append(("drops", would))
            mine.collect(keep)

    return program


def patient_writer(attempt: int, *steps: int, keep: int = 0) -> Program:
    """Starts and commits as the in-job library does: unanswered requests are retried without a limit."""

    def program(context: ProgramContext) -> None:
        log = context.log()
        tried: set[str] = set()
        mine = until_answered(lambda: log.start(attempt, "spot-a", tried=tried))
        knew = {commit.path for commit in mine.history.commits} | set(mine.history.dropped)
        context.events.append(("started", mine.start.nonce, mine.start.seq, frozenset(knew)))
        for step in steps:
            commit = until_answered(lambda step=step: mine.commit(step, [], total=9))  # type: ignore[misc]
            context.events.append(("acknowledged", mine.start.nonce, commit.path))
        if keep:
            context.events.append(("drops", tuple(commit.path for commit in garbage.garbage(log, mine.history, keep))))
            mine.collect(keep)

    return program


def until_answered(work: Callable[[], Any]) -> Any:
    while True:
        with suppress(StoreUnavailable):
            return work()


def controller(outcome: str) -> Program:
    """Ends the job from outside."""

    def program(context: ProgramContext) -> None:
        entry = context.log().end_as_controller(outcome)
        context.events.append(("ended", entry and entry.outcome))

    return program


def reader() -> Program:
    """Chooses the newest commit and lists its files; reads the log again if one is missing, as resume does."""

    def program(context: ProgramContext) -> None:
        log = context.log()
        newest = log.newest()
        if newest is None:
            return
        complete = all(list(log.store.list(f"{newest.path}/")) for _ in newest.files)
        gone = not complete and newest.path not in {commit.path for commit in log.commits()}
        context.events.append(("resumed", newest.path, complete or gone))

    return program
