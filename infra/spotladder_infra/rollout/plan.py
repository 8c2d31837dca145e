"""Decides which releases each cluster gets, in which order and with which values, and the order of the clusters.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spotladder_infra import names
from spotladder_infra.outputs import StackIdentities
from spotladder_infra.outputs import named as named_identities
from spotladder_infra.rendering import device_plugins
from spotladder_infra.rendering.controller import controller_values, placement
from spotladder_infra.rendering.values import values as pool_values
from spotladder_infra.rollout import components as pinned
from spotladder_infra.rollout.components import Chart, Component
from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler, Cloud, Cluster, Provided
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.network import Nat

Values = dict[str, Any]

KARPENTER_REPLICAS = 2
"""Replicas of Karpenter in a cluster with enough system nodes."""

_DEVICE_PLUGINS = (
    (pinned.GPU_DEVICE_PLUGIN, device_plugins.gpu),
    (pinned.EFA_DEVICE_PLUGIN, device_plugins.efa),
    (pinned.NEURON_DEVICE_PLUGIN, device_plugins.neuron),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired state of one cluster: first the CRDs of these charts, then the releases in this order."""

    crds: tuple[Chart, ...]
    releases: tuple[Component, ...]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts that it needs."""
        return tuple(dict.fromkeys([*self.crds, *(entry.chart for entry in self.releases)]))


def plan(fleet: Fleet, cluster: Cluster, stack: StackIdentities | None = None) -> Plan:
    """The releases of a cluster. The controller runs in the home cluster; in the other clusters its chart grants it
    permissions.

    Args:
        stack: The identities of the applied stack. Default: by the names that the stack gives them.
    """
    stack = stack or named_identities(cluster)
    platform = fleet.spec.platform
    home = cluster.name == fleet.spec.home
    crds = [pinned.SPOTLADDER_CRDS] if home else []
    releases: list[Component] = []
    if cluster.cloud in WITH_STACK and cluster.provisioner is Autoscaler.KARPENTER:
        aws = cluster.cloud is Cloud.AWS
        crds.append(pinned.KARPENTER_CRDS_AWS if aws else pinned.KARPENTER_CRDS_GCP)
        releases.append(_karpenter_aws(cluster, stack) if aws else _karpenter_gcp(cluster, stack))
    own_kuberay = Provided.KUBERAY not in cluster.provides
    if own_kuberay:
        crds.append(pinned.KUBERAY.chart)
    if platform.jobset:
        crds.append(pinned.JOBSET.chart)
        releases.append(replace(pinned.JOBSET, values={"controller": placement(cluster)}))
    if platform.kueue:  # its CRDs belong to its release
        releases.append(replace(pinned.KUEUE, values={"controllerManager": placement(cluster)}))
    for component, plugin in _DEVICE_PLUGINS:
        if (needed := plugin(fleet, cluster)) is not None:
            releases.append(replace(component, values=needed))
    releases.append(replace(pinned.POOLS, values=pool_values(fleet, cluster, stack)))
    if own_kuberay:
        releases.append(replace(pinned.KUBERAY, values=placement(cluster)))
    releases.append(replace(pinned.CONTROLLER, values=controller_values(fleet, cluster)))
    mirror = platform.mirror
    merged = (
        replace(entry.of_mirror(mirror), values=merge(entry.values, entry.image_values(mirror))) for entry in releases
    )
    final = (replace(entry, values=merge(entry.values, platform.values.get(entry.name, {}))) for entry in merged)
    return Plan(tuple(chart.of_mirror(mirror) for chart in crds), tuple(final))


def waves(fleet: Fleet, targets: Sequence[str] = ()) -> list[list[str]]:
    """The clusters in the order of the rollout: the canaries, then the rest. If `targets` are given, only these.

    Without canaries the home cluster is the first wave: it runs the controller, on which all others depend.
    """
    clusters = [entry.name for entry in fleet.spec.clusters]
    canary = fleet.spec.rollout.canary or [fleet.spec.home]
    first = [name for name in clusters if name in canary]
    rest = [name for name in clusters if name not in canary]
    chosen = [[name for name in wave if not targets or name in targets] for wave in (first, rest)]
    return [wave for wave in chosen if wave]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """Values of Helm, merged as Helm merges files: mappings by key; any other value is replaced."""
    found = dict(base)
    for key, value in over.items():
        known = found.get(key)
        found[key] = merge(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return found


def _karpenter_replicas(cluster: Cluster) -> int:
    """The number of replicas of Karpenter: its charts place one on each node, so on a single node a second one would
    stay pending."""
    zones = len(zones_of(cluster)) if cluster.cloud is Cloud.GCP else 1
    return min(KARPENTER_REPLICAS, cluster.system.count * zones)


def _karpenter_aws(cluster: Cluster, stack: StackIdentities) -> Component:
    settings: Values = {"clusterName": cluster.cloud_name, "interruptionQueue": stack.interruption_queue}
    if cluster.network.nat is Nat.NONE:
        settings["isolatedVPC"] = True  # the price list has no endpoint in the VPC
    values: Values = {
        "replicas": _karpenter_replicas(cluster),
        "serviceAccount": {"name": names.KARPENTER_ACCOUNT},
        "settings": settings,
        # Pods cannot read the region from the nodes' metadata service: its hop limit is 1.
        "controller": {"env": [{"name": "AWS_REGION", "value": cluster.region}]},
        **placement(cluster),
    }
    return replace(pinned.KARPENTER_AWS, values=values)


def _karpenter_gcp(cluster: Cluster, stack: StackIdentities) -> Component:
    values: Values = {
        "serviceAccount": {
            "name": names.KARPENTER_ACCOUNT,
            "annotations": {"iam.gke.io/gcp-service-account": stack.karpenter},
        },
        "credentials": {"enabled": False},
        "controller": {
            "replicaCount": _karpenter_replicas(cluster),
            "tolerations": placement(cluster).get("tolerations", []),
            "featureGates": {"spotToSpotConsolidation": False},
            "settings": {
                "projectID": cluster.project,
                "clusterLocation": cluster.location,
                "clusterName": cluster.cloud_name,
            },
        },
    }
    return replace(pinned.KARPENTER_GCP, values=values)
