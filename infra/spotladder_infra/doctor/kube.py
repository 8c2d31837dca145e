"""Checks existing clusters: whether kubectl reaches them, and whether they have the nodes that the pools select."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from spotladder import versions
from spotladder_infra.access import target
from spotladder_infra.doctor.result import Check, CheckResult, Status, failed, ok
from spotladder_infra.programs import CommandFailure
from spotladder_infra.rollout.tools import Tools
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import NodeClassRef, Pool

TIMEOUT = 20.0
"""Timeout in seconds of one request to an API server."""


def checks(fleet: Fleet, cluster: Cluster, state: Path) -> Iterator[Check]:
    """The checks of one cluster of cloud `existing`."""
    tools = Tools(target(fleet, cluster, state), TIMEOUT)
    yield Check(cluster.name, f"context {tools.target.context}", _context(tools), gate=True)
    for pool in cluster.pools:
        if pool.node_class is not None:
            yield Check(cluster.name, f"node class of pool {pool.name}", _node_class(tools, pool.node_class))
        else:
            yield Check(cluster.name, f"nodes of pool {pool.name}", _nodes(tools, pool))


def _context(tools: Tools) -> Iterator[CheckResult]:
    try:
        found = json.loads(tools.kubectl("get", "--raw", "/version"))
    except CommandFailure as error:
        yield failed(error.printed, f"kubectl --context {tools.target.context} version")
        return
    minor = f"{found['major']}.{found['minor'].rstrip('+')}"
    problem = next(iter(versions.conflicts(kubernetes=minor)), versions.untested(minor))
    yield CheckResult(Status.WARNING if problem else Status.OK, f"Kubernetes {found['gitVersion']}", problem)


def _nodes(tools: Tools, pool: Pool) -> Iterator[CheckResult]:
    chosen = ",".join(f"{key}={value}" for key, value in pool.selectors.items())
    names = tools.kubectl("get", "nodes", "-l", chosen, "-o", "name").split()
    if names:
        yield ok(f"{len(names)} with {chosen}")
    else:
        fix = "label nodes or correct the selectors; ignore this if an autoscaler creates the nodes"
        yield CheckResult(Status.WARNING, f"no node has {chosen}", fix)


def _node_class(tools: Tools, wanted: NodeClassRef) -> Iterator[CheckResult]:
    """Whether the cluster has the node class from which Karpenter makes the nodes of a pool."""
    try:
        tools.kubectl("get", f"{wanted.kind}.{wanted.group}", wanted.name, "-o", "name")
        yield ok(f"{wanted.kind} {wanted.name}")
    except CommandFailure as error:
        yield failed(error.printed, f"install Karpenter, create the {wanted.kind}, or correct nodeClass")
