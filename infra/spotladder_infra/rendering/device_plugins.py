"""The device plugins that a cluster needs, with their values: each runs on the nodes of pools that have its devices.

Without its plugin a node does not report the devices. Pods that ask for them stay pending, and Karpenter does not count
the node as initialized. GKE installs its own plugins. The images of EKS, which are those of `facts.images`, have the
drivers but no plugins, except Bottlerocket, which has NVIDIA's (docs.aws.amazon.com/eks/latest/userguide, pages
ml-eks-k8s-device-plugin and device-management-efa, as of 2026-11-29).
"""

from __future__ import annotations

from typing import Any

from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.rendering.labels import NODEPOOL, selectors
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import accelerators_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

Values = dict[str, Any]

_EVERYWHERE: list[Values] = [{"operator": "Exists"}]
"""Tolerates the taints of all pools."""


def gpu(fleet: Fleet, cluster: Cluster) -> Values | None:
    """The values of NVIDIA's plugin; None where no pool needs it, or where the user or the cloud installs it."""
    wanted = fleet.spec.platform.gpu_device_plugin
    if cluster.cloud is Cloud.GCP or not (cluster.cloud is Cloud.AWS if wanted is None else wanted):
        return None
    pools = [pool for pool in cluster.pools if _has(cluster, pool, "nvidia") and not _has_plugin(cluster, pool)]
    if not pools:
        return None
    # The chart asks for labels of Node Feature Discovery, which is not installed.
    terms = [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]} for key, value in selectors(cluster, pool).items()
            ]
        }
        for pool in pools
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return {"gfd": {"enabled": False}, "tolerations": _EVERYWHERE, "affinity": affinity}


def efa(_: Fleet, cluster: Cluster) -> Values | None:
    """The values of the plugin for Elastic Fabric Adapters; None without a pool with `efa`."""
    pools = [pool.name for pool in cluster.pools if pool.efa]
    if not pools:
        return None
    return {"tolerations": _EVERYWHERE, "supportedInstanceLabels": {"keys": [NODEPOOL], "values": pools}}


def neuron(_: Fleet, cluster: Cluster) -> Values | None:
    """The values of the plugin for Trainium and Inferentia, which finds its nodes by their instance types; None without
    such a pool."""
    if cluster.cloud is not Cloud.AWS or not any(_has(cluster, pool, "aws") for pool in cluster.pools):
        return None
    return {
        "npd": {"enabled": False},
        "scheduler": {"enabled": False},
        "devicePlugin": {"tolerations": _EVERYWHERE},
    }


def _has(cluster: Cluster, pool: Pool, vendor: str) -> bool:
    return any(kind.startswith(f"{vendor}-") for kind in accelerators_of(cluster, pool))


def _has_plugin(cluster: Cluster, pool: Pool) -> bool:
    """Whether the node image has NVIDIA's plugin."""
    return cluster.cloud is Cloud.AWS and (pool.image or NODE_IMAGE).startswith("bottlerocket@")
