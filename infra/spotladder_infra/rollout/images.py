"""The node image of each pool: the one in the fleet file, the one in the cluster, and the newest one of AWS. This
module changes nothing: the fleet file pins the images. `upgrade --apply` and rollouts install a new pin; Karpenter then
replaces nodes with the old image when they are empty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spotladder_infra.amazon import CREDENTIALS, Connect, answering
from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.node_images import newest
from spotladder_infra.rendering.gcenodeclass import DEFAULT_IMAGE
from spotladder_infra.rendering.labels import NODEPOOL
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler, Cloud, Cluster

ABSENT = "–"

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PoolImage:
    """The image of one pool. `old_nodes` of its `nodes` have another one; `newest` is "–" if unknown."""

    cluster: str
    pool: str
    pinned: str
    installed: str
    newest: str
    nodes: int
    old_nodes: int
    advice: str


def pool_images(tools: Tools, cluster: Cluster, connect: Connect | None = None) -> list[PoolImage]:
    """The images of the pools for which Karpenter creates nodes; empty if another component creates them.

    Args:
        tools: helm and kubectl of the cluster.
        cluster: The cluster as the fleet file describes it.
        connect: Creates the AWS clients that find the newest image. None: AWS is not queried.

    Raises:
        EnvironmentFailure: The cluster or AWS does not answer.
    """
    if cluster.cloud not in WITH_STACK or cluster.provisioner is not Autoscaler.KARPENTER:
        return []
    installed = dict(_installed(tools, cluster))
    nodes, old = _nodes(tools)
    listed = []
    for pool in cluster.pools:
        pinned = pool.image or (NODE_IMAGE if cluster.cloud is Cloud.AWS else DEFAULT_IMAGE)
        latest = _newest(connect, cluster, pinned) if connect is not None else None
        has = installed.get(pool.name, ABSENT)
        advice = _advice(pool.name, pinned, has, latest, old[pool.name])
        found = PoolImage(
            cluster.name, pool.name, pinned, has, latest or ABSENT, nodes[pool.name], old[pool.name], advice
        )
        listed.append(found)
    return listed


def _advice(pool: str, pinned: str, installed: str, latest: str | None, old_nodes: int) -> str:
    """The next step for the user; "–" if none is needed."""
    if latest is not None and () < _release(pinned) < _release(latest):
        return f"set image: {latest} on pool {pool} in the fleet file"
    if installed != pinned:
        return "spotladder infra upgrade --apply"
    return f"wait: {old_nodes} nodes with another image are replaced when they are empty" if old_nodes else ABSENT


def _release(alias: str) -> tuple[int, ...]:
    """The number of the release of an alias, to compare it; empty for `@latest`."""
    return tuple(map(int, _NUMBERS.findall(alias.partition("@")[2])))


def _installed(tools: Tools, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The pool and image of each node class, which has the name of its pool."""
    aws = cluster.cloud is Cloud.AWS
    kind = "ec2nodeclasses.karpenter.k8s.aws" if aws else "gcenodeclasses.karpenter.k8s.gcp"
    field = "amiSelectorTerms" if aws else "imageSelectorTerms"
    for node_class in tools.items(kind):
        terms: list[Object] = node_class.get("spec", {}).get(field) or []
        yield node_class["metadata"]["name"], ", ".join(str(value) for term in terms for value in term.values())


def _nodes(tools: Tools) -> tuple[Counter[str], Counter[str]]:
    """The number of nodes of each pool, and the number of these that Karpenter reports as drifted."""
    nodes: Counter[str] = Counter()
    old: Counter[str] = Counter()
    for claim in tools.items("nodeclaims.karpenter.sh"):
        pool = claim["metadata"].get("labels", {}).get(NODEPOOL, "")
        conditions = claim.get("status", {}).get("conditions") or []
        nodes[pool] += 1
        old[pool] += any(entry["type"] == "Drifted" and entry["status"] == "True" for entry in conditions)
    return nodes, old


def _newest(connect: Connect, cluster: Cluster, pinned: str) -> str | None:
    """The newest image of the family of the pinned one; None if AWS has none."""
    if cluster.cloud is not Cloud.AWS:
        return None
    remedy = f"allow ssm:GetParameter and {CREDENTIALS}, or leave out --online"
    with answering(f"cluster {cluster.name}: AWS does not name its newest node image", remedy):
        return newest(connect("ssm", cluster.region or ""), pinned.partition("@")[0], cluster.kubernetes)
