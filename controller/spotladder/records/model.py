"""The records of a job: one class for each kind of event of the job, its attempts and its nodes.

`timeline` stores them in a file of this machine and `stored` beside the commit log, one line of JSON each.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from spotladder.core.contract import Milestone
from spotladder.core.model import Instant, JobSpec, JobState, KnownCapacity, Loss, Move, Observation
from spotladder.core.plain import to_plain
from spotladder.core.reasons import Cause, Reason

if TYPE_CHECKING:
    from spotladder.checkpoints.entries import Commit


class NodeChange(StrEnum):
    """A change in the life of a node."""

    ASKED = "Asked"  # requested from its pool, provisioning
    UP = "Up"  # its process runs and has joined the cluster
    NOTICED = "Noticed"  # will be reclaimed at `until`
    GONE = "Gone"


@dataclass(frozen=True, slots=True)
class Began:
    """A runner started or resumed (`resumed`) the job, or a controller began to reconcile it. `spec` and the policy
    with this name apply from here on. `known` is what was known about the capacity of each tier of the spec, in its
    order; () if that was not recorded."""

    at: Instant
    job: str
    namespace: str
    spec: JobSpec
    resumed: bool = False
    policy: str = "ordered"
    known: tuple[KnownCapacity, ...] = ()


@dataclass(frozen=True, slots=True)
class Specified:
    """The spec has changed, its prices included, or another controller continues: `spec` and the policy apply from here
    on."""

    at: Instant
    job: str
    namespace: str
    spec: JobSpec
    policy: str = "ordered"


@dataclass(frozen=True, slots=True)
class Decided:
    """A persisted decision at `at`, which `decide` makes again from the same observation. A sample, unless it changed
    the stage of the job or counted a loss.

    `state` is the state before such a decision, and `after` the state after it. Otherwise `after` is None and `state`
    is the state after the decision, which leads to the same decision.
    """

    at: Instant
    seen: Observation
    state: JobState
    after: JobState | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A decided transition of the job's stage."""

    at: Instant
    move: Move


@dataclass(frozen=True, slots=True)
class Lost:
    """A lost pod was counted. `failures` is the tier's count after this loss or, for pods lost together, after all of
    them; 0 if unknown."""

    at: Instant
    loss: Loss
    failures: int


@dataclass(frozen=True, slots=True)
class Launched:
    """The attempt was launched for the first time."""

    at: Instant
    attempt: int
    tier: str


@dataclass(frozen=True, slots=True)
class DriverStarted:
    """The process of the attempt's program has started. The time since the preceding loss is the reaction time."""

    at: Instant
    attempt: int


@dataclass(frozen=True, slots=True)
class Reached:
    """The attempt reached a milestone at `at`, by the clock of the cluster or of the program. Recorded when it was
    observed, later."""

    at: Instant
    attempt: int
    milestone: Milestone


@dataclass(frozen=True, slots=True)
class DriverExited:
    """The attempt's program ended. `code` is None if it was killed or its exit code is unknown."""

    at: Instant
    attempt: int
    code: int | None = None


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node of the attempt was requested, became ready, got a notice or is gone. `cause` is the reason of a notice or
    loss."""

    at: Instant
    node: str
    attempt: int
    tier: str
    change: NodeChange
    cause: Cause | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """An elastic attempt trains with this number of workers now, out of `wanted`, and with `before` until now; 0: its
    program begins, or that is unknown."""

    at: Instant
    attempt: int
    workers: int
    wanted: int
    before: int = 0


@dataclass(frozen=True, slots=True)
class PoolChanged:
    """The pool of a tier started or stopped providing nodes."""

    at: Instant
    tier: str
    available: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit in the commit log. `metrics` are the program's own, among them `loss` if it reports one."""

    at: Instant
    attempt: int
    tier: str
    step: int
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, commit: "Commit") -> Self:
        """The entry of the commit log as a record."""
        numbers = {key: float(value) for key, value in commit.metrics.items() if isinstance(value, (int, float))}
        return cls(commit.at, commit.attempt, commit.tier, commit.step, commit.total, numbers)


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat of the program with its progress. A sample."""

    at: Instant
    attempt: int
    step: int
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeftBill:
    """The cost in USD of an earlier attempt, while it was being removed, since the last sample."""

    attempt: int
    tier: str
    spent: float
    on_demand: float


@dataclass(frozen=True, slots=True)
class Billed:
    """The cost of the job so far, in USD, over all tiers, as `JobState` counts it. A sample.

    `nodes` are paid for now; `on_demand` is that of `JobState.on_demand_usd`. `left` are the parts
    that belong to earlier attempts; the rest since the last sample is that of the attempt that was live then.
    """

    at: Instant
    spent: float
    on_demand: float
    nodes: int = 0
    left: tuple[LeftBill, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """Any other message of one line, for example that a resume skipped a corrupt commit. `warning`: the message
    reports a problem."""

    at: Instant
    text: str
    attempt: int = 0
    warning: bool = True


@dataclass(frozen=True, slots=True)
class Waited:
    """What the job waits for, as `core.explanation` explains it, each time that this changes; `message` "" once it
    waits for nothing. `since` is when the wait began and `until` when `timer` expires, with the effect `then`."""

    at: Instant
    message: str = ""
    since: Instant = 0.0
    timer: str = ""
    until: Instant | None = None
    then: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """The job was still running when its timeline was read."""

    at: Instant


@dataclass(frozen=True, slots=True)
class Ended:
    """The runner stopped: the job has succeeded (0), failed (1, 3, 4), or can be resumed (75)."""

    at: Instant
    exit_code: int
    reason: Reason
    message: str = ""


Record = (
    Began
    | Specified
    | Decided
    | Moved
    | Lost
    | Launched
    | DriverStarted
    | Reached
    | DriverExited
    | NodeChanged
    | Resized
    | PoolChanged
    | Committed
    | Beat
    | Billed
    | Noted
    | Waited
    | Looked
    | Ended
)


def encode(record: Record, clean: Callable[[str], str] = str) -> str:
    """One line of strict ASCII JSON, without its newline. `clean` removes secrets from a text."""
    # Most fields of an observation and of a state have their defaults, which would be most of the line.
    plain = to_plain(record, full=not isinstance(record, Decided))
    return json.dumps({"kind": type(record).__name__, **_cleaned(plain, clean)}, separators=(",", ":"), allow_nan=False)


def _cleaned(plain: Any, clean: Callable[[str], str]) -> Any:
    match plain:
        case str():
            return clean(plain)
        case dict():
            return {key: _cleaned(value, clean) for key, value in plain.items()}
        case list():
            return [_cleaned(value, clean) for value in plain]
        case float() if not math.isfinite(plain):
            return str(plain)
    return plain
