"""What the sentences of schedulers, autoscalers, volume controllers and the API server mean for a pod that does not
run: one table, and the functions that read it.

A cause belongs to what it names. A cloud's quota is per purchase option and region, so it is missing capacity of one
tier, and only a ResourceQuota of the namespace is the same for all tiers. A row is matched by its text alone: the
first row of a speaker whose text is in the sentence decides.

Autoscalers report on all of their node groups at once, and those of other tiers never match a pod. So `meaning` reads
such a report part by part: one part that may change decides, and a pod is a misfit only if every part says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from spotladder.core.model import Blocker


class Speaker(StrEnum):
    """The component whose sentences a row describes."""

    KARPENTER = "Karpenter"
    AUTOSCALER = "Cluster Autoscaler"
    CHECK = "Kueue's provisioning check"
    CLOUD = "a cloud, through any of these"
    SCHEDULER = "scheduler"
    VOLUMES = "volumes"  # the attach/detach controller and the kubelet
    CONTAINER = "container"  # the reason why the kubelet does not run it
    API = "API server"  # also as repeated by the operators that create pods


class Meaning(StrEnum):
    """What a sentence means for the pod."""

    NO_CAPACITY = "no capacity"
    QUOTA = "cloud quota"
    BACKOFF = "backoff"
    POOL_LIMIT = "limit of the pool"
    MIXED = "several causes"
    MISFIT = "misfit"
    VOLUME = "volume"
    IMAGE = "image"
    RESOURCE_QUOTA = "ResourceQuota"
    RIGHTS = "rights"
    ADMISSION = "admission rejected"
    TEMPLATE = "template"
    NO_ANSWER = "no answer"


REFUSALS = frozenset({Meaning.NO_CAPACITY, Meaning.QUOTA, Meaning.BACKOFF})
"""The tier gives no node now: `onInsufficientCapacity: fallback` leaves it at once."""

BLOCKERS: Mapping[Meaning, Blocker] = MappingProxyType(
    {
        Meaning.VOLUME: Blocker.VOLUME,
        Meaning.IMAGE: Blocker.IMAGE,
        Meaning.RESOURCE_QUOTA: Blocker.QUOTA,
        Meaning.RIGHTS: Blocker.FORBIDDEN,
        Meaning.ADMISSION: Blocker.TEMPLATE,
        Meaning.TEMPLATE: Blocker.TEMPLATE,
        Meaning.NO_ANSWER: Blocker.NO_ANSWER,
    }
)
"""Causes that are the same on every tier."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence. `says` is its invariable part, `upstream` the source file or the page that has it, `remedy` what
    the user can do, where the sentence itself does not say it."""

    speaker: Speaker
    says: str
    means: Meaning
    upstream: str
    remedy: str = ""

    @property
    def lasts(self) -> bool:
        """Whether a pod that fits no node still fits none after a wait: the provisioner speaks of all nodes that it can
        make. The scheduler speaks of those that exist, and Karpenter leaves out machines without capacity."""
        return self.means is Meaning.MISFIT and self.speaker in _PROVISIONERS and self.remedy != _SMALLER_OR_OTHER

    @property
    def names_volume(self) -> bool:
        """Whether the cause is a volume of the pod."""
        return self.means is Meaning.VOLUME or self.remedy == _ZONE


_SMALLER = "request less, or give the tier larger machines"
_SMALLER_OR_OTHER = f"{_SMALLER}; Karpenter also says this while all machines that are large enough are out of capacity"
_LABELS = "correct the selectors and tolerations of the template, or the labels and taints of the tier's nodes"
_ONE_NODE = (
    "the volume is attached to another node and only one node may have it (ReadWriteOnce): it is free once the pod "
    "that uses it is gone; use a ReadWriteMany volume or the checkpoint store for data that several pods need"
)
_ZONE = "the volume exists in another zone: use a volume in a zone of the tier, or tiers in the volume's zone"
_SMALLER_OR_LABELS = f"{_SMALLER}; or {_LABELS}"
_RESERVATION = "correct the reservation of the node pool"
_DRIVER = "see the events of the pod and of the VolumeAttachment; the volume's driver must attach and mount it"
_CLAIM = "create the claim, or correct its StorageClass, size and access mode: `kubectl describe pvc` says why"

_DRIVER_MISSING = "install the volume's CSI driver on the nodes of the tier, with tolerations for their taints"

_KARPENTER = "karpenter pkg/controllers/provisioning/scheduling/nodeclaim.go"
_KARPENTER_POOLS = "karpenter pkg/controllers/provisioning/scheduling/scheduler.go"
_KARPENTER_AWS = "karpenter-provider-aws pkg/errors/errors.go"
_KARPENTER_AZURE = "karpenter-provider-azure pkg/providers/instance/offerings/commonerrorhandlers.go"
_KARPENTER_GCP = "karpenter-provider-gcp pkg/providers/instance/instance.go"
_SKIPPED = "autoscaler core/scaleup/orchestrator/skippedreasons.go"
_GKE = "GKE autoscaler, Autopilot and node auto-provisioning: failed scale-up Events"
_DWS = "GKE Dynamic Workload Scheduler: reasons of failed ProvisioningRequests"
_PREDICATES = "kubernetes pkg/scheduler/framework/plugins"
_ATTACH = "kubernetes pkg/controller/volume/attachdetach"
_MOUNT = "kubernetes pkg/kubelet/volumemanager, pkg/volume/util/operationexecutor"
_IMAGES = "kubernetes pkg/kubelet/images/types.go"
_AZURE = "learn.microsoft.com/azure: allocation failures"
_GCE = "autoscaler cloudprovider/gce/autoscaling_gce_client.go"

# The predicates that fail on a node of an empty group, as the autoscaler and the scheduler name them.
_NODES: tuple[tuple[str, Meaning, str, str], ...] = (
    ("unbound immediate PersistentVolumeClaims", Meaning.VOLUME, f"{_PREDICATES}/volumebinding", _CLAIM),
    ("didn't find available persistent volumes to bind", Meaning.VOLUME, f"{_PREDICATES}/volumebinding", _CLAIM),
    ("ReadWriteOncePod access mode already in-use", Meaning.VOLUME, f"{_PREDICATES}/volumerestrictions", _ONE_NODE),
    ("persistentvolumeclaim", Meaning.VOLUME, f"{_PREDICATES}/volumebinding", _CLAIM),
    ("bound to non-existent pv(s)", Meaning.VOLUME, f"{_PREDICATES}/volumebinding", _CLAIM),
    ("binding volumes:", Meaning.VOLUME, f"{_PREDICATES}/volumebinding", _CLAIM),
    ("didn't match PersistentVolume's node affinity", Meaning.MISFIT, f"{_PREDICATES}/volumebinding", _ZONE),
    ("had volume node affinity conflict", Meaning.MISFIT, f"{_PREDICATES}/volumebinding, before 1.33", _ZONE),
    ("had no available volume zone", Meaning.MISFIT, f"{_PREDICATES}/volumezone", _ZONE),
    ("didn't match Pod's node affinity/selector", Meaning.MISFIT, f"{_PREDICATES}/nodeaffinity", _LABELS),
    ("didn't match pod's node affinity", Meaning.MISFIT, f"{_PREDICATES}/nodeaffinity", _LABELS),
    ("didn't match node selector", Meaning.MISFIT, "kubernetes before 1.20", _LABELS),
    ("had untolerated taint", Meaning.MISFIT, f"{_PREDICATES}/tainttoleration", _LABELS),
    ("that the pod didn't tolerate", Meaning.MISFIT, "kubernetes before 1.24", _LABELS),
    ("Insufficient ", Meaning.MISFIT, f"{_PREDICATES}/noderesources/fit.go", _SMALLER),
)


def _rows(speaker: Speaker, *rows: tuple[str, Meaning, str] | tuple[str, Meaning, str, str]) -> tuple[Row, ...]:
    return tuple(Row(speaker, *row) for row in rows)


ROWS: tuple[Row, ...] = (
    *_rows(
        Speaker.KARPENTER,
        ("no instance type met the scheduling requirements or", Meaning.MISFIT, _KARPENTER, _LABELS),
        ("no instance type had enough resources or had a required offering", Meaning.NO_CAPACITY, _KARPENTER),
        ("no instance type met all requirements", Meaning.MISFIT, _KARPENTER, _LABELS),
        ("no instance type has enough resources", Meaning.MISFIT, _KARPENTER, _SMALLER_OR_OTHER),
        ("no instance type has the required offering", Meaning.NO_CAPACITY, _KARPENTER),
        ("and had enough resources, had a required offering", Meaning.NO_CAPACITY, _KARPENTER),
        ("and the required offering met the scheduling requirements", Meaning.MIXED, _KARPENTER),
        ("and the required offering had the required resources", Meaning.MIXED, _KARPENTER),
        ("met the requirements/resources/offering tuple", Meaning.MIXED, _KARPENTER),
        ("no instance type satisfied resources", Meaning.MIXED, "karpenter before 0.29"),
        ("minValues", Meaning.MIXED, "karpenter pkg/cloudprovider/types.go"),
        ("filtered out all available instance types", Meaning.MIXED, _KARPENTER_POOLS),
        (
            "unsatisfiable topology constraint",
            Meaning.MIXED,
            "karpenter pkg/controllers/provisioning/scheduling/topology.go",
        ),
        ("could not be reserved", Meaning.MIXED, _KARPENTER),
        ("exceed limits", Meaning.POOL_LIMIT, _KARPENTER_POOLS),
        ("node limits have been exhausted", Meaning.POOL_LIMIT, _KARPENTER_POOLS),
        ("did not tolerate", Meaning.MISFIT, "karpenter pkg/scheduling/taints.go", _LABELS),
        ("incompatible requirements", Meaning.MISFIT, _KARPENTER, _LABELS),
        ("does not have known values", Meaning.MISFIT, "karpenter pkg/scheduling/requirements.go", _LABELS),
    ),
    *_rows(
        Speaker.AUTOSCALER,
        ("out of resources", Meaning.NO_CAPACITY, _GKE),
        ("IP space exhausted", Meaning.NO_CAPACITY, _GKE),
        ("Reservation capacity exceeded", Meaning.NO_CAPACITY, _GKE),
        ("Reservation not ready", Meaning.NO_CAPACITY, _GKE),
        ("Reservation not found", Meaning.NO_CAPACITY, _GKE, _RESERVATION),
        ("Reservation incompatible", Meaning.NO_CAPACITY, _GKE, _RESERVATION),
        ("Invalid Reservation", Meaning.NO_CAPACITY, _GKE, _RESERVATION),
        ("Service Account was deleted", Meaning.NO_CAPACITY, _GKE, "restore the service account of the node pool"),
        ("Invalid TPU", Meaning.MISFIT, _GKE, "correct the TPU type and topology of the template"),
        ("Unsupported Compact Placement", Meaning.MISFIT, _GKE, "correct the placement policy of the node pool"),
        ("failed to appear in time", Meaning.BACKOFF, _GKE),
        ("Internal error", Meaning.BACKOFF, _GKE),
        ("in backoff after failed scale-up", Meaning.BACKOFF, _SKIPPED),
        ("max node group size reached", Meaning.POOL_LIMIT, _SKIPPED),
        ("limit reached", Meaning.POOL_LIMIT, _SKIPPED),
        ("max cluster size reached", Meaning.POOL_LIMIT, _DWS),
        ("not ready for scale-up", Meaning.MIXED, _SKIPPED),
        ("can be vertically scaled", Meaning.MIXED, _SKIPPED),
        *_NODES,
    ),
    *_rows(
        Speaker.CHECK,
        ("Capacity is not found", Meaning.NO_CAPACITY, "autoscaler provisioningrequest/conditions"),
        ("out of resources", Meaning.NO_CAPACITY, _GKE),
        ("in backoff after failed scale-up", Meaning.BACKOFF, _DWS),
        ("OBTAINABILITY", Meaning.BACKOFF, _DWS),
        ("not ready for scale-up", Meaning.MIXED, _DWS),
        ("Max nodepool size reached", Meaning.POOL_LIMIT, _DWS),
        ("Max cluster", Meaning.POOL_LIMIT, _DWS),
        ("in a single zone of a single nodepool", Meaning.POOL_LIMIT, _DWS),
        ("pods cannot be scheduled in the nodepool", Meaning.MISFIT, _DWS, _SMALLER_OR_LABELS),
        (
            "No nodepool with QueuedProvisioning",
            Meaning.MISFIT,
            _DWS,
            "enable queued provisioning for a node pool of the tier",
        ),
    ),
    *_rows(
        Speaker.CLOUD,
        ("LowPriorityCores", Meaning.QUOTA, _KARPENTER_AZURE),
        ("LowPriorityQuota", Meaning.QUOTA, _KARPENTER_AZURE),
        ("vCPU quota", Meaning.QUOTA, _KARPENTER_AZURE),
        ("SubscriptionQuotaReached", Meaning.QUOTA, _KARPENTER_AZURE),
        ("exceeding approved", Meaning.QUOTA, "Azure: OperationNotAllowed, Total Regional Cores and family quotas"),
        ("QuotaExceeded", Meaning.QUOTA, "Azure: code of a failed allocation"),
        ("GCE quota exceeded", Meaning.QUOTA, _GKE),
        ("QUOTA_EXCEEDED", Meaning.QUOTA, _GCE),
        ("GPUS_ALL_REGIONS", Meaning.QUOTA, "Compute Engine: quota metric"),
        ("Quota '", Meaning.QUOTA, "Compute Engine: Quota 'METRIC' exceeded"),
        ("VcpuLimitExceeded", Meaning.QUOTA, _KARPENTER_AWS),
        ("MaxSpotInstanceCountExceeded", Meaning.QUOTA, _KARPENTER_AWS),
        ("MaxFleetCountExceeded", Meaning.QUOTA, _KARPENTER_AWS),
        ("InstanceLimitExceeded", Meaning.QUOTA, "EC2 API: error codes"),
        ("SpotMaxPriceTooLow", Meaning.NO_CAPACITY, "EC2 API: error codes"),
        ("InsufficientInstanceCapacity", Meaning.NO_CAPACITY, _KARPENTER_AWS),
        ("UnfulfillableCapacity", Meaning.NO_CAPACITY, _KARPENTER_AWS),
        ("Could not launch Spot Instances", Meaning.NO_CAPACITY, "EC2 Auto Scaling: scaling activities"),
        ("ReservationCapacityExceeded", Meaning.NO_CAPACITY, _KARPENTER_AWS),
        ("InsufficientFreeAddressesInSubnet", Meaning.NO_CAPACITY, _KARPENTER_AWS),
        ("RESOURCE_POOL_EXHAUSTED", Meaning.NO_CAPACITY, _GCE),
        (
            "does not have enough resources available",
            Meaning.NO_CAPACITY,
            "Compute Engine: resource availability errors",
        ),
        ("RESERVATION_CAPACITY_EXCEEDED", Meaning.NO_CAPACITY, _GCE),
        ("INSUFFICIENT_CAPACITY", Meaning.NO_CAPACITY, _GCE),
        ("IP_SPACE_EXHAUSTED", Meaning.NO_CAPACITY, _KARPENTER_GCP),
        ("stockout", Meaning.NO_CAPACITY, _GKE),
        ("AllocationFailed", Meaning.NO_CAPACITY, _AZURE),
        ("SkuNotAvailable", Meaning.NO_CAPACITY, _AZURE),
        ("SKUNotAvailable", Meaning.NO_CAPACITY, _KARPENTER_AZURE),
        ("OverconstrainedAllocation", Meaning.NO_CAPACITY, _AZURE),
        ("OverconstrainedZonalAllocation", Meaning.NO_CAPACITY, _AZURE),
        ("unable to allocate resources", Meaning.NO_CAPACITY, _KARPENTER_AZURE),
        (
            "all requested instance types were unavailable",
            Meaning.NO_CAPACITY,
            "karpenter-provider-aws, -gcp: instance.go",
        ),
        ("insufficient capacity", Meaning.NO_CAPACITY, "karpenter pkg/cloudprovider/types.go"),
    ),
    *_rows(Speaker.SCHEDULER, *(row for row in _NODES if row[-1] != _LABELS)),
    *_rows(
        Speaker.VOLUMES,
        ("Multi-Attach error", Meaning.VOLUME, _ATTACH, _ONE_NODE),
        ("persistentvolumeclaim", Meaning.VOLUME, _MOUNT, _CLAIM),
        ("list of registered CSI drivers", Meaning.VOLUME, "kubernetes pkg/volume/csi", _DRIVER_MISSING),
        ("does not contain driver", Meaning.VOLUME, "kubernetes pkg/volume/csi", _DRIVER_MISSING),
        ("not registered", Meaning.MIXED, "kubernetes pkg/kubelet/util/manager"),
        ("non-existent", Meaning.TEMPLATE, "kubernetes pkg/volume/secret, configmap"),
        ("not found", Meaning.TEMPLATE, _MOUNT),
        ("forbidden", Meaning.TEMPLATE, _MOUNT),
        ("no matching NodeSelectorTerms", Meaning.VOLUME, _MOUNT, _ZONE),
        ("failed to sync", Meaning.MIXED, "kubernetes pkg/kubelet/util/manager"),
        ("AttachVolume", Meaning.VOLUME, _ATTACH, _DRIVER),
        ("MountVolume", Meaning.VOLUME, _MOUNT, _DRIVER),
        ("MapVolume", Meaning.VOLUME, _MOUNT, _DRIVER),
        ("Unable to attach or mount volumes", Meaning.VOLUME, _MOUNT, _DRIVER),
        ("waiting for volumes to attach", Meaning.VOLUME, _MOUNT, _DRIVER),
    ),
    *_rows(
        Speaker.CONTAINER,
        ("ImagePullBackOff", Meaning.IMAGE, _IMAGES),
        ("ErrImagePull", Meaning.IMAGE, _IMAGES),
        ("ErrImageNeverPull", Meaning.IMAGE, _IMAGES),
        ("InvalidImageName", Meaning.IMAGE, _IMAGES),
        ("ImageInspectError", Meaning.IMAGE, _IMAGES),
        ("RegistryUnavailable", Meaning.IMAGE, _IMAGES),
        ("SignatureValidationFailed", Meaning.IMAGE, _IMAGES),
        ("CreateContainerConfigError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/kuberuntime"),
        ("CreateContainerError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/kuberuntime"),
        ("RunContainerError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/container"),
        ("PreCreateHookError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/kuberuntime"),
        ("PreStartHookError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/kuberuntime"),
        ("PostStartHookError", Meaning.TEMPLATE, "kubernetes pkg/kubelet/kuberuntime"),
    ),
    *_rows(
        Speaker.API,
        ("denied the request", Meaning.ADMISSION, "kubernetes: admission webhooks; GKE Autopilot's Warden"),
        ("failed calling webhook", Meaning.NO_ANSWER, "kubernetes apiserver pkg/admission/plugin/webhook"),
        ("etcdserver:", Meaning.NO_ANSWER, "etcd api/v3rpc/rpctypes/error.go"),
        ("context deadline exceeded", Meaning.NO_ANSWER, "kubernetes apiserver pkg/endpoints/handlers/finisher"),
        ("unable to return a response in the time", Meaning.NO_ANSWER, "kubernetes apimachinery pkg/api/errors"),
        ("object has been modified", Meaning.NO_ANSWER, "kubernetes: concurrent updates of a ResourceQuota"),
        ("status unknown for quota", Meaning.NO_ANSWER, "kubernetes: a ResourceQuota that is not calculated yet"),
        ("exceeded quota", Meaning.RESOURCE_QUOTA, "kubernetes: admission plugin ResourceQuota"),
        ("failed quota", Meaning.TEMPLATE, "kubernetes: admission plugin ResourceQuota"),
        ("insufficient quota", Meaning.RESOURCE_QUOTA, "kubernetes: admission plugin ResourceQuota"),
        (" cannot create resource ", Meaning.RIGHTS, "kubernetes: RBAC authorizer"),
        (" cannot get resource ", Meaning.RIGHTS, "kubernetes: RBAC authorizer"),
        (" cannot patch resource ", Meaning.RIGHTS, "kubernetes: RBAC authorizer"),
        ("violates PodSecurity", Meaning.ADMISSION, "kubernetes: admission plugin PodSecurity"),
        ("forbidden", Meaning.ADMISSION, "kubernetes: admission plugins, such as LimitRanger and Priority"),
        ("is invalid", Meaning.ADMISSION, "kubernetes: validation"),
    ),
)
"""The table. The rows of a speaker are tried in this order."""

_BY_SPEAKER: Mapping[Speaker, tuple[Row, ...]] = MappingProxyType(
    {speaker: tuple(row for row in ROWS if row.speaker is speaker) for speaker in Speaker}
)
_PROVISIONERS = (Speaker.KARPENTER, Speaker.AUTOSCALER, Speaker.CHECK)
_COUNTED = re.compile(r",\s*(?=\d+ )")
_MAY_CHANGE = (Meaning.NO_CAPACITY, Meaning.QUOTA, Meaning.BACKOFF, Meaning.POOL_LIMIT, Meaning.MIXED, Meaning.VOLUME)


def read(speaker: Speaker, sentence: str) -> Row | None:
    """The row that says what the sentence means; None if the table has none, so that nothing is concluded from it."""
    match speaker:
        case Speaker.KARPENTER:  # It reports on one NodePool after the other.
            return _of_all(speaker, sentence.split(";"))
        case Speaker.AUTOSCALER:  # "2 Insufficient cpu, 1 in backoff after failed scale-up": numbers of node groups.
            return _of_all(speaker, _COUNTED.split(sentence))
        case Speaker.SCHEDULER:
            return _of_scheduler(sentence)
    return _first(speaker, sentence)


def says(speaker: Speaker, *means: Meaning) -> tuple[str, ...]:
    """The parts of sentences of this speaker with one of these meanings."""
    return tuple(row.says for row in _BY_SPEAKER[speaker] if row.means in means)


def _first(speaker: Speaker, sentence: str) -> Row | None:
    rows = _BY_SPEAKER[speaker] + (_BY_SPEAKER[Speaker.CLOUD] if speaker in _PROVISIONERS else ())
    return next((row for row in rows if row.says in sentence), None)


def _of_all(speaker: Speaker, parts: Iterable[str]) -> Row | None:
    """What a report on several pools means: the part that may change decides; a misfit is one in every pool."""
    found = [_first(speaker, part) for part in parts if part.strip()]
    for means in _MAY_CHANGE:
        if row := next((row for row in found if row is not None and row.means is means), None):
            return row
    rows = [row for row in found if row is not None]
    if not rows or len(rows) < len(found):
        return None
    # The pools of other tiers always have other labels: the part on the tier's own pool says more.
    return next((row for row in rows if row.remedy != _LABELS), rows[0])


def _of_scheduler(sentence: str) -> Row | None:
    """What the scheduler's sentence on the nodes that exist means. "Insufficient cpu" is also said of nodes that are
    merely full. A pod fits no node only where the removal of all other pods would not help either: then the scheduler
    (Kubernetes 1.32 and newer) says that preemption is not helpful."""
    nodes, _, preemption = sentence.partition("preemption:")
    rows = [row for part in _COUNTED.split(nodes) if (row := _first(Speaker.SCHEDULER, part)) is not None]
    if row := next((row for row in rows if row.means is Meaning.VOLUME), None):
        return row
    if "No preemption victims found" in preemption:
        return None
    if too_small := next((row for row in rows if row.remedy == _SMALLER), None):
        return too_small if "not helpful" in preemption else None
    return next((row for row in rows if row.remedy == _ZONE), None)
