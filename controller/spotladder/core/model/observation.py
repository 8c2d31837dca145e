"""A backend's observation of a job: attempts, pods, exits, the progress in the commit log."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from spotladder.core.contract import ExitCode
from spotladder.core.model.units import Instant, Seconds
from spotladder.core.reasons import Cause


class Blocker(StrEnum):
    """What refuses a pod or a container, apart from missing capacity."""

    QUOTA = "Quota"  # a ResourceQuota of the namespace; a quota of the cloud is missing capacity of one tier
    FORBIDDEN = "Rights"  # RBAC
    IMAGE = "Image"  # the registry, or the image's name
    VOLUME = "Volume"  # a volume that does not exist, or cannot be attached or mounted
    TEMPLATE = "Template"  # a missing Secret or ConfigMap, a refusal of an admission webhook, an invalid field
    NO_ANSWER = "NoAnswer"  # the API server or an admission webhook does not answer


class QueueEviction(StrEnum):
    """Why an admission queue withdrew the quota of an attempt."""

    PREEMPTED = "Preempted"  # a workload with a higher priority, or the owner of borrowed quota, needs it
    PODS_READY_TIMEOUT = "PodsReadyTimeout"  # the pods were not ready within the queue's own timeout
    STOPPED = "Stopped"  # an administrator stopped the queue
    CHECK_FAILED = "CheckFailed"  # an admission check failed, such as that of a provisioner without capacity
    DEACTIVATED = "Deactivated"  # the workload is deactivated: it waits until it is activated again
    SUSPENDED = "Suspended"  # the object is suspended, and not by a queue


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """What the admission queue (Kueue) says of an attempt.

    `name` is the queue, "" where it is not known. `held`: the attempt is suspended and has no quota. `message` is the
    queue's own sentence. `inadmissible`: the attempt cannot be admitted before the queue, or the job, is changed.
    `eviction` is why the attempt, once admitted, lost its quota; it stays set when the attempt is admitted again.
    """

    name: str = ""
    held: bool = False
    message: str = ""
    inadmissible: bool = False
    eviction: QueueEviction | None = None
    refused: bool = False


class PodRole(StrEnum):
    HEAD = "head"
    WORKER = "worker"
    AUXILIARY = "auxiliary"  # beside the gang, not on the tier: its loss is not the tier's failure


class PodPhase(StrEnum):
    PENDING = "Pending"  # requested, not running
    RUNNING = "Running"  # its process runs
    LOST = "Lost"  # failed, killed, terminating, or its node is gone


_RANDOM_UID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class PodSeen:
    """One pod (or local node process) of an attempt.

    `uid` is its identity: a pod is counted as lost once, however often it is observed. `ready` means that it takes
    part in the job. `noticed` means that its node is about to be reclaimed, from `noticed_at` until `notice_ends_at`
    if known. `unschedulable` means Pending for lack of capacity. `cause` is only used if `phase` is LOST or `noticed`
    is set. `group` is the group of an auxiliary pod.

    For a pending pod: `refused` means that the provisioner reported that it makes no node for it, `misfit` is why no
    node of the tier can ever hold it ("" if one can, or if that is unknown), `misfit_lasts` that the provisioner makes
    no node that can, so waiting does not help, `scheduled` means that it has a node, `image_pulled` that the images of
    its first containers are on that node; `waiting_message` comes from the kubelet, the scheduler or the autoscaler.
    For a lost pod: `silent` means that the silence of its node is the only evidence, `exit_code` is that of the
    container that ended it and `exit_message` the last line of its output, if known. `container` names that container,
    or the one because of which a pod that runs is not ready; "" where the pod has only one.

    `unit` names the pods that go and come only together, such as the hosts of a TPU slice; "": the pod alone.

    `suspect` means that the pod's node is silent and its cluster has not marked it as such yet: the pod counts as
    running, but may be lost.
    """

    uid: str
    role: PodRole = PodRole.WORKER
    phase: PodPhase = PodPhase.RUNNING
    ready: bool = True
    noticed: bool = False
    noticed_at: Instant | None = None
    notice_ends_at: Instant | None = None
    unschedulable: bool = False
    refused: bool = False
    misfit: str = ""
    misfit_lasts: bool = False
    cause: Cause = Cause.UNKNOWN
    node: str = ""
    name: str = ""
    scheduled: bool = False
    image_pulled: bool = False
    waiting_message: str = ""
    silent: bool = False
    suspect: bool = False
    exit_code: int | None = None
    exit_message: str = ""
    container: str = ""
    unit: str = ""
    group: str = ""

    @property
    def called(self) -> str:
        """The pod's name for users. Without a name it is its uid, unless that is the random one of Kubernetes."""
        return self.name or ("a pod that is gone" if _RANDOM_UID.match(self.uid) else self.uid)

    @property
    def placed(self) -> bool:
        """Whether it runs, or has all that capacity provides: a node with its image."""
        return self.phase is PodPhase.RUNNING or (self.scheduled and self.image_pulled)


class Exit(StrEnum):
    """How the program of an attempt ended, as far as it affects the next attempt."""

    SUCCEEDED = "Succeeded"  # exit code 0
    INTERRUPTED = "Interrupted"  # exit code 75: committed and stopped, can be resumed
    FENCED = "Fenced"  # exit code 76: a newer writer owns the log
    REFUSED = "Refused"  # exit code 77: the checkpoint store refuses the credentials
    UNSAFE = "Unsafe"  # exit code 78: the checkpoint store cannot fence an attempt that was cut off
    FAILED = "Failed"  # any other exit code
    LOST = "Lost"  # the workload's operator ended it (head gone, status unknown, stopped by a user), not the program

    @classmethod
    def of_code(cls, code: int) -> Exit:
        """The exit of a program that ended by itself with this exit code."""
        return _EXITS.get(code, cls.FAILED)


_EXITS: Mapping[int, Exit] = MappingProxyType(
    {
        0: Exit.SUCCEEDED,
        ExitCode.INTERRUPTED: Exit.INTERRUPTED,
        ExitCode.FENCED: Exit.FENCED,
        ExitCode.ACCESS_DENIED: Exit.REFUSED,
        ExitCode.STORE_UNSAFE: Exit.UNSAFE,
    }
)


@dataclass(frozen=True, slots=True)
class AttemptSeen:
    """One attempt as its backend observes it now.

    `reachable=False`: its cluster does not answer; `pods` are then the last known ones or empty. `provisioning`: the
    provisioner reported that it adds a node for a pod. `blocked` is why the attempt cannot start if the reason is not
    capacity, and `blocked_by` what refuses it. `moved_at` is when the program last made progress in this attempt, by
    the observer's clock; None if the backend cannot observe it.

    `store_unavailable_since` is since when the program cannot reach the checkpoint store, by the observer's clock, and
    `store_message` the error of the store or the network. `operator_silent`: which operator has not acted on which
    object. "" and None mean no, or unknown.

    `step` is the newest step that the program has reported since its ranks started; 0: none, or the backend has another
    record of the steps. `total` is the number of steps after which it ends; 0: not reported. `hung` describes how long
    the program has made no step although all of its ranks are connected; "" if it makes steps, or the backend cannot
    observe it. `heartbeat_stopped`: the program reported at an interval that it lives, and no longer does although the
    checkpoint store answers. `size` is the number of workers with which the program trains; None where it trains with
    all of them, or has not begun. `waits_for_all_workers`: the program has not begun, and begins only when all workers
    are ready.

    `quiet_for` is how long the program's output had not grown when it was last read; None if it has printed nothing
    yet, or its output was not read. `reported_running`: Ray reports that the program runs.

    `held`: the program of a standby attempt waits until it may take over; None where the backend cannot observe it.

    `queue` is what the admission queue says of it, None without a queue. `surplus` is the number of workers requested
    beyond those that the attempt was launched with, negative while fewer are requested; None where this number cannot
    be changed, so that no pod can be replaced inside the attempt.

    `nodes` is the number of nodes of the pods and `silent_nodes` the number of these that have stopped sending
    heartbeats, including those whose Ready condition is not False yet; `cluster_nodes` and `cluster_silent_nodes` are
    the same for the whole cluster. `contact_restored_at` is when the watch of the cluster was last restored after an
    interruption.
    """

    number: int
    pods: tuple[PodSeen, ...] = ()
    exit: Exit | None = None
    message: str = ""
    reachable: bool = True
    provisioning: bool = False
    blocked: str = ""
    blocked_by: Blocker = Blocker.TEMPLATE
    moved_at: Instant | None = None
    store_unavailable_since: Instant | None = None
    store_message: str = ""
    operator_silent: str = ""
    nodes: int = 0
    silent_nodes: int = 0
    cluster_nodes: int = 0
    cluster_silent_nodes: int = 0
    contact_restored_at: Instant | None = None
    queue: QueueSeen | None = None
    surplus: int | None = None
    held: bool | None = None
    hung: str = ""
    heartbeat_stopped: bool = False
    step: int = 0
    total: int = 0
    size: int | None = None
    waits_for_all_workers: bool = False
    quiet_for: Seconds | None = None
    reported_running: bool = False

    @property
    def refused(self) -> bool:
        """Whether the provisioner reported that it has no capacity for some of the pods."""
        return any(pod.refused for pod in self.pods)


@dataclass(frozen=True, slots=True)
class CommitSize:
    """The size of the files of a commit. `shared_bytes` is that of the files that every worker downloads when it
    resumes; each of the others is downloaded by one worker."""

    bytes: int = 0
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest commit of the log, and the newest attempt that has started according to the log. `skipped`: which
    commits the attempt of the newest commit could not resume from, and why. `hands_over`: the program of the newest
    attempt can continue inside the attempt without pods that are leaving (`NoticeKind.HANDOVER`). `stands_by`: its
    library can hold the program of a standby attempt. `commit_seconds`: how long the newest commit took; 0 if
    unknown. `workers`: the number of workers with which the program of an elastic job last started; 0 if unknown.
    `size` is that of the newest commit. `start` is the log's sequence number of the newest start of a program, and
    `commit` that of the newest commit; -1 before the first. `committed_by` is the attempt that wrote the newest commit:
    an attempt that is cut off commits until the program of the next one has started; 0 if unknown."""

    step: int = 0
    total: int = 0
    committed_at: Instant | None = None
    attempt: int = 0
    skipped: str = ""
    hands_over: bool = False
    stands_by: bool = False
    commit_seconds: Seconds = 0.0
    workers: int = 0
    size: CommitSize = CommitSize()
    start: int = -1
    commit: int = -1
    committed_by: int = 0

    @property
    def writer(self) -> int:
        """The attempt of the newest commit; the newest attempt that has started where that is unknown."""
        return self.committed_by or self.attempt


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot of all objects of one job, including the effects of all earlier calls of its backend.

    `revision` orders snapshots: one with a smaller revision than the last is ignored. `unavailable` maps the name of a
    tier that cannot be used now (its cluster is unreachable, its CapacityTier is gone) to why. If the live attempt has
    no objects yet, `blocked` is why it cannot be launched if the reason is not capacity (a permission, a quota, a kind
    that is not installed), and `blocked_by` what refuses it. `launched`: only the controller's own object of the live
    attempt exists; `operator_silent` is the operator that has not acted on it. `offered` are the names of the tiers
    that are known to have capacity for the job now; for the smallest size of an elastic one. `surge_room` is how many
    nodes the live attempt may hold beyond its workers on a pool of fixed size (a local run); None: any number.
    `suspects` are the names of the nodes that are silent and that their cluster has not marked yet.
    """

    revision: int
    attempts: tuple[AttemptSeen, ...] = ()
    progress: Progress = Progress()
    unavailable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    blocked: str = ""
    blocked_by: Blocker = Blocker.TEMPLATE
    launched: bool = False
    operator_silent: str = ""
    offered: frozenset[str] = frozenset()
    surge_room: int | None = None
    suspects: frozenset[str] = frozenset()
    granted: Mapping[str, Instant] = field(default_factory=lambda: MappingProxyType({}))

    def attempt(self, number: int) -> AttemptSeen | None:
        """The attempt with this number, if it exists."""
        for seen in self.attempts:
            if seen.number == number:
                return seen
        return None

    def with_pods(self, number: int, change: Callable[[PodSeen], PodSeen]) -> Observation:
        """The observation with each pod of this attempt changed."""
        attempts = [
            replace(one, pods=tuple(map(change, one.pods))) if one.number == number else one for one in self.attempts
        ]
        return replace(self, attempts=tuple(attempts))
