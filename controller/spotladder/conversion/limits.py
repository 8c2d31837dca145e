"""Limits, retries and the switch `suspend` of a source as fields of a TieredJob."""

from __future__ import annotations

from typing import Any

from spotladder.conversion import skeleton
from spotladder.conversion.draft import Draft
from spotladder.core.durations import format_duration
from spotladder.workloads.records import QUEUE

_WORKLOADS = ("ray", "jobSet")


def limit_duration(draft: Draft, seconds: Any, field: str) -> None:
    """Convert a deadline in seconds into `spec.maxDuration`."""
    if isinstance(seconds, int) and seconds > 0:
        setting(draft, "maxDuration", format_duration(float(seconds)))
        draft.note(("spec", "maxDuration"), f"From {field}: {seconds}: the limit of the job with all of its attempts.")


def retry(draft: Draft, limit: Any, field: str) -> None:
    """Convert a number of retries into `spec.applicationFailures`."""
    if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
        setting(draft, "applicationFailures", limit)
        draft.note(
            ("spec", "applicationFailures"),
            f"From {field}: {limit}: retries after an error of the program. Lost nodes do not count: maxFailures of "
            "the tiers limits them.",
        )


def losses(draft: Draft, limit: Any, field: str) -> None:
    """Convert a number of restarts after losses into `maxFailures` of the first tier."""
    if isinstance(limit, int) and limit > 0 and len(draft.get("spec", "tiers")) > 1:
        draft.get("spec", "tiers", 0)["maxFailures"] = limit
        draft.note(("spec", "tiers", 0, "maxFailures"), f"From {field}: {limit}.")


def suspended(draft: Draft, given: Any) -> None:
    """Convert `suspend`, with which Kueue holds an object until its queue has quota."""
    if given is not True:
        skeleton.leftovers(draft, {"suspend": given}, "", "is the default")
    elif any(draft.get("spec", "workload", field, "template", "metadata", "labels", QUEUE) for field in _WORKLOADS):
        draft.dropped("Removed suspend: true. Kueue holds each attempt until the queue has quota.")
    else:
        setting(draft, "suspend", True)
        draft.note(("spec", "suspend"), "From suspend of the source: the job starts when it is false.")


def setting(draft: Draft, field: str, value: Any) -> None:
    """Set a field of the spec, before the workload."""
    spec = draft.job["spec"]
    spec[field] = value
    spec["workload"] = spec.pop("workload")
