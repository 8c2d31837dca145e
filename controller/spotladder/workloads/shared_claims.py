"""Warns of PersistentVolumeClaims that pods of a job share although one node at most may have their volume.

Most block storage is ReadWriteOnce: a second node cannot attach the volume while the first has it, and a volume exists
in one zone. A file does not say the access mode of a claim, so these are warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from spotladder.workloads.providers import ZONE
from spotladder.workloads.tiers import PlacedTier

_COUNTS = ("replicas", "numOfHosts", "parallelism")
"""Fields of RayClusters, JobSets and Jobs that multiply the pods of the templates below them."""


def claim_warnings(rendered: Iterable[Mapping[str, Any]], tiers: Sequence[PlacedTier], *, overlap: bool) -> list[str]:
    """One message for each claim of these objects of an attempt that the job cannot use on several nodes, or not on all
    of its tiers. `overlap`: two attempts of the job may run at the same time."""
    pods: Counter[str] = Counter()
    for body in rendered:
        for claim, count in _claims(body, 1):
            pods[claim] += count
    apart = _apart(tiers)
    return [message for claim, count in sorted(pods.items()) if (message := _message(claim, count, apart, overlap))]


def _message(claim: str, pods: int, apart: str, overlap: bool) -> str:
    shared = (
        f"{pods} pods mount it"
        if pods > 1
        else "overlap starts a second attempt, which mounts it too"
        if overlap
        else ""
    )
    if shared:
        return (
            f"claim {claim}: {shared}, and a ReadWriteOnce volume can be attached to one node only: use a claim with "
            "ReadWriteMany" + (f"; {apart}" if apart else "")
        )
    return f"claim {claim}: {apart}: use storage that exists on every tier" if apart else ""


def _apart(tiers: Sequence[PlacedTier]) -> str:
    """Why a volume cannot exist on all of these tiers, as far as their CapacityTiers say where they are; "" if it
    can."""
    for first, tier in combinations(tiers, 2):
        if tier.cluster != first.cluster:
            return f"tiers {first.name} and {tier.name} are in different clusters"
        if _zones(tier) and _zones(first) and _zones(tier).isdisjoint(_zones(first)):
            return f"tiers {first.name} and {tier.name} are in different zones, and a zonal volume exists in one"
    return ""


def _zones(tier: PlacedTier) -> frozenset[str]:
    return frozenset(zone for key, zones in tier.workers.one_of if key == ZONE for zone in zones)


def _claims(thing: Any, pods: int) -> Iterator[tuple[str, int]]:
    """The claims that pod templates in this part of an object mount for writing, each with the number of pods."""
    if isinstance(thing, Mapping):
        for field in _COUNTS:
            if isinstance(count := thing.get(field), int):
                pods *= max(0, count)
        for volume in thing.get("volumes") or () if isinstance(thing.get("containers"), list) else ():
            source = volume.get("persistentVolumeClaim") if isinstance(volume, Mapping) else None
            if isinstance(source, Mapping) and source.get("claimName") and not source.get("readOnly"):
                yield source["claimName"], pods
        for inner in thing.values():
            yield from _claims(inner, pods)
    elif isinstance(thing, list):
        for inner in thing:
            yield from _claims(inner, pods)
