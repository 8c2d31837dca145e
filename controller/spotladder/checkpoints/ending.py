"""End a job in its log: append the outcome, then delete the commits that are no longer needed for a resume.

The outcome comes first since it fences every writer, so that nothing is committed during the deletion. A caller that is
interrupted repeats the call: a recorded outcome does not change, and the deletion continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.checkpoints.store import StoreRefused

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog


def end_job(log: CommitLog, outcome: str, *, keep: int, attempt: int | None = None, message: str = "") -> str:
    """Note the outcome, then delete all but the newest `keep` commits. `attempt` is the newest that the caller knows.

    Returns why commits that need not be kept were not deleted, where the store does not permit it; else "". Raises
    Fenced, StoreRefused, LogCorrupt, ForeignLog when the outcome cannot be noted; StoreUnavailable when either may not
    be done yet.
    """
    if log.end_as_controller(outcome, attempt=attempt, message=message) is None:
        return ""  # the job never started: there is nothing to delete
    try:
        log.collect(keep)
    except StoreRefused as error:
        return str(error)
    return ""
