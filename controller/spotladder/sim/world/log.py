"""The commit log of a simulated job: its newest commit, and the attempt that may still commit."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model import Instant, Progress
from spotladder.sim.world.program import NO_COMMIT, ProgramPlan


@dataclass
class SimulatedLog:
    """`committed` is the work of the newest commit in seconds, `committed_at` its time and `region` that of its zone;
    "" before the first commit. `newest` is the attempt whose program started last, and `workers` the number of workers
    with which it trains. `entries` is the number of its entries, `start_entry` and `commit_entry` are the sequence
    numbers of the newest start and the newest commit; -1 before the first. `writer` is the attempt of the newest
    commit."""

    committed: float = 0.0
    committed_at: Instant | None = None
    region: str = ""
    newest: int = 0
    workers: int = 0
    entries: int = 0
    start_entry: int = -1
    commit_entry: int = -1
    writer: int = 0

    def start(self, attempt: int, workers: int) -> None:
        """Record that the program of this attempt starts with this number of workers: older attempts can no longer
        commit."""
        self.newest = max(self.newest, attempt)
        self.workers = workers
        self.start_entry = self._append()

    def fences(self, attempt: int) -> bool:
        """Whether this attempt can no longer commit."""
        return attempt < self.newest

    def commit(self, step: float, at: Instant, region: str) -> None:
        """Record a commit; one without new work changes nothing."""
        if step > self.committed:
            self.committed, self.committed_at, self.region = step, at, region
            self.commit_entry, self.writer = self._append(), self.newest

    def _append(self) -> int:
        """The sequence number of the next entry."""
        self.entries += 1
        return self.entries - 1

    def progress(self, program: ProgramPlan) -> Progress:
        """What a backend observes of the log of this program."""
        return Progress(
            int(self.committed),
            program.work,
            self.committed_at,
            self.newest,
            hands_over=program.hands_over,
            stands_by=program.stands_by,
            workers=self.workers if program.sizes else 0,
            size=NO_COMMIT if self.committed_at is None else program.commit_size,
            start=self.start_entry,
            commit=self.commit_entry,
            committed_by=self.writer,
        )
