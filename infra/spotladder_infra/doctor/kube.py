"""Clusters that exist already: whether kubectl reaches them, and whether they have the nodes that the pools choose."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from spotladder import versions
from spotladder_infra.access import target
from spotladder_infra.doctor.result import Result, Status
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet

TIMEOUT = 20.0
"""Seconds for one answer of an API server."""


def examine(fleet: Fleet, cluster: Cluster, state: Path) -> Iterator[Result]:
    """The checks of one cluster of cloud `existing` or `kind`."""
    if shutil.which("kubectl") is None:
        yield Result(cluster.name, "context", Status.SKIPPED, "kubectl is not installed")
        return
    to = target(fleet, cluster, state)
    answer, problem = _kubectl(to.environment(), to.context, "get", "--raw", "/version")
    if answer is None:
        fix = "make kind-up" if cluster.context is None else f"kubectl --context {to.context} version"
        yield Result(cluster.name, f"context {to.context}", Status.FAILED, problem, fix)
        return
    found = json.loads(answer)
    minor = f"{found['major']}.{found['minor'].rstrip('+')}"
    conflicts = versions.conflicts(kubernetes=minor)
    status = Status.WARNING if conflicts else Status.OK
    fix = conflicts[0] if conflicts else ""
    yield Result(cluster.name, f"context {to.context}", status, f"Kubernetes {found['gitVersion']}", fix)
    for pool in cluster.pools:
        chosen = ",".join(f"{key}={value}" for key, value in pool.selectors.items())
        answer, problem = _kubectl(to.environment(), to.context, "get", "nodes", "-l", chosen, "-o", "name")
        check = f"nodes of pool {pool.name}"
        if answer is None:
            yield Result(cluster.name, check, Status.SKIPPED, problem)
        elif names := answer.split():
            yield Result(cluster.name, check, Status.OK, f"{len(names)} with {chosen}")
        else:
            fix = "label nodes, or correct the selectors; none is needed yet where an autoscaler makes them"
            yield Result(cluster.name, check, Status.WARNING, f"no node has {chosen}", fix)


def _kubectl(environment: dict[str, str], context: str, *arguments: str) -> tuple[str | None, str]:
    """What kubectl printed, or None and its last line of error."""
    command = ["kubectl", "--context", context, f"--request-timeout={TIMEOUT:g}s", *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT + 10,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return None, " ".join(str(error).split())
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no answer"]
        return None, lines[-1]
    return done.stdout, ""
