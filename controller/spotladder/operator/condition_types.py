"""The vocabulary of conditions: their types, the reasons in addition to `core.Reason`, and condition updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from spotladder.api.status import Condition
from spotladder.core.facts import deadline_risk
from spotladder.core.model import Instant
from spotladder.core.reasons import Reason


class ConditionType(StrEnum):
    READY = "Ready"  # this and the next are those of kstatus, which Flux, Helm and kubectl's own tools wait for
    STALLED = "Stalled"
    VALID = "Valid"
    PREFLIGHT = "Preflight"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    EVICTED = "Evicted"
    FELL_BACK = "FellBack"
    CHECKPOINTING = "Checkpointing"
    UPDATED = "Updated"  # whether the live attempt was launched with the pod template of the current spec
    COMPLETED = "Completed"
    DEGRADED = "Degraded"
    DEADLINE_AT_RISK = deadline_risk.CONDITION
    AVAILABLE = "Available"  # this and the next are conditions of a CapacityTier
    PRICED = "Priced"


class ConditionReason(StrEnum):
    """Why a job is not valid or is degraded, in addition to `core.Reason`."""

    INVALID_SPEC = "InvalidSpec"
    UNKNOWN_CAPACITY_TIER = "UnknownCapacityTier"
    UNKNOWN_CLUSTER = "UnknownCluster"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CLUSTER_MISCONFIGURED = "ClusterMisconfigured"
    CLOCK_SKEWED = "ClockSkewed"
    NAMESPACE_MISSING = "NamespaceMissing"
    REFERENCES_MISSING = "ReferencesMissing"
    VERSION_CONFLICT = "VersionConflict"
    NOT_ALLOWED = "NotAllowed"
    CHECKPOINTS_IN_USE = "CheckpointsInUse"
    CHECKPOINTS_NOT_ALLOWED = "CheckpointsNotAllowed"
    CHECKPOINTS_UNREADABLE = "CheckpointsUnreadable"
    CHECKPOINTS_CORRUPT = "CheckpointsCorrupt"
    CHECKPOINTS_GONE = "CheckpointsGone"
    CAPACITY_TIER_GONE = "CapacityTierGone"
    CANNOT_WATCH = "CannotWatch"
    NOT_INSTALLED = "NotInstalled"
    LAUNCH_REFUSED = "LaunchRefused"
    NAME_TAKEN = "NameTaken"
    BLOCKED = "Blocked"
    STATE_UNREADABLE = "StateUnreadable"
    CLEANUP_BLOCKED = "CleanupBlocked"
    PRICE_UNKNOWN = "PriceUnknown"
    NOTICE_TOO_SHORT = "NoticeTooShort"
    RECONCILE_ERROR = "ReconcileError"
    TOKEN_REFUSED = "TokenRefused"  # noqa: S105 – a reason
    SIDECAR_FAILED = "SidecarFailed"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a job is held or degraded: the reason and the message of its condition."""

    reason: ConditionReason | Reason
    message: str


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """The new status, reason and message of a condition."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def stated(holds: bool, reason: str, message: str = "") -> ConditionUpdate:
    """The update of a condition that is known to hold, or not to."""
    return ConditionUpdate("True" if holds else "False", reason, message)


ConditionUpdates = Mapping[ConditionType, ConditionUpdate]

DELETE_REQUESTED = "DeleteRequested"
"""Stops a job that is being deleted: the controller suspends it first, without a request in its spec."""


def one_line(text: str, longest: int = 1024) -> str:
    """The text as a message of a condition: on one line, truncated, and as UTF-8, which a program's text may not be."""
    line = "; ".join(line.strip() for line in text.splitlines() if line.strip())[:longest]
    return line.encode(errors="replace").decode()


def merged(held: Sequence[Condition], updates: ConditionUpdates, now: Instant, generation: int) -> list[Condition]:
    """The conditions after these updates. Their transition time changes only if the status changes."""
    known = {condition.type: condition for condition in held}
    at = datetime.fromtimestamp(int(now), UTC)
    for kind, update in updates.items():
        before, message = known.get(kind), one_line(update.message)
        if before and (before.status, before.reason, before.message, before.observed_generation) == (
            update.status, update.reason, message, generation,
        ):  # fmt: skip
            continue
        known[kind] = Condition(
            type=kind,
            status=update.status,
            reason=update.reason,
            message=message,
            last_transition_time=before.last_transition_time if before and before.status == update.status else at,
            observed_generation=generation,
        )
    return [known[kind] for kind in (*ConditionType, *sorted(set(known) - set(ConditionType))) if kind in known]
