"""What is decided: the actions, moves and counted failures of one decision, and the choice of a policy."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model.observation import Progress
from spotladder.core.model.spec import Tier
from spotladder.core.model.state import JobState, Spell, Stage, TierRecord
from spotladder.core.model.units import Instant, Seconds
from spotladder.core.reasons import Cause, Reason


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
class TierOutlook:
    """What is known of the capacity of one tier.

    `capacity`: whether the tier has capacity for the whole job now, None where not known. `overhead` is how long
    an attempt on this tier takes until it makes progress; on capacity that is not spot, with the longest start that the
    job saw there. The availability spells are in the tier's record.
    """

    name: str
    capacity: bool | None = None
    overhead: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class TierView:
    """What a policy may know when it chooses.

    `current` is the tier of the live attempt or of the last one ("" before the first). `tiers` are in the user's
    order; `records` and `outlooks` are in the same order. `open` are the names of the tiers that are not exhausted;
    `available` those of them that can be used now, as far as that is known.

    `live`: an attempt exists that is meant to go on. `work` is the training time of the whole job in seconds without
    interruptions and `remaining` that of the steps that are not committed; None where that is not known. `submitted_at`
    is when the job was created. `interval` is the longest time until the policy is asked again. `grace` is how long a
    live attempt may take to stop.
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
    outlooks: tuple[TierOutlook, ...] = ()
    work: Seconds | None = None
    remaining: Seconds | None = None
    submitted_at: Instant = 0.0
    interval: Seconds = 60.0
    grace: Seconds = 0.0

    def outlook(self, name: str) -> TierOutlook:
        """The outlook of that tier; one without knowledge if there is none."""
        return next((outlook for outlook in self.outlooks if outlook.name == name), TierOutlook(name))

    def spells(self, name: str) -> tuple[Spell, ...]:
        """The newest availability spells of that tier, oldest first; the last one is under way."""
        return next((record.spells for record in self.records if record.name == name), ())


@dataclass(frozen=True, slots=True)
class TierChoice:
    """`tier` None: start no attempt; a live one goes on. `reason` is shown when the choice ends a live attempt. `why`
    says in one sentence why this tier, for people; "" says nothing. `review_at` is when the choice may change although
    nothing is observed to change; None: never. `keeps_open`: the attempt still ends when provisionTimeout expires, but
    its tier is not exhausted by that, so the policy may choose it again.

    `holds_until`: until this moment the policy gives the same choice, as long as the tiers, their prices and their
    known capacity stay the same and the live attempt commits no more than one second of work in a second. Infinity:
    for ever; None: the policy does not know. `regardless_of_spot`: the capacity of spot tiers other than `tier` may
    change meanwhile. The simulator does not ask the policy again before that."""

    tier: str | None
    reason: Reason = Reason.POLICY
    why: str = ""
    review_at: Instant | None = None
    keeps_open: bool = False
    holds_until: Instant | None = None
    regardless_of_spot: bool = False
