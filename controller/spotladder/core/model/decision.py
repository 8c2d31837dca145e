"""The result of a decision: its actions, transitions and counted failures; and the view and the choice of a policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from spotladder.core.model.observation import Progress
from spotladder.core.model.spec import Tier
from spotladder.core.model.stage import Stage
from spotladder.core.model.state import JobState, Spell, TierRecord
from spotladder.core.model.units import Instant, Seconds
from spotladder.core.reasons import Cause, Reason


@dataclass(frozen=True, slots=True)
class Launch:
    """Create this attempt on this tier. Repeated until it is observed; must be idempotent.

    `standby`: its program is held, and writes nothing to the commit log, until `TakeOver`. `hangs` is the number of
    earlier attempts whose program hung. `avoids` are the names of the nodes that its pods may not use.
    """

    attempt: int
    tier: str
    standby: bool = False
    hangs: int = 0
    avoids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drain:
    """Ask this attempt to commit and stop by `deadline`. Repeated; must be idempotent."""

    attempt: int
    deadline: Instant
    reason: Reason


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove all objects of this attempt. Repeated until none is observed; must be idempotent."""

    attempt: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Replace:
    """Run a replacement beside each of these pods of this attempt. Repeated; must be idempotent.

    `pods` are identities; pods that are gone need no replacement. `hand_over`: ask the program to commit and to
    continue without the pods. `remove`: remove them. `deadline` is when their nodes may be reclaimed.
    """

    attempt: int
    pods: tuple[str, ...]
    hand_over: bool
    remove: bool
    deadline: Instant


@dataclass(frozen=True, slots=True)
class Resize:
    """Set the number of workers of this attempt. Repeated; must be idempotent.

    If `workers` is less than at the launch of the attempt, the backend withdraws the workers without a node, and the
    program begins with the others. Otherwise the backend requests all workers again.
    """

    attempt: int
    workers: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Let the held program of this attempt start. Repeated until the commit log has its start; must be idempotent."""

    attempt: int


@dataclass(frozen=True, slots=True)
class AskToCommit:
    """Ask the program of this attempt to commit at once and to continue: nodes may be reclaimed before their notice
    ends. Repeated until a commit is observed; must be idempotent.

    `pods` are the identities of those that may run a process of the program which can pass the request on. Another
    `asked_at` is another request.
    """

    attempt: int
    pods: tuple[str, ...]
    reason: Reason
    asked_at: Instant


@dataclass(frozen=True, slots=True)
class Finish:
    """The job ended: write the outcome to the commit log and release all resources. Must be idempotent."""

    succeeded: bool
    reason: Reason


Action = Launch | Drain | Delete | Replace | Resize | TakeOver | AskToCommit | Finish


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
    """One counted failure. `pod` is the name for users. `noticed`: the pod still runs, but its node will
    be reclaimed."""

    pod: str
    cause: Cause
    attempt: int
    tier: str
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class StandbyChange:
    """A standby attempt was planned, or was given up. The stage of the job does not change."""

    attempt: int
    tier: str
    reason: Reason
    message: str

    @property
    def sentence(self) -> str:
        """The change for users."""
        if self.reason is Reason.STANDBY_STARTED:
            return self.message
        return f"standby attempt {self.attempt} on {self.tier} is given up: {self.message}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The new state, the actions, the reasons, and when to decide again (None: only after an event).

    A decision either changes the state (`moves` is not empty, `actions` is) or executes the given state, which is
    already persisted. So a crash between any two effects never leads to two different launches under one attempt
    number.
    """

    state: JobState
    actions: tuple[Action, ...] = ()
    reason: Reason = Reason.STEADY
    wake_at: Instant | None = None
    moves: tuple[Move, ...] = ()
    losses: tuple[Loss, ...] = ()
    standby_changes: tuple[StandbyChange, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveCosts:
    """What a move to a tier costs the whole job in USD, beside the nodes of the start. `egress` is for the newest
    commit, which the program reads there, and `lost_work` for the work that the live attempt loses when it stops."""

    egress: float = 0.0
    lost_work: float = 0.0

    @property
    def total(self) -> float:
        """The sum."""
        return self.egress + self.lost_work


NO_MOVE_COSTS = MoveCosts()


@dataclass(frozen=True, slots=True)
class TierOutlook:
    """The known availability of one tier. The availability spells are in the tier's record."""

    name: str
    capacity: bool | None = None
    """Whether the tier has capacity for the whole job now; None if unknown."""
    overhead: Seconds = 0.0
    """The time that an attempt on this tier needs until it makes progress; on capacity that is not spot, it includes
    the job's longest start there."""
    reserve: Seconds | None = None
    """The time that the safety net keeps for a start on this tier; None: `overhead`."""
    overlaps: bool = False
    """The attempt of a move to this tier starts beside the live one, so that the move costs no training if the tier has
    no capacity."""
    move: MoveCosts = NO_MOVE_COSTS
    """What a move to it costs beside the nodes of the start; for the tier of the live attempt, what a restart there
    costs."""
    granted_at: Instant | None = None
    """When another job last got its nodes there; None if that is unknown, or the tier has refused a job since."""


@dataclass(frozen=True, slots=True)
class TierView:
    """The input of a policy. All training times are those with all workers."""

    now: Instant
    current: str
    """The tier of the live attempt or of the last one; "" before the first."""
    tiers: tuple[Tier, ...]
    """In the user's order; `records` and `outlooks` are in the same order."""
    records: tuple[TierRecord, ...]
    open: frozenset[str]
    """The names of the tiers that are not exhausted."""
    available: frozenset[str]
    """The open tiers that are not known to be unusable now."""
    live: bool
    """An attempt exists and is not being ended."""
    progress: Progress
    deadline: Instant | None
    spent_usd: float
    outlooks: tuple[TierOutlook, ...] = ()
    work: Seconds | None = None
    """The training time of the whole job without interruptions; None if unknown."""
    remaining: Seconds | None = None
    """The training time of the steps that are not committed; None if unknown."""
    trained: Seconds = 0.0
    """The training time of the steps between commits, while `remaining` is unknown; 0 once it is known."""
    starting: Seconds = 0.0
    """The rest of the overhead of the live attempt."""
    submitted_at: Instant = 0.0
    """When the job was created."""
    interval: Seconds = 60.0
    """The longest time until the policy is asked again."""
    grace: Seconds = 0.0
    """The time that a live attempt has to stop."""
    waiting_since: Instant | None = None
    """When the live attempt began to wait for workers that its tier is known to lack; None if it does not wait, or only
    since now."""
    capacity_lasts: bool = False
    """The capacity of the outlooks lasts for `interval`."""
    workers: int = 1
    """The number of worker nodes of an attempt."""
    budget: float | None = None
    """What the job may cost in USD; None: without limit."""

    def outlook(self, name: str) -> TierOutlook:
        """The outlook of this tier; an outlook without data if the view has none."""
        for outlook in self.outlooks:
            if outlook.name == name:
                return outlook
        return TierOutlook(name)

    def spells(self, name: str) -> tuple[Spell, ...]:
        """The newest availability spells of this tier, oldest first; the last one has not ended."""
        for record in self.records:
            if record.name == name:
                return record.spells
        return ()


@dataclass(frozen=True, slots=True)
class TierChoice:
    """`tier` None: start no attempt; a live one continues. `why` explains the choice to users in one sentence; ""
    explains nothing. `review_at` is when the choice may change without a new observation; None: never. `keeps_open`:
    when provisionTimeout expires, the attempt ends but its tier is not exhausted, so the policy may choose it again."""

    tier: str | None
    why: str = ""
    review_at: Instant | None = None
    keeps_open: bool = False

    def reviewed_by(self, at: Instant | None) -> TierChoice:
        """This choice, to be reviewed by `at`."""
        if at is None or at >= (math.inf if self.review_at is None else self.review_at):
            return self
        return replace(self, review_at=at)
