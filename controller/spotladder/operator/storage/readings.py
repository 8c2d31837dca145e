"""Reads a job's commit log with the credentials and addresses that the job's Secret and the administrator's rules
allow."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.api.checkpoint_fields import interval_seconds
from spotladder.api.stored import JobRecord
from spotladder.api.tenancy import TenantRule
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import TERMINAL, JobState, Seconds
from spotladder.operator.reading import Reading
from spotladder.operator.storage import allowed_addresses
from spotladder.operator.storage.allowed_addresses import AccessDenied
from spotladder.operator.storage.commit_logs import LogAddress, Logs
from spotladder.operator.storage.credentials import CredentialsMissing, SecretReader

_STEP_POLL_INTERVAL: Seconds = 15.0  # How often the log is read if commits follow steps instead of time
_LONGEST_POLL_INTERVAL: Seconds = 60.0
_SHORTEST_POLL_INTERVAL: Seconds = 5.0

STANDBY_POLL_INTERVAL: Seconds = 2.0
"""Interval between two reads of the log while a standby attempt boots, which reports beside the log that it is
ready."""


class Readings:
    """Follows the logs of jobs that are not over."""

    def __init__(self, logs: Logs, secrets: SecretReader, rules: Sequence[TenantRule]) -> None:
        self._logs = logs
        self._secrets = secrets
        self._rules = tuple(rules)

    async def of(self, record: JobRecord, job: TieredJob, state: JobState) -> Reading:
        """The newest reading."""
        if state.stage in TERMINAL or (record.deleting and state.attempt is None):
            self._logs.unfollow(record.key)
            return Reading(True, state.progress)
        try:
            address = await self.address(record, job)
        except (CredentialsMissing, AccessDenied) as error:
            self._logs.unfollow(record.key)
            denied = isinstance(error, AccessDenied)
            return Reading(True, state.progress, unreadable=str(error), locked=not denied, denied=denied)
        if state.standby.attempt is None:
            return self._logs.follow(record.key, address, reads_every(job))
        return self._logs.follow(record.key, address, STANDBY_POLL_INTERVAL, standby=state.standby.attempt.number)

    async def address(self, record: JobRecord, job: TieredJob) -> LogAddress:
        """The job's log with the credentials to read it. Raises CredentialsMissing and AccessDenied."""
        name = named.secret_name if (named := job.spec.checkpoints.credentials) else ""
        secret = await self._secrets.of(record.namespace, name) if name else None
        allowed = allowed_addresses.grant(self._rules, record.namespace, job.spec.checkpoints.uri, secret, name)
        return LogAddress(record.name, record.namespace, record.uid, job.spec.checkpoints.uri, allowed)


def reads_every(job: TieredJob) -> Seconds:
    """The interval between two reads of the log, about two for each commit."""
    interval = interval_of(job)
    return min(_LONGEST_POLL_INTERVAL, max(_SHORTEST_POLL_INTERVAL, interval / 2)) if interval else _STEP_POLL_INTERVAL


def interval_of(job: TieredJob) -> Seconds:
    """The time between two commits in seconds; 0 if the interval is in steps."""
    return interval_seconds(job.spec.checkpoints.interval) or 0.0
