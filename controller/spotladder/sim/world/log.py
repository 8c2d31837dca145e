"""The commit log of a simulated job: its newest commit, and the attempt that may still commit."""

from __future__ import annotations

import itertools
from dataclasses import replace

from spotladder.core.model import Instant, Progress
from spotladder.sim.world.program import ProgramPlan


class SimulatedLog:
    """The log of a job with this program. `progress` is what a backend observes of it, `committed` the work of the
    newest commit in seconds."""

    def __init__(self, program: ProgramPlan) -> None:
        self.progress = Progress(total=program.work, hands_over=program.hands_over, stands_by=program.stands_by)
        self.committed = 0.0
        self._program, self._entries = program, itertools.count()

    def start(self, attempt: int, workers: int) -> None:
        """Record that the program of this attempt starts with this number of workers: older attempts can no longer
        commit."""
        newest, size = max(self.progress.attempt, attempt), workers if self._program.sizes else 0
        self.progress = replace(self.progress, attempt=newest, workers=size, start=next(self._entries))

    def fences(self, attempt: int) -> bool:
        """Whether this attempt can no longer commit."""
        return attempt < self.progress.attempt

    def commit(self, step: float, at: Instant) -> None:
        """Record a commit; one without new work changes nothing."""
        if step > self.committed:
            self.committed = step
            self.progress = replace(
                self.progress,
                step=int(step),
                committed_at=at,
                size=self._program.commit_size,
                commit=next(self._entries),
                committed_by=self.progress.attempt,
            )
