"""The NetworkPolicy of an attempt: which pods may connect to which of its ports."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.network_policy import KUBERAY_NAMESPACES
from spotladder.workloads.rayjob.records import RayJobRecord
from tests.workloads.builders import job, jobset_template, ray_template, tier

JOB = {"podSelector": {"matchLabels": {"spotladder.io/job-uid": "1b4e28ba"}}}
ATTEMPT = {"podSelector": {"matchLabels": {"spotladder.io/job-uid": "1b4e28ba", "spotladder.io/attempt": "12"}}}
HOME = names.Origin("1b4e28ba")
MEMBER = names.Origin("1b4e28ba", home="home-uid")


def policies(template: dict[str, Any], origin: names.Origin = HOME) -> list[dict[str, Any]]:
    of = job(template)
    objects = workload_of(of).render(of, origin, tier(of), 12, {})
    assert objects[-1]["kind"] in ("RayJob", "JobSet"), "the main object is created last"
    return [body for body in objects if body["kind"] == "NetworkPolicy"]


def rules(*, origin: names.Origin = HOME, mode: str = "HTTPMode", **changes: Any) -> list[dict[str, Any]]:
    template = ray_template()
    template["spec"]["submissionMode"] = mode
    template["spec"]["rayClusterSpec"].update(changes)
    (found,) = policies(template, origin)
    assert found["spec"]["policyTypes"] == ["Ingress"], "connections from the pods are not limited"
    assert found["spec"]["podSelector"] == (ATTEMPT if origin.home else JOB)["podSelector"]
    return list(found["spec"]["ingress"])


def submitters(*numbers: int) -> dict[str, Any]:
    named = {"key": "job-name", "operator": "In", "values": [f"digits-a{number:03d}" for number in numbers]}
    return {"podSelector": {"matchExpressions": [named]}}


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def head(parameters: dict[str, str], *ports: int) -> dict[str, Any]:
    made: dict[str, Any] = ray_template()["spec"]["rayClusterSpec"]["headGroupSpec"]
    made["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": port} for port in ports]
    return {**made, "rayStartParams": parameters}


def test_the_submitters_of_the_newest_attempts_reach_all_ports() -> None:
    """A standby attempt starts beside an attempt whose submitter still reads the output."""
    inside, _public = rules(mode="K8sJobMode")
    assert inside == {"from": [JOB, submitters(*range(5, 13))]}


def test_an_attempt_in_a_member_cluster_has_guards_of_its_own() -> None:
    """Nothing there is deleted with the job."""
    of = job(ray_template())
    budget, policy, _rayjob = workload_of(of).render(of, MEMBER, tier(of), 12, {})
    for own in (budget, policy):
        assert (own["metadata"]["name"], own["metadata"]["labels"][names.ATTEMPT]) == ("digits-a012", "12")
    assert budget["spec"]["selector"] == ATTEMPT["podSelector"]
    assert rules(origin=MEMBER)[0] == {"from": [ATTEMPT]}


def test_the_ports_are_those_of_ray_start() -> None:
    parameters = {
        "port": "7000",
        "dashboard-port": "8300",
        "metrics-export-port": "9090",
        "object-manager-port": "7001",
    }
    declared = head(parameters, 7000, 7001, 8300)
    assert rules(headGroupSpec=declared)[1] == {"ports": tcp(8080, 8265, 8300, 9090)}


KUBERAY = {
    "namespaceSelector": {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(KUBERAY_NAMESPACES)}
        ]
    },
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}},
}


@pytest.mark.parametrize(
    "changes",
    [
        {"rayVersion": None},
        {"rayVersion": ""},
        {"rayVersion": "2.40.0"},
        {"rayVersion": "nightly"},
        {"authOptions": {"mode": "disabled"}},
    ],
)
def test_the_dashboard_of_a_cluster_without_a_token_is_closed_to_other_pods(changes: dict[str, Any]) -> None:
    head = ray_template()["spec"]["rayClusterSpec"]["headGroupSpec"]
    head["template"]["spec"]["containers"][0] |= {
        "image": "example.org/team/train:7",
        "ports": [{"containerPort": 8265}],
    }
    inside, public, kuberay = rules(headGroupSpec=head, **changes)
    assert (inside, public) == ({"from": [JOB]}, {"ports": tcp(8080)})
    assert kuberay == {"from": [KUBERAY], "ports": tcp(8265)}


def test_a_dashboard_whose_port_is_unknown_is_closed_at_every_port_of_the_head() -> None:
    declared = head({"dashboard-port": "$PORT"}, 8300, 8265)
    assert rules(headGroupSpec=declared, authOptions={"mode": "disabled"})[1:] == [
        {"ports": tcp(8080)},
        {"from": [KUBERAY], "ports": tcp(8265, 8300)},
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({}, False), ({"rayVersion": "2.40.0"}, True), ({"authOptions": {"mode": "disabled"}}, False)],
)
def test_an_attempt_without_a_token_says_so(changes: dict[str, Any], said: bool) -> None:
    """The controller reports the annotation as a condition, however the job was created."""
    template = ray_template()
    template["spec"]["rayClusterSpec"].update(changes)
    of = job(template)
    rayjob = workload_of(of).render(of, HOME, tier(of), 12, {})[-1]
    refused = RayJobRecord.of({**rayjob, "metadata": {**rayjob["metadata"], "uid": "u", "resourceVersion": "1"}})
    assert ("Ray requires no token, since its version is unknown" in refused.token_refused) is said


def test_only_the_pods_of_a_jobset_reach_its_ports_but_the_declared_ones() -> None:
    template = jobset_template()
    container = template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 6006}, {"containerPort": 53, "protocol": "UDP"}]
    (found,) = policies(template)
    assert found["spec"]["ingress"] == [{"from": [JOB]}, {"ports": tcp(6006)}]


def pod_specs(template: dict[str, Any]) -> list[dict[str, Any]]:
    of = job(template)
    spec = workload_of(of).render(of, HOME, tier(of), 1, {})[-1]["spec"]
    if "replicatedJobs" in spec:
        return [entry["template"]["spec"]["template"]["spec"] for entry in spec["replicatedJobs"]]
    cluster = spec["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_pods_get_no_token_for_the_kubernetes_api_unless_the_template_asks() -> None:
    asking = ray_template()
    asking["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["automountServiceAccountToken"] = True
    assert [pod["automountServiceAccountToken"] for pod in pod_specs(asking)] == [True, False]


def test_the_head_with_rays_autoscaler_keeps_its_token() -> None:
    template = ray_template()
    template["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"] = True
    head, worker = pod_specs(template)
    assert "automountServiceAccountToken" not in head
    assert worker["automountServiceAccountToken"] is False
