"""A job's tier with its capacity: its own entry, its CapacityTier, its provider's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from spotladder.api.capacitytier import ApplyTo, CapacityTier
from spotladder.api.job_tier import JobTier
from spotladder.api.problems import Path, dotted
from spotladder.api.resolve import tier_of
from spotladder.api.tier_history import NO_HISTORY, TierHistory
from spotladder.core.model import Instant, Price, Tier
from spotladder.errors import InvalidSpec
from spotladder.workloads import providers
from spotladder.workloads.placement import Placement


@dataclass(frozen=True, slots=True)
class PlacedTier:
    """One tier of a job, with the placement of its pods.

    `core` is the tier for the decision core, and `entry` that of the job's spec. `workers` and `head` are the
    placements of their pods, and `groups` those of the groups of pods that are not on the tier. `granted_at` is when a
    job last got all of its nodes there; None if that is unknown, or the tier has refused a job since.
    """

    core: Tier
    entry: JobTier
    cluster: str
    workers: Placement
    head: Placement
    groups: Mapping[str, Placement] = field(default_factory=dict)
    granted_at: Instant | None = None

    @property
    def name(self) -> str:
        """The name of the tier in the job."""
        return self.entry.name

    @property
    def queue(self) -> str:
        """The LocalQueue of Kueue; "" without one."""
        return self.entry.queue or ""

    def beside(self, group: str) -> Placement:
        """The placement of the pods of a group that is not on the tier."""
        return self.groups.get(group, Placement())

    def avoiding(self, nodes: tuple[str, ...]) -> PlacedTier:
        """The same tier without these nodes, by name."""
        if not nodes:
            return self
        return replace(self, workers=self.workers.avoiding(nodes), head=self.head.avoiding(nodes))


def price_of(capacity: CapacityTier) -> Price:
    """The price in the CapacityTier; unknown if it must be looked up or is absent."""
    given = capacity.spec.price
    if given is None or given.per_node_hour is None:
        return Price(on_demand=(given.on_demand_per_node_hour or 0.0) if given else 0.0, known=False)
    return Price.listed(given.per_node_hour, given.on_demand_per_node_hour)


Lookup = Callable[[str], tuple[CapacityTier, Price] | None]
"""Finds a CapacityTier and its price by name; None if it is unknown."""


def resolve_tier(
    index: int,
    entry: JobTier,
    capacity: CapacityTier,
    price: Price,
    known: Lookup = lambda _: None,
    *,
    history: TierHistory = NO_HISTORY,
) -> PlacedTier:
    """One tier of a job with its CapacityTier. `known` finds those of its groups; an unknown one has no requirements.
    `index` is that of the entry, for messages.

    Raises:
        InvalidSpec: a CapacityTier contradicts itself, or that of a group is in another cluster.
    """
    spec = capacity.spec
    workers = providers.placement(spec)
    groups = {
        name: _group(known(group.capacity_tier), spec.cluster, ("spec", "tiers", index, "groups", name))
        for name, group in entry.groups.items()
    }
    core = replace(
        tier_of(entry),
        capacity_type=spec.capacity_type,
        price=price,
        notice=providers.NOTICE[spec.provider] if spec.notice is None else spec.notice,
        head_per_hour=(spec.price.head_per_hour if spec.price else None) or 0.0,
        egress_per_gib=spec.egress_per_gi_b or 0.0,
        wait=history.wait,
        prices=history.prices,
        queue=f"{spec.cluster}/{entry.queue or ''}",
        auxiliary=tuple((name, per_hour) for name, (_, per_hour) in groups.items()),
    )
    return PlacedTier(
        core,
        entry,
        cluster=spec.cluster,
        workers=workers,
        head=workers if spec.apply_to is ApplyTo.WORKERS_AND_HEAD else providers.head_placement(spec),
        groups={name: placement for name, (placement, _) in groups.items()},
        granted_at=history.granted_at,
    )


def _group(found: tuple[CapacityTier, Price] | None, cluster: str, at: Path) -> tuple[Placement, float | None]:
    """The placement of the pods of a group, and the price of a node in USD per hour; None if it is unknown."""
    if found is None:
        return Placement(), None
    capacity, price = found
    spec = capacity.spec
    if spec.cluster != cluster:
        message = (
            f'"{capacity.metadata.name}" is in cluster "{spec.cluster}", but the tier is in "{cluster}": '
            "name a CapacityTier of the same cluster"
        )
        raise InvalidSpec(message, path=dotted((*at, "capacityTier")))
    return providers.placement(spec), price.per_node_hour if price.known else None
