"""The labels and taints of each cloud's nodes, and its notice period before a reclaim.

Karpenter writes `karpenter.sh/capacity-type` on every cloud. A tier whose extraSelectors name a label of Karpenter
(`karpenter.sh/nodepool: …`) therefore uses Karpenter's labels for every provider, and one that names an EKS node group
(`eks.amazonaws.com/nodegroup`) those of managed node groups. Otherwise AWS means Karpenter, GCP GKE's own node pools
and Azure those of AKS. Tolerations depend only on the provider, since they do not select nodes.

Sources: karpenter.sh/docs/concepts/scheduling, docs.aws.amazon.com/eks (managed node groups, capacity types),
cloud.google.com/kubernetes-engine/docs/concepts/spot-vms, learn.microsoft.com/azure/aks/spot-node-pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from spotladder.api.capacitytier import CapacityTierSpec, Provider
from spotladder.api.problems import dotted
from spotladder.core.model import CapacityType, Seconds
from spotladder.errors import InvalidSpec
from spotladder.workloads.placement import Placement

NOTICE: Mapping[Provider, Seconds] = MappingProxyType(
    {Provider.AWS: 120.0, Provider.GCP: 30.0, Provider.AZURE: 30.0, Provider.GENERIC: 0.0}
)
"""Seconds between a cloud's notice and the end of the node."""

KARPENTER_CAPACITY_TYPE = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

SPOT, ON_DEMAND, RESERVED = CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED


class _Nodes(StrEnum):
    """The component that creates a tier's nodes. It determines their labels."""

    KARPENTER = "karpenter"
    EKS_GROUPS = "eks"
    GKE_POOLS = "gke"
    AKS_POOLS = "aks"
    OTHER = "other"


# GKE and AKS label only spot nodes: for other capacity the rule is "not spot". The reservation of a reserved tier is
# chosen by a label in extraSelectors (cloud.google.com/reservation-name, agentpool, …).
_LABELS: Mapping[_Nodes, Mapping[CapacityType, Mapping[str, str]]] = MappingProxyType(
    {
        _Nodes.KARPENTER: {kind: {KARPENTER_CAPACITY_TYPE: kind.value} for kind in CapacityType},
        _Nodes.EKS_GROUPS: {
            SPOT: {"eks.amazonaws.com/capacityType": "SPOT"},
            ON_DEMAND: {"eks.amazonaws.com/capacityType": "ON_DEMAND"},
            RESERVED: {"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"},
        },
        _Nodes.GKE_POOLS: {
            SPOT: {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"},
        },
        _Nodes.AKS_POOLS: {SPOT: {"kubernetes.azure.com/scalesetpriority": "spot"}},
    }
)

CAPACITY_TYPE_LABELS = frozenset(key for labels in _LABELS.values() for entries in labels.values() for key in entries)
"""The labels, and the keys of taints, with which the clouds mark the capacity type of nodes."""

_SPOT_ONLY: Mapping[_Nodes, tuple[str, str]] = MappingProxyType(
    {nodes: next(iter(labels[SPOT].items())) for nodes, labels in _LABELS.items()}
)
"""The label and value of spot nodes only."""

_TAINTED: Mapping[Provider, _Nodes] = MappingProxyType(
    {Provider.GCP: _Nodes.GKE_POOLS, Provider.AZURE: _Nodes.AKS_POOLS}
)
"""The clouds whose spot nodes have a taint with the key and value of their label."""


def placement(spec: CapacityTierSpec) -> Placement:
    """The placement of pods on this tier's nodes.

    Raises:
        InvalidSpec: extraSelectors contradict the capacity type.
    """
    nodes = _nodes(spec)
    labels = _LABELS.get(nodes, {}).get(spec.capacity_type, {})
    for key, value in labels.items():
        if spec.extra_selectors.get(key, value) != value:
            raise InvalidSpec(
                f"asks for {spec.extra_selectors[key]}, but capacityType {spec.capacity_type} means {value}: remove it",
                path=dotted(("spec", "extraSelectors", key)),
            )
    spot_only = () if labels or spec.capacity_type is SPOT else _not_spot(nodes)
    one_of = [(ZONE, spec.zones), (INSTANCE_TYPE, spec.instance_types)]
    return Placement(
        labels=tuple({**labels, **spec.extra_selectors}.items()),
        one_of=tuple((key, tuple(values)) for key, values in one_of if values),
        none_of=spot_only,
        tolerations=tuple(_tolerations(spec)),
    )


def head_placement(spec: CapacityTierSpec) -> Placement:
    """The placement of a head outside of the tier: according to headSelectors, and never on spot nodes."""
    nodes = _nodes(spec)
    own = {key for key, _ in _not_spot(nodes)} & spec.head_selectors.keys()
    return Placement(labels=tuple(spec.head_selectors.items()), none_of=() if own else _not_spot(nodes))


def _nodes(spec: CapacityTierSpec) -> _Nodes:
    if any(key.startswith("karpenter.sh/") for key in spec.extra_selectors):
        return _Nodes.KARPENTER
    if "eks.amazonaws.com/nodegroup" in spec.extra_selectors:
        return _Nodes.EKS_GROUPS
    return {
        Provider.AWS: _Nodes.KARPENTER,
        Provider.GCP: _Nodes.GKE_POOLS,
        Provider.AZURE: _Nodes.AKS_POOLS,
        Provider.GENERIC: _Nodes.OTHER,
    }[spec.provider]


def _not_spot(nodes: _Nodes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if nodes not in _SPOT_ONLY:
        return ()
    key, value = _SPOT_ONLY[nodes]
    return ((key, (value,)),)


def _tolerations(spec: CapacityTierSpec) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if spec.capacity_type is SPOT and (nodes := _TAINTED.get(spec.provider)):
        key, value = _SPOT_ONLY[nodes]
        found.append({"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"})
    return found + [entry.model_dump(mode="json", by_alias=True, exclude_none=True) for entry in spec.extra_tolerations]
