"""The jobs that a bucket has records of and that no longer exist in their cluster.

They stay as long as their records. A bucket is never listed as a whole: finding the jobs takes one request for each
thousand of its folders and one for each folder, and three more for each deleted job.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from spotladder.checkpoints.store import Store, folder_of
from spotladder.core.model import TERMINAL
from spotladder.records import stored
from spotladder.records.job_object import job_object
from spotladder.records.model import Began, Recorded, Specified

MOST_FOLDERS = 2_000
"""Maximum number of folders of a bucket in which deleted jobs are looked for."""

MOST_JOBS = 500
"""Maximum number of deleted jobs of a bucket that are read."""

AT_ONCE = 16
"""Number of requests at a time."""

DELETED = "Deleted"
"""The phase of a job that was deleted before it had ended."""


def deleted_jobs(store: Store, existing: Collection[str], namespace: str = "") -> list[dict[str, Any]]:
    """The deleted jobs of this namespace, or of all (""), as TieredJob objects with `deleted: true`, the newest first.
    `existing` are the uids of the jobs that exist. Raises StoreUnavailable."""

    def uids(name: str) -> list[tuple[str, str]]:
        found = store.folders(f"{name}/{stored.FOLDER}/")
        return [(name, uid) for uid in found if uid not in existing]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        gone = [each for found in pool.map(uids, store.folders()[:MOST_FOLDERS]) for each in found]
        read = pool.map(lambda each: _read(store, *each), gone[:MOST_JOBS])
        found = [job for job in read if job is not None and namespace in ("", job["metadata"]["namespace"])]
    return sorted(found, key=lambda job: str(job["metadata"]["creationTimestamp"]), reverse=True)


def _read(store: Store, name: str, uid: str) -> dict[str, Any] | None:
    """The job; None if its records do not say what it was."""
    found = stored.ends(stored.of_job(folder_of(store, name), uid))
    try:
        return _job(name, uid, found)
    except (ValueError, TypeError, ArithmeticError, OSError):  # Numbers and times that no controller has written.
        return None


def _job(name: str, uid: str, found: Recorded) -> dict[str, Any] | None:
    began = next((record for record in found.records if isinstance(record, Began | Specified)), None)
    if began is None or began.job != name:
        return None
    state = found.state
    phase = str(state.phase) if state.stage in TERMINAL else DELETED
    job = job_object(began.namespace, name, phase, began.at, state=state, records=found.records, active=False)
    job["metadata"]["uid"] = uid
    return {**job, "deleted": True}
