"""Every row of the table of sentences: a sentence as the component says it, and its meaning."""

from __future__ import annotations

import pytest

from spotladder.workloads.provisioner_messages import (
    BLOCKERS,
    REFUSALS,
    ROWS,
    Meaning,
    Speaker,
    read,
)

NO_CAPACITY, QUOTA, BACKOFF, POOL_LIMIT = Meaning.NO_CAPACITY, Meaning.QUOTA, Meaning.BACKOFF, Meaning.POOL_LIMIT
MIXED, MISFIT, VOLUME = Meaning.MIXED, Meaning.MISFIT, Meaning.VOLUME
FAILED = (
    "Node scale up in zones us-central1-a associated with this pod failed: {}. Pod is at risk of not being scheduled."
)
IDLE = "pod didn't trigger scale-up: {}"
KARPENTER = 'Failed to schedule pod, {}, requirements=karpenter.sh/capacity-type In [spot], resources={{"cpu":"64"}}'
NONE = "no instance type"
CLAIM = "NodeClaim spot-x event: insufficient capacity, with fleet error(s), {}"

WEBHOOK = 'Internal error occurred: failed calling webhook "inject.istio.io": failed to call webhook: Post "https://x"'

CLOUDS = [
    ("Operation could not be completed as it results in exceeding approved LowPriorityCores quota", QUOTA),
    ("this subscription has reached the regional vCPU quota for spot (LowPriorityQuota)", QUOTA),
    ("subscription level spot vCPU quota for Standard_NC24 has been reached", QUOTA),
    ("SubscriptionQuotaReached", QUOTA),
    ("as it results in exceeding approved Total Regional Cores quota", QUOTA),
    ('code="QuotaExceeded"', QUOTA),
    ("GCE quota exceeded", QUOTA),
    ("QUOTA_EXCEEDED: Quota 'NVIDIA_H100_GPUS' exceeded", QUOTA),
    ("Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.", QUOTA),
    ("Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1.", QUOTA),
    ("SpotMaxPriceTooLow: Your Spot request price of 0.1 is lower than the minimum", NO_CAPACITY),
    ("The zone 'zones/us-central1-a' does not have enough resources available to fulfill the request", NO_CAPACITY),
    ("VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit", QUOTA),
    ("MaxSpotInstanceCountExceeded: Max spot instance count exceeded", QUOTA),
    ("MaxFleetCountExceeded", QUOTA),
    ("InstanceLimitExceeded", QUOTA),
    ("InsufficientInstanceCapacity: We currently do not have sufficient p4d.24xlarge capacity", NO_CAPACITY),
    ("UnfulfillableCapacity: Unable to fulfill capacity due to your request configuration", NO_CAPACITY),
    ("Could not launch Spot Instances. There is none", NO_CAPACITY),
    ("ReservationCapacityExceeded", NO_CAPACITY),
    ("InsufficientFreeAddressesInSubnet", NO_CAPACITY),
    ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", NO_CAPACITY),
    ("RESERVATION_CAPACITY_EXCEEDED", NO_CAPACITY),
    ("INSUFFICIENT_CAPACITY", NO_CAPACITY),
    ("IP_SPACE_EXHAUSTED_WITH_DETAILS", NO_CAPACITY),
    ("stockout", NO_CAPACITY),
    ("AllocationFailed: the cluster is out of capacity", NO_CAPACITY),
    ("ZonalAllocationFailed: no capacity in zone 1", NO_CAPACITY),
    ("SkuNotAvailable: currently not available in location 'eastus'", NO_CAPACITY),
    ("SKUNotAvailable", NO_CAPACITY),
    ("OverconstrainedAllocationRequest: the condition is too restrictive", NO_CAPACITY),
    ("OverconstrainedZonalAllocationRequest", NO_CAPACITY),
    ("unable to allocate resources with selected VM size", NO_CAPACITY),
    ("all requested instance types were unavailable during launch", NO_CAPACITY),
    ("insufficient capacity", NO_CAPACITY),
]
"""Errors of clouds, which every provisioner repeats."""

NODES = [
    ("pod has unbound immediate PersistentVolumeClaims", VOLUME),
    ("node(s) didn't find available persistent volumes to bind", VOLUME),
    (
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode already in-use",
        VOLUME,
    ),
    ('persistentvolumeclaim "data" not found', VOLUME),
    ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", VOLUME),
    ('running PreBind plugin "VolumeBinding": binding volumes: timed out', VOLUME),
    ("node(s) had volume node affinity conflict", MISFIT),
    ("node(s) didn't match PersistentVolume's node affinity", MISFIT),
    ("node(s) had no available volume zone", MISFIT),
    ("node(s) didn't match Pod's node affinity/selector", MISFIT),
    ("node(s) didn't match pod's node affinity", MISFIT),
    ("node(s) didn't match node selector", MISFIT),
    ("node(s) had untolerated taint {nvidia.com/gpu: present}", MISFIT),
    ("node(s) had taint {gpu: yes}, that the pod didn't tolerate", MISFIT),
]

SENTENCES: list[tuple[Speaker, str, Meaning | None]] = [
    *((Speaker.KARPENTER, text, means) for text, means in CLOUDS),
    *((Speaker.AUTOSCALER, text, means) for text, means in CLOUDS),
    *((Speaker.CHECK, text, means) for text, means in CLOUDS),
    *((Speaker.AUTOSCALER, IDLE.format(f"1 {text}"), means) for text, means in NODES),
    *(
        (Speaker.KARPENTER, KARPENTER.format(text), means)
        for text, means in (
            (f"{NONE} met the scheduling requirements or had enough resources or had a required offering", MISFIT),
            ("no instance type met the scheduling requirements or had a required offering", MISFIT),
            ("no instance type had enough resources or had a required offering", NO_CAPACITY),
            ("no instance type met all requirements", MISFIT),
            ("no instance type has enough resources", MISFIT),
            ("no instance type has the required offering", NO_CAPACITY),
            (f"{NONE} which met the requirements and had enough resources, had a required offering", NO_CAPACITY),
            (f"{NONE} which had enough resources and the required offering met the scheduling requirements", MIXED),
            (f"{NONE} which met the requirements and the required offering had the required resources", MIXED),
            ("no instance type met the requirements/resources/offering tuple", MIXED),
            ('no instance type satisfied resources {"cpu":"64"} and requirements', MIXED),
            ("minValues requirement is not met", MIXED),
            ("nodepool requirements filtered out all available instance types", MIXED),
            ("unsatisfiable topology constraint for pod anti-affinity", MIXED),
            ("reserved offerings are available but could not be reserved", MIXED),
            ("all available instance types exceed limits for nodepool (NodePool=spot)", POOL_LIMIT),
            ("node limits have been exhausted for nodepool (NodePool=spot)", POOL_LIMIT),
            ("did not tolerate taint (taint=gpu:NoSchedule)", MISFIT),
            ("incompatible requirements, key zone, zone In [a] not in zone In [b]", MISFIT),
            ('label "team" does not have known values', MISFIT),
            ("incompatible requirements, key a; no instance type has the required offering", NO_CAPACITY),
            ("incompatible requirements, key a; something new", None),
            ("something new", None),
        )
    ),
    (Speaker.KARPENTER, CLAIM.format("UnfulfillableCapacity: Unable to fulfill capacity"), NO_CAPACITY),
    (Speaker.KARPENTER, CLAIM.format("MaxSpotInstanceCountExceeded: Max spot instance count exceeded"), QUOTA),
    *(
        (Speaker.AUTOSCALER, FAILED.format(text), means)
        for text, means in (
            ("GCE out of resources", NO_CAPACITY),
            ("GCE out of resources, GCE quota exceeded", NO_CAPACITY),
            ("IP space exhausted", NO_CAPACITY),
            ("Reservation capacity exceeded", NO_CAPACITY),
            ("Reservation not ready", NO_CAPACITY),
            ("Reservation not found or incorrectly shared", NO_CAPACITY),
            ("Reservation incompatible with node group", NO_CAPACITY),
            ("Invalid Reservation: r", NO_CAPACITY),
            ("Service Account was deleted", NO_CAPACITY),
            ("Invalid TPU topology: 3x3", MISFIT),
            ("Unsupported Compact Placement Config", MISFIT),
            ('Some nodes in node group "spot" failed to appear in time', BACKOFF),
            ("Internal error", BACKOFF),
        )
    ),
    *(
        (Speaker.AUTOSCALER, IDLE.format(text), means)
        for text, means in (
            ("1 in backoff after failed scale-up", BACKOFF),
            ("3 node(s) had taint {a: b}, that the pod didn't tolerate, 1 in backoff after failed scale-up", BACKOFF),
            ("1 max node group size reached", POOL_LIMIT),
            ("1 Insufficient cpu, 1 max node group size reached", POOL_LIMIT),
            ("1 max cluster cpu, memory limit reached", POOL_LIMIT),
            ("1 max cluster size reached", POOL_LIMIT),
            ("1 not ready for scale-up", MIXED),
            ("1 at least one node can be vertically scaled", MIXED),
            ("1 Insufficient nvidia.com/gpu", MISFIT),
            ("2 node(s) didn't match Pod's node affinity/selector, 1 Insufficient cpu", MISFIT),
            ("1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints", None),
            ("1 Insufficient cpu, 1 node(s) had volume node affinity conflict", MISFIT),
        )
    ),
    (Speaker.AUTOSCALER, "pod didn't trigger scale-up", None),
    *(
        (Speaker.CHECK, text, means)
        for text, means in (
            ("Capacity is not found, CA will try to find it later.", NO_CAPACITY),
            ("Retrying after failure: GCE out of resources", NO_CAPACITY),
            ("Nodepool in backoff after failed scale-up, affected nodepools: spot", BACKOFF),
            ("Could not execute OBTAINABILITY capacitySearchStrategy in nodepool spot", BACKOFF),
            ("Nodepool not ready for scale-up, affected nodepools: spot", MIXED),
            ("Max nodepool size reached, affected nodepools: spot", POOL_LIMIT),
            ("Max cluster limit reached, nodepools out of resource: spot (cpu)", POOL_LIMIT),
            ("Provisioning Request cannot be scheduled in a single zone of a single nodepool", POOL_LIMIT),
            ("Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking errors: x", MISFIT),
            ("No nodepool with QueuedProvisioning enabled is available for scale up", MISFIT),
            ("Waiting for resources. Currently there are not enough resources available", None),
        )
    ),
    *(
        (Speaker.VOLUMES, text, means)
        for text, means in (
            ('Multi-Attach error for volume "pvc-8" Volume is already used by pod(s) w-1', VOLUME),
            ('Unable to attach or mount volumes: persistentvolumeclaim "data" not found', VOLUME),
            ('MountVolume.SetUp failed for volume "s" : secret "key" not found', Meaning.TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : secrets is forbidden', Meaning.TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : references non-existent secret key: k', Meaning.TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : object "a"/"kube-root-ca.crt" not registered', MIXED),
            ("driver name gcsfuse.csi.storage.gke.io not found in the list of registered CSI drivers", VOLUME),
            ("AttachVolume.Attach failed: CSINode n does not contain driver ebs.csi.aws.com", VOLUME),
            ('MountVolume.NodeAffinity check failed for volume "pv": no matching NodeSelectorTerms', VOLUME),
            ('MountVolume.SetUp failed for volume "kube-api" : failed to sync configmap cache: timed out', MIXED),
            ('AttachVolume.Attach failed for volume "pvc-8": rpc error', VOLUME),
            ('MountVolume.MountDevice failed for volume "pvc-8": rpc error', VOLUME),
            ('MapVolume.SetUpDevice failed for volume "pvc-8": rpc error', VOLUME),
            ("Unable to attach or mount volumes: unmounted volumes=[data]: timed out", VOLUME),
            ("timeout expired waiting for volumes to attach or mount for pod", VOLUME),
        )
    ),
    *((Speaker.CONTAINER, row.says, row.means) for row in ROWS if row.speaker is Speaker.CONTAINER),
    *(
        (Speaker.API, text, means)
        for text, means in (
            ('pods "w" is forbidden: exceeded quota: gpu, requested: nvidia.com/gpu=8', Meaning.RESOURCE_QUOTA),
            ('pods "w" is forbidden: failed quota: gpu: must specify limits.cpu', Meaning.TEMPLATE),
            ("pods is forbidden: insufficient quota to match these scopes", Meaning.RESOURCE_QUOTA),
            ('User "system:serviceaccount:a:b" cannot create resource "pods"', Meaning.RIGHTS),
            ('User "x" cannot get resource "secrets"', Meaning.RIGHTS),
            ('User "x" cannot patch resource "rayjobs"', Meaning.RIGHTS),
            ('admission webhook "warden" denied the request: GKE Warden rejected it', Meaning.ADMISSION),
            ('pods "w" violates PodSecurity "restricted:latest"', Meaning.ADMISSION),
            ('pods "w" is forbidden: maximum cpu usage per Container is 4', Meaning.ADMISSION),
            ('Pod "w" is invalid: spec.containers[0].image: Required value', Meaning.ADMISSION),
            (f"{WEBHOOK}: context deadline exceeded", Meaning.NO_ANSWER),
            (f'{WEBHOOK}: no endpoints available for service "istiod"', Meaning.NO_ANSWER),
            ('admission webhook "policy" denied the request: context deadline exceeded', Meaning.ADMISSION),
            ("etcdserver: request timed out", Meaning.NO_ANSWER),
            ("Timeout: request did not complete - context deadline exceeded", Meaning.NO_ANSWER),
            ("the server was unable to return a response in the time allotted", Meaning.NO_ANSWER),
            ('Operation cannot be fulfilled on resourcequotas "q": the object has been modified', Meaning.NO_ANSWER),
            ('pods "w" is forbidden: status unknown for quota: q, resources: limits.cpu', Meaning.NO_ANSWER),
            ("connection refused", None),
        )
    ),
]  # fmt: skip

SCHEDULER = "0/4 nodes are available: {}. preemption: 0/4 nodes are available: {}."
UNHELPFUL, FULL = "4 Preemption is not helpful for scheduling", "4 No preemption victims found for incoming pod"


@pytest.mark.parametrize(("speaker", "sentence", "means"), SENTENCES)
def test_a_sentence_has_the_meaning_of_its_row(speaker: Speaker, sentence: str, means: Meaning | None) -> None:
    row = read(speaker, sentence)
    assert (None if row is None else row.means) is means


@pytest.mark.parametrize(
    ("nodes", "preemption", "means"),
    [
        *((f"4 {text}", UNHELPFUL, means) for text, means in NODES if means is VOLUME or "volume" in text),
        ("4 Insufficient cpu", UNHELPFUL, MISFIT),
        ("3 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu", UNHELPFUL, MISFIT),
        ("4 Insufficient cpu", FULL, None),
        ("4 Insufficient cpu", "1 No preemption victims found for incoming pod, 3 Preemption is not helpful", None),
        ("4 Insufficient cpu", "not eligible due to preemptionPolicy=Never.", None),
        ("3 node(s) had volume node affinity conflict, 1 Insufficient cpu", FULL, None),
        # The nodes of a tier that is scaled to zero do not exist yet: only its autoscaler can say more.
        ("4 node(s) didn't match Pod's node affinity/selector", UNHELPFUL, None),
        ("4 node(s) had untolerated taint {gpu: }", UNHELPFUL, None),
        ("4 Too many pods", FULL, None),
    ],
)  # fmt: skip
def test_the_scheduler_speaks_of_the_nodes_that_exist(nodes: str, preemption: str, means: Meaning | None) -> None:
    row = read(Speaker.SCHEDULER, SCHEDULER.format(nodes, preemption))
    assert (None if row is None else row.means) is means


def test_every_row_has_a_sentence_here() -> None:
    said = {(row.speaker, row.says) for speaker, text, _ in SENTENCES if (row := read(speaker, text)) is not None}
    unsaid = [row for row in ROWS if (row.speaker, row.says) not in said and row.speaker is not Speaker.SCHEDULER]
    assert unsaid == []


def test_missing_capacity_blocks_no_other_tier_and_a_misfit_names_a_remedy() -> None:
    assert REFUSALS.isdisjoint(BLOCKERS), "missing capacity of one tier blocks no other tier"
    assert all(row.upstream for row in ROWS)
    assert all(row.remedy for row in ROWS if row.means in (MISFIT, VOLUME)), "each row names a remedy"
