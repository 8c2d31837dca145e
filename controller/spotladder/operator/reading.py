"""The last known content of a job's commit log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.progress import went_back
from spotladder.core.model import Instant, Progress
from spotladder.operator.condition_types import Diagnosis


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a commit log. `known`: the log was read, or did not answer in time. `refused` is
    why no attempt may resume from it or write to it, `unreadable` why it could not be read; `locked`:
    because credentials are missing; `denied`: because the administrator does not allow it; `away_since`: because the
    store has not answered since then. `gone` describes commits that were in the log before and are missing now. `held`
    is the standby attempt whose program waits until it may take over; 0: none. `heartbeat` is that of the newest
    attempt, whose steps do not requeue the job, and `hung` its description of a hang. `stopped`: its program writes
    heartbeats at an interval, and several are missing although the store answers. `commits` are those in
    the log, which are recorded."""

    known: bool = False
    progress: Progress = field(default_factory=Progress)
    unreadable: str = ""
    refused: Diagnosis | None = None
    locked: bool = False
    denied: bool = False
    away_since: Instant | None = None
    gone: str = ""
    held: int = 0
    hung: str = ""
    stopped: bool = False
    heartbeat: StoredHeartbeat | None = field(default=None, compare=False)
    commits: tuple[Commit, ...] = field(default=(), compare=False)

    def after(self, known: Progress) -> Reading:
        """This reading of a log that had the progress `known` before."""
        if not self.known or self.unreadable or self.refused is not None:
            return self
        gone = went_back(known, self.progress)
        return replace(self, progress=known, gone=gone) if gone else self
