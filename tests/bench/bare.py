"""Fallbacks by the calls that nobody can do without, sent by a loop that watches and decides nothing: the limit of the
API server and of the machine that it shares with everybody else.

Per fallback: the old attempt's end is written down, its RayJob is deleted, the next attempt is written down, and its
RayJob is applied. No budget, no pods, no Events.
"""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.clusters.client import Client
from spotladder.clusters.transport import Object
from spotladder.resources import TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS


class Fallbacks:
    """Reads what it needs in advance: `prepare`, then call it with a job's name."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._statuses: dict[str, Object] = {}
        self._rayjobs: dict[str, Object] = {}

    async def prepare(self, attempts: Iterable[tuple[str, str]]) -> None:
        """Read these jobs and their attempts."""
        for job, attempt in attempts:
            self._statuses[job] = (await self._client.get(TIEREDJOBS, job, self._namespace))["status"]
            self._rayjobs[job] = await self._client.get(RAYJOBS, attempt, self._namespace)

    async def __call__(self, job: str) -> None:
        """The job's next attempt takes the place of this one."""
        old = self._rayjobs[job]
        number = int(old["metadata"]["labels"][names.ATTEMPT]) + 1
        await self._write(job, f"attempt {number - 1} ends")
        await self._client.delete(RAYJOBS, old["metadata"]["name"], self._namespace)
        await self._write(job, f"attempt {number} begins")
        metadata = {
            "name": names.attempt_name(job, number),
            "namespace": self._namespace,
            "labels": {**old["metadata"]["labels"], names.ATTEMPT: str(number)},
        }
        body = {"apiVersion": RAYJOBS.api_version, "kind": RAYJOBS.kind, "metadata": metadata, "spec": old["spec"]}
        await self._client.apply(RAYJOBS, body)

    async def _write(self, job: str, message: str) -> None:
        body = {"status": {**self._statuses[job], "message": message}}
        await self._client.merge(TIEREDJOBS, job, self._namespace, body=body, subresource="status")
