"""The node image of each pool: the one in the fleet file, and the one in the cluster.

The fleet file pins the images. `upgrade --apply` and rollouts install a new pin; Karpenter then replaces nodes with the
old image when they are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.rendering.gcenodeclass import DEFAULT_IMAGE
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler, Cloud, Cluster


@dataclass(frozen=True, slots=True)
class PoolImage:
    """The image of one pool; `installed` is "" if the cluster does not have the pool yet."""

    pool: str
    pinned: str
    installed: str


def pool_images(tools: Tools, cluster: Cluster) -> list[PoolImage]:
    """The images of the pools for which Karpenter creates nodes; empty if another component creates them.

    Args:
        tools: helm and kubectl of the cluster.
        cluster: The cluster as the fleet file describes it.

    Raises:
        EnvironmentFailure: The cluster does not answer.
    """
    if cluster.cloud not in WITH_STACK or cluster.provisioner is not Autoscaler.KARPENTER:
        return []
    installed = dict(_installed(tools, cluster))
    default = NODE_IMAGE if cluster.cloud is Cloud.AWS else DEFAULT_IMAGE
    return [PoolImage(pool.name, pool.image or default, installed.get(pool.name, "")) for pool in cluster.pools]


def _installed(tools: Tools, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The pool and image of each node class, which has the name of its pool."""
    aws = cluster.cloud is Cloud.AWS
    kind = "ec2nodeclasses.karpenter.k8s.aws" if aws else "gcenodeclasses.karpenter.k8s.gcp"
    field = "amiSelectorTerms" if aws else "imageSelectorTerms"
    for node_class in tools.items(kind):
        terms: list[Object] = node_class.get("spec", {}).get(field) or []
        yield node_class["metadata"]["name"], ", ".join(str(value) for term in terms for value in term.values())
