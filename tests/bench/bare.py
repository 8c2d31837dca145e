"""Fallbacks with the minimum number of API calls and without a controller: the limit of the API server on this machine.

For each fallback the loop writes the end of the old attempt to the status, deletes its RayJob, writes the next attempt
to the status, and applies its RayJob. It creates no PodDisruptionBudgets, pods or Events.
"""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.clusters.client import Client
from spotladder.clusters.transport import Object
from spotladder.resources import TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS


class Fallbacks:
    """Performs the fallback of a job. Call `prepare` first, which reads the objects."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._statuses: dict[str, Object] = {}
        self._rayjobs: dict[str, Object] = {}

    async def prepare(self, attempts: Iterable[tuple[str, str]]) -> None:
        """Read the jobs and the RayJobs of their attempts."""
        for job, attempt in attempts:
            self._statuses[job] = (await self._client.get(TIEREDJOBS, job, self._namespace))["status"]
            self._rayjobs[job] = await self._client.get(RAYJOBS, attempt, self._namespace)

    async def __call__(self, job: str) -> None:
        """Replace the job's attempt by the next one."""
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
