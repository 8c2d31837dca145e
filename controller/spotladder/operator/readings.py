"""What is known of a job's commit log: read with what the job's Secret and the administrator's rules allow."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import TERMINAL, JobState
from spotladder.operator import access, load
from spotladder.operator.access import AccessDenied, Rule
from spotladder.operator.credentials import CredentialsMissing, SecretReader
from spotladder.operator.logs import LogAddress, Logs, Reading
from spotladder.operator.records import JobRecord


class Readings:
    """Follows the logs of jobs that are not over."""

    def __init__(self, logs: Logs, secrets: SecretReader, rules: Sequence[Rule]) -> None:
        self._logs = logs
        self._secrets = secrets
        self._rules = tuple(rules)

    async def of(self, record: JobRecord, job: TieredJob, state: JobState) -> Reading:
        """What is known now."""
        if state.stage in TERMINAL or (record.deleting and state.attempt is None):
            self._logs.leave(record.key)
            return Reading(True, state.progress)
        try:
            address = await self.address(record, job)
        except (CredentialsMissing, AccessDenied) as error:
            self._logs.leave(record.key)
            denied = isinstance(error, AccessDenied)
            return Reading(True, state.progress, unreadable=str(error), locked=not denied, denied=denied)
        return self._logs.follow(record.key, address, load.reads_every(job))

    async def address(self, record: JobRecord, job: TieredJob) -> LogAddress:
        """Where the job's log lies, with the credentials that open it. Raises CredentialsMissing and AccessDenied."""
        name = named.secret_name if (named := job.spec.checkpoints.credentials) else ""
        secret = await self._secrets.of(record.namespace, name) if name else None
        allowed = access.grant(self._rules, record.namespace, job.spec.checkpoints.uri, secret, name)
        return load.address_of(record, job, allowed)
