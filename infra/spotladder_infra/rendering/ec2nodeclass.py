"""EC2NodeClasses: the image, network and disks of the nodes of one pool on AWS."""

from __future__ import annotations

from typing import Any

from spotladder.core.model import CapacityType
from spotladder_infra.facts.efa import network_cards
from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.names import common_tags, discovery_tag
from spotladder_infra.outputs import StackIdentities
from spotladder_infra.rendering.labels import Object, custom_resource
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

PARALLEL_PULL_THROUGHPUT = 600
"""MiB/s of the root volume above which AWS recommends parallel pulls; with less, pulls become slower."""

_AL2023_PARALLEL_PULL = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true

--//--
"""

_BOTTLEROCKET_PARALLEL_PULL = """\
[settings.container-runtime]
snapshotter = "soci"

[settings.container-runtime-plugins.soci-snapshotter]
pull-mode = "parallel-pull-unpack"
"""

_PARALLEL_PULL = {"al2023": _AL2023_PARALLEL_PULL, "bottlerocket": _BOTTLEROCKET_PARALLEL_PULL}
"""User data that makes the SOCI snapshotter pull and unpack layers in parallel, by the family of the image."""

EKS_CLUSTER = "aws:eks:cluster-name"
"""The tag that EKS sets on the security group of a cluster, and that users cannot set (docs.aws.amazon.com/eks, page
sec-group-reqs, as of 2026-11-29)."""

_IMAGE_VOLUME = {"bottlerocket": "/dev/xvdb"}
"""The volume for images and pods, for image families where it is not the root volume."""


def ec2_node_class(fleet: Fleet, cluster: Cluster, pool: Pool, stack: StackIdentities) -> Object:
    """The EC2NodeClass of one pool. Karpenter merges its own part into the user data."""
    image = pool.image or NODE_IMAGE
    family = image.partition("@")[0]
    existing = cluster.network.existing
    group = discovery_tag(cluster) if cluster.existing is None else {EKS_CLUSTER: cluster.existing}
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": image}],
        "instanceProfile": stack.nodes,
        "subnetSelectorTerms": existing.subnet_terms if existing else [{"tags": discovery_tag(cluster)}],
        "securityGroupSelectorTerms": [
            {"tags": group},
            *({"id": name} for name in (existing.security_groups if existing else ())),
        ],
        "instanceStorePolicy": "RAID0",
        "blockDeviceMappings": [
            {
                "deviceName": _IMAGE_VOLUME.get(family, "/dev/xvda"),
                "ebs": {
                    "volumeSize": f"{pool.disk_gi_b}Gi",
                    "volumeType": "gp3",
                    "throughput": pool.disk_throughput,
                    "iops": pool.disk_iops,
                    "encrypted": True,
                    "deleteOnTermination": True,
                },
            }
        ],
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "tags": common_tags(fleet, cluster),
    }
    if pool.disk_throughput >= PARALLEL_PULL_THROUGHPUT and family in _PARALLEL_PULL:
        spec["userData"] = _PARALLEL_PULL[family]
    if pool.placement_group is not None:
        spec["placementGroupSelector"] = {"name": pool.placement_group}
    if pool.efa:
        spec["networkInterfaces"] = _efa_interfaces(network_cards(pool.instance_types))
    if pool.capacity_type is CapacityType.RESERVED and pool.reservation is not None:
        reservation = pool.reservation
        terms: list[Object] = [{"id": name} for name in (*reservation.ids, *reservation.capacity_blocks)]
        if reservation.tags:
            terms.append({"tags": dict(reservation.tags)})
        spec["capacityReservationSelectorTerms"] = terms
    return custom_resource("karpenter.k8s.aws/v1", "EC2NodeClass", pool.name, spec)


def _efa_interfaces(cards: int) -> list[Object]:
    """One interface with an address, and one EFA-only interface on every network card."""
    primary = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    efa = [
        {"networkCardIndex": card, "deviceIndex": 1 if card == 0 else 0, "interfaceType": "efa-only"}
        for card in range(cards)
    ]
    return [primary, *efa]
