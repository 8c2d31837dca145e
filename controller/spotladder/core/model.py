"""The records the decision core works on. All frozen; every time is an `Instant`, every length a `Seconds`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from spotladder.core.contract import ExitCode
from spotladder.core.reasons import Cause, Reason

Instant = float
"""Seconds since the Unix epoch, as the caller's clock says."""

Seconds = float

WIRE_NAME = "wire_name"
"""Metadata of a dataclass field: its name in stored states, where that is not the field's own name."""

FOR_EVER = -1
"""`max_failures` of a tier that is never left because of lost pods."""


class CapacityType(StrEnum):
    """How capacity is bought; Karpenter's label values."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"


class Handover(StrEnum):
    """When the next attempt may start while the last one is not confirmed gone."""

    FENCED = "Fenced"  # at once: the commit log fences the old one
    WHEN_GONE = "WhenGone"  # never: the program does not use the commit log


class FailureUnit(StrEnum):
    """What counts as one failure."""

    POD = "Pod"  # each lost pod
    INTERRUPTION = "Interruption"  # all losses until the job is whole again


class Exhausted(StrEnum):
    """What happens after the last tier."""

    FAIL = "Fail"
    RESTART = "Restart"  # begin again at the first tier, with fresh counts
    WAIT = "Wait"  # hold nothing for the longest provisionTimeout, then as Restart


class UpdateStrategy(StrEnum):
    """When a change of the spec that changes pods (image, workers, resources, …) takes effect on a running attempt."""

    NOW = "Now"  # commit, stop, and start the next attempt on the same tier
    AT_NEXT_ATTEMPT = "AtNextAttempt"  # whenever the next attempt starts for another reason


class Impediment(StrEnum):
    """Why a job is not training. `impediment.RULES` says what shows each one and what follows from it."""

    CAPACITY = "Capacity"  # pods have no node
    QUOTA = "Quota"  # a quota of the cluster or a limit of the CapacityTier
    CONTACT = "Contact"  # nodes or a cluster cannot be heard from
    STORE = "Store"  # the checkpoint store does not answer
    RIGHTS = "Rights"  # credentials are refused
    OPERATOR = "Operator"  # KubeRay, JobSet or the scheduler does not act
    IMAGE = "Image"  # an image cannot be pulled, or a container cannot be made from its template
    START = "Start"  # every pod has its node and image and is not ready yet
    PROGRAM = "Program"  # the program, or a container of the attempt, ended by its own fault
    MAINTENANCE = "Maintenance"  # an administrator drains nodes of the attempt


class Blocker(StrEnum):
    """What refuses a pod or a container, where that is not capacity."""

    QUOTA = "Quota"  # a ResourceQuota, or a quota of the cloud
    RIGHTS = "Rights"  # RBAC
    IMAGE = "Image"  # the registry, or the image's name
    TEMPLATE = "Template"  # a missing Secret, ConfigMap or volume, an admission webhook, an invalid field


class OnInsufficientCapacity(StrEnum):
    """What a provisioner's explicit refusal means."""

    WAIT = "wait"  # nothing: provisionTimeout decides
    FALLBACK = "fallback"  # the tier is spent at once


@dataclass(frozen=True, slots=True)
class Price:
    """USD per node and hour. `on_demand` is what the same node costs on demand, the yardstick for savings. One that is
    not `known` is no price of 0: what is held meanwhile is counted, and what it costs is not claimed to be known."""

    per_node_hour: float = 0.0
    on_demand: float = 0.0
    known: bool = True


@dataclass(frozen=True, slots=True)
class Tier:
    """One entry of a job's ordered tiers. `notice` is how long before a reclaim its cloud says so; 0: not known.
    `template` is a digest of the part of the spec that the pods of an attempt on this tier are made from; "" where
    pods never change (a local run)."""

    name: str
    max_failures: int = 0
    provision_timeout: Seconds = 600.0
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    price: Price = Price()
    on_insufficient_capacity: OnInsufficientCapacity = OnInsufficientCapacity.WAIT
    notice: Seconds = 0.0
    template: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What the user asked for, resolved: tiers with their prices, all defaults filled in.

    `workers` is the number of worker pods of an attempt that is planned now. `submitted_at` is when the job was
    created; `max_duration` counts from there. `budget` is in USD. `settle` is how long after a program's failure the
    loss of a pod may still come to light: until then the failure is not called the program's own.
    `contact_timeout` is how long pods on silent nodes are not counted as lost while the loss of contact is more likely
    than the loss of the nodes. `start_timeout` is how long an attempt may take to be ready once every pod has its node
    and its image.
    """

    tiers: tuple[Tier, ...]
    workers: int = 1
    submitted_at: Instant = 0.0
    recovery_timeout: Seconds = 90.0
    stall_timeout: Seconds = 600.0
    grace: Seconds = 90.0
    settle: Seconds = 0.0
    contact_timeout: Seconds = 100.0
    start_timeout: Seconds = 1800.0
    handover: Handover = Handover.FENCED
    update_strategy: UpdateStrategy = UpdateStrategy.NOW
    failure_unit: FailureUnit = FailureUnit.POD
    backoff_limit: int | None = None
    application_failures: int = 0
    exhausted: Exhausted = Exhausted.FAIL
    deadline: Instant | None = None
    max_duration: Seconds | None = None
    budget: float | None = None
    suspend: bool = False

    def tier(self, name: str) -> Tier | None:
        """The tier of that name, if the spec still has it."""
        return next((tier for tier in self.tiers if tier.name == name), None)


# --- what is seen ---------------------------------------------------------------------------------------------------


class PodRole(StrEnum):
    HEAD = "head"
    WORKER = "worker"


class PodPhase(StrEnum):
    PENDING = "Pending"  # wanted, not running
    RUNNING = "Running"  # its process runs
    LOST = "Lost"  # failed, killed, terminating, or its node is gone


@dataclass(frozen=True, slots=True)
class PodSeen:
    """One pod (or local node process) of an attempt.

    `uid` is its identity: a pod is counted as lost once, however often it is seen. `ready` means that it takes part
    in the job. `noticed` means that its node is about to be reclaimed; since when and until when, where it is known.
    `unschedulable` means Pending for lack of capacity. `cause` is only of interest when `phase` is LOST or `noticed` is
    set.

    Of a pending pod: `scheduled` means that it has a node, `image_pulled` that the images of the containers that run
    first are on that node, `waiting_reason` and `waiting_message` are the words of the kubelet, the scheduler or the
    autoscaler. Of a lost pod: `silent` means that only the silence of its node says so, `exit_code` is that of the
    container that ended it and `exit_message` the last line of its output, where they are known.
    """

    uid: str
    role: PodRole = PodRole.WORKER
    phase: PodPhase = PodPhase.RUNNING
    ready: bool = True
    noticed: bool = False
    noticed_at: Instant | None = None
    notice_ends_at: Instant | None = None
    unschedulable: bool = False
    cause: Cause = Cause.UNKNOWN
    node: str = ""
    name: str = ""
    scheduled: bool = False
    image_pulled: bool = False
    waiting_reason: str = ""
    waiting_message: str = ""
    silent: bool = False
    exit_code: int | None = None
    exit_message: str = ""

    @property
    def called(self) -> str:
        """What people call it: its name where it has one."""
        return self.name or self.uid

    @property
    def placed(self) -> bool:
        """Whether it runs, or has all that capacity can give it: a node with its image."""
        return self.phase is PodPhase.RUNNING or (self.scheduled and self.image_pulled)


class Exit(StrEnum):
    """How the program of an attempt ended, as far as it matters for what comes next."""

    SUCCEEDED = "Succeeded"  # exit code 0
    INTERRUPTED = "Interrupted"  # exit code 75: committed and stopped, to be resumed
    FENCED = "Fenced"  # exit code 76: a newer writer owns the log
    REFUSED = "Refused"  # exit code 77: the checkpoint store refuses the credentials
    FAILED = "Failed"  # any other exit code
    LOST = "Lost"  # the operator gave up on it (head gone, status unknown, stopped by hand): not the program's word

    @classmethod
    def of_code(cls, code: int) -> Exit:
        """The meaning of the exit code of a program that ended by itself."""
        return _EXITS.get(code, cls.FAILED)


_EXITS: Mapping[int, Exit] = MappingProxyType(
    {
        0: Exit.SUCCEEDED,
        ExitCode.INTERRUPTED: Exit.INTERRUPTED,
        ExitCode.FENCED: Exit.FENCED,
        ExitCode.ACCESS_DENIED: Exit.REFUSED,
    }
)


@dataclass(frozen=True, slots=True)
class AttemptSeen:
    """One attempt as its backend sees it now.

    `reachable=False`: its cluster cannot be asked; `pods` then is what was last known or empty. `refused`: the
    provisioner said that there is no capacity. `blocked`: why it cannot start, when that is not capacity.
    `blocked_by` is who refuses. `moved_at`: when the program was last seen to progress inside this attempt, by the
    observer's clock; None when the backend cannot know.

    `store_unavailable_since`: since when the program cannot reach the checkpoint store, by the observer's clock;
    `store_message` is what the store or the network answered. `rights_refused`: who refused which credentials.
    `operator_silent`: which operator has not acted on which object. "" and None: not so, or not known.

    `nodes` is how many nodes the pods are on and `silent_nodes` how many of these have stopped sending heartbeats,
    also those whose Ready condition does not say so yet; `cluster_nodes` and `cluster_silent_nodes` are the same of
    the whole cluster. `contact_restored_at`: when the watch of the cluster was last restored after an interruption.
    """

    number: int
    pods: tuple[PodSeen, ...] = ()
    exit: Exit | None = None
    message: str = ""
    reachable: bool = True
    refused: bool = False
    blocked: str = ""
    blocked_by: Blocker = Blocker.TEMPLATE
    moved_at: Instant | None = None
    store_unavailable_since: Instant | None = None
    store_message: str = ""
    rights_refused: str = ""
    operator_silent: str = ""
    nodes: int = 0
    silent_nodes: int = 0
    cluster_nodes: int = 0
    cluster_silent_nodes: int = 0
    contact_restored_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest commit of the log, and the newest attempt that the log has seen start. `skipped`: which commits the
    attempt of the newest commit could not resume from, and why."""

    step: int = 0
    total: int = 0
    committed_at: Instant | None = None
    attempt: int = 0
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot of everything that exists of one job, including the effects of all earlier calls of its backend.

    `revision` orders snapshots: one with a smaller revision than the last is ignored. `unavailable` maps the name of
    a tier that cannot be used now (its cluster is unreachable, its CapacityTier is gone, its limit is reached) to why;
    `limited` names those whose limit is reached. `blocked` is why the live attempt, of which nothing exists, cannot be
    launched, when that is not capacity (a right, a quota, a kind that is not installed), and `blocked_by` who refuses.
    `launched`: our own object of the live attempt exists, although nothing else does; `operator_silent` is which
    operator has not taken it up.
    """

    revision: int
    attempts: tuple[AttemptSeen, ...] = ()
    progress: Progress = Progress()
    unavailable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    blocked: str = ""
    blocked_by: Blocker = Blocker.TEMPLATE
    launched: bool = False
    operator_silent: str = ""
    limited: frozenset[str] = frozenset()

    def attempt(self, number: int) -> AttemptSeen | None:
        """The attempt of that number, if it exists."""
        return next((seen for seen in self.attempts if seen.number == number), None)


# --- what is remembered ---------------------------------------------------------------------------------------------


class Stage(StrEnum):
    """Where a job is. `lifecycle.TRANSITIONS` says which changes exist."""

    IDLE = "Idle"  # no attempt; a tier is to be chosen
    STARTING = "Starting"  # an attempt is planned or launched, never whole so far
    RUNNING = "Running"  # whole
    RECOVERING = "Recovering"  # was whole, lost something, may become whole again by itself
    DRAINING = "Draining"  # asked to commit and stop
    ENDING = "Ending"  # being removed
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Phase(StrEnum):
    """What users see of a stage (`status.phase`)."""

    PENDING = "Pending"
    RUNNING = "Running"
    DRAINING = "Draining"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"


PHASE_OF: Mapping[Stage, Phase] = MappingProxyType(
    {
        Stage.IDLE: Phase.PENDING,
        Stage.STARTING: Phase.PENDING,
        Stage.RUNNING: Phase.RUNNING,
        Stage.RECOVERING: Phase.RUNNING,
        Stage.DRAINING: Phase.DRAINING,
        Stage.ENDING: Phase.DRAINING,
        Stage.SUSPENDED: Phase.SUSPENDED,
        Stage.SUCCEEDED: Phase.SUCCEEDED,
        Stage.FAILED: Phase.FAILED,
    }
)

TERMINAL = frozenset({Stage.SUCCEEDED, Stage.FAILED})


@dataclass(frozen=True, slots=True)
class Attempt:
    """The one live attempt of a job.

    `known_pods` are identities seen alive, so that one that vanishes is noticed; `lost_pods` are identities already
    counted. `end_reason` is why it is being ended, once it is. `drain_since` is when it was asked to commit and stop,
    `drain_by` is when a drain is cut. `exited_at` is when its program was first seen to have failed. `workers` and
    `template` are those of the spec that it was launched with, by which it is judged whatever the spec says later; None
    and "" in states written before they were kept.
    """

    number: int
    tier: str
    created_at: Instant
    seen: bool = False
    running_at: Instant | None = None
    whole_at: Instant | None = None
    failures: int = 0
    known_pods: tuple[str, ...] = ()
    lost_pods: tuple[str, ...] = ()
    start_step: int = 0
    end_reason: Reason | None = None
    drain_by: Instant | None = None
    ending_since: Instant | None = None
    exited_at: Instant | None = None
    workers: int | None = None
    template: str = ""
    drain_since: Instant | None = None


@dataclass(frozen=True, slots=True)
class Impeded:
    """Why a job is not training, under which reason users read it, and since when."""

    impediment: Impediment
    reason: Reason
    since: Instant


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A finished attempt, for the history that users read."""

    number: int
    tier: str
    started_at: Instant
    running_at: Instant | None
    ended_at: Instant
    reason: Reason
    failures: int
    start_step: int
    end_step: int


@dataclass(frozen=True, slots=True)
class TierRecord:
    """What happened on one tier so far.

    `exhausted_by` is why the tier may not be used any more, None while it may. `unpriced` are those of its node-seconds
    for which no price was known; `cost` is without them.
    """

    name: str
    failures: int = 0
    attempts: int = 0
    node_seconds: float = 0.0
    cost: float = 0.0
    on_demand_cost: float = 0.0
    unpriced: float = 0.0
    exhausted_by: Reason | None = field(default=None, metadata={WIRE_NAME: "spent"})
    last_reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class JobState:
    """All memory of a job. Persisted after every change; nothing else is remembered between decisions.

    `waiting_since`: since when the job is not whole on its tier (None while it is). `recovering_since`: since when
    the live attempt, once whole, is not. `loss_counted`: a failure was counted since the job was last whole.
    `progress` is the newest commit seen and `progress_at` when it was first seen, by the decider's own clock: the clock
    of the job's machines is not trusted. `paused_until`: when the job leaves Idle, under `exhausted: Wait` and during a
    start backoff. `unready` is how many attempts in succession ended before they were ready, the newest of them made
    from `unready_template`; `crashes` is how many of these, the newest, failed to start in the same way, `crash` what
    that way is, and `crash_output` the last line of output of the newest. `denials` is how many attempts the checkpoint
    store has refused since the newest commit, `denied` what it said last. `impeded` is why the job is not training,
    None while it trains. `clock` is the `now` of the last decision and `nodes` the number of nodes held since then.
    """

    stage: Stage = Stage.IDLE
    attempt: Attempt | None = None
    last_number: int = 0
    tier: str = ""
    tiers: tuple[TierRecord, ...] = ()
    history: tuple[AttemptRecord, ...] = ()
    reason: Reason = Reason.STEADY
    message: str = ""
    failures: int = 0
    application_failures: int = 0
    waiting_since: Instant | None = None
    recovering_since: Instant | None = None
    paused_until: Instant | None = None
    unready: int = 0
    unready_template: str = ""
    crashes: int = 0
    crash: str = ""
    crash_output: str = ""
    denials: int = 0
    denied: str = ""
    loss_counted: bool = False
    progress: Progress = Progress()
    progress_at: Instant | None = None
    revision: int = -1
    clock: Instant = 0.0
    nodes: int = 0
    impeded: Impeded | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None

    @property
    def phase(self) -> Phase:
        """What users see."""
        return PHASE_OF[self.stage]

    @property
    def spent_usd(self) -> float:
        """USD paid for nodes so far, over all tiers."""
        return sum(tier.cost for tier in self.tiers)

    @property
    def lasting(self) -> JobState:
        """The state without what time alone changes: clocks, costs, timers that stand still, pods that come and go.

        Two states that differ in nothing else need no write at once.
        """
        tiers = tuple(
            replace(tier, node_seconds=0.0, cost=0.0, on_demand_cost=0.0, unpriced=0.0) for tier in self.tiers
        )
        return replace(
            self,
            clock=0.0,
            revision=0,
            nodes=0,
            attempt=self.attempt and replace(self.attempt, known_pods=()),
            tiers=tiers,
            waiting_since=self.waiting_since and 0.0,
            recovering_since=self.recovering_since and 0.0,
        )

    def record(self, name: str) -> TierRecord:
        """The record of that tier; an empty one before its first attempt."""
        return next((tier for tier in self.tiers if tier.name == name), TierRecord(name))


# --- what is decided ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Launch:
    """Make this attempt exist on this tier. Repeated until it is seen; must be idempotent."""

    attempt: int
    tier: str


@dataclass(frozen=True, slots=True)
class Drain:
    """Ask this attempt to commit and stop, by `deadline` at the latest. Repeated; must be idempotent."""

    attempt: int
    deadline: Instant
    reason: Reason


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove whatever is left of this attempt. Repeated until it is not seen any more; must be idempotent."""

    attempt: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Finish:
    """The job ended: write the outcome to the commit log and release everything. Must be idempotent."""

    succeeded: bool
    reason: Reason


Action = Launch | Drain | Delete | Finish


@dataclass(frozen=True, slots=True)
class Move:
    """One change of stage, for logs, Events, metrics and the timeline."""

    source: Stage
    target: Stage
    reason: Reason
    attempt: int
    tier: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """One failure that was counted. `pod` is what people call it. `noticed`: it still runs, and its node will go."""

    pod: str
    cause: Cause
    attempt: int
    tier: str
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The new state, what to do, why, and when to look again (None: only when something changes).

    A decision either changes what is intended (`moves` is not empty; `actions` then is) or acts on what the given
    state, already persisted, intends. So a crash between any two effects never leads to two different launches
    under one attempt number.
    """

    state: JobState
    actions: tuple[Action, ...] = ()
    reason: Reason = Reason.STEADY
    wake_at: Instant | None = None
    moves: tuple[Move, ...] = ()
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class TierView:
    """What a policy may know when it chooses.

    `current` is the tier of the live attempt or of the last one ("" before the first). `tiers` are in the user's
    order. `open` are the names of those that are not spent; `available` those of them that can be used now.
    """

    now: Instant
    current: str
    tiers: tuple[Tier, ...]
    records: tuple[TierRecord, ...]
    open: frozenset[str]
    available: frozenset[str]
    live: bool
    progress: Progress
    deadline: Instant | None
    spent_usd: float


@dataclass(frozen=True, slots=True)
class TierChoice:
    """`tier` None: none of them. `reason` is shown when the choice ends a live attempt."""

    tier: str | None
    reason: Reason = Reason.POLICY
