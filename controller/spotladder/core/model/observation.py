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
    """What the admission queue (Kueue) says of an attempt."""

    name: str = ""
    """"" where it is not known."""
    held: bool = False
    """The attempt is suspended and has no quota."""
    message: str = ""
    """The queue's own sentence."""
    inadmissible: bool = False
    """The attempt cannot be admitted before the queue, or the job, is changed."""
    eviction: QueueEviction | None = None
    """Why the attempt, once admitted, lost its quota; it stays set when the attempt is admitted again."""
    refused: bool = False
    """The provisioner that the queue asks has no capacity for it."""


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
    """One pod (or local node process) of an attempt."""

    uid: str
    """Its identity: a pod is counted as lost once, however often it is observed."""
    role: PodRole = PodRole.WORKER
    phase: PodPhase = PodPhase.RUNNING
    ready: bool = True
    """It takes part in the job."""
    name: str = ""
    node: str = ""
    unit: str = ""
    """Names the pods that go and come only together, such as the hosts of a TPU slice; "": the pod alone."""
    group: str = ""
    """The group of an auxiliary pod."""
    noticed: bool = False
    """Its node is about to be reclaimed."""
    noticed_at: Instant | None = None
    notice_ends_at: Instant | None = None
    cause: Cause = Cause.UNKNOWN
    """Why it is lost, or will be: of a pod that is lost or noticed."""
    suspect: bool = False
    """Its node is silent and its cluster has not marked it as such yet: the pod counts as running, but may be lost."""
    silent: bool = False
    """Of a lost pod: the silence of its node is the only evidence."""
    exit_code: int | None = None
    """Of a lost pod: that of the container that ended it."""
    exit_message: str = ""
    """Of a lost pod: the last line of output of that container, if known."""
    container: str = ""
    """That container, or the one because of which a pod that runs is not ready; "" where the pod has only one."""
    unschedulable: bool = False
    """Of a pending pod: it lacks capacity."""
    refused: bool = False
    """Of a pending pod: the provisioner reported that it makes no node for it."""
    misfit: str = ""
    """Of a pending pod: why no node of the tier can ever hold it; "" if one can, or if that is unknown."""
    misfit_lasts: bool = False
    """Of a pending pod: the provisioner makes no node that can hold it, so waiting does not help."""
    scheduled: bool = False
    """Of a pending pod: it has a node."""
    image_pulled: bool = False
    """Of a pending pod: the images of its first containers are on that node."""
    waiting_message: str = ""
    """Of a pending pod: what the kubelet, the scheduler or the autoscaler says."""

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
    """One attempt as its backend observes it now. None and "" mean no, or unknown."""

    number: int
    pods: tuple[PodSeen, ...] = ()
    exit: Exit | None = None
    message: str = ""
    reachable: bool = True
    """Its cluster answers; otherwise `pods` are the last known ones or empty."""
    provisioning: bool = False
    """The provisioner reported that it adds a node for a pod."""
    blocked: str = ""
    """Why the attempt cannot start if the reason is not capacity."""
    blocked_by: Blocker = Blocker.TEMPLATE
    """What refuses it."""
    operator_silent: str = ""
    """Which operator has not acted on which object."""
    queue: QueueSeen | None = None
    """What the admission queue says of it; None without a queue."""
    surplus: int | None = None
    """The number of workers requested beyond those that the attempt was launched with, negative while fewer are
    requested; None where this number cannot be changed, so that no pod can be replaced inside the attempt."""
    held: bool | None = None
    """The program of a standby attempt waits until it may take over."""

    step: int = 0
    """The newest step that the program has reported since its ranks started; 0: none, or the backend has another record
    of the steps."""
    total: int = 0
    """The number of steps after which the program ends; 0: not reported."""
    size: int | None = None
    """The number of workers with which the program trains; None where it trains with all of them, or has not begun."""
    moved_at: Instant | None = None
    """When the program last made progress in this attempt, by the observer's clock."""
    waits_for_all_workers: bool = False
    """The program has not begun, and begins only when all workers are ready."""
    reported_running: bool = False
    """Ray reports that the program runs."""
    quiet_for: Seconds | None = None
    """How long the program's output had not grown when it was last read; None if it has printed nothing yet, or its
    output was not read."""
    hung: str = ""
    """How long the program has made no step although all of its ranks are connected."""
    heartbeat_stopped: bool = False
    """The program reported at an interval that it lives, and no longer does although the checkpoint store answers."""
    store_unavailable_since: Instant | None = None
    """Since when the program cannot reach the checkpoint store, by the observer's clock."""
    store_message: str = ""
    """The error of the store or the network."""

    nodes: int = 0
    """The number of nodes of the pods."""
    silent_nodes: int = 0
    """The number of these that have stopped sending heartbeats, including those whose Ready condition is not False
    yet."""
    cluster_nodes: int = 0
    """The number of nodes of the whole cluster."""
    cluster_silent_nodes: int = 0
    """The number of these that are silent."""
    contact_restored_at: Instant | None = None
    """When the watch of the cluster was last restored after an interruption."""

    @property
    def refused(self) -> bool:
        """Whether the provisioner reported that it has no capacity for some of the pods."""
        return any(pod.refused for pod in self.pods)


@dataclass(frozen=True, slots=True)
class CommitSize:
    """The size of the files of a commit."""

    bytes: int = 0
    shared_bytes: int = 0
    """That of the files that every worker downloads when it resumes; each of the others is downloaded by one worker."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the commit log says: its newest commit, and the newest attempt that has started."""

    step: int = 0
    """That of the newest commit."""
    total: int = 0
    committed_at: Instant | None = None
    attempt: int = 0
    """The newest attempt that has started."""
    skipped: str = ""
    """Which commits the attempt of the newest commit could not resume from, and why."""
    hands_over: bool = False
    """The program of the newest attempt can continue inside the attempt without pods that are leaving
    (`NoticeKind.HANDOVER`)."""
    stands_by: bool = False
    """Its library can hold the program of a standby attempt."""
    commit_seconds: Seconds = 0.0
    """How long the newest commit took; 0 if unknown."""
    workers: int = 0
    """The number of workers with which the program of an elastic job last started; 0 if unknown."""
    size: CommitSize = CommitSize()
    """That of the newest commit."""
    start: int = -1
    """The log's sequence number of the newest start of a program; -1 before the first."""
    commit: int = -1
    """The log's sequence number of the newest commit; -1 before the first."""
    committed_by: int = 0
    """The attempt that wrote the newest commit: an attempt that is cut off commits until the program of the next one
    has started; 0 if unknown."""

    @property
    def writer(self) -> int:
        """The attempt of the newest commit; the newest attempt that has started where that is unknown."""
        return self.committed_by or self.attempt


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot of all objects of one job, including the effects of all earlier calls of its backend."""

    revision: int
    """Orders snapshots: one with a smaller revision than the last is ignored."""
    attempts: tuple[AttemptSeen, ...] = ()
    progress: Progress = Progress()
    unavailable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Why a tier, by its name, cannot be used now: its cluster is unreachable, its CapacityTier is gone."""
    offered: frozenset[str] = frozenset()
    """The names of the tiers that are known to have capacity for the job now; for the smallest size of an elastic
    one."""
    granted: Mapping[str, Instant] = field(default_factory=lambda: MappingProxyType({}))
    """When another job last got its nodes on a tier, by its name; not of a tier that has refused a job since."""
    suspects: frozenset[str] = frozenset()
    """The names of the nodes that are silent and that their cluster has not marked yet."""
    surge_room: int | None = None
    """How many nodes the live attempt may hold beyond its workers on a pool of fixed size (a local run); None: any
    number."""
    blocked: str = ""
    """Why the live attempt, which has no objects yet, cannot be launched if the reason is not capacity: a permission, a
    quota, a kind that is not installed."""
    blocked_by: Blocker = Blocker.TEMPLATE
    """What refuses it."""
    launched: bool = False
    """Only the controller's own object of the live attempt exists."""
    operator_silent: str = ""
    """The operator that has not acted on that object."""

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
