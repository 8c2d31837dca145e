"""What is decided: the actions, moves and counted failures of one decision, and the choice of a policy."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model.observation import Progress
from spotladder.core.model.spec import Tier
from spotladder.core.model.state import JobState, Stage, TierRecord
from spotladder.core.model.units import Instant
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
