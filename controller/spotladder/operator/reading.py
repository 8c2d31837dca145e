"""What is known of a job's commit log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spotladder.checkpoints.progress import went_back
from spotladder.core.model import Instant, Progress


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a log. `known`: it was asked and answered, or did not in time. `foreign` and `corrupt` say why
    nothing may be resumed from it, `unreadable` why nothing is known of it; `locked`: because there are no credentials;
    `denied`: because the administrator does not allow it; `away_since`: because the store has not answered since then.
    `gone` says what was in the log before and is not now.
    """

    known: bool = False
    progress: Progress = field(default_factory=Progress)
    unreadable: str = ""
    foreign: str = ""
    corrupt: str = ""
    locked: bool = False
    denied: bool = False
    away_since: Instant | None = None
    gone: str = ""

    def after(self, known: Progress) -> Reading:
        """This reading of a log that has said `known` before."""
        if not self.known or self.unreadable or self.foreign or self.corrupt:
            return self
        gone = went_back(known, self.progress)
        return replace(self, progress=known, gone=gone) if gone else self
