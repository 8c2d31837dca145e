"""Checks existing clusters: whether kubectl reaches them, and whether they have the nodes that the pools select."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from spotladder import versions
from spotladder.errors import EnvironmentFailure
from spotladder_infra.access import target
from spotladder_infra.doctor.result import CheckResult, Status
from spotladder_infra.kind import exists
from spotladder_infra.rollout.tools import CommandFailure, Tools
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import NodeClassRef

TIMEOUT = 20.0
"""Timeout in seconds of one request to an API server."""


def examine(fleet: Fleet, cluster: Cluster, state: Path) -> Iterator[CheckResult]:
    """The checks of one cluster of cloud `existing` or `kind`."""
    if shutil.which("kubectl") is None:
        yield CheckResult(cluster.name, "context", Status.SKIPPED, "kubectl is not installed")
        return
    if cluster.cloud is Cloud.KIND and (absent := _absent(cluster)):
        yield absent
        return
    to = target(fleet, cluster, state)
    tools = Tools(to, TIMEOUT)
    try:
        found = json.loads(tools.kubectl("get", "--raw", "/version"))
    except EnvironmentFailure as error:
        fix = f"kubectl --context {to.context} version"
        yield CheckResult(cluster.name, f"context {to.context}", Status.FAILED, _printed(error), fix)
        return
    minor = f"{found['major']}.{found['minor'].rstrip('+')}"
    conflicts = versions.conflicts(kubernetes=minor)
    status = Status.WARNING if conflicts else Status.OK
    fix = conflicts[0] if conflicts else ""
    yield CheckResult(cluster.name, f"context {to.context}", status, f"Kubernetes {found['gitVersion']}", fix)
    for pool in cluster.pools:
        if pool.node_class is not None:
            yield _node_class(tools, cluster, pool.name, pool.node_class)
            continue
        chosen = ",".join(f"{key}={value}" for key, value in pool.selectors.items())
        check = f"nodes of pool {pool.name}"
        try:
            names = tools.kubectl("get", "nodes", "-l", chosen, "-o", "name").split()
        except EnvironmentFailure as error:
            yield CheckResult(cluster.name, check, Status.SKIPPED, _printed(error))
            continue
        if names:
            yield CheckResult(cluster.name, check, Status.OK, f"{len(names)} with {chosen}")
        else:
            fix = "label nodes or correct the selectors; ignore this if an autoscaler creates the nodes"
            yield CheckResult(cluster.name, check, Status.WARNING, f"no node has {chosen}", fix)


def _absent(cluster: Cluster) -> CheckResult | None:
    """The result for a kind cluster that does not exist, or that kind cannot look up; None for one that exists."""
    check = f"kind cluster {cluster.name}"
    if shutil.which("kind") is None:
        return CheckResult(cluster.name, check, Status.SKIPPED, "kind is not installed")
    try:
        found = exists(cluster)
    except EnvironmentFailure as error:
        message, _, fix = str(error).rpartition(": ")
        return CheckResult(cluster.name, check, Status.FAILED, message, fix)
    if found:
        return None
    fix = f"spotladder infra bootstrap --cluster {cluster.name} creates it"
    return CheckResult(cluster.name, check, Status.SKIPPED, "does not exist yet", fix)


def _node_class(tools: Tools, cluster: Cluster, pool: str, wanted: NodeClassRef) -> CheckResult:
    """Whether the cluster has the node class from which Karpenter makes the nodes of a pool."""
    check, name = f"node class of pool {pool}", f"{wanted.kind} {wanted.name}"
    try:
        tools.kubectl("get", f"{wanted.kind}.{wanted.group}", wanted.name, "-o", "name")
    except EnvironmentFailure as error:
        fix = f"install Karpenter, create the {wanted.kind}, or correct nodeClass"
        return CheckResult(cluster.name, check, Status.FAILED, _printed(error), fix)
    return CheckResult(cluster.name, check, Status.OK, name)


def _printed(error: EnvironmentFailure) -> str:
    """The failure without its remedy: a check has the remedy in another column."""
    return error.printed if isinstance(error, CommandFailure) else str(error)
