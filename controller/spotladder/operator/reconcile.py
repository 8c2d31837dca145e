"""One pass over one TieredJob: load → decide → apply, then one status write, then Events.

1. `core.decide` decides. Here is nothing but what Kubernetes asks for: names, preconditions, finalizers, conditions.
2. Actions act on the state that an earlier pass persisted; the new one is persisted before anything acts on it.
3. The status is written once, with the version that was read as its precondition, and not at all when nothing changed.
   A conflict means that somebody wrote meanwhile: the pass is repeated, it is no error.
4. Events and metrics speak only of what was persisted.
5. A job that is being deleted is suspended first (it commits and stops), then removed, then let go of. It does not wait
   for ever: the annotation `spotladder.io/force-delete` lets it go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spotladder.api.capacitytier import ApplyTo
from spotladder.api.status import TieredJobStatus
from spotladder.api.tieredjob import TieredJob
from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import ClusterUnreachable, Conflict, NotFound
from spotladder.core.acting import REPEAT
from spotladder.core.lifecycle import decide
from spotladder.core.model import TERMINAL, Decision, Delete, Drain, Exit, Finish, JobState, Launch, Seconds, Stage
from spotladder.core.policies import Policy
from spotladder.core.policies.registry import by_name
from spotladder.errors import InvalidSpec, SpotladderError, StoreUnavailable
from spotladder.operator import conditions, load, status
from spotladder.operator.apply import Applier
from spotladder.operator.cache import Cache, Scoped
from spotladder.operator.conditions import Claim, ConditionType, Problem, Trouble
from spotladder.operator.credentials import FRESH, CredentialsMissing, SecretReader
from spotladder.operator.failpoints import Point, reach
from spotladder.operator.inventory import Inventory, JobKey
from spotladder.operator.limits import Limits
from spotladder.operator.load import Loaded
from spotladder.operator.logs import Logs, Reading
from spotladder.operator.persist import Persistence, Witness
from spotladder.operator.prices import Prices
from spotladder.operator.records import FORCE_DELETE, CapacityRecord, JobRecord
from spotladder.workloads import review
from spotladder.workloads.kinds import workload_of

RETRY_END: Seconds = 60.0
"""A bucket that does not take the outcome is asked again after this long."""

CLEANUP_IS_LATE: Seconds = 120.0
"""After so long a deleted job says what it waits for."""


@dataclass(slots=True)
class _Memory:
    """What this process remembers of a job between passes. Losing it costs nothing but repeated work.

    `state` is newer than the persisted one by nothing but time; it goes on from `persisted`. `blocked` is why the last
    launch was refused. `capacity` are the tiers as last seen. `contradictions` is what is wrong with the job on these
    tiers, as of the versions `reviewed`.
    """

    persisted: str = ""
    state: JobState | None = None
    blocked: Problem | None = None
    capacity: dict[str, CapacityRecord] = field(default_factory=dict)
    reviewed: tuple[object, ...] = ()
    contradictions: str = ""


class Reconciler:
    """Call it with a job's key; the answer is after how many seconds to call it again at the latest."""

    def __init__(
        self,
        *,
        jobs: Scoped[JobRecord],
        capacity: Cache[CapacityRecord],
        inventory: Inventory,
        applier: Applier,
        persistence: Persistence,
        logs: Logs,
        secrets: SecretReader,
        prices: Prices,
        witness: Witness,
        clock: Clock,
        clusters: frozenset[str],
        settle: Seconds,
    ) -> None:
        self._jobs = jobs
        self._capacity = capacity
        self._inventory = inventory
        self._applier = applier
        self._persistence = persistence
        self._logs = logs
        self._secrets = secrets
        self._prices = prices
        self._witness = witness
        self._clock = clock
        self._clusters = clusters
        self._settle = settle
        self._specs = load.Specs()
        self._policies: dict[str, Policy] = {}
        self._memory: dict[JobKey, _Memory] = {}
        self._limits = Limits(jobs, size=self._size, launched=lambda key: bool(inventory.attempts(key)))

    async def __call__(self, key: JobKey) -> Seconds | None:
        """One pass. Raises ClusterUnreachable, Throttled, …: try again later."""
        namespace, name = key
        record = self._jobs.get(name, namespace)
        if record is None or (record.deleting and not record.finalized):
            self._forget(key)
            return None
        try:
            return await self._pass(record)
        except Conflict:
            return 0.2  # the cache is about to hear of what we did not know
        except NotFound as error:
            if self._jobs.get(name, namespace) is None:
                return None
            raise ClusterUnreachable(str(error)) from None

    # --- load → decide → apply --------------------------------------------------------------------------------------

    async def _pass(self, record: JobRecord) -> Seconds | None:
        memory = self._memory.setdefault(record.key, _Memory())
        held = status.held(record)
        try:
            state = status.state_of(held)
        except InvalidSpec as error:
            return await self._hold(record, held, Problem(Trouble.STATE_UNREADABLE, str(error)))
        if memory.persisted == held.state and memory.state is not None:
            state = memory.state
        if not record.finalized:
            record = await self._persistence.finalize(record)
        try:
            job = self._specs.of(record)
            policy = self._policy(job.spec.policy.name)
        except InvalidSpec as error:
            return await self._hold(record, held, Problem(Trouble.INVALID_SPEC, "; ".join(str(error).splitlines())))
        tiers = self._tiers(record, job, state, memory)
        reading = await self._reading(record, job, state)
        problem = self._refusal(record, state, tiers, reading)
        if problem is None and state.stage is Stage.IDLE and not load.started(state) and not record.deleting:
            problem = self._contradiction(record, job, tiers, memory)
        if problem is not None:
            return await self._hold(record, held, problem)
        if problem := self._unseen(record, job):
            return await self._hold(record, held, problem, valid=True)
        if state.stage is Stage.IDLE and not reading.known and not record.deleting:
            return None  # the first look at the log is under way, and wakes this job
        loaded = self._load(record, job, held=held, state=state, tiers=tiers, reading=reading, memory=memory)
        reach(Point.AFTER_LOAD)
        if waits := self._last_commit_awaited(loaded):
            return waits
        decision = decide(loaded.spec, loaded.state, loaded.seen, self._clock.now(), policy)
        reach(Point.AFTER_DECIDE)
        claims = await self._act(loaded, decision, memory)
        problems = self._problems(loaded, reading, tiers, memory)
        stands = await self._persistence.decided(loaded, decision, reading, problems, claims)
        memory.persisted, memory.state = stands.state, decision.state
        self._witness.saw(record.key, decision.state)
        if record.deleting and self._may_go(loaded, decision):
            await self._release(record)
            return None
        wake = self._wake(decision, status.state_of(stands), claims)
        if tiers.full:  # who makes room wakes nobody
            wake = REPEAT if wake is None else min(wake, REPEAT)
        if reading.unreadable:  # a Secret that comes wakes nobody
            return FRESH if wake is None else min(wake, FRESH)
        return wake

    def _policy(self, name: str) -> Policy:
        if name not in self._policies:
            self._policies[name] = by_name(name)
        return self._policies[name]

    def _tiers(self, record: JobRecord, job: TieredJob, state: JobState, memory: _Memory) -> load.Tiers:
        for tier in job.spec.tiers:
            if named := self._capacity.get(tier.capacity_tier):
                memory.capacity[tier.capacity_tier] = named
        found = load.resolve(job, self._capacity.get, memory.capacity.get, self._clusters, self._prices.of)
        return replace(found, full=self._full(record, job, state, memory))

    def _full(self, record: JobRecord, job: TieredJob, state: JobState, memory: _Memory) -> dict[str, str]:
        """Tiers that have no room for this job now, and why. What it holds already, it holds."""
        if state.stage not in (Stage.IDLE, Stage.STARTING) or (state.attempt and state.attempt.seen):
            return {}
        found = ((tier.name, memory.capacity.get(tier.capacity_tier)) for tier in job.spec.tiers)
        full = {name: self._limits.full(capacity, record) for name, capacity in found if capacity is not None}
        return {name: why for name, why in full.items() if why}

    def _size(self, record: JobRecord, capacity: CapacityRecord) -> int:
        """How many nodes of that tier a job needs; none when nobody can tell."""
        try:
            job = self._specs.of(record)
        except InvalidSpec:
            return 0
        with_head = capacity.model is not None and capacity.model.spec.apply_to is ApplyTo.WORKERS_AND_HEAD
        return workload_of(job).workers(job) + with_head

    async def _reading(self, record: JobRecord, job: TieredJob, state: JobState) -> Reading:
        if state.stage in TERMINAL or (record.deleting and state.attempt is None):
            self._logs.leave(record.key)
            return Reading(True, state.progress)
        try:
            environment = await self._environment(record, job)
        except CredentialsMissing as error:
            self._logs.leave(record.key)
            return Reading(True, state.progress, unreadable=str(error))
        return self._logs.follow(record.key, load.address_of(record, job, environment), load.reads_every(job))

    async def _environment(self, record: JobRecord, job: TieredJob) -> Mapping[str, str]:
        credentials = job.spec.checkpoints.credentials
        return {} if credentials is None else await self._secrets.of(record.namespace, credentials.secret_name)

    def _load(
        self,
        record: JobRecord,
        job: TieredJob,
        *,
        held: TieredJobStatus,
        state: JobState,
        tiers: load.Tiers,
        reading: Reading,
        memory: _Memory,
    ) -> Loaded:
        workload = workload_of(job)
        seen, objects = load.observe(
            record,
            state,
            workload=workload,
            inventory=self._inventory,
            tiers=tiers,
            reading=reading,
            blocked=memory.blocked.message if memory.blocked else "",
        )
        return Loaded(
            record=record,
            job=job,
            workload=workload,
            tiers=tiers.resolved,
            clusters={name: tier.cluster for name, tier in tiers.resolved.items()},
            spec=load.spec_of(record, job, workload=workload, tiers=tiers, reading=reading, settle=self._settle),
            status=held,
            state=state,
            seen=seen,
            objects=objects,
        )

    def _last_commit_awaited(self, loaded: Loaded) -> Seconds:
        """For how long at most to wait for a look at the log: a program's end is judged with its last commit.

        What the operator gave up on has no last commit to wait for, and its successor reads the log anyway.
        """
        live = loaded.state.attempt
        seen = loaded.seen.attempt(live.number) if live else None
        if seen is None or seen.exit in (None, Exit.LOST):
            return 0.0
        return self._logs.behind(loaded.record.key, (seen.number, seen.exit))

    async def _act(self, loaded: Loaded, decision: Decision, memory: _Memory) -> dict[ConditionType, Claim]:
        claims: dict[ConditionType, Claim] = {}
        if decision.state.attempt is None or decision.state.attempt.seen:
            memory.blocked = None
        for action in decision.actions:
            match action:
                case Launch():
                    if action.tier in self._full(loaded.record, loaded.job, loaded.state, memory):
                        continue  # another job was launched in the meantime
                    with self._limits.launching(loaded.record):
                        memory.blocked = await self._applier.launch(loaded, action)
                case Drain():
                    await self._applier.drain(loaded, action)
                    self._logs.look(loaded.record.key)
                case Delete():
                    await self._applier.delete(loaded, action)
                case Finish():
                    if claim := await self._finish(loaded, action):
                        claims[ConditionType.CHECKPOINTING] = claim
        await self._applier.let_go(loaded)
        return claims

    async def _finish(self, loaded: Loaded, action: Finish) -> Claim | None:
        """Note the outcome in the log, once. None: it is noted already."""
        if conditions.is_ended(loaded.status.conditions):
            return None
        reach(Point.BEFORE_FINISH)
        outcome = "Succeeded" if action.succeeded else "Failed"
        try:
            environment = await self._environment(loaded.record, loaded.job)
            address = load.address_of(loaded.record, loaded.job, environment)
            await self._logs.end(address, outcome, loaded.state.last_number, str(action.reason))
        except StoreRefused as error:
            return Claim("False", conditions.END_REFUSED, str(error))
        except (StoreUnavailable, CredentialsMissing, ClusterUnreachable, TimeoutError) as error:
            return Claim("Unknown", Trouble.CHECKPOINTS_UNREADABLE, f"the outcome is not noted yet: {error}")
        except SpotladderError as error:
            return Claim("False", conditions.END_REFUSED, str(error))
        reach(Point.AFTER_FINISH)
        return Claim("False", conditions.ENDED, f"step {loaded.state.progress.step} is the last commit")

    def _wake(self, decision: Decision, persisted: JobState, claims: dict[ConditionType, Claim]) -> Seconds | None:
        now = self._clock.now()
        times = [] if decision.wake_at is None else [max(0.0, decision.wake_at - now)]
        if (cost := status.cost_written_in(persisted, now)) is not None:
            times.append(cost)
        if any(claim.status == "Unknown" for claim in claims.values()):
            times.append(RETRY_END)
        return min(times, default=None)

    # --- what stands in the way -------------------------------------------------------------------------------------

    def _refusal(self, record: JobRecord, state: JobState, tiers: load.Tiers, reading: Reading) -> Problem | None:
        """Why nothing is begun. What is under way is never held up by it."""
        if record.deleting or state.stage is not Stage.IDLE:
            return None
        if reading.foreign:
            return Problem(Trouble.CHECKPOINTS_IN_USE, reading.foreign)
        if reading.corrupt:
            return Problem(Trouble.CHECKPOINTS_CORRUPT, reading.corrupt)
        if load.started(state):
            return None
        if taken := self._folder_taken(record):
            return taken
        missing = list(tiers.missing.values())
        if missing:
            return Problem(missing[0].trouble, "; ".join(problem.message for problem in missing))
        return None

    def _contradiction(self, record: JobRecord, job: TieredJob, tiers: load.Tiers, memory: _Memory) -> Problem | None:
        """What is wrong with the job on any of its tiers, also on those that it has not come to. It is looked at again
        when the job or a CapacityTier has changed."""
        used = (memory.capacity.get(tier.capacity_tier) for tier in job.spec.tiers)
        versions = (record.generation, *((tier.uid, tier.generation) for tier in used if tier is not None))
        if memory.reviewed != versions:
            found = review.problems(job, tiers.resolved.values())
            memory.reviewed, memory.contradictions = versions, "; ".join(map(str, found))
        return Problem(Trouble.INVALID_SPEC, memory.contradictions) if memory.contradictions else None

    def _folder_taken(self, record: JobRecord) -> Problem | None:
        """Two jobs in one folder of a bucket would fence each other for ever: the older one has it."""
        first = min(self._jobs.of(record.folder), key=lambda entry: (entry.created_at, entry.uid), default=record)
        if first.uid == record.uid:
            return None
        return Problem(
            Trouble.CHECKPOINTS_IN_USE,
            f"spec.checkpoints.uri: {record.folder} is TieredJob {first.namespace}/{first.name}'s: "
            "use another uri or another name",
        )

    def _unseen(self, record: JobRecord, job: TieredJob) -> Problem | None:
        """What cannot be seen cannot be decided on. A kind that is not installed has no objects to see."""
        for entry in self._inventory.unreadable(workload_of(job).watched, record.namespace):
            if not entry.absent:
                return Problem(Trouble.CANNOT_WATCH, f"{entry.kind.plural} cannot be read: {entry.why}")
        return None

    def _problems(self, loaded: Loaded, reading: Reading, tiers: load.Tiers, memory: _Memory) -> list[Problem]:
        problems = [] if memory.blocked is None else [memory.blocked]
        problems += load.problems_of(loaded.state, loaded.seen, reading, tiers)
        if loaded.state.stage not in TERMINAL:
            more = (self._contradiction(loaded.record, loaded.job, tiers, memory), load.unpriced(loaded.spec))
            problems += [problem for problem in more if problem is not None and problem not in problems]
        deleted_at = loaded.record.deleted_at
        if deleted_at is not None and self._clock.now() - deleted_at > CLEANUP_IS_LATE and loaded.seen.attempts:
            left = ", ".join(str(attempt.number) for attempt in loaded.seen.attempts)
            message = (
                f'attempt {left} is not gone; annotate the TieredJob {FORCE_DELETE}="true" to let it go regardless'
            )
            problems.append(Problem(Trouble.CLEANUP_BLOCKED, message))
        return problems

    async def _hold(
        self, record: JobRecord, held: TieredJobStatus, problem: Problem, *, valid: bool = False
    ) -> Seconds | None:
        if record.deleting and (record.forced or not valid):
            return await self._dismantle(record)
        await self._persistence.held(record, held, problem, valid=valid)
        return 5.0 if valid else None

    # --- the end of a TieredJob -------------------------------------------------------------------------------------

    def _may_go(self, loaded: Loaded, decision: Decision) -> bool:
        if loaded.record.forced:
            return True
        over = decision.state.stage in (Stage.SUSPENDED, *TERMINAL) and decision.state.attempt is None
        return over and not decision.moves and not loaded.objects

    async def _dismantle(self, record: JobRecord) -> Seconds | None:
        """A job that cannot be understood is being deleted: nothing can be asked to commit; remove what there is."""
        if self._inventory.attempts(record.key) and not record.forced:
            await self._applier.remove_all(record)
            return 2.0
        await self._release(record)
        return None

    async def _release(self, record: JobRecord) -> None:
        reach(Point.BEFORE_RELEASE)
        await self._persistence.release(record)
        self._forget(record.key)

    def _forget(self, key: JobKey) -> None:
        self._memory.pop(key, None)
        self._logs.leave(key)
        self._witness.forgotten(key)
