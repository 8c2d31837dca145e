"""The stored state of a job. `JobState` is persisted; nothing else is kept between decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spotladder.core.model.observation import Progress
from spotladder.core.model.stage import PHASE_OF, Phase, Stage
from spotladder.core.model.units import Instant, Seconds
from spotladder.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one group of ranks of an attempt, as its heartbeats reported them: the first one that was observed,
    and the newest. `workers` is the number of workers of an elastic program; 0: all, or unknown."""

    first: int
    first_at: Instant
    last: int
    last_at: Instant
    workers: int = 0


@dataclass(frozen=True, slots=True)
class KnownPods:
    """The pods of an attempt that were observed alive or counted as lost, by their identities."""

    alive: tuple[str, ...] = ()
    """Those that were observed alive, so that a pod that disappears is noticed."""
    lost: tuple[str, ...] = ()
    """Those that are counted already."""
    lost_units: tuple[str, ...] = ()
    """The nodes and the units of pods of which a loss was counted since all workers were last ready."""
    lost_start: int | None = None
    """The program's start entry in the log when a pod was last counted; None before that, or if the log had none."""


@dataclass(frozen=True, slots=True)
class NoticeResponse:
    """What an attempt does about the notices that its nodes will be reclaimed."""

    leaving: tuple[str, ...] = ()
    """The identities of noticed pods that are being replaced inside the attempt, until they are gone and no surplus
    worker is left."""
    replace_by: Instant | None = None
    """When their replacements must be ready."""
    handing_over_since: Instant | None = None
    """When the program was asked to continue without them."""
    leave_by: Instant | None = None
    """When the attempt is drained because the next one boots beside it."""
    commit_asked_at: Instant | None = None
    """When the program was asked to commit and to continue, since the attempt outlives the notice."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why and since when an attempt is being ended."""

    reason: Reason | None = None
    """None while it is not being ended."""
    since: Instant | None = None
    drain_since: Instant | None = None
    """When it was asked to commit and stop."""
    drain_by: Instant | None = None
    """When it is killed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The one live attempt of a job, or its standby attempt."""

    number: int
    tier: str
    created_at: Instant
    seen: bool = False
    """Whether its objects were ever observed."""
    running_at: Instant | None = None
    """When enough workers were first ready to train."""
    all_ready_at: Instant | None = None
    """When all workers were first ready."""
    enough_since: Instant | None = None
    """Since when enough workers of an elastic attempt are ready to begin, while its program waits for the rest."""
    stepped_at: Instant | None = None
    """When its program began its first step."""
    exited_at: Instant | None = None
    """When the end of its program was first observed."""
    failures: int = 0
    start_step: int = 0
    """The step of the commit from which it begins."""
    steps: tuple[Steps, ...] = ()
    """One entry for each group of ranks whose heartbeats were observed, the newest last."""
    workers: int | None = None
    """Those of the spec with which it was launched, whatever the spec is later; None: not stored."""
    min_workers: int | None = None
    """The number of workers with which it can train; None: all of them."""
    template: str = ""
    """That of the spec with which it was launched; "": not stored."""
    avoids: tuple[str, ...] = ()
    """The names of the nodes that its pods may not use."""
    standby: bool = False
    """It was launched as a standby attempt, so its program waits for `TakeOver`."""
    known: KnownPods = KnownPods()
    notice: NoticeResponse = NoticeResponse()
    ending: Ending = Ending()


@dataclass(frozen=True, slots=True)
class LeftAttempt:
    """An attempt that has ended, or a standby attempt that was given up, whose objects are being removed. `since` is
    when it ended, and `nodes` the number of nodes of its tier that it holds since `JobState.clock`."""

    number: int
    tier: str
    since: Instant
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Impeded:
    """The reason why a job does not train, and when that began. `impediment.IMPEDIMENTS` has the evidence and the
    effect of each reason."""

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
class Spell:
    """An interval in which a tier had capacity for the job, or had none, as far as the job observed it: from the first
    to the newest observation. The spells of a tier alternate."""

    available: bool
    since: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class Start:
    """The times that an attempt took to begin: from its plan until all workers were ready, and then until its first
    step."""

    wait: Seconds
    boot: Seconds


@dataclass(frozen=True, slots=True)
class TierRecord:
    """The history of one tier.

    `exhausted_by` is why the tier must not be used again; None if it may be used. `unpriced` is the number of its
    node-seconds without a known price, which `cost` does not include. `spells` are the newest availability spells,
    oldest first, `starts` the newest starts of the job's attempts.
    """

    name: str
    failures: int = 0
    attempts: int = 0
    node_seconds: float = 0.0
    cost: float = 0.0
    on_demand_cost: float = 0.0
    unpriced: float = 0.0
    exhausted_by: Reason | None = None
    last_reason: Reason | None = None
    spells: tuple[Spell, ...] = ()
    starts: tuple[Start, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFailures:
    """The number of pods of the job that have failed on a live node."""

    node: str
    failures: int


@dataclass(frozen=True, slots=True)
class ExtraCosts:
    """USD for the heads' nodes, for the storage of commits, and for checkpoints that attempts have read from another
    region or cloud."""

    heads: float = 0.0
    storage: float = 0.0
    egress: float = 0.0

    @property
    def total(self) -> float:
        """The sum."""
        return self.heads + self.storage + self.egress


@dataclass(frozen=True, slots=True)
class SurplusCosts:
    """USD, as parts of the cost of the tiers, for nodes beside those of an attempt's workers."""

    overlap: float = 0.0
    """For standby attempts."""
    surge: float = 0.0
    """For replacements while the workers that they replace still have their nodes."""

    @property
    def total(self) -> float:
        """The sum."""
        return self.overlap + self.surge


@dataclass(frozen=True, slots=True)
class Timers:
    """Since when a job waits, and until when. `suspending` moves the first two while they do not run."""

    waiting_since: Instant | None = None
    """Since when not all workers are ready on the tier; None if they are."""
    recovering_since: Instant | None = None
    """Since when not all workers are ready in a live attempt that had them ready before."""
    paused_until: Instant | None = None
    """When the job leaves Idle, under `exhausted: Wait` and during a start backoff."""


@dataclass(frozen=True, slots=True)
class FailedStarts:
    """The newest attempts, in succession, that ended before they were ready."""

    unready: int = 0
    """Their number."""
    template: str = ""
    """The template of the newest."""
    crashes: int = 0
    """The number of the newest of these that failed to start in the same way."""
    crash: str = ""
    """How these failed."""
    output: str = ""
    """The last line of output of the newest."""


@dataclass(frozen=True, slots=True)
class StoreRefusals:
    """The attempts that the checkpoint store has refused since the newest commit."""

    number: int = 0
    error: str = ""
    """The last error of the store."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the program of a job has shown of its work."""

    total: int = 0
    """The total number of steps that it reported last; 0: none."""
    timed_steps: int = 0
    """The number of steps between consecutive commits of one attempt with all workers."""
    timed_seconds: Seconds = 0.0
    """The duration of these."""
    commit_seconds: Seconds = 0.0
    """The longest duration of a commit: as the log records it, or from a request to commit until it was observed."""


@dataclass(frozen=True, slots=True)
class Standby:
    """The attempt that boots beside the live one, and takes over when that has ended."""

    attempt: Attempt | None = None
    reason: Reason = Reason.STEADY
    """The planned move for which it was started."""
    nodes: int = 0
    """The number of nodes that it holds since `JobState.clock`."""
    not_before: Instant | None = None
    """After a standby attempt that was given up, no other one starts before this time."""


@dataclass(frozen=True, slots=True)
class JobState:
    """The stored state of a job. Persisted after every change; nothing else is kept between decisions."""

    stage: Stage = Stage.IDLE
    reason: Reason = Reason.STEADY
    """Why the job is in this stage."""
    message: str = ""
    tier: str = ""
    """The tier of the live attempt, or of the last one."""
    attempt: Attempt | None = None
    """The live attempt."""
    last_number: int = 0
    """The highest number of an attempt that was planned."""
    standby: Standby = Standby()
    left: tuple[LeftAttempt, ...] = ()
    """The earlier attempts whose objects still exist, oldest first."""
    tiers: tuple[TierRecord, ...] = ()
    history: tuple[AttemptRecord, ...] = ()
    """The newest attempts that have ended, oldest first."""

    failures: int = 0
    application_failures: int = 0
    hangs: int = 0
    """The number of attempts that ended because their program hung."""
    loss_counted: bool = False
    """A failure was counted since all workers were last ready."""
    failed_starts: FailedStarts = FailedStarts()
    refusals: StoreRefusals = StoreRefusals()
    node_failures: tuple[NodeFailures, ...] = ()
    """The nodes on which pods failed, the newest failure last."""
    misfit: str = ""
    """Why the job left the last of the tiers whose nodes do not fit its pods."""
    impeded: Impeded | None = None
    """Why the job is not training; None while it trains."""

    started_at: Instant | None = None
    ended_at: Instant | None = None
    timers: Timers = Timers()
    progress: Progress = Progress()
    """The newest commit."""
    progress_at: Instant | None = None
    """When it was first observed, by the decider's clock, since the clock of the job's machines is not trusted."""
    measured: Measured = Measured()

    clock: Instant = 0.0
    """The `now` of the last decision."""
    revision: int = -1
    """That of the last observation."""
    nodes: int = 0
    """The number of nodes of the tier that the live attempt holds since `clock`."""
    heads_per_hour: float = 0.0
    """The price in USD of the heads' nodes that the job holds since `clock`."""
    extra: ExtraCosts = ExtraCosts()
    """What the job has cost beside its workers' nodes."""
    surplus: SurplusCosts = SurplusCosts()
    newer: str = ""
    """The fields of a newer version, as `codec` keeps them."""

    @property
    def phase(self) -> Phase:
        """The phase that users see."""
        return PHASE_OF[self.stage]

    @property
    def number(self) -> int:
        """The number of the live attempt, or else the highest that was planned."""
        return self.last_number if self.attempt is None else self.attempt.number

    @property
    def left_nodes(self) -> int:
        """The number of nodes that the attempts in removal hold."""
        return sum(one.nodes for one in self.left)

    @property
    def spent_usd(self) -> float:
        """USD paid so far: for nodes, over all tiers, and for everything else."""
        return sum(tier.cost for tier in self.tiers) + self.extra.total

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The tiers that were used while their price was unknown: no sum includes their cost."""
        return tuple(tier.name for tier in self.tiers if tier.unpriced)

    @property
    def node_seconds(self) -> float:
        """Node-seconds of the job so far, over all tiers."""
        return sum(tier.node_seconds for tier in self.tiers)

    @property
    def on_demand_usd(self) -> float:
        """USD that the job would have paid for the same node-seconds on demand, and for everything else."""
        return sum(tier.on_demand_cost for tier in self.tiers) + self.extra.total

    @property
    def lasting(self) -> JobState:
        """The state without the fields that change with time: clocks, costs, suspended timers, the set of pods.

        States that differ only in these fields need not be written at once.
        """
        tiers = tuple(
            replace(
                tier,
                node_seconds=0.0,
                cost=0.0,
                on_demand_cost=0.0,
                unpriced=0.0,
                spells=tuple(replace(spell, until=0.0) for spell in tier.spells[-1:]),
            )
            for tier in self.tiers
        )
        return replace(
            self,
            clock=0.0,
            revision=0,
            nodes=0,
            standby=replace(self.standby, nodes=0),
            surplus=SurplusCosts(),
            extra=ExtraCosts(),
            heads_per_hour=0.0,
            left=tuple(replace(one, nodes=0) for one in self.left),
            attempt=self.attempt and replace(self.attempt, known=replace(self.attempt.known, alive=()), steps=()),
            tiers=tiers,
            timers=replace(
                self.timers,
                waiting_since=self.timers.waiting_since and 0.0,
                recovering_since=self.timers.recovering_since and 0.0,
            ),
        )

    def record(self, name: str) -> TierRecord:
        """The record of this tier; an empty record before its first attempt."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        return TierRecord(name)
