"""Copies the objects of running jobs in etcd: API calls would take an hour for 10,000 jobs and their 50,000 pods.

The n-th copy has every job's and node's number moved by n times their number, and its own uids. The API server observes
the copies as it observes the writes of another API server. Stop the simulated KubeRay first: it would start the copied
RayJobs once more.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import uuid
from dataclasses import replace

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.transport import path_of
from spotladder.core.model import JobState, codec
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, NODES, PODS, TIEREDJOBS, APIResource
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.bench.crowd import Crowd, job_name
from tests.kube.apiserver import ApiServer

JOBS = f"/registry/{TIEREDJOBS.group}/{TIEREDJOBS.plural}/"
KINDS = {
    "/registry/minions/": NODES,
    JOBS: TIEREDJOBS,
    **{f"/registry/{kind.group}/{kind.plural}/": kind for kind in (RAYJOBS, RAYCLUSTERS)},
    "/registry/poddisruptionbudgets/": DISRUPTION_BUDGETS,
    "/registry/networkpolicies/": NETWORK_POLICIES,
    "/registry/pods/": PODS,
}
PORTION = 100
"""Number of objects in one request to etcd, which takes at most 128."""

_NUMBERED = re.compile(rb"(job|crowd)-(\d{4})(?!\d)")
_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def clone(crowd: Crowd, jobs: int, copies: int) -> dict[str, str]:
    """Copy the first `jobs` jobs with their nodes and commit logs `copies` times. Returns the resource version of the
    newest copy of each kind, by the kind's prefix."""
    newest = {}
    for prefix in KINDS:
        for key, value in _objects(crowd, prefix):
            newest[prefix] = _put(
                crowd, [_copied(key, value, number * jobs, prefix) for number in range(1, copies + 1)]
            )
    for number in range(1, copies + 1):
        for file in (
            file for name in map(job_name, range(jobs)) for file in (crowd.checkpoints / name).rglob("*.json")
        ):
            copy = crowd.checkpoints / _moved(str(file.relative_to(crowd.checkpoints)).encode(), number * jobs).decode()
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_moved(file.read_bytes(), number * jobs))
    return newest


def _objects(crowd: Crowd, prefix: str) -> list[tuple[bytes, bytes]]:
    """Key and value of each numbered object below this prefix."""
    begin = prefix.encode()
    body = {"key": _encoded(begin), "range_end": _encoded(begin[:-1] + bytes([begin[-1] + 1]))}
    pairs = crowd.server.etcd("range", body).get("kvs", [])
    found = [(base64.b64decode(pair["key"]), base64.b64decode(pair["value"])) for pair in pairs]
    return [(key, value) for key, value in found if _NUMBERED.search(key)]


def _put(crowd: Crowd, pairs: list[tuple[bytes, bytes]]) -> str:
    """Returns the revision of the last write, which is the resource version of its objects."""
    revision = ""
    for first in range(0, len(pairs), PORTION):
        puts = [
            {"request_put": {"key": _encoded(key), "value": _encoded(value)}}
            for key, value in pairs[first : first + PORTION]
        ]
        revision = crowd.server.etcd("txn", {"success": puts})["header"]["revision"]
    return revision


def _copied(key: bytes, value: bytes, by: int, prefix: str) -> tuple[bytes, bytes]:
    copy = _moved(value, by)
    if prefix == JOBS:  # It has a compressed state.
        state = codec.load_state(json.loads(value)["status"]["state"])
        moved = codec.load_state(_moved(codec.dump(state).encode(), by).decode())
        job = json.loads(copy)
        job["status"]["state"] = codec.pack(_ordered(moved))
        copy = json.dumps(job).encode()
    return _moved(key, by), copy


def _ordered(state: JobState) -> JobState:
    """The state with its pods in the order of their new uids, as the controller stores them."""
    attempt = state.attempt
    if attempt is None:
        return state
    known = replace(attempt.known, alive=tuple(sorted(attempt.known.alive)))
    return replace(state, attempt=replace(attempt, known=known))


class _Lister(Client):
    """A client that requests a list of a minimum age."""

    async def list_since(self, kind: APIResource, version: str) -> None:
        """List the kind from the API server's cache. Raises ClusterUnreachable while the cache is older than this
        resource version."""
        query = {"limit": "1", "resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
        await self._call("list", kind, "GET", path_of(kind), query=query)


async def served(server: ApiServer, newest: dict[str, str]) -> None:
    """Wait until the API server has received all copies, up to these resource versions of their kinds. Until then it is
    busy with them, and answers no list from its cache."""
    async with _Lister(connect(str(server.kubeconfig))) as client:
        for prefix, version in newest.items():
            while True:
                try:
                    await client.list_since(KINDS[prefix], version)
                    break
                except ClusterUnreachable:
                    await asyncio.sleep(1.0)


def _moved(content: bytes, by: int) -> bytes:
    """The numbers and uids of the copy; all lengths stay the same, as the API server's binary format requires."""
    content = _NUMBERED.sub(lambda found: b"%b-%04d" % (found[1], int(found[2]) + by), content)
    return _UID.sub(lambda found: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{by} {found[0].decode()}")).encode(), content)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
