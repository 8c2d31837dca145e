"""The job of a training loop that a framework owns: `Job.steps` and `Job.commit` for the callbacks of the framework.

The callback calls `resume` before the framework restores its state, `begin` when it starts to train, `is_due` after
each step, and `commit` in that hook or a later one if a commit is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from spotladder.errors import InvalidSpec
from spotladder.train.found import Found
from spotladder.train.session import Job, current


class FrameworkLoop:
    """One training loop of the running job. `found` is the commit from which it continues. `due`: a step has ended
    that asked for a commit, and none has been made since."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.found: Found | None = None
        self.due = False
        self._resumed = ExitStack()
        self._asked = False
        self._steps: Iterator[int] = iter(())
        self._at = 0

    def resume(self) -> Found | None:
        """The newest commit; its files stay until the first step has ended. The same on every rank. Later calls return
        the same commit. Raises what `Job.resume` raises."""
        if not self._asked:
            self.found = self._resumed.enter_context(self.job.resume())
            self._asked = True
        return self.found

    def begin(self, start: int, total: int, remedy: str) -> None:
        """The framework has restored its state and continues after step `start` of `total`.

        Raises InvalidSpec if there is a commit and it is of another step; `remedy` says what to change.
        """
        if self.found and start != self.found.step:
            raise InvalidSpec(
                f"starts after step {start}, but the newest commit is of step {self.found.step}: {remedy}",
                where="the trainer",
            )
        self._steps, self._at, self.due = self.job.steps(start, total), start, False
        next(self._steps, None)

    def is_due(self, step: int) -> bool:
        """Step `step` has ended. Whether `commit` must follow; if not, the framework may continue with the next step.

        The same on every rank. Raises Interrupted if the attempt is being drained and everything is committed.
        """
        self.due = self.job.should_commit(step) or self.due
        if not self.due:
            self._advance(step)
        return self.due

    @contextmanager
    def commit(self, step: int, logged: Mapping[str, Any]) -> Iterator[Path]:
        """An empty folder for this rank's files of step `step`. Of the metrics `logged`, the commit has those that are
        single numbers. Raises what `Job.commit` and `is_due` raise."""
        with self.job.commit(step, _numbers(logged)) as folder:
            yield folder
        self.due = False
        self._advance(step)

    def _advance(self, step: int) -> None:
        self.close()
        while self._at < step:
            self._at += 1
            next(self._steps, None)

    def close(self) -> None:
        """Release the files of the commit."""
        self._resumed.close()


_loops: WeakKeyDictionary[Job, FrameworkLoop] = WeakKeyDictionary()


def loop_of_current() -> FrameworkLoop:
    """The loop of `train.current()`: the same for each part of the program that asks."""
    job = current()
    return _loops.setdefault(job, FrameworkLoop(job))


def _numbers(logged: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, value in logged.items():
        try:
            found[name] = float(value)
        except (TypeError, ValueError, RuntimeError):
            continue
    return found
