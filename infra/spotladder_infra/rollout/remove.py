"""The in-cluster part of `destroy`: jobs commit, Karpenter terminates its nodes, then all releases are uninstalled.

The order matters. Karpenter's nodes are in no Terraform state, continue to bill, and keep the network from being
deleted. Only Karpenter can terminate them, so it is uninstalled last.

A cluster that spotladder has not created belongs to the user: NodePools and releases that no rollout installed stay.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder_infra.programs import CommandFailure
from spotladder_infra.rendering.labels import POOL
from spotladder_infra.rollout.cluster_rollout import ClusterPlatform, RolloutSite
from spotladder_infra.rollout.components import OWN, POOLS, SYSTEM, Component
from spotladder_infra.rollout.good_rollouts import NAME
from spotladder_infra.rollout.link import unlink
from spotladder_infra.rollout.plan import plan
from spotladder_infra.rollout.ready import poll
from spotladder_infra.rollout.release import Release, releases
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet

JOBS_TIMEOUT = 900.0
"""Seconds for all jobs to commit and end their attempts."""

NODES_TIMEOUT = 1200.0
"""Seconds for Karpenter to terminate all nodes."""

OUR_NODEPOOLS = f"app.kubernetes.io/name={POOLS.chart.name}"
"""Label selector of the NodePools that the chart of the pools has installed."""

ENDED = ("Succeeded", "Failed", "Suspended")

Report = Callable[[str, str, str], None]
"""Called with the component that is being removed, its state and details."""


def remove(
    fleet: Fleet,
    cluster: Cluster,
    state: Path,
    report: Report,
    *,
    nodes_timeout: float = NODES_TIMEOUT,
) -> None:
    """Stops the jobs in a cluster and uninstalls the releases of rollouts. Safe to repeat and to interrupt.

    TieredJobs are suspended: they commit, and can continue in another cluster. In the user's own clusters, CRDs stay.

    Raises:
        EnvironmentFailure: Jobs or nodes still exist after their time limit; the message names them.
    """
    platform = ClusterPlatform(RolloutSite(fleet, state), cluster)
    home = platform.place.home()
    _stop_jobs(home, fleet, cluster, JOBS_TIMEOUT, report)
    release_nodes(platform.tools, cluster, nodes_timeout, report)
    installed = releases(platform.tools)
    for component in reversed(plan(fleet, cluster).releases):  # the controller first, Karpenter last
        if component.release in installed:
            uninstall(platform.tools, cluster, component, report)
    members = [entry.name for entry in fleet.spec.clusters if entry.name != fleet.spec.home]
    unlink(home, members if cluster.name == fleet.spec.home else [cluster.name])
    platform.tools.kubectl("delete", "configmap", NAME, "--namespace", SYSTEM, "--ignore-not-found")
    if shutil.which("pulumi"):
        platform.forget()
    else:
        report("state", "kept", "pulumi is not on the PATH")


def uninstall(tools: Tools, cluster: Cluster, component: Component, report: Report) -> None:
    """Uninstalls a release. In the user's own clusters, a release of a public chart that no rollout installed stays."""
    release = Release(tools, component.release, component.namespace)
    if not cluster.created and component.chart.source != OWN and not release.installed_by_a_rollout():
        report(component.release, "kept", "no rollout has installed it")
        return
    report(component.release, "removing", "")
    release.remove()
    report(component.release, "removed", "")


def _stop_jobs(home: Tools, fleet: Fleet, cluster: Cluster, timeout: float, report: Report) -> None:
    """Suspends the jobs that use a cluster and waits until none has pods. For the home cluster these are all jobs."""
    asked: set[str] = set()

    def unstopped() -> list[Object]:
        active = [job for job in home.items("tieredjobs", "--all-namespaces") if _uses(job, fleet, cluster)]
        for job in active:
            if _key(job) not in asked and not job["spec"].get("suspend"):
                home.kubectl(
                    "patch", "tieredjob", job["metadata"]["name"], "--namespace", job["metadata"]["namespace"],
                    "--type=merge", "--patch", json.dumps({"spec": {"suspend": True}}),
                )  # fmt: skip
            asked.add(_key(job))
        report("jobs", "stopping" if active else "stopped", _listed(active))
        return active

    if left := poll(unstopped, timeout):
        raise EnvironmentFailure(
            f"cluster {cluster.name}: jobs still run after {timeout:g} s: {_listed(left)}: does the controller "
            "run? See spotladder get -A; run the command again to wait longer"
        )


def _uses(job: Object, fleet: Fleet, cluster: Cluster) -> bool:
    """Whether a job still holds nodes of the cluster."""
    status = job.get("status", {})
    phase = status.get("phase", "Pending")
    if phase in ENDED and not (phase == "Suspended" and not job["spec"].get("suspend")):
        return False
    if cluster.name == fleet.spec.home:
        return True
    pools = {pool.name for pool in cluster.pools}
    tiers = {tier["name"]: tier.get("capacityTier") for tier in job["spec"].get("tiers", [])}
    return tiers.get(status.get("tier")) in pools


def release_nodes(tools: Tools, cluster: Cluster, timeout: float, report: Report) -> None:
    """Deletes NodePools and waits until Karpenter has terminated their last node.

    In a cluster that spotladder has created these are all NodePools, in the user's own clusters those of the fleet.

    Raises:
        EnvironmentFailure: Nodes still exist after `timeout` seconds; the message names them.
    """
    if tools.get("crd", "nodepools.karpenter.sh") is None:
        return
    created = cluster.created
    pools = "--all" if created else f"--selector={OUR_NODEPOOLS}"
    nodes = [] if created else [f"--selector={POOL}"]  # a NodeClaim has the labels of its NodePool's nodes
    try:
        tools.kubectl("delete", "nodepools.karpenter.sh", pools, "--wait=false")
    except CommandFailure as error:
        raise EnvironmentFailure(f"NodePools cannot be deleted: {error}") from None

    def held() -> list[Object]:
        claims = tools.items("nodeclaims.karpenter.sh", *nodes)
        report("nodes", "draining" if claims else "released", _listed(claims))
        return claims

    if left := poll(held, timeout):
        raise EnvironmentFailure(
            f"{len(left)} NodeClaims still exist after {timeout:g} s: {_hanging(left)}: check their "
            "events with kubectl describe nodeclaim; a pod that forbids its eviction blocks the drain of its node"
        )


def _hanging(claims: list[Object]) -> str:
    """Each NodeClaim with its node and the reason of its condition."""
    found = []
    for claim in claims[:5]:
        status = claim.get("status", {})
        bad = [entry for entry in status.get("conditions", []) if entry.get("status") != "True" and entry.get("reason")]
        why = f": {bad[0]['type']} {bad[0]['reason']}" if bad else ""
        found.append(f"{claim['metadata']['name']} (node {status.get('nodeName', 'none')}{why})")
    return ", ".join(found)


def _key(job: Object) -> str:
    return f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"


def _listed(objects: list[Object]) -> str:
    names = [_key(entry).lstrip("/") for entry in objects]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
