"""A TieredJob that must succeed on the tiers of a cluster before the rollout continues."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spotladder.api.check import checked
from spotladder.api.document import read_documents
from spotladder.api.fields import LONGEST_JOB_NAME
from spotladder.api.tieredjob import TieredJob
from spotladder.display import job_text
from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.names import shortened
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.pool import PoolRole

POLL_INTERVAL = 2.0
BLOCKED_TIMEOUT = 60.0
"""Maximum seconds for which the API server may refuse the pods of the smoke job."""

DELETE_TIMEOUT = "180s"


def read(path: Path) -> Object:
    """The job of a file, checked as `spotladder submit` does. Raises InvalidSpec."""
    documents = read_documents(path)
    if len(documents) != 1:
        raise InvalidSpec("must hold one TieredJob", where=str(path))
    checked(documents[0], TieredJob)
    found: Object = json.loads(json.dumps(documents[0].data, default=str))
    return found


def job(document: Object, cluster: Cluster) -> Object | None:
    """The job for a cluster, on all its worker pools in their order; None when it has none."""
    tiers = [
        {"name": pool.name, "capacityTier": pool.name, "maxFailures": 0}
        for pool in cluster.pools
        if pool.role is PoolRole.WORKERS
    ]
    if not tiers:
        return None
    made = copy.deepcopy(document)
    name = shortened(f"{made['metadata']['name']}-{cluster.name}", LONGEST_JOB_NAME)
    made["metadata"] = {**made["metadata"], "name": name}
    made["spec"]["tiers"] = tiers
    return made


def run(home: Tools, document: Object, timeout: float, report: Callable[[str], None]) -> None:
    """Submits the job in the home cluster, waits until it has succeeded and deletes it. A failed job stays.

    Raises:
        EnvironmentFailure: It failed, or did not succeed in `timeout` seconds.
    """
    metadata = document["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "default")
    where = ("tieredjob", name, "--namespace", namespace)
    home.kubectl("delete", *where, "--ignore-not-found", f"--timeout={DELETE_TIMEOUT}")
    home.kubectl("create", "-f", "-", "--namespace", namespace, given=json.dumps(document))
    deadline = time.monotonic() + timeout
    blocked_since: float | None = None
    while True:
        found = home.get(*where) or document
        status: dict[str, Any] = found.get("status", {})
        phase = status.get("phase", "Pending")
        step = (status.get("progress") or {}).get("step")
        report(f"{phase}{f', step {step}' if step is not None else ''}")
        if phase == "Succeeded":
            home.kubectl("delete", *where, "--ignore-not-found", "--wait=false")
            return
        refused = (status.get("waiting") or {}).get("reason") == "Blocked"
        blocked_since = (blocked_since or time.monotonic()) if refused else None
        blocked = blocked_since is not None and time.monotonic() - blocked_since >= BLOCKED_TIMEOUT
        if phase == "Failed" or blocked or time.monotonic() >= deadline:
            why = "failed" if phase == "Failed" else f"is {phase}" + ("" if blocked else f" after {timeout:g} s")
            problem = job_text.problem(found, time.time())
            said = ": ".join(filter(None, (why, problem)))
            raise EnvironmentFailure(
                f"smoke job {namespace}/{name} {said}: see spotladder events {name} -n {namespace}"
            )
        time.sleep(POLL_INTERVAL)
