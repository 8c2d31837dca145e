"""The cached records of Kubernetes objects: small frozen records with the fields that decisions need.

`Kind.of(object)` creates a record from the object that the API server sends. Two records are equal if no relevant
field differs. `resource_version` is not compared, so that an update without a relevant change triggers no reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from sys import intern
from typing import Any, ClassVar, Self

from spotladder.core.model import Instant, PodRole
from spotladder.resources import PODS, APIResource
from spotladder.timestamps import instant
from spotladder.workloads import names
from spotladder.workloads.containers import LONGEST_MESSAGE, ContainerRecord, ContainerRole, containers_of
from spotladder.workloads.program_container import program_name

Object = Mapping[str, Any]
"""A Kubernetes object as parsed JSON."""

LONGEST_REQUESTS = 200
"""Maximum number of characters kept of a pod's requests."""

QUEUE = "kueue.x-k8s.io/queue-name"
"""The label by which Kueue admits an object, and suspends it until then."""

TOKEN_VARIABLE = "RAY_AUTH_TOKEN"  # noqa: S105 – the name of a variable
"""The variable of Ray's containers with the token, if Ray requires one."""

RAY_GROUP = "ray.io/group"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
REPLICA_LABELS = ("ray.io/worker-group-replica-name", "replicaIndex")
"""Labels with the replica of a multi-host worker group: of KubeRay, and of GKE's TPU webhook for older versions."""

TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An object of an attempt, created by the controller or by the workload's operator. `attempt`: 0 without labels."""

    kind: ClassVar[APIResource]
    name: str
    namespace: str
    uid: str
    resource_version: str = field(default="", compare=False)
    job: str = ""
    job_uid: str = ""
    attempt: int = 0
    tier: str = ""
    created_at: Instant | None = None
    deleted_at: Instant | None = None
    """`deletionTimestamp`; for a pod, the end of its grace period. Set while the object is being deleted."""

    @property
    def deleting(self) -> bool:
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord(Made):
    """A pod of an attempt.

    `group` is the worker group of its RayCluster, or its replicated job. `slot` is the place in a JobSet that it fills
    ("workers-0-1"; "" for Ray) and `restart` the JobSet's restart that it belongs to. `program` is the name of its
    program container. `ready` and `containers_ready` are its conditions Ready and ContainersReady.
    `disruption` is the reason of its DisruptionTarget condition. `unschedulable` is the scheduler's message;
    `seen_by_scheduler` whether the scheduler has set a condition. `notice` is the text of the notice annotation.
    `grace` is the grace period in seconds with which it was deleted. `claims` are the PersistentVolumeClaims that it
    mounts, `mounted`: all of its volumes are mounted. `requests` is what its containers request, for users. `unit`
    names the pods that go and come only together: KubeRay and GKE replace the hosts of a multi-host replica or of a TPU
    slice together. `token` is where the head's token is: the name of a Secret, and the key.
    """

    kind: ClassVar[APIResource] = PODS

    node: str = ""
    role: PodRole = PodRole.WORKER
    group: str = ""
    slot: str = ""
    restart: int = 0
    program: str = ""
    phase: str = "Pending"
    ready: bool = False
    containers_ready: bool = False
    reason: str = ""
    message: str = ""
    disruption: str = ""
    unschedulable: str = ""
    seen_by_scheduler: bool = False
    notice: str = ""
    grace: int = 0
    claims: tuple[str, ...] = ()
    mounted: bool = False
    requests: str = ""
    unit: str = ""
    token: tuple[str, str] | None = None
    containers: tuple[ContainerRecord, ...] = ()
    scheduled_at: Instant | None = field(default=None, compare=False)
    """When it got its node, for its records only."""

    @property
    def identity(self) -> str:
        """The `PodSeen.uid` of the pod: its place in a JobSet, which stays while pods are replaced, or its uid."""
        return self.slot or self.uid

    @property
    def program_container(self) -> ContainerRecord | None:
        """The container that runs the program; None before the kubelet has reported it."""
        return next((entry for entry in self.containers if entry.role is ContainerRole.PROGRAM), None)

    @property
    def own_containers(self) -> list[ContainerRecord]:
        """The containers whose end is the end of the pod's program: the program container and those that run before it,
        the program container first."""
        own = (entry for entry in self.containers if entry.role is not ContainerRole.OTHER)
        return sorted(own, key=lambda entry: entry.role is not ContainerRole.PROGRAM)

    @property
    def other_containers(self) -> list[ContainerRecord]:
        """The containers that run beside the program container."""
        return [entry for entry in self.containers if entry.role is ContainerRole.OTHER]

    @property
    def program_runs(self) -> bool:
        """Whether its program container runs."""
        return (program := self.program_container) is not None and program.running

    @property
    def program_ready(self) -> bool:
        """Whether its program container is ready. The pod is not Ready while another container is not."""
        program = self.program_container
        return self.ready or (not self.containers_ready and program is not None and program.ready)

    @property
    def outlived(self) -> bool:
        """Whether its program has ended while other containers still run, which keep the pod's phase at Running."""
        program = self.program_container
        ended = program is not None and program.exit_code is not None
        return ended and any(entry.running for entry in self.other_containers)

    def named(self, container: ContainerRecord) -> str:
        """The container's name for a message, "" where the pod has only this one."""
        return container.name if len(self.containers) > 1 else ""

    @classmethod
    def of(cls, pod: Object) -> Self:
        spec, status, labels = part(pod, "spec"), part(pod, "status"), labels_of(pod)
        conditions = conditions_of(status)
        scheduled = conditions.get("PodScheduled", {})
        disrupted = conditions.get("DisruptionTarget", {})
        refused = scheduled.get("status") == "False" and scheduled.get("reason") in UNSCHEDULABLE
        program = program_name(pod)
        return cls(
            **made_fields(pod),
            node=intern(spec.get("nodeName") or ""),
            role=role_of(labels),
            group=intern(labels.get(RAY_GROUP) or labels.get(REPLICATED_JOB, "")),
            slot=_slot(labels),
            restart=whole_number(labels.get(RESTART_ATTEMPT)),
            program=intern(program),
            phase=intern(status.get("phase") or "Pending"),
            ready=conditions.get("Ready", {}).get("status") == "True",
            containers_ready=conditions.get("ContainersReady", {}).get("status") == "True",
            reason=intern(status.get("reason") or ""),
            message=message_of(status),
            disruption=intern(disrupted.get("reason") or "") if disrupted.get("status") == "True" else "",
            seen_by_scheduler=bool(scheduled),
            scheduled_at=instant(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None,
            unschedulable=(message_of(scheduled) or "Unschedulable") if refused else "",
            notice=(pod["metadata"].get("annotations") or {}).get(names.NOTICE, ""),
            grace=whole_number(pod["metadata"].get("deletionGracePeriodSeconds")),
            claims=_claims(spec),
            # The kubelet creates the sandbox of a pod once its volumes are mounted.
            mounted=conditions.get("PodReadyToStartContainers", {}).get("status") == "True",
            requests=_requests(spec),
            unit=intern(_unit(labels, spec)),
            token=token_source(pod),
            containers=containers_of(pod, program),
        )


UNSCHEDULABLE = ("Unschedulable", "SchedulingGated", "SchedulerError")
"""Reasons of PodScheduled with which a pod has no node: none has room, a gate of another controller holds it back, or
the scheduler could not bind its volumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node. `ready` is its Ready condition's status ("" if it has none) and `ready_since` the time of that
    condition's last transition. `scheduled` is the event that Azure has scheduled for the machine; `taints` are keys.
    `spot` is whether its labels mark it as spot. `suspect`: it is silent, and its status does not say so yet."""

    name: str
    uid: str
    resource_version: str = field(default="", compare=False)
    ready: str = ""
    ready_since: Instant | None = None
    ready_message: str = ""
    scheduled: str = ""
    taints: tuple[str, ...] = ()
    cordoned: bool = False
    deleted_at: Instant | None = None
    spot: bool = False
    suspect: bool = False
    region: str = ""
    zone: str = ""
    instance_type: str = ""

    @classmethod
    def of(cls, node: Object) -> Self:
        metadata, spec, labels = node["metadata"], part(node, "spec"), labels_of(node)
        conditions = conditions_of(part(node, "status"))
        ready = conditions.get("Ready", {})
        scheduled = [conditions.get(kind, {}) for kind in SCHEDULED_EVENTS]
        return cls(
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            ready=intern(ready.get("status") or ""),
            ready_since=instant(ready.get("lastTransitionTime")),
            # Kubernetes documents "node is shutting down" as the reason, but kubelets set it as the message.
            ready_message=f"{ready.get('reason') or ''} {message_of(ready)}".strip()
            if ready.get("status") != "True"
            else "",
            scheduled=next((message_of(entry) for entry in scheduled if entry.get("status") == "True"), ""),
            taints=tuple(sorted({intern(taint["key"]) for taint in spec.get("taints") or () if taint.get("key")})),
            cordoned=bool(spec.get("unschedulable")),
            deleted_at=instant(metadata.get("deletionTimestamp")),
            spot=any(labels.get(key) == value for key, value in SPOT_LABELS),
            region=intern(labels.get("topology.kubernetes.io/region", "")),
            zone=intern(labels.get("topology.kubernetes.io/zone", "")),
            instance_type=intern(labels.get("node.kubernetes.io/instance-type", "")),
        )

    @property
    def deleting(self) -> bool:
        return self.deleted_at is not None


SCHEDULED_EVENTS = ("PreemptionScheduled", "VMEventScheduled")
"""Conditions by which AKS's node problem detector reports scheduled events, the more specific one first."""

SPOT_LABELS = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-provisioning", "spot"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("node.kubernetes.io/lifecycle", "spot"),
    ("scheduling.cast.ai/spot", "true"),
    ("spotinst.io/node-lifecycle", "spot"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
"""The labels with which nodes are marked as spot capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRecord(Made):
    """The top object of an attempt, of a workload's `main` kind.

    `digest` covers all input of the attempt's rendering. `queue` is the queue in its label ("" without one),
    `suspended` is `spec.suspend`, which Kueue sets and the controller never does. `restarts` is how often the
    workload's operator has restarted all pods in place. `token_refused` is why the attempt runs without the token that
    it should require, "" if it does not.
    """

    digest: str = ""
    queue: str = ""
    suspended: bool = False
    restarts: int = 0
    token_refused: str = ""
    program_at: Instant | None = field(default=None, compare=False)
    """When its operator started the program, for its records only; None: unknown, or it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A Kubernetes Event about capacity or permissions. `at` is when it was last observed."""

    name: str
    namespace: str
    uid: str
    resource_version: str = field(default="", compare=False)
    reason: str = ""
    message: str = ""
    source: str = ""
    about_kind: str = ""
    about_name: str = ""
    about_uid: str = ""
    at: Instant | None = None
    normal: bool = False

    @classmethod
    def of(cls, event: Object) -> Self:
        metadata, about = event["metadata"], part(event, "involvedObject")
        last = part(event, "series").get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
        return cls(
            name=metadata["name"],
            namespace=metadata.get("namespace", ""),
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            reason=intern(event.get("reason") or ""),
            message=message_of(event),
            source=intern(event.get("reportingComponent") or part(event, "source").get("component") or ""),
            about_kind=intern(about.get("kind") or ""),
            about_name=about.get("name") or "",
            about_uid=about.get("uid") or "",
            at=instant(last or metadata.get("creationTimestamp")),
            normal=event.get("type") == "Normal",
        )


def token_source(pod: Object) -> tuple[str, str] | None:
    """Where the token of a Ray cluster with this pod is: the name of a Secret, and the key. None without a token."""
    for container in part(pod, "spec").get("containers") or ():
        for variable in container.get("env") or ():
            if variable.get("name") == TOKEN_VARIABLE and (source := part(part(variable, "valueFrom"), "secretKeyRef")):
                return intern(source["name"]), intern(source["key"])
    return None


def _claims(spec: Object) -> tuple[str, ...]:
    claims = (part(volume, "persistentVolumeClaim").get("claimName") for volume in spec.get("volumes") or ())
    return tuple(intern(claim) for claim in claims if isinstance(claim, str) and claim)


def _requests(spec: Object) -> str:
    """What the containers request: `cpu 64, memory 8Gi and cpu 1`."""
    asked = []
    for container in spec.get("containers") or ():
        resources = part(container, "resources")
        wanted = {**part(resources, "limits"), **part(resources, "requests")}
        asked.append(", ".join(f"{name} {amount}" for name, amount in wanted.items()))
    return intern(" and ".join(filter(None, asked))[:LONGEST_REQUESTS])


def _unit(labels: Mapping[str, str], spec: Object) -> str:
    if REPLICATED_JOB not in labels:
        return next((labels[label] for label in REPLICA_LABELS if labels.get(label)), "")
    sides = part(spec, "nodeSelector").get(TPU_TOPOLOGY, "").split("x")
    chips = prod(whole_number(side) for side in sides)
    mine = sum(_tpus(container) for container in spec.get("containers") or ())
    return f"{labels[REPLICATED_JOB]}-{labels.get(JOB_INDEX, '0')}" if 0 < mine < chips else ""


def _tpus(container: Object) -> int:
    return whole_number(part(part(container, "resources"), "limits").get("google.com/tpu"))


def launched_fields(attempt: Object) -> dict[str, Any]:
    """The fields of an attempt's main object that the controller sets when it launches the attempt."""
    annotations = attempt["metadata"].get("annotations") or {}
    return {
        "digest": annotations.get(names.DIGEST, ""),
        "token_refused": annotations.get(names.TOKEN_REFUSED, ""),
        "queue": labels_of(attempt).get(QUEUE, ""),
    }


def job_of(record: Made) -> tuple[str, str]:
    """The namespace and the name of the object's TieredJob."""
    return record.namespace, record.job


def made_fields(thing: Object) -> dict[str, Any]:
    metadata, labels = thing["metadata"], labels_of(thing)
    return {
        "name": metadata["name"],
        "namespace": intern(metadata.get("namespace", "")),
        "uid": metadata.get("uid", ""),
        "resource_version": metadata.get("resourceVersion", ""),
        "job": intern(labels.get(names.JOB, "")),
        "job_uid": intern(labels.get(names.JOB_UID, "")),
        "attempt": whole_number(labels.get(names.ATTEMPT)),
        "tier": intern(labels.get(names.TIER, "")),
        "created_at": instant(metadata.get("creationTimestamp")),
        "deleted_at": instant(metadata.get("deletionTimestamp")),
    }


def role_of(labels: Mapping[str, Any]) -> PodRole:
    """The role in the labels of a pod or of its template; a worker without one."""
    return next((role for role in PodRole if role == labels.get(names.ROLE)), PodRole.WORKER)


def role_in(template: Object) -> PodRole:
    """The role of the pods of this pod template."""
    return role_of(part(part(template, "metadata"), "labels"))


def _slot(labels: Mapping[str, str]) -> str:
    if REPLICATED_JOB not in labels:
        return ""
    return f"{labels[REPLICATED_JOB]}-{labels.get(JOB_INDEX, '0')}-{labels.get(COMPLETION_INDEX, '0')}"


def part(thing: Object, name: str) -> Object:
    return thing.get(name) or {}


def labels_of(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("labels") or {}


def conditions_of(status: Object) -> dict[str, Object]:
    return {entry["type"]: entry for entry in status.get("conditions") or () if entry.get("type")}


def message_of(thing: Object) -> str:
    return (thing.get("message") or "")[:LONGEST_MESSAGE]


def whole_number(text: Any) -> int:
    """The number, or 0 for any other value: anyone can edit labels."""
    return int(text) if isinstance(text, int | str) and str(text).isascii() and str(text).isdigit() else 0
