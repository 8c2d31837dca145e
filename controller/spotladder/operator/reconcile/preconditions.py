"""The preconditions of a job: those required for the launch of an attempt, and those whose failure degrades a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spotladder.api.stored import FORCE_DELETE, CapacityRecord, JobRecord
from spotladder.api.tenancy import TenantRule
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.cache import Scoped
from spotladder.clusters.clock import Clock
from spotladder.core.model import TERMINAL, JobState, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded, Tiers
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import load
from spotladder.workloads import review
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.tenancy import Refusal, refusals

CLEANUP_IS_LATE: Seconds = 120.0
"""Seconds after which a job that is being deleted reports what it waits for."""

UNBLAMED = frozenset({Reason.STORE_UNAVAILABLE, ConditionReason.CHECKPOINTS_GONE})
"""Reasons that keep a job with a valid spec from starting."""

Capacity = Mapping[str, CapacityRecord]
"""The last observed CapacityTiers of a job by name."""


@dataclass(slots=True)
class Preconditions:
    """Caches the problems of each job on its tiers; a lost entry is computed again."""

    jobs: Scoped[JobRecord]
    clusters: Clusters
    clock: Clock
    rules: Sequence[TenantRule]
    _reviewed: dict[JobKey, tuple[tuple[object, ...], Diagnosis | None]] = field(default_factory=dict)

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._reviewed.pop(key, None)

    def to_begin(
        self,
        record: JobRecord,
        job: TieredJob,
        state: JobState,
        *,
        tiers: Tiers,
        reading: Reading,
        known: Capacity,
    ) -> Diagnosis | None:
        """Why no attempt is started. A running attempt is not affected."""
        if record.deleting or state.stage is not Stage.IDLE:
            return None
        if reading.refused is not None:
            return reading.refused
        if state.last_number > 0:  # An attempt was planned before.
            return self.to_launch(state, reading)
        if taken := self._folder_taken(record):
            return taken
        missing = list(tiers.missing.values())
        if missing:
            return Diagnosis(missing[0].reason, "; ".join(problem.message for problem in missing))
        if problem := self._contradiction(record, job, tiers, known) or self.to_launch(state, reading):
            return problem
        return Diagnosis(ConditionReason.CHECKPOINTS_NOT_ALLOWED, reading.unreadable) if reading.denied else None

    @staticmethod
    def to_launch(state: JobState, reading: Reading) -> Diagnosis | None:
        """Why no attempt is launched because of the commit log."""
        if reading.gone:
            advice = "mount or restore the folder, or delete the job and submit it again to start at step 0"
            return Diagnosis(ConditionReason.CHECKPOINTS_GONE, f"spec.checkpoints.uri: {reading.gone}: {advice}")
        if reading.away_since is not None and state.last_number <= 1 and not state.progress.attempt:
            why = f"{reading.unreadable}; the first attempt waits until the owner of the log is known"
            return Diagnosis(Reason.STORE_UNAVAILABLE, why)
        return None

    def to_see(self, record: JobRecord, job: TieredJob) -> Diagnosis | None:
        """Without access to the objects of these kinds no decision is possible. A kind that is not installed has no
        objects."""
        why = self.clusters.home.unreadable(workload_of(job).records, record.namespace)
        return Diagnosis(ConditionReason.CANNOT_WATCH, why) if why else None

    def of_started_job(self, loaded: Loaded, blocked: Diagnosis | None) -> list[Diagnosis]:
        """The problems of a running job. `blocked` is why its last launch was refused."""
        problems = [] if blocked is None else [blocked]
        problems += load.problems_of(loaded, self.clusters)
        if loaded.state.stage not in TERMINAL:
            more = (
                self._contradiction(loaded.record, loaded.job, loaded.tiers, loaded.capacity),
                load.unpriced(loaded.spec),
                load.unbounded_overlap(loaded.spec),
                load.too_short_notice(loaded.spec, loaded.state),
            )
            problems += [problem for problem in more if problem is not None and problem not in problems]
        cleanup = self._cleanup(loaded)
        return problems if cleanup is None else [cleanup, *problems]

    def _cleanup(self, loaded: Loaded) -> Diagnosis | None:
        """What a job that is being deleted waits for: reported at once if a cluster does not answer, otherwise after a
        delay."""
        deleted_at, found = loaded.record.deleted_at, sorted(loaded.found.attempts.items())
        if deleted_at is None:
            return None
        away = [
            f"attempt {number} ({left.cluster.name}) is not gone: its cluster cannot be reached"
            for number, left in found
            if left.cluster.problem
        ]
        late = self.clock.now() - deleted_at > CLEANUP_IS_LATE
        slow = [
            f"attempt {number} ({left.cluster.name}) is not gone"
            for number, left in found
            if late and not left.cluster.problem
        ]
        if not away and not slow:
            return None
        advice = f'annotate the TieredJob {FORCE_DELETE}="true" (spotladder delete --force) to remove it regardless'
        return Diagnosis(ConditionReason.CLEANUP_BLOCKED, f"{', '.join([*away, *slow])}; {advice}")

    def _contradiction(self, record: JobRecord, job: TieredJob, tiers: Tiers, known: Capacity) -> Diagnosis | None:
        """The problems of the job on all of its tiers, including those that it has not used yet: it contradicts them,
        or its namespace may not use them. Computed again after a change of the job or a CapacityTier."""
        now = versions(record, job, known)
        reviewed, wrong = self._reviewed.get(record.key, ((), None))
        if reviewed != now:
            placed = tiers.resolved.values()
            if problems := review.problems(job, placed):
                wrong = Diagnosis(ConditionReason.INVALID_SPEC, "; ".join(map(str, problems)))
            else:
                wrong = not_allowed(refusals(self.rules, job, placed))
            self._reviewed[record.key] = now, wrong
        return wrong

    def _folder_taken(self, record: JobRecord) -> Diagnosis | None:
        """Two jobs in one folder of a bucket would fence each other endlessly: the older job keeps it."""
        first = min(self.jobs.of(record.folder), key=lambda entry: (entry.created_at, entry.uid), default=record)
        if first.uid == record.uid:
            return None
        # Users of this namespace must not learn the names of jobs in other namespaces.
        same_namespace = first.namespace == record.namespace
        owner = f"TieredJob {first.name}" if same_namespace else "a TieredJob of another namespace"
        return Diagnosis(
            ConditionReason.CHECKPOINTS_IN_USE,
            f"spec.checkpoints.uri: {record.folder} is used by {owner}: use another uri or another name",
        )


def not_allowed(refused: Sequence[Refusal]) -> Diagnosis | None:
    """The diagnosis of a job that its namespace may not run."""
    return Diagnosis(ConditionReason.NOT_ALLOWED, "; ".join(map(str, refused))) if refused else None


def versions(record: JobRecord, job: TieredJob, known: Capacity) -> tuple[object, ...]:
    """The input of an attempt's rendering, except prices: the job's spec, and its last observed tiers."""
    used = map(known.get, job.spec.capacity_names)
    return record.uid, record.generation, *((tier.uid, tier.generation) for tier in used if tier is not None)
