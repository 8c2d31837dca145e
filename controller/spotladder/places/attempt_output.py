"""Where the output of an attempt's program is: in the logs of its pods, or on the dashboard of its head."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spotladder.api.capacitytier import HOME
from spotladder.core.model import PodRole
from spotladder.display import job_text
from spotladder.places import dashboard
from spotladder.resources import PODS
from spotladder.timestamps import instant
from spotladder.workloads.names import ATTEMPT, JOB_UID, attempt_name
from spotladder.workloads.rayjob.records import SUBMITTER
from spotladder.workloads.records import PodRecord

if TYPE_CHECKING:
    from spotladder.clusters.client import Client

PODS_AT_ONCE = 50
"""Number of pods in one answer of the API server, each of which may have more than a megabyte."""

HERE = ""
"""The name of the cluster of the TieredJob. No other cluster has an empty name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A container whose log is printed. With an empty container name, the log comes from the dashboard of the head,
    whose token is in `token`: the name of a Secret, and the key."""

    pod: str
    container: str
    started: bool
    token: tuple[str, str] | None = None

    def printed(
        self,
        client: Client,
        namespace: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        most: int = dashboard.LARGEST_LOG,
    ) -> AsyncIterator[bytes]:
        """The output in pieces, or its last `tail` lines; with `follow` until the program ends. `most` is the maximum
        number of bytes that a dashboard may send. Raises ApiError, ClusterUnreachable, TooLarge."""
        if self.container:
            return client.log(self.pod, namespace, container=self.container, follow=follow, tail=tail)
        return dashboard.printed(client, self.pod, namespace, self.token, follow=follow, tail=tail, most=most)


async def sources(
    client: Client, namespace: str, job: Mapping[str, Any], number: int, *, every_pod: bool = False
) -> list[Source]:
    """The containers with the program's output in the attempt's cluster, or with `every_pod` the program container of
    every pod. Raises ApiError, ClusterUnreachable."""
    pods = await _pods(client, namespace, f"{JOB_UID}={job['metadata']['uid']},{ATTEMPT}={number}")
    if every_pod:
        return [_source(pod, pod.program) for pod in pods]
    submitters = [pod for pod in pods if _has(pod, SUBMITTER)]
    if submitters:
        return [_source(pod, SUBMITTER) for pod in submitters]
    # K8sJobMode: KubeRay creates a submitter Job with the attempt's name.
    since = instant(job["metadata"]["creationTimestamp"]) or 0.0
    named = await _pods(client, namespace, f"job-name={attempt_name(job['metadata']['name'], number)}")
    own = [pod for pod in named if (pod.created_at or 0.0) >= since]  # not of a deleted job
    if own:
        return [_source(pod, SUBMITTER if _has(pod, SUBMITTER) else pod.program) for pod in own[-1:]]
    heads = [pod for pod in pods if pod.role is PodRole.HEAD]
    if heads:
        return [Source(pod.name, "", _source(pod, pod.program).started, pod.token) for pod in heads[-1:]]
    return [_source(pod, pod.program) for pod in pods if not pod.slot or pod.slot.endswith("-0-0")]  # the first process


def cluster_of(job: Mapping[str, Any], attempt: int) -> str:
    """The cluster of an attempt, by its name in the controller's settings; "" if unknown."""
    status = job.get("status") or {}
    ended = record_of(job, attempt)
    if ended is not None:
        return str(ended.get("cluster") or "")
    return str(status.get("cluster") or "") if attempt == status.get("attempt") else ""


def is_home(name: str) -> bool:
    """Whether this is the cluster of the TieredJob."""
    return name in (HERE, HOME)


def is_live(job: Mapping[str, Any], number: int) -> bool:
    """Whether the attempt has not ended."""
    ended = (job.get("status") or {}).get("phase") in job_text.ENDED
    return number == newest_attempt(job) and record_of(job, number) is None and not ended


def newest_attempt(job: Mapping[str, Any]) -> int:
    """The number of the newest attempt; 0 before the first one."""
    return int((job.get("status") or {}).get("attempt") or 0)


def record_of(job: Mapping[str, Any], number: int) -> Mapping[str, Any] | None:
    """What the status says about an ended attempt; None if the attempt has not ended or is no longer listed."""
    attempts = (job.get("status") or {}).get("attempts") or []
    return next((entry for entry in attempts if entry.get("number") == number), None)


async def _pods(client: Client, namespace: str, labels: str) -> list[PodRecord]:
    """The pods as records: users write annotations and containers of any size."""
    pages = client.pages(PODS, namespace, labels=labels, limit=PODS_AT_ONCE)
    found = [PodRecord.of(pod) async for page in pages for pod in page.items]
    return sorted(found, key=lambda pod: (pod.created_at or 0.0, pod.name))


def _source(pod: PodRecord, container: str) -> Source:
    return Source(pod.name, container, any(entry.begun for entry in pod.containers if entry.name == container))


def _has(pod: PodRecord, container: str) -> bool:
    return any(entry.name == container for entry in pod.containers)
