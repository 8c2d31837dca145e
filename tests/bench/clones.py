"""Copies the objects of running jobs in etcd: API calls would take an hour for 10,000 jobs and their 50,000 pods.

The n-th copy has every job's and node's number moved by n times their number, and its own uids. The API server observes
the copies as it observes the writes of another API server. Stop the simulated KubeRay first: it would start the copied
RayJobs once more.
"""

from __future__ import annotations

import base64
import json
import re
import uuid

from spotladder.core import codec
from spotladder.resources import TIEREDJOBS
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.bench.crowd import Crowd, job_name

JOBS = f"/registry/{TIEREDJOBS.group}/{TIEREDJOBS.plural}/"
KINDS = (
    "/registry/minions/",
    JOBS,
    *(f"/registry/{kind.group}/{kind.plural}/" for kind in (RAYJOBS, RAYCLUSTERS)),
    "/registry/poddisruptionbudgets/",
    "/registry/pods/",
)
PORTION = 100
"""Number of objects in one request to etcd, which takes at most 128."""

_NUMBERED = re.compile(rb"(job|crowd)-(\d{4})(?!\d)")
_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def clone(here: Crowd, jobs: int, copies: int) -> None:
    """Copy the first `jobs` jobs with their nodes and commit logs `copies` times."""
    for prefix in KINDS:
        for key, value in _objects(here, prefix):
            _put(here, [_copied(key, value, number * jobs, prefix) for number in range(1, copies + 1)])
    for number in range(1, copies + 1):
        for file in (file for name in map(job_name, range(jobs)) for file in (here.checkpoints / name).rglob("*.json")):
            copy = here.checkpoints / _moved(str(file.relative_to(here.checkpoints)).encode(), number * jobs).decode()
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_moved(file.read_bytes(), number * jobs))


def _objects(here: Crowd, prefix: str) -> list[tuple[bytes, bytes]]:
    """Key and value of each numbered object below this prefix."""
    begin = prefix.encode()
    body = {"key": _encoded(begin), "range_end": _encoded(begin[:-1] + bytes([begin[-1] + 1]))}
    pairs = here.server.etcd("range", body).get("kvs", [])
    found = [(base64.b64decode(pair["key"]), base64.b64decode(pair["value"])) for pair in pairs]
    return [(key, value) for key, value in found if _NUMBERED.search(key)]


def _put(here: Crowd, pairs: list[tuple[bytes, bytes]]) -> None:
    for first in range(0, len(pairs), PORTION):
        puts = [
            {"request_put": {"key": _encoded(key), "value": _encoded(value)}}
            for key, value in pairs[first : first + PORTION]
        ]
        here.server.etcd("txn", {"success": puts})


def _copied(key: bytes, value: bytes, by: int, prefix: str) -> tuple[bytes, bytes]:
    copy = _moved(value, by)
    if prefix == JOBS:  # It has a compressed state.
        state = codec.load_state(json.loads(value)["status"]["state"])
        job = json.loads(copy)
        job["status"]["state"] = codec.pack(codec.load_state(_moved(codec.dump(state).encode(), by).decode()))
        copy = json.dumps(job).encode()
    return _moved(key, by), copy


def _moved(content: bytes, by: int) -> bytes:
    """The numbers and uids of the copy; all lengths stay the same, as the API server's binary format requires."""
    content = _NUMBERED.sub(lambda found: b"%b-%04d" % (found[1], int(found[2]) + by), content)
    return _UID.sub(lambda found: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{by} {found[0].decode()}")).encode(), content)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
