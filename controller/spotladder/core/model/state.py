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
class Attempt:
    """The one live attempt of a job.

    `known_pods` are the identities of pods that were observed alive, so that a pod that disappears is noticed;
    `lost_pods` are those already counted. `end_reason` is why the attempt is being ended. `drain_since` is when it was
    asked to commit and stop, `drain_by` is when it is killed. `leaving` are the identities of noticed pods that are
    being replaced inside the attempt, until they are gone and no surplus worker is left; `replace_by` is when their
    replacements must be ready, and `handing_over_since` is when the program was asked to continue without them.
    After a notice during which the next attempt boots beside it, it is drained by `leave_by`. At a notice that it
    outlives, its program is asked to commit and to continue, at `commit_asked_at`.
    `exited_at` is when the failure of its program was first observed. `workers` and `template` are those of the spec
    with which it was launched, and apply whatever the spec is later; None and "" in states of versions that did not
    store them. `min_workers` is the number of workers with which it can train; None: all of them.
    `standby`: it was launched as a standby attempt, so its program waits for `TakeOver`. `steps` has one entry for each
    group of ranks whose heartbeats were observed, the newest last. `enough_since` is since when enough workers of an
    elastic attempt are ready to begin, while its program waits for the rest. `avoids` are the names of the nodes that
    its pods may not use. `lost_units` are the nodes and the units of pods of which a loss was counted since all workers
    were last ready. `stepped_at` is when its program began its first step. `lost_start` is the start entry of its
    program in the log when a pod was last counted as lost; None before that, or if the log had none.
    """

    number: int
    tier: str
    created_at: Instant
    seen: bool = False
    running_at: Instant | None = None
    all_ready_at: Instant | None = None
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
    leaving: tuple[str, ...] = ()
    replace_by: Instant | None = None
    handing_over_since: Instant | None = None
    standby: bool = False
    leave_by: Instant | None = None
    steps: tuple[Steps, ...] = ()
    min_workers: int | None = None
    enough_since: Instant | None = None
    avoids: tuple[str, ...] = ()
    stepped_at: Instant | None = None
    lost_units: tuple[str, ...] = ()
    lost_start: int | None = None
    commit_asked_at: Instant | None = None


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
class JobState:
    """The stored state of a job. Persisted after every change; nothing else is kept between decisions.

    `waiting_since` is since when not all workers are ready on its tier (None if they are). `recovering_since` is since
    when not all workers are ready in a live attempt that had them ready before. `loss_counted`: a failure was counted
    since all workers were last ready. `progress` is the newest observed commit and `progress_at` when it was first
    observed, by the decider's clock, since the clock of the job's machines is not trusted. `paused_until` is when the
    job leaves Idle, under `exhausted: Wait` and during a start backoff. `unready` is the number of consecutive attempts
    that ended before they were ready, the newest of them created from `unready_template`. `crashes` is the number of
    the newest of these that failed to start in the same way, `crash` describes the failure, and `crash_output` is the
    last line of output of the newest. `denials` is the number of attempts that the checkpoint store has refused since
    the newest commit, `denied` its last error. `impeded` is why the job is not training; None while it trains.
    `timed_steps` and `timed_seconds` are the number of steps between consecutive commits of one attempt, and their
    duration with all workers. `total` is the total number of steps that the program reported last; 0: none.
    `commit_seconds` is the longest duration of a commit: as the log records it, or from a request to commit until the
    commit was observed.
    `node_failures` are the nodes on
    which pods failed, the newest failure last. `clock` is the `now` of the last decision and `nodes` the number of
    nodes held since then.

    `standby` is the attempt that boots beside the live one and takes over when that has ended, `standby_reason` the
    planned move for which it was started, and `standby_nodes` the number of nodes that it holds since `clock`. After a
    standby attempt that was given up, no other one starts before `standby_after`. `overlap_usd` is what standby
    attempts have cost, and `surge_usd` what nodes beyond the workers of an attempt have cost, as parts of the cost of
    their tiers. `hangs` is the number of attempts that ended because their
    program hung. `extra` is what the job has cost beside its
    workers' nodes, and `heads_per_hour` the price in USD of the heads' nodes that it holds since `clock`. `left` are
    the earlier attempts whose objects still exist, oldest first. `misfit` is why the job left the last of the tiers
    whose nodes do not fit its pods. `newer` are the fields of a newer version, as `codec` keeps them.
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
    timed_steps: int = 0
    timed_seconds: Seconds = 0.0
    total: int = 0
    node_failures: tuple[NodeFailures, ...] = ()
    commit_seconds: Seconds = 0.0
    standby: Attempt | None = None
    standby_reason: Reason = Reason.STEADY
    standby_nodes: int = 0
    standby_after: Instant | None = None
    overlap_usd: float = 0.0
    surge_usd: float = 0.0
    hangs: int = 0
    extra: ExtraCosts = ExtraCosts()
    heads_per_hour: float = 0.0
    left: tuple[LeftAttempt, ...] = ()
    misfit: str = ""
    newer: str = ""

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
    def surplus_usd(self) -> float:
        """USD paid for nodes beside those of an attempt's workers: for standby attempts, and for replacements while the
        workers that they replace still have their nodes."""
        return self.overlap_usd + self.surge_usd

    @property
    def node_seconds(self) -> float:
        """Node-seconds of the job so far, over all tiers."""
        return sum(tier.node_seconds for tier in self.tiers)

    @property
    def on_demand_usd(self) -> float:
        """USD that the same node-seconds would have cost on demand, over all tiers."""
        return sum(tier.on_demand_cost for tier in self.tiers)

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
            standby_nodes=0,
            overlap_usd=0.0,
            surge_usd=0.0,
            extra=ExtraCosts(),
            heads_per_hour=0.0,
            left=tuple(replace(one, nodes=0) for one in self.left),
            attempt=self.attempt and replace(self.attempt, known_pods=(), steps=()),
            tiers=tiers,
            waiting_since=self.waiting_since and 0.0,
            recovering_since=self.recovering_since and 0.0,
        )

    def record(self, name: str) -> TierRecord:
        """The record of this tier; an empty record before its first attempt."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        return TierRecord(name)
