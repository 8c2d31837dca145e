"""The jobs that a bucket has records of, also those that no longer exist in their cluster.

They stay as long as their records. A bucket is never listed as a whole: finding the jobs takes one request for each
thousand of its folders and one for each folder, and three more for each job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from spotladder.checkpoints.store import Store, folder_of
from spotladder.core.model import TERMINAL
from spotladder.records import stored, stored_reading
from spotladder.records.job_object import job_object
from spotladder.records.model import Began, Specified
from spotladder.records.recorded import Recorded

MAX_FOLDERS = 2_000
"""Maximum number of folders of a bucket in which jobs are looked for."""

MAX_JOBS = 500
"""Maximum number of jobs of a bucket that are read."""

AT_ONCE = 16
"""Number of requests at a time."""

DELETED = "Deleted"
"""The phase of a job that was deleted before it had ended."""


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job by its folder and uid, with its first and its newest records."""

    name: str
    uid: str
    found: Recorded


def deleted_jobs(store: Store, existing: Collection[str], namespace: str = "") -> list[dict[str, Any]]:
    """The deleted jobs of this namespace, or of all (""), as TieredJob objects with `deleted: true`, the newest first.
    `existing` are the uids of the jobs that exist. Raises StoreUnavailable."""
    found = [as_job(each.found, DELETED, each.uid) for each in recorded_jobs(store, store.folders(), existing)]
    gone = [{**job, "deleted": True} for job in found if job and namespace in ("", job["metadata"]["namespace"])]
    return sorted(gone, key=lambda job: str(job["metadata"]["creationTimestamp"]), reverse=True)


def recorded_jobs(store: Store, names: Sequence[str], existing: Collection[str] = ()) -> list[RecordedJob]:
    """The jobs in these folders, without those of the uids in `existing`. Raises StoreUnavailable."""

    def uids(name: str) -> list[tuple[str, str]]:
        found = store.folders(f"{name}/{stored.FOLDER}/")
        return [(name, uid) for uid in found if uid not in existing]

    def read(job: tuple[str, str]) -> RecordedJob:
        name, uid = job
        return RecordedJob(name, uid, stored_reading.ends(stored.of_job(folder_of(store, name), uid)))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [each for found in pool.map(uids, names[:MAX_FOLDERS]) for each in found]
        return [each for each in pool.map(read, jobs[:MAX_JOBS]) if _job_name(each.found) in ("", each.name)]


def as_job(found: Recorded, unended: str, uid: str = "", *, active: bool = False) -> dict[str, Any] | None:
    """The job as a TieredJob object, in the phase `unended` if it has not ended. `active`: a runner or controller
    decides about it now. None if the records do not say what it was."""
    try:
        return _job(found, unended, uid, active=active)
    except (ValueError, TypeError, ArithmeticError, OSError):  # Numbers and times that no controller has written.
        return None


def _job(found: Recorded, unended: str, uid: str, *, active: bool) -> dict[str, Any] | None:
    began = _beginning(found)
    if began is None:
        return None
    state = found.state if active else replace(found.state, left=())
    phase = str(state.phase) if state.stage in TERMINAL else unended
    job = job_object(began.namespace, began.job, phase, began.at, state=state, records=found.records, active=active)
    return {**job, "metadata": {**job["metadata"], "uid": uid}}


def _job_name(found: Recorded) -> str:
    began = _beginning(found)
    return "" if began is None else began.job


def _beginning(found: Recorded) -> Began | Specified | None:
    return next((record for record in found.records if isinstance(record, Began | Specified)), None)
