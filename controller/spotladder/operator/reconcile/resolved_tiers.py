"""The tiers of each job with their capacity, and the job's spec for the core. They are resolved again only after a
change of their input: the spec, the CapacityTiers, the prices, the known clusters. A job is reconciled several times
for each fallback, and nearly always with the same input."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.cache import Cache
from spotladder.core.model import JobSpec, Price
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Tiers
from spotladder.operator.reconcile import load
from spotladder.operator.reconcile.specs import PARSED_SPECS_LIMIT
from spotladder.workloads.core_spec import core_spec


@dataclass(slots=True)
class _Resolved:
    """The tiers of one job, resolved from this version of their input. `specs` has the spec of the job while it is
    being deleted (True) and before."""

    version: tuple[object, ...] = ()
    tiers: Tiers = field(default_factory=lambda: Tiers({}, {}))
    specs: dict[bool, JobSpec] = field(default_factory=dict)


class ResolvedTiers:
    """Keeps as many jobs as `Specs` keeps parsed specs, the most recently used."""

    def __init__(
        self,
        capacity: Cache[CapacityRecord],
        *,
        clusters: frozenset[str],
        price: Callable[[CapacityTier], Price],
    ) -> None:
        self._capacity = capacity
        self._clusters = clusters
        self._price = price
        self._jobs: OrderedDict[JobKey, _Resolved] = OrderedDict()

    def of(self, record: JobRecord, job: TieredJob, last_known: Mapping[str, CapacityRecord]) -> Tiers:
        """The tiers of the job. `last_known` are its CapacityTiers as last observed."""
        version = record.uid, record.generation, *self._versions(job, last_known)
        found = self._jobs.setdefault(record.key, _Resolved())
        if found.version != version:
            tiers = load.resolve(job, self._capacity.get, last_known.get, self._clusters, self._price)
            found.version, found.tiers, found.specs = version, tiers, {}
        self._jobs.move_to_end(record.key)
        if len(self._jobs) > PARSED_SPECS_LIMIT:
            self._jobs.popitem(last=False)
        return found.tiers

    def spec(self, record: JobRecord, job: TieredJob, tiers: Tiers) -> JobSpec:
        """The job's spec for the core, with the tiers that `of` has returned."""
        found = self._jobs.get(record.key)
        if found is None or found.tiers.resolved is not tiers.resolved:  # Another job or version took the place.
            return core_spec(record, job, tiers.resolved)
        if record.deleting not in found.specs:
            found.specs[record.deleting] = core_spec(record, job, tiers.resolved)
        return found.specs[record.deleting]

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._jobs.pop(key, None)

    def _versions(self, job: TieredJob, last_known: Mapping[str, CapacityRecord]) -> list[object]:
        """Of each CapacityTier of the job, its version, whether it exists, and its price, which may be looked up."""
        versions: list[object] = []
        for name in job.spec.capacity_names:
            current = self._capacity.get(name)
            known = current or last_known.get(name)
            if known is not None:
                price = self._price(known.model) if known.model is not None else None
                versions += [known.uid, known.resource_version, price]
            versions.append(current is not None)
        return versions
