"""Rejects a deadline in the past before a job starts. Stored jobs are not checked: a passed deadline ends them."""

from __future__ import annotations

from spotladder.api.document import Document
from spotladder.api.problems import dotted
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec


def check_deadline(job: TieredJob, now: Instant, document: Document | None = None) -> None:
    """Raises InvalidSpec for a deadline that has passed: the job would fail before its first attempt."""
    deadline = job.spec.deadline
    if deadline is not None and deadline.timestamp() <= now:
        at = ("spec", "deadline")
        message = f"is in the past ({deadline:%Y-%m-%d %H:%M:%S %Z}): set a later time, or remove it"
        raise InvalidSpec(message, path=dotted(at), where=document.where(at) if document else "")
