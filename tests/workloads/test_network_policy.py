"""The NetworkPolicy of an attempt: which pods may connect to which of its ports."""

from __future__ import annotations

from typing import Any

from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from tests.workloads.builders import job, jobset_template, ray_template, tier

OWN = {"podSelector": {"matchLabels": {"spotladder.io/job-uid": "1b4e28ba", "spotladder.io/attempt": "2"}}}
SUBMITTER = {"podSelector": {"matchLabels": {"job-name": "digits-a002"}}}


def policies(template: dict[str, Any]) -> list[dict[str, Any]]:
    of = job(template)
    objects = workload_of(of).render(of, names.Origin("1b4e28ba"), tier(of), 2, {})
    assert objects[-1]["kind"] in ("RayJob", "JobSet"), "the main object is created last"
    return [body for body in objects if body["kind"] == "NetworkPolicy"]


def rules(**changes: Any) -> list[dict[str, Any]]:
    template = ray_template()
    template["spec"]["rayClusterSpec"].update(changes)
    (found,) = policies(template)
    assert found["spec"]["policyTypes"] == ["Ingress"], "connections from the pods are not limited"
    assert found["spec"]["podSelector"] == OWN["podSelector"]
    return list(found["spec"]["ingress"])


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def head(parameters: dict[str, str], *ports: int) -> dict[str, Any]:
    made: dict[str, Any] = ray_template()["spec"]["rayClusterSpec"]["headGroupSpec"]
    made["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": port} for port in ports]
    return {**made, "rayStartParams": parameters}


def test_only_the_pods_of_the_attempt_and_its_submitter_reach_all_ports() -> None:
    inside, public = rules()
    assert inside == {"from": [OWN, SUBMITTER]}
    assert public == {"ports": tcp(8080, 8265)}, "everyone reaches the metrics and the dashboard"


def test_declared_ports_are_public_except_those_that_control_ray() -> None:
    declared = head({}, 6006, 6379, 8265, 10001, 52365)
    assert rules(headGroupSpec=declared)[1] == {"ports": tcp(6006, 8080, 8265)}


def test_the_ports_are_those_of_ray_start() -> None:
    parameters = {
        "port": "7000",
        "dashboard-port": "8300",
        "metrics-export-port": "9090",
        "object-manager-port": "7001",
    }
    declared = head(parameters, 7000, 7001, 8300)
    assert rules(headGroupSpec=declared)[1] == {"ports": tcp(8080, 8265, 8300, 9090)}


def test_a_port_that_is_read_from_a_variable_is_public_if_it_is_declared() -> None:
    assert rules(headGroupSpec=head({"dashboard-port": "$PORT"}, 8300))[1] == {"ports": tcp(8080, 8265, 8300)}


def test_a_jobset_has_no_policy() -> None:
    assert policies(jobset_template()) == []
