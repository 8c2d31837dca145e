"""The deleted jobs of a cluster, from the buckets of the jobs that exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spotladder.checkpoints.open_store import open_store
from spotladder.errors import SpotladderError
from spotladder.places.place import Object
from spotladder.records.recorded_jobs import deleted_jobs

BUCKETS = ("s3://", "gs://", "az://")
"""Addresses that are the same from every machine. A path would be one of this machine."""


def deleted_from(
    uris: Iterable[str], existing: Collection[str], namespace: str
) -> tuple[list[tuple[str, Object]], list[str]]:
    """The deleted jobs of this namespace, or of all (""), in these values of `checkpoints.uri`, each with its value,
    the newest first; and why buckets cannot be read. `existing` are the uids of the jobs that exist."""
    found: list[tuple[str, Object]] = []
    problems = []
    for uri in sorted({uri for uri in uris if uri.startswith(BUCKETS)}):
        try:
            found += [(uri, job) for job in deleted_jobs(open_store(uri), existing, namespace)]
        except SpotladderError as error:
            problems.append(str(error))
    return sorted(found, key=lambda each: str(each[1]["metadata"]["creationTimestamp"]), reverse=True), problems
