"""End a job in its log: append the outcome, then delete the commits that are no longer needed for a resume.

The outcome is appended first because it fences every writer, so nothing is committed during the deletion. A caller
that is interrupted repeats the call: a recorded outcome does not change, and the deletion continues.
"""

from __future__ import annotations

from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.garbage import collect
from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import TooLarge


def end_job(log: EntryLog, outcome: str, *, keep: int, attempt: int | None = None, message: str = "") -> str:
    """Record the outcome, then delete all but the newest `keep` commits. `attempt` is the newest that the caller
    knows.

    Returns "" or, if the store refuses the deletion or the log is too large for it, the reason. Raises Fenced,
    StoreRefused, LogCorrupt or ForeignLog if the outcome cannot be recorded; StoreUnavailable if the record or the
    deletion may be incomplete.
    """
    if log.end_as_controller(outcome, attempt=attempt, message=message) is None:
        return ""  # The job never started: there is nothing to delete.
    try:
        collect(log, log.read(), keep)
    except (StoreRefused, TooLarge) as error:
        return str(error)
    return ""
