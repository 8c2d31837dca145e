"""The reasons of events: two closed vocabularies for every log line, Event, metric and report.

`Cause` is why a pod was lost, `Reason` why the job's stage changed. Both appear in objects that users read, so members
are only added.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from spotladder.exit_code import ExitCode


class Cause(StrEnum):
    """Why a worker or head pod of an attempt was lost."""

    INTERRUPTION = "Interruption"  # the cloud reclaimed the node
    PREEMPTED = "Preempted"  # the scheduler preempted the pod for a higher priority
    CONSOLIDATED = "Consolidated"  # an autoscaler consolidated nodes
    NODE_LOST = "NodeLost"  # the node fell silent or its object is gone
    OOM_KILLED = "OOMKilled"
    APP_ERROR = "AppError"  # the container ended by the program's own fault
    MAINTENANCE = "Maintenance"  # an administrator cordons or drains the node; never counted
    DELETED = "Deleted"  # a user or another controller deleted the pod
    STALLED = "Stalled"  # ready, but the program hung, or committed nothing for stallTimeout
    UNKNOWN = "Unknown"  # gone without evidence; counts like any other cause


class Reason(StrEnum):
    """Why a job's stage changed, or why it did not."""

    # towards a running attempt
    STARTED = "Started"  # an attempt was planned: the first, or the next on the same tier
    FELL_BACK = "FellBack"  # an attempt was planned on a later tier
    MIGRATED_BACK = "MigratedBack"  # an attempt was planned on an earlier tier
    ALL_READY = "Whole"  # the head and every worker are ready and the job trains
    RECOVERING = "Recovering"  # a pod was lost; recovery inside the attempt is expected
    REPLACING = "Replacing"  # nodes will be reclaimed: replacements for their pods start while training continues
    HANDED_OVER = "HandedOver"  # the program continues on the replacements; the noticed pods are gone
    STANDBY_STARTED = "StandbyStarted"  # the next attempt boots beside the live one: a planned move, a notice, a hedge
    STANDBY_ENDED = "StandbyEnded"  # a standby attempt was given up before it took over; the live attempt continues
    # an attempt ends, the tier is kept
    HEDGED = "Hedged"  # the next tier's attempt, started beside one without capacity, was ready first
    EVICTION_NOTICE = "EvictionNotice"  # a node will be reclaimed: commit now, then a new attempt
    RECOVERY_TIMEOUT = "RecoveryTimeout"
    STALLED = "Stalled"
    HEAD_LOST = "HeadLost"
    VANISHED = "Vanished"  # a user or another controller removed the attempt's objects
    START_CRASHED = "StartCrashed"  # a container of the attempt ended by its own fault before the attempt was ready
    START_TIMEOUT = "StartTimeout"  # every pod had its node and image for startTimeout and the attempt was not ready
    INTERRUPTED = "Interrupted"  # the program committed and stopped because of an interruption (exit code 75)
    APPLICATION_RETRY = "ApplicationRetry"  # the program's own error, within applicationFailures
    SPEC_UPDATED = "SpecUpdated"  # the spec's pod template changed: commit, then a new attempt with the new spec
    PREEMPTED = "Preempted"  # the admission queue gave the attempt's quota to another workload
    PODS_READY_TIMEOUT = "PodsReadyTimeout"  # the admission queue's own timeout for pods that are not ready
    QUOTA_WITHDRAWN = "QuotaWithdrawn"  # an administrator stopped the admission queue, or deactivated the workload
    # an attempt ends and its tier is exhausted
    MAX_FAILURES_EXCEEDED = "MaxFailuresExceeded"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"  # no capacity for provisionTimeout, or the provisioner refused
    POD_DOES_NOT_FIT = "PodDoesNotFit"  # no node of the tier can ever hold a pod; as an outcome, of no tier
    QUEUE_TIMEOUT = "QueueTimeout"  # the admission queue gave no quota for queueTimeout
    TIER_REMOVED = "TierRemoved"  # the tier is no longer in the spec
    POLICY = "Policy"  # the policy prefers another tier (migrate back, deadline)
    # the steps of an attempt's end
    DRAINED = "Drained"
    GRACE_EXCEEDED = "GraceExceeded"
    GONE = "Gone"
    MOVED_ON = "MovedOn"  # being removed while the next attempt starts on another tier; the commit log fences it
    LEFT_BEHIND = "LeftBehind"  # not confirmed gone; the program of the next attempt fences it
    RELIEVED = "Relieved"  # the standby attempt takes over at once; the commit log fences this one
    # the user
    SUSPEND_REQUESTED = "SuspendRequested"  # spec.suspend
    STOP_REQUESTED = "StopRequested"  # a local run was interrupted (Ctrl-C)
    RESUME_REQUESTED = "ResumeRequested"
    # outcomes
    COMPLETED = "Completed"
    APPLICATION_FAILED = "ApplicationFailed"
    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
    TIERS_EXHAUSTED = "TiersExhausted"
    BEGIN_AGAIN = "BeginAgain"  # all tiers are exhausted; the job restarts at the first tier
    WAITING_TO_BEGIN_AGAIN = "WaitingToBeginAgain"  # all tiers are exhausted; the job restarts after a pause
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    BUDGET_EXCEEDED = "BudgetExceeded"
    STORE_UNSAFE = "StoreUnsafe"  # the checkpoint store cannot fence an attempt that was cut off (exit code 78)
    FENCED = "Fenced"  # a newer attempt of another controller owns the commit log
    # no change of stage
    STEADY = "Steady"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    BLOCKED = "Blocked"  # pods cannot be created from their template (a missing Secret, a webhook)
    WAITING_FOR_PODS = "WaitingForPods"  # every pod has its node and image; Ray, or the program, is not ready yet
    QUOTA_EXCEEDED = "QuotaExceeded"
    WAITING_FOR_QUOTA = "WaitingForQuota"  # the admission queue holds the attempt until there is quota
    INADMISSIBLE = "Inadmissible"  # the admission queue cannot admit the attempt before something is changed
    VOLUME_UNAVAILABLE = "VolumeUnavailable"  # a claim is missing, or its volume cannot be attached or mounted
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    ACCESS_DENIED = "AccessDenied"  # credentials are refused, by the API server or by the checkpoint store
    OPERATOR_SILENT = "OperatorSilent"  # KubeRay, JobSet or the scheduler does not act on the attempt
    STORE_UNAVAILABLE = "StoreUnavailable"  # the checkpoint store does not answer the program
    CONTACT_LOST = "ContactLost"  # several nodes are silent; nothing is counted before contactTimeout
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    MAINTENANCE = "Maintenance"  # an administrator drains nodes of the attempt
    PROGRAM_ENDED = "ProgramEnded"  # the program failed; a lost pod may still explain it
    CRASH_LOOP = "CrashLoop"  # consecutive attempts end before they are ready
    STALE_OBSERVATION = "StaleObservation"
    UNKNOWN = "Unknown"  # read from a state or a record of a newer version


FAILED_EXIT_CODES: Mapping[Reason, int] = MappingProxyType(
    {
        Reason.TIERS_EXHAUSTED: 3,
        Reason.POD_DOES_NOT_FIT: 3,
        Reason.DEADLINE_EXCEEDED: 4,
        Reason.BUDGET_EXCEEDED: 4,
        Reason.STORE_UNSAFE: 5,
        Reason.FENCED: ExitCode.FENCED,
    }
)
"""The exit code of a command that waited for a job that failed for this reason; 1 for any other reason."""
