"""kind clusters of a fleet: a cluster of containers on this machine, with labelled nodes for each pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra import access, programs
from spotladder_infra.rollout.tools import Tools
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool, PoolRole

CAPACITY_TYPE = "karpenter.sh/capacity-type"

CREATE_TIMEOUT = 900.0
"""Seconds for `kind create cluster`, which downloads the image of the nodes."""

READY_TIMEOUT = "180s"
"""Time for the control plane of a new cluster to become ready."""

COMMAND_TIMEOUT = 120.0
"""Seconds for every other call of kind."""


def configuration(cluster: Cluster) -> dict[str, Any]:
    """kind's configuration of a cluster: a control plane, and for each pool `limits.nodes` nodes with its labels.

    A pool without `limits.nodes` gets one node.
    """
    nodes: list[dict[str, Any]] = [{"role": "control-plane"}]
    for pool in cluster.pools:
        nodes += [{"role": "worker", "labels": _labels(pool)}] * (pool.limits.nodes or 1)
    return {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "name": cluster.name, "nodes": nodes}


def _labels(pool: Pool) -> dict[str, str]:
    capacity = {CAPACITY_TYPE: str(pool.capacity_type)} if pool.role is PoolRole.WORKERS else {}
    return {**capacity, **pool.selectors}


def exists(cluster: Cluster) -> bool:
    """Whether kind knows the cluster. Raises EnvironmentFailure when kind or its container runtime does not run."""
    return cluster.name in _kind("get", "clusters").split()


def ensure(fleet: Fleet, cluster: Cluster, state: Path) -> None:
    """Creates the cluster and its context in the kubeconfig, unless they exist. Safe to repeat.

    Raises:
        EnvironmentFailure: kind fails, or the API server of an existing cluster does not answer.
    """
    if not exists(cluster):
        text = json.dumps(configuration(cluster))
        _kind("create", "cluster", "--config", "-", "--wait", READY_TIMEOUT, given=text, timeout=CREATE_TIMEOUT)
        return
    _kind("export", "kubeconfig", "--name", cluster.name)
    try:
        Tools(access.target(fleet, cluster, state)).kubectl("get", "--raw", "/readyz")
    except EnvironmentFailure as error:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: it exists, but its API server does not answer ({error}): start its containers, "
            f"or remove it with kind delete cluster --name {cluster.name} and run the same command again"
        ) from None


def delete(cluster: Cluster) -> None:
    """Deletes the cluster and its context; one that does not exist is skipped. Raises EnvironmentFailure."""
    _kind("delete", "cluster", "--name", cluster.name)


def _kind(*arguments: str, given: str | None = None, timeout: float = COMMAND_TIMEOUT) -> str:
    words = f"kind {' '.join(arguments[:2])}"
    done = programs.run(["kind", *arguments], words, given=given, timeout=timeout)
    if done.returncode:
        raise EnvironmentFailure(f"{words}: {programs.error_line(done.stderr)}: does Docker run?")
    return done.stdout
