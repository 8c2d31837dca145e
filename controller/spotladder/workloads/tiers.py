"""A job's tier with its capacity: its own entry, its CapacityTier, its provider's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from spotladder.api.capacitytier import ApplyTo, CapacityTier, Provider
from spotladder.api.job_tier import JobTier, TierOverrides
from spotladder.api.problems import InvalidDocument, Path, dotted
from spotladder.api.resolve import Capacity, missing_capacity
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import NO_OUTCOMES, CapacityType, Instant, Outcomes, Price, PricePoint, Seconds
from spotladder.errors import InvalidSpec
from spotladder.workloads import providers
from spotladder.workloads.placement import Placement


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """The capacity of a group that is not on the tier: the placement of its pods, and the price of a node in USD per
    hour; None if it is unknown."""

    placement: Placement
    per_hour: float | None


@dataclass(frozen=True, slots=True)
class ResolvedTier:
    """One tier of a job, ready to be rendered.

    `index` is its index in `spec.tiers`, for messages. `workers` and `head` are the placements of their pods. `notice`
    is the cloud's notice period before a reclaim, in seconds. `queue` is the LocalQueue of Kueue, "" without one.
    `fleet` is what all jobs have observed on the tier, and `granted_at` when a job last got all of its nodes there;
    None if that is unknown, or the tier has refused a job since. `groups` are the groups that the tier names, with
    their capacity. `wait` and `prices` are those of the core's Tier. `head_per_hour` and `egress_per_gib` are in USD.
    """

    name: str
    index: int
    capacity_tier: str
    capacity_type: CapacityType
    provider: Provider
    cluster: str
    region: str
    workers: Placement
    head: Placement
    notice: Seconds
    price: Price
    overrides: TierOverrides
    queue: str = ""
    fleet: Outcomes = NO_OUTCOMES
    head_per_hour: float = 0.0
    egress_per_gib: float = 0.0
    wait: Seconds = 0.0
    prices: tuple[PricePoint, ...] = ()
    granted_at: Instant | None = None
    groups: Mapping[str, GroupCapacity] = field(default_factory=dict)

    def beside(self, group: str) -> Placement:
        """The placement of the pods of a group that is not on the tier."""
        return self.groups[group].placement if group in self.groups else Placement()

    @property
    def capacity(self) -> Capacity:
        """The capacity of the tier for the decision core."""
        return Capacity(
            capacity_type=self.capacity_type,
            price=self.price,
            notice=self.notice,
            fleet=self.fleet,
            head_per_hour=self.head_per_hour,
            egress_per_gib=self.egress_per_gib,
            wait=self.wait,
            prices=self.prices,
        )

    def avoiding(self, nodes: tuple[str, ...]) -> ResolvedTier:
        """The same tier without these nodes, by name."""
        if not nodes:
            return self
        return replace(self, workers=self.workers.avoiding(nodes), head=self.head.avoiding(nodes))


def resolve_tiers(job: TieredJob, capacity: Mapping[str, CapacityTier]) -> tuple[ResolvedTier, ...]:
    """All tiers of the job, in its order.

    `capacity` are the CapacityTiers by name. Prices that must be looked up are unknown here.

    Raises:
        InvalidSpec: a tier names a CapacityTier that does not exist (the error lists every such tier), or one that
        contradicts
            itself.
    """
    if problems := missing_capacity(job, capacity):
        raise InvalidDocument(problems)
    found = ((tier, capacity[tier.capacity_tier]) for tier in job.spec.tiers)
    known = listed_in(capacity)
    return tuple(resolve_tier(index, tier, named, price_of(named), known) for index, (tier, named) in enumerate(found))


Lookup = Callable[[str], tuple[CapacityTier, Price] | None]
"""Finds a CapacityTier and its price by name; None if it is unknown."""


def listed_in(capacity: Mapping[str, CapacityTier]) -> Lookup:
    """Finds these CapacityTiers, with the prices in them."""
    return lambda name: (capacity[name], price_of(capacity[name])) if name in capacity else None


def resolve_tier(
    index: int, tier: JobTier, capacity: CapacityTier, price: Price, known: Lookup = lambda _: None
) -> ResolvedTier:
    """One tier of a job with its CapacityTier. `known` finds those of its groups; an unknown one has no requirements.

    Raises:
        InvalidSpec: a CapacityTier contradicts itself, or that of a group is in another cluster.
    """
    spec = capacity.spec
    workers = providers.placement(spec)
    with_head = spec.apply_to is ApplyTo.WORKERS_AND_HEAD
    return ResolvedTier(
        name=tier.name,
        index=index,
        capacity_tier=capacity.metadata.name,
        capacity_type=spec.capacity_type,
        provider=spec.provider,
        cluster=spec.cluster,
        region=spec.region or "",
        workers=workers,
        head=workers if with_head else providers.head_placement(spec),
        notice=providers.NOTICE[spec.provider] if spec.notice is None else spec.notice,
        price=price,
        overrides=tier.overrides,
        queue=tier.queue or "",
        head_per_hour=(spec.price.head_per_hour if spec.price else None) or 0.0,
        egress_per_gib=spec.egress_per_gi_b or 0.0,
        groups={
            name: _group(known(group.capacity_tier), spec.cluster, ("spec", "tiers", index, "groups", name))
            for name, group in tier.groups.items()
        },
    )


def _group(found: tuple[CapacityTier, Price] | None, cluster: str, at: Path) -> GroupCapacity:
    if found is None:
        return GroupCapacity(Placement(), None)
    capacity, price = found
    spec = capacity.spec
    if spec.cluster != cluster:
        message = (
            f'"{capacity.metadata.name}" is in cluster "{spec.cluster}", but the tier is in "{cluster}": '
            "name a CapacityTier of the same cluster"
        )
        raise InvalidSpec(message, path=dotted((*at, "capacityTier")))
    return GroupCapacity(providers.placement(spec), price.per_node_hour if price.known else None)


def price_of(capacity: CapacityTier) -> Price:
    """The price in the CapacityTier; unknown if it must be looked up or is absent."""
    given = capacity.spec.price
    if given is None or given.per_node_hour is None:
        return Price(on_demand=(given.on_demand_per_node_hour or 0.0) if given else 0.0, known=False)
    return Price.listed(given.per_node_hour, given.on_demand_per_node_hour)
