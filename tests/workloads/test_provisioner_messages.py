"""What sentences mean: each row by its own text, and sentences in which several rows have a part."""

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
MIXED, MISFIT, VOLUME, TEMPLATE = Meaning.MIXED, Meaning.MISFIT, Meaning.VOLUME, Meaning.TEMPLATE
ADMISSION, NO_ANSWER = Meaning.ADMISSION, Meaning.NO_ANSWER
PROVISIONERS = (Speaker.KARPENTER, Speaker.AUTOSCALER, Speaker.CHECK)
FAILED = (
    "Node scale up in zones us-central1-a associated with this pod failed: {}. Pod is at risk of not being scheduled."
)
IDLE = "pod didn't trigger scale-up: {}"
KARPENTER = 'Failed to schedule pod, {}, requirements=karpenter.sh/capacity-type In [spot], resources={{"cpu":"64"}}'
CLAIM = "NodeClaim spot-x event: insufficient capacity, with fleet error(s), {}"
WEBHOOK = 'Internal error occurred: failed calling webhook "inject.istio.io": failed to call webhook: Post "https://x"'

SENTENCES: list[tuple[Speaker, str, Meaning | None]] = [
    *(
        (speaker, row.says, row.means)
        for row in ROWS
        if row.speaker is not Speaker.SCHEDULER
        for speaker in (PROVISIONERS if row.speaker is Speaker.CLOUD else (row.speaker,))
    ),
    *(
        (speaker, text, means)
        for speaker in PROVISIONERS
        for text, means in (
            ("Operation could not be completed as it results in exceeding approved LowPriorityCores quota", QUOTA),
            ("QUOTA_EXCEEDED: Quota 'NVIDIA_H100_GPUS' exceeded", QUOTA),
            ("Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1.", QUOTA),
            ("InsufficientInstanceCapacity: We currently do not have sufficient p4d.24xlarge capacity", NO_CAPACITY),
            ("The zone 'zones/us-a' does not have enough resources available to fulfill the request", NO_CAPACITY),
            ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", NO_CAPACITY),
            ("ZonalAllocationFailed: no capacity in zone 1", NO_CAPACITY),
        )
    ),
    *(
        (Speaker.KARPENTER, KARPENTER.format(text), means)
        for text, means in (
            ("no instance type met the scheduling requirements or had a required offering", MISFIT),
            ("no instance type which met the requirements and had enough resources, had a required offering",
             NO_CAPACITY),
            ('no instance type satisfied resources {"cpu":"64"} and requirements', MIXED),
            ("all available instance types exceed limits for nodepool (NodePool=spot)", POOL_LIMIT),
            ("incompatible requirements, key a; no instance type has the required offering", NO_CAPACITY),
            ("incompatible requirements, key a; something new", None),
            ("something new", None),
        )
    ),
    (Speaker.KARPENTER, CLAIM.format("UnfulfillableCapacity: Unable to fulfill capacity"), NO_CAPACITY),
    (Speaker.KARPENTER, CLAIM.format("MaxSpotInstanceCountExceeded: Max spot instance count exceeded"), QUOTA),
    (Speaker.AUTOSCALER, FAILED.format("GCE out of resources, GCE quota exceeded"), NO_CAPACITY),
    (Speaker.AUTOSCALER, FAILED.format('Some nodes in node group "spot" failed to appear in time'), BACKOFF),
    *(
        (Speaker.AUTOSCALER, IDLE.format(text), means)
        for text, means in (
            ("3 node(s) had taint {a: b}, that the pod didn't tolerate, 1 in backoff after failed scale-up", BACKOFF),
            ("1 Insufficient cpu, 1 max node group size reached", POOL_LIMIT),
            ("1 max cluster cpu, memory limit reached", POOL_LIMIT),
            ("2 node(s) didn't match Pod's node affinity/selector, 1 Insufficient cpu", MISFIT),
            ("1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints", None),
            ("1 Insufficient cpu, 1 node(s) had volume node affinity conflict", MISFIT),
        )
    ),
    (Speaker.AUTOSCALER, "pod didn't trigger scale-up", None),
    (Speaker.CHECK, "Retrying after failure: GCE out of resources", NO_CAPACITY),
    (Speaker.CHECK, "Max cluster limit reached, nodepools out of resource: spot (cpu)", POOL_LIMIT),
    (Speaker.CHECK, "Waiting for resources. Currently there are not enough resources available", None),
    *(
        (Speaker.VOLUMES, text, means)
        for text, means in (
            ('Unable to attach or mount volumes: persistentvolumeclaim "data" not found', VOLUME),
            ('MountVolume.SetUp failed for volume "s" : secret "key" not found', TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : secrets is forbidden', TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : references non-existent secret key: k', TEMPLATE),
            ('MountVolume.SetUp failed for volume "s" : object "a"/"kube-root-ca.crt" not registered', MIXED),
            ("driver name gcsfuse.csi.storage.gke.io not found in the list of registered CSI drivers", VOLUME),
            ("AttachVolume.Attach failed: CSINode n does not contain driver ebs.csi.aws.com", VOLUME),
            ('MountVolume.SetUp failed for volume "kube-api" : failed to sync configmap cache: timed out', MIXED),
        )
    ),
    *(
        (Speaker.API, text, means)
        for text, means in (
            ('pods "w" is forbidden: exceeded quota: gpu, requested: nvidia.com/gpu=8', Meaning.RESOURCE_QUOTA),
            ('pods "w" is forbidden: failed quota: gpu: must specify limits.cpu', TEMPLATE),
            ("pods is forbidden: insufficient quota to match these scopes", Meaning.RESOURCE_QUOTA),
            ('pods is forbidden: User "a:b" cannot create resource "pods"', Meaning.RIGHTS),
            ('pods "w" is forbidden: violates PodSecurity "restricted:latest"', ADMISSION),
            (f"{WEBHOOK}: context deadline exceeded", NO_ANSWER),
            ('admission webhook "policy" denied the request: context deadline exceeded', ADMISSION),
            ('pods "w" is forbidden: status unknown for quota: q, resources: limits.cpu', NO_ANSWER),
            ("connection refused", None),
        )
    ),
]  # fmt: skip
"""The text of each row, which no other row may hide, and sentences of the components."""

SCHEDULER = "0/4 nodes are available: {}. preemption: 0/4 nodes are available: {}."
UNHELPFUL, FULL = "4 Preemption is not helpful for scheduling", "4 No preemption victims found for incoming pod"


@pytest.mark.parametrize(("speaker", "sentence", "means"), SENTENCES)
def test_a_sentence_has_the_meaning_of_its_row(speaker: Speaker, sentence: str, means: Meaning | None) -> None:
    row = read(speaker, sentence)
    assert (None if row is None else row.means) is means


@pytest.mark.parametrize(
    ("nodes", "preemption", "means"),
    [
        *((f"4 {row.says}", UNHELPFUL, row.means) for row in ROWS if row.speaker is Speaker.SCHEDULER),
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


def test_missing_capacity_blocks_no_other_tier_and_a_misfit_names_a_remedy() -> None:
    assert REFUSALS.isdisjoint(BLOCKERS), "missing capacity of one tier blocks no other tier"
    assert all(row.upstream for row in ROWS)
    assert all(row.remedy for row in ROWS if row.means in (MISFIT, VOLUME)), "each row names a remedy"
