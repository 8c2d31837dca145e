"""Rules for the pools of a fleet: instances, images, capacity, disruption and prices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from math import prod

from spotladder import versions
from spotladder.api.capacitytier import TaintEffect
from spotladder.api.problems import Path, quoted
from spotladder.api.suggest import closest
from spotladder.core.durations import format_duration
from spotladder.core.model import CapacityType
from spotladder.workloads.grace import grace_of
from spotladder_infra.facts import images, instances
from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler, Cloud
from spotladder_infra.topology.defaults import notice_of, price_of
from spotladder_infra.topology.findings import Check, FleetFinding, pool_path, pools, with_stack
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import PoolRole

INSTANCE_FORM = {
    Cloud.AWS: (re.compile(rf"[a-z][a-z0-9-]*\.({instances.AWS_SIZE.pattern})"), "g5.xlarge"),
    Cloud.GCP: (re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+"), "g2-standard-8"),
}
"""The format of an instance type on each cloud, and an example."""

SHORTEST_CONSOLIDATION = 300.0
"""Seconds. A new attempt of a job has its pods pending within this time."""


def instance_names(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that instance types have the format of the cluster's cloud, and sizes that their families have.

    Clouds add sizes, so a size that is not in the table is only a warning.
    """
    for index, cluster in with_stack(fleet):
        named = [
            (pool_path(index, p, "instanceTypes", place), name)
            for p, pool in enumerate(cluster.pools)
            for place, name in enumerate(pool.instance_types)
        ]
        if cluster.system.instance_type is not None:
            named.append((("spec", "clusters", index, "system", "instanceType"), cluster.system.instance_type))
        form, example = INSTANCE_FORM[cluster.cloud]
        for path, name in named:
            known = instances.types_of(cluster.cloud, name)
            near = closest(name, known)
            remedy = f"did you mean {near}?" if near else "correct it"
            if not form.fullmatch(name):
                message = f"{quoted(name)} is not an instance type of {cluster.cloud} (expected one like {example})"
                yield FleetFinding(path, f"{message}: {remedy}")
            elif known and name not in known:
                message = f"{quoted(name)} is not known (table of {instances.AS_OF}: {', '.join(known)})"
                yield FleetFinding(path, f"{message}: {remedy}", warning=True)


def processors(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that no instances have ARM processors (AWS): the images of the nodes and the requirements of the NodePools
    are those of amd64, so that EKS and Karpenter would create no such node."""
    for index, cluster in with_stack(fleet):
        if cluster.cloud is not Cloud.AWS:
            continue
        named = [
            (pool_path(index, p, field, place), name)
            for p, pool in enumerate(cluster.pools)
            for field, names in (("instanceTypes", pool.instance_types), ("families", pool.families))
            for place, name in enumerate(names)
        ]
        if cluster.system.instance_type is not None:
            named.append((("spec", "clusters", index, "system", "instanceType"), cluster.system.instance_type))
        for path, name in named:
            if instances.AWS_ARM.fullmatch(instances.family_of("aws", name)):
                message = f"{quoted(name)} has ARM processors, but all nodes are amd64: choose another one"
                yield FleetFinding(path, message)


def families(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the instance types of a pool of Karpenter are of its families, if it names both."""
    for c, p, cluster, pool in pools(fleet):
        if not pool.families or cluster.provisioner is not Autoscaler.KARPENTER:
            continue
        for place, name in enumerate(pool.instance_types):
            if not name.startswith(tuple(f"{family}{end}" for family in pool.families for end in ".-")):
                message = (
                    f"{name} is not of the families {', '.join(pool.families)}, and Karpenter creates only nodes that "
                    "both allow: remove it, or families"
                )
                yield FleetFinding(pool_path(c, p, "instanceTypes", place), message)


def efa(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that nodes with EFA are in one zone and one placement group, because EFA needs a short distance between
    nodes."""
    for c, p, _cluster, pool in pools(fleet):
        if pool.efa and pool.placement_group is None:
            message = "without placementGroup, nodes may be far apart: set a cluster placement group"
            yield FleetFinding(pool_path(c, p, "efa"), message, warning=True)


def tpus(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that pools with TPUs have a topology that their machines can form, and that no others have one."""
    for c, p, cluster, pool in pools(fleet):
        if cluster.cloud is not Cloud.GCP:
            continue
        kinds = {name: _tpu(name) for name in (*pool.instance_types, *pool.families)}
        path = pool_path(c, p, "tpuTopology")
        if pool.tpu_topology is None:
            first = "autoscaler: compute-class and " if cluster.provisioner is Autoscaler.KARPENTER else ""
            if found := [name for name, kind in kinds.items() if kind]:
                message = f"{found[0]} has TPUs: set {first}tpuTopology, as in 2x4 or 2x2x4"
                yield FleetFinding(pool_path(c, p), message)
            continue
        if len(set(kinds.values())) != 1 or pool.families or not all(kinds.values()):
            message = "needs instanceTypes with TPUs of one kind, such as ct5lp-hightpu-4t: correct instanceTypes"
            yield FleetFinding(path, f"{message}, or remove it")
            continue
        sides = [int(side) for side in pool.tpu_topology.split("x")]
        for name, kind in kinds.items():
            dimensions = instances.TPU_DIMENSIONS[kind]
            if len(sides) != dimensions:
                yield FleetFinding(path, f"of {kind} has {dimensions} dimensions, not {len(sides)}: correct it")
            elif count := instances.number_of_accelerators(cluster.cloud, name):
                several = count == instances.TPUS_OF_SLICE_NODE and prod(sides) % count == 0
                if prod(sides) != count and not several:
                    message = f"has {prod(sides)} TPUs, which machines with {count} ({name}) cannot form"
                    yield FleetFinding(path, f"{message}: correct one of them")


def _tpu(name: str) -> str:
    """The kind of TPU of a machine type or family of Google Cloud; "" if it has none."""
    kind = instances.accelerator_of(Cloud.GCP, name)
    return kind if kind in instances.TPU_DIMENSIONS else ""


def accelerators(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the instances have the accelerators that the pool names."""
    for c, p, cluster, pool in pools(fleet):
        wanted = pool.accelerator
        if cluster.cloud not in WITH_STACK or wanted is None:
            continue
        for field, names in (("instanceTypes", pool.instance_types), ("families", pool.families)):
            for place, name in enumerate(names):
                path = pool_path(c, p, field, place)
                has = instances.accelerator_of(cluster.cloud, name)
                if has not in ("", wanted.type):
                    yield FleetFinding(path, f"{name} has {has}, not {wanted.type}: correct one of them")
                count = instances.number_of_accelerators(cluster.cloud, name)
                if count is not None and wanted.count not in (None, count):
                    message = f"{name} has {count} accelerators, not {wanted.count}"
                    yield FleetFinding(path, f"{message}: correct one of them, or leave out count")


def node_images(fleet: Fleet, today: date) -> Iterator[FleetFinding]:
    """Check that node images on EKS are pinned to a release that is not old."""
    for index, cluster in enumerate(fleet.spec.clusters):
        if cluster.cloud is not Cloud.AWS:
            continue
        for place, pool in enumerate(cluster.pools):
            if pool.image is not None:
                yield from _image(pool.image, today, pool_path(index, place, "image"))
        unpinned = any(pool.image is None for pool in cluster.pools)
        if unpinned and (old := _old_image(images.NODE_IMAGE, today)):
            message = f"pools without image get {old}: give the pools a newer image, or upgrade spotladder"
            yield FleetFinding(("spec", "clusters", index, "pools"), message, warning=True)
        if unpinned and versions.parse(cluster.kubernetes) > versions.parse(images.NEWEST_KUBERNETES):
            message = (
                f"pools without image get {images.NODE_IMAGE}, which has no image for Kubernetes {cluster.kubernetes}: "
                "give the pools a newer image, or their nodes do not start"
            )
            yield FleetFinding(("spec", "clusters", index, "pools"), message, warning=True)


def heads(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that there are nodes for Ray heads: worker pools and system nodes are tainted. Only pods of workers get the
    tolerations of a CapacityTier."""
    for c, p, _cluster, pool in pools(fleet):
        if pool.role is PoolRole.HEADS and any(
            taint.effect is not TaintEffect.PREFER_NO_SCHEDULE for taint in pool.taints
        ):
            message = "are not tolerated by Ray heads: remove them, or add the tolerations to the head of every job"
            yield FleetFinding(pool_path(c, p, "taints"), message, warning=True)
    for index, cluster in with_stack(fleet):
        if cluster.pools and all(pool.role is PoolRole.WORKERS for pool in cluster.pools):
            message = "has no pool with role heads: Ray heads find no node; add one with capacityType on-demand"
            yield FleetFinding(("spec", "clusters", index, "pools"), message)


def fallback(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about a fleet whose worker pools are all spot: it has no capacity during a spot shortage."""
    workers = [pool for _, _, _, pool in pools(fleet) if pool.role is PoolRole.WORKERS]
    if workers and all(pool.capacity_type is CapacityType.SPOT for pool in workers):
        message = "has only spot capacity for workers: jobs wait during a spot shortage; add an on-demand pool"
        yield FleetFinding(("spec", "clusters"), message, warning=True)


def grace(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that a node's grace period covers its pods' grace period and ends with the cloud's notice."""
    for c, p, cluster, pool in pools(fleet):
        path = pool_path(c, p, "disruption")
        period = pool.disruption.termination_grace_period
        if pool.capacity_type is CapacityType.SPOT and period is not None:
            notice = notice_of(cluster, pool)
            needed = grace_of(notice)
            if period < needed:
                message = (
                    f"{format_duration(period)} is shorter than the {needed}s that pods have to end: "
                    f"Karpenter would delete them at once; set at least {needed}s or remove it"
                )
                yield FleetFinding((*path, "terminationGracePeriod"), message)
            elif notice and period > notice:
                message = (
                    f"{format_duration(period)} is longer than the notice of {format_duration(notice)}: "
                    f"the cloud takes the node before; set at most {format_duration(notice)} or remove it"
                )
                yield FleetFinding((*path, "terminationGracePeriod"), message, warning=True)
        if pool.role is PoolRole.WORKERS and pool.disruption.consolidate_after < SHORTEST_CONSOLIDATION:
            message = (
                f"{format_duration(pool.disruption.consolidate_after)} is shorter than a restart of a job: the node "
                f"may be released between two attempts; set at least {format_duration(SHORTEST_CONSOLIDATION)}"
            )
            yield FleetFinding((*path, "consolidateAfter"), message, warning=True)


def known_prices(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about a pool without a price, whose cost is reported as unknown."""
    for c, p, cluster, pool in pools(fleet):
        if pool.role is PoolRole.WORKERS and price_of(cluster, pool) is None:
            message = "has no price: its costs will be reported as unknown; add price.perNodeHour"
            yield FleetFinding(pool_path(c, p), message, warning=True)


def _image(alias: str, today: date, path: Path) -> Iterator[FleetFinding]:
    dated = alias.partition("@")[2].removeprefix("v")
    if not images.ALIAS.fullmatch(alias) or (len(dated) == 8 and images.released(alias) is None):
        yield FleetFinding(path, f"{quoted(alias)} is not an image of EKS (expected one like {images.NODE_IMAGE})")
    elif dated == "latest":
        message = "is not pinned: every new image of AWS makes the nodes drift, and nodes of one job may differ"
        yield FleetFinding(path, f"{message}; name a release like {images.NODE_IMAGE}", warning=True)
    elif old := _old_image(alias, today):
        yield FleetFinding(path, f"is {old}: choose a newer one (docs/upgrade.md)", warning=True)


def _old_image(alias: str, today: date) -> str | None:
    released = images.released(alias)
    if released is None or today - released <= images.OLDEST:
        return None
    return f"{alias}, which is {(today - released).days} days old and lacks later security fixes"


POOL_CHECKS: tuple[Check, ...] = (
    instance_names,
    processors,
    families,
    accelerators,
    tpus,
    efa,
    node_images,
    heads,
    fallback,
    grace,
    known_prices,
)
