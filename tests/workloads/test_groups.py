"""Groups of pods beside the tier: data workers, heads that train alone, Ray's autoscaler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.accelerators import asks_for_accelerators
from spotladder.api.groups import on_tier
from spotladder.api.problems import InvalidDocument
from spotladder.api.review import review
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import PodPhase, PodRole
from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.file_review import warnings
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.listed_tiers import resolve_tiers
from spotladder.workloads.rayjob.records import RayClusterRecord, RayJobRecord
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import RAY_GROUP, REPLICATED_JOB
from spotladder.workloads.review import problems
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import NODES, capacity, job, metadata, pod, ray_template, tier

CPU_NODES = {"node.kubernetes.io/instance-type": "r6i.4xlarge"}
GPU = {"nvidia.com/gpu": "1"}
DATA_TIER = {"groups": {"data": {"capacityTier": "cpu"}}}


def pod_template(limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "ray", "image": "example.org/train:1", "resources": {"limits": limits or {}}}
    return {"spec": {"containers": [container], **spec}}


def worker_group(name: str, limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    pods = pod_template(limits, **({"nodeSelector": CPU_NODES} if limits is None else {}))
    return {"groupName": name, "replicas": 4, "template": pods, **more}


def ray(*groups: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    template = ray_template()
    template["spec"]["rayClusterSpec"] |= {"workerGroupSpecs": list(groups), **cluster}
    return template


def mixed(**data: Any) -> dict[str, Any]:
    """Four GPU trainers, and four data workers on CPU nodes."""
    return ray(worker_group("gpu", GPU), worker_group("data", **data))


def jobset_of_two() -> dict[str, Any]:
    jobs = [
        {"name": "trainers", "template": {"spec": {"parallelism": 2, "template": pod_template(GPU)}}},
        {"name": "data", "template": {"spec": {"parallelism": 3, "template": pod_template(nodeSelector=CPU_NODES)}}},
    ]
    return {"spec": {"replicatedJobs": jobs}}


def attempt_of(of: TieredJob, **more: Any) -> dict[str, Any]:
    """The rendered RayJob or JobSet on spot nodes of AWS, with 0.1 USD for a node of the CapacityTier `cpu`."""
    cpu = capacity(provider="aws", capacityType="on-demand", price={"perNodeHour": "0.1"})
    tiers = resolve_tiers(of, {"pool": capacity(provider="aws", capacityType="spot", **more), "cpu": cpu})
    return workload_of(of).render(of, names.Origin("u-1"), tiers[0], 1, {})[-1]


def groups_of(rayjob: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["groupName"]: group for group in rayjob["spec"]["rayClusterSpec"]["workerGroupSpecs"]}


def role(template: dict[str, Any]) -> str:
    found: str = template["metadata"]["labels"][names.ROLE]
    return found


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (GPU, True),
        ({"nvidia.com/mig-1g.5gb": 1}, True),
        ({"google.com/tpu": "4"}, True),
        ({"aws.amazon.com/neuron": 1}, True),
        ({"nvidia.com/gpu": 0}, False),
        ({"vpc.amazonaws.com/efa": 1}, False),
        ({"rdma/hca": 1}, False),
        ({"cpu": "14", "memory": "100Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Gi"}, False),
    ],
)
def test_accelerators_are_extended_resources_that_compute(limits: dict[str, Any], expected: bool) -> None:
    assert asks_for_accelerators(pod_template(limits)["spec"]) is expected


@pytest.mark.parametrize(
    ("groups", "elsewhere", "expected"),
    [
        ([("gpu", True), ("data", False)], (), (True, False)),
        ([("a", False), ("b", False)], (), (True, True)),
        ([("a", True), ("b", True)], (), (True, True)),
        ([("a", False), ("b", False)], ("b",), (True, False)),
        ([("a", True), ("b", True)], ("b",), (True, False)),
    ],
)
def test_which_groups_are_on_the_tier(
    groups: list[tuple[str, bool]], elsewhere: tuple[str, ...], expected: tuple[bool, ...]
) -> None:
    assert on_tier(groups, elsewhere) == expected


def test_data_workers_keep_their_own_nodes_and_are_not_counted() -> None:
    overrides = {"image": "example.org/spot:1", "resources": {"limits": {"memory": "9Gi"}}}
    of = job(mixed(), tier={"overrides": overrides})
    groups = groups_of(attempt_of(of))
    trainer, data = (groups[name]["template"] for name in ("gpu", "data"))
    assert trainer["spec"]["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}
    assert trainer["spec"]["containers"][0]["image"] == "example.org/spot:1"
    assert data["spec"]["nodeSelector"] == CPU_NODES
    assert data["spec"]["containers"][0]["image"] == "example.org/train:1"
    assert "affinity" not in data["spec"]
    assert (role(trainer), role(data)) == ("worker", "auxiliary")
    assert workload_of(of).workers(of) == 4


def test_a_tier_names_the_capacity_of_a_group() -> None:
    data = worker_group("data", {})
    of = job(ray(worker_group("gpu", GPU), data), tier=DATA_TIER)
    template = groups_of(attempt_of(of))["data"]["template"]
    assert template["spec"]["nodeSelector"] == {"karpenter.sh/capacity-type": "on-demand"}
    assert role(template) == "auxiliary"


def test_a_group_on_its_capacity_must_not_contradict_it() -> None:
    of = job(ray(worker_group("gpu", GPU), worker_group("data")), tier=DATA_TIER)
    cpu = capacity(provider="aws", instanceTypes=["c7i.large"])
    resolved = resolve_tiers(of, {"pool": capacity(), "cpu": cpu})[0]
    with pytest.raises(InvalidSpec, match=r"requires r6i\.4xlarge") as error:
        workload_of(of).render(of, names.Origin("u-1"), resolved, 1, {})
    assert error.value.path.endswith(
        'workerGroupSpecs[1].template.spec.nodeSelector["node.kubernetes.io/instance-type"]'
    )


def test_the_capacity_of_a_group_is_in_the_tiers_cluster() -> None:
    of = job(mixed(), tier=DATA_TIER)
    with pytest.raises(InvalidSpec, match='is in cluster "west"') as error:
        resolve_tiers(of, {"pool": capacity(), "cpu": capacity(cluster="west")})
    assert error.value.path == "spec.tiers[0].groups.data.capacityTier"


def test_an_unknown_capacity_of_a_group_is_located() -> None:
    with pytest.raises(InvalidDocument) as error:
        resolve_tiers(job(mixed(), tier=DATA_TIER), {"pool": capacity()})
    assert [problem.path for problem in error.value.problems] == ["spec.tiers[0].groups.data.capacityTier"]


@pytest.mark.parametrize(
    ("named", "path", "message"),
    [
        ({"dta": {"capacityTier": "cpu"}}, "spec.tiers[0].groups.dta", "did you mean data?"),
        (
            {"gpu": {"capacityTier": "cpu"}, "data": {"capacityTier": "cpu"}},
            "spec.tiers[0].groups",
            "must leave at least one group on the tier",
        ),
    ],
)
def test_groups_that_do_not_fit_the_workload(named: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as error:
        job(mixed(), tier={"groups": named})
    (problem,) = error.value.problems
    assert problem.path == path
    assert message in problem.message


def test_the_number_of_workers_is_the_same_on_every_tier() -> None:
    template = ray(worker_group("a", GPU), worker_group("b", GPU))
    named = {"groups": {"b": {"capacityTier": "cpu"}}}
    tiers: list[dict[str, Any]] = [
        {"name": "one", "capacityTier": "pool"},
        {"name": "two", "capacityTier": "pool", **named},
    ]
    with pytest.raises(InvalidDocument, match=r'must agree with tiers\[0\] about the group "b"'):
        job(template, tiers=tiers)
    both = [dict(entry, **named) for entry in tiers]
    of = job(template, tiers=both)
    assert workload_of(of).workers(of) == 4


@pytest.mark.parametrize("groups", [[], [worker_group("idle", {}, replicas=0)]])
def test_a_head_alone_trains_on_the_tier(groups: list[dict[str, Any]]) -> None:
    of = job(ray(*groups))
    made = attempt_of(of)
    head = made["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    assert workload_of(of).workers(of) == 1
    assert head["spec"]["nodeSelector"]["karpenter.sh/capacity-type"] == "spot"
    assert role(head) == "head"
    record = RayJobRecord.of({**made, "metadata": {**made["metadata"], "uid": "u"}, "status": {}})
    (seen,) = RAYJOB.read(1, AttemptObjects(record, (), (pod("head", role="head"),)), NODES).pods
    assert seen.role is PodRole.WORKER


def test_a_head_with_the_accelerators_of_the_job_is_on_the_tier() -> None:
    of = job(ray(worker_group("data"), headGroupSpec={"template": pod_template(GPU)}))
    made = attempt_of(of)
    assert workload_of(of).workers(of) == 1
    assert role(groups_of(made)["data"]["template"]) == "auxiliary"


def test_a_jobset_may_have_jobs_beside_the_tier() -> None:
    of = job(jobset_of_two())
    made = attempt_of(of)
    trainers, data = (entry["template"]["spec"]["template"] for entry in made["spec"]["replicatedJobs"])
    assert workload_of(of).workers(of) == 2
    assert (role(trainers), role(data)) == ("worker", "auxiliary")
    assert data["spec"]["nodeSelector"] == CPU_NODES
    record = JobSetRecord.of({**made, "metadata": {**made["metadata"], "uid": "u"}})
    labels = {REPLICATED_JOB: "data"}
    lost = pod("data-0-0", role="auxiliary", labels=labels, phase="Failed", exit_code=137)
    seen = JOBSET.read(1, AttemptObjects(record, (), (lost,)), NODES)
    assert [entry.role for entry in seen.pods[:5]] == [PodRole.WORKER] * 2 + [PodRole.AUXILIARY] * 3
    assert [entry.role for entry in seen.pods if entry.phase is PodPhase.LOST] == [PodRole.AUXILIARY]


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_fewer_workers_on_the_tier_are_an_elastic_job() -> None:
    with pytest.raises(InvalidDocument, match=r"spec\.elastic: \{min: 2\}") as error:
        job(ray(worker_group("gpu", GPU, minReplicas=2), worker_group("data", minReplicas=1)))
    (problem,) = error.value.problems
    assert problem.path.endswith("workerGroupSpecs[0].minReplicas")


def test_the_autoscaler_does_not_start_the_workers_of_a_tier() -> None:
    with pytest.raises(InvalidDocument, match="replicas: must be 1 or more") as error:
        job(
            ray(worker_group("gpu", GPU, replicas=0, maxReplicas=4), worker_group("data"), enableInTreeAutoscaling=True)
        )
    assert error.value.problems[0].path.endswith("workerGroupSpecs[0].replicas")


def cluster(*, autoscaled: bool) -> AttemptObjects:
    made = attempt_of(job(mixed()))
    status = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": "digits-a001-xk2lp"}
    top = RayJobRecord.of({**made, "metadata": {**made["metadata"], "uid": "u"}, "status": status})
    spec = {**made["spec"]["rayClusterSpec"], "enableInTreeAutoscaling": autoscaled}
    groups = {entry["groupName"]: entry for entry in spec["workerGroupSpecs"]}
    groups["data"]["replicas"] = 7
    running = RayClusterRecord.of({"metadata": metadata("digits-a001-xk2lp"), "spec": spec})
    gone = pod("d-0", role="auxiliary", labels={RAY_GROUP: "data"}, deleted=True)
    return AttemptObjects(top, (running,), (gone,))


def test_data_workers_are_no_surplus_and_not_replaced() -> None:
    assert RAYJOB.read(1, cluster(autoscaled=False), NODES).surplus == 0
    assert RAYJOB.replacing(cluster(autoscaled=False), {"uid-d-0"}, remove=False) is None


@pytest.mark.parametrize(("autoscaled", "lost"), [(True, 0), (False, 1)])
def test_data_workers_that_the_autoscaler_removes_are_not_lost(autoscaled: bool, lost: int) -> None:
    seen = RAYJOB.read(1, cluster(autoscaled=autoscaled), NODES)
    assert [entry.phase for entry in seen.pods] == [PodPhase.LOST] * lost


def test_the_contradictions_of_all_groups_are_reported_at_once() -> None:
    wrong = {"karpenter.sh/capacity-type": "on-demand"}
    groups = [{"groupName": name, "replicas": 1, "template": pod_template(GPU, nodeSelector=wrong)} for name in "ab"]
    of = job(ray(*groups))
    found = [error.path for error in problems(of, [tier(of, provider="aws", capacityType="spot")])]
    assert [path.partition("workerGroupSpecs")[2][:3] for path in found] == ["[0]", "[1]"]


def test_groups_without_a_price_are_named(tmp_path: Path) -> None:
    of = {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        **job(mixed()).model_dump(mode="json", by_alias=True),
    }
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(of))
    found = [problem for problem in warnings(review([file], more_capacity=True)) if problem.path == "spec.tiers[0]"]
    assert [problem.message.partition(",")[0] for problem in found] == ['the pods of "data" are not on the tier']
