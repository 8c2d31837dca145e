"""The controller values that a fleet file renders, and that chart and controller accept them."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from spotladder.operator.settings import Settings, read_settings
from spotladder_infra.rendering.controller import controller_values, tenancy
from spotladder_infra.rollout.components import CONTROLLER
from spotladder_infra.rollout.plan import plan
from spotladder_infra.topology.fleet import Fleet
from tests.charts.helm import objects, rendered
from tests.docs.markdown import blocks
from tests.topology.builders import PLATFORM, fleet_file


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


def installed(folder: Path, fleet: Fleet, cluster: str) -> list[dict[str, Any]]:
    path = folder / "values.json"
    path.write_text(json.dumps(controller_values(fleet, fleet.cluster(cluster))), encoding="utf-8")
    return objects(rendered(folder, "--values", path))


def settings(folder: Path, found: list[dict[str, Any]]) -> Settings:
    (config,) = [entry for entry in found if entry["kind"] == "ConfigMap"]
    file = folder / "config.yaml"
    file.write_text(config["data"]["config.yaml"], encoding="utf-8")
    return read_settings(file, {})


def test_each_team_has_its_clusters_and_its_prefix_of_their_buckets(fleet: Fleet) -> None:
    assert tenancy(fleet) == [
        {
            "namespaces": ["team-a"],
            "clusters": ["home", "west", "alpha", "lab", "laptop"],
            "uris": ["s3://acme-east/team-a", "gs://acme-central/team-a"],
        },
        {"namespaces": ["team-b"], "clusters": ["west"], "uris": ["gs://acme-central/team-b"]},
    ]


def test_a_member_lists_the_teams_that_it_accepts(fleet: Fleet) -> None:
    names = {name: controller_values(fleet, fleet.cluster(name))["namespaces"] for name in ("east", "west", "lab")}
    assert names == {"east": ["team-a", "team-b"], "west": ["team-a", "team-b"], "lab": ["team-a"]}


def test_a_smoke_job_runs_in_every_cluster(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, (PLATFORM, f"{PLATFORM}  rollout: {{smoke: {{job: smoke.yaml}}}}\n")).fleet
    assert tenancy(fleet)[-1] == {"namespaces": ["default"], "clusters": ["*"]}
    assert controller_values(fleet, fleet.cluster("lab"))["namespaces"] == ["team-a", "default"]


def test_without_teams_every_namespace_may_use_every_cluster(tmp_path: Path) -> None:
    first = '  - {name: team-a, budget: 5000, quota: {accelerators: 64, cpu: "512"}}\n'
    changes = (("  teams:\n", ""), (first, ""), ("  - {name: team-b, clusters: [west]}\n", ""))
    fleet = fleet_file(tmp_path, *changes).fleet
    assert tenancy(fleet) == [{"namespaces": ["*"], "clusters": ["*"]}]
    assert controller_values(fleet, fleet.cluster("lab"))["namespaces"] == ["*"]


def test_the_home_controller_has_the_other_clusters(fleet: Fleet, tmp_path: Path) -> None:
    found = settings(tmp_path, installed(tmp_path, fleet, "east"))
    assert set(found.clusters) == {"west", "alpha", "lab", "laptop"}
    assert {address.kubeconfig.secret_name for address in found.clusters.values() if address.kubeconfig} == {
        "cluster-west", "cluster-alpha", "cluster-lab", "cluster-laptop"
    }  # fmt: skip
    assert len(found.tenancy) == 2


def test_the_documented_values_select_a_prometheus_and_make_a_budget_an_alert(tmp_path: Path) -> None:
    (shown,) = (block.text for block in blocks("yaml") if "prometheusRule" in block.text)
    fleet = fleet_file(tmp_path, (PLATFORM, indent(shown, "  "))).fleet
    step = next(step for step in plan(fleet, fleet.cluster("east")).releases if step.name == CONTROLLER.name)
    path = tmp_path / "values.json"
    path.write_text(json.dumps(step.values), encoding="utf-8")
    found = {entry["kind"]: entry for entry in objects(rendered(tmp_path, "--values", path))}
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert found[kind]["metadata"]["labels"]["release"] == "prometheus"
    alerts = found["PrometheusRule"]["spec"]["groups"][1]["rules"]
    budgets = [alert for alert in alerts if alert["alert"] == "SpotladderBudgetExceeded"]
    spent = 'namespace:spotladder_namespace_cost_usd:increase30d{namespace="team-a"}'
    assert [alert["expr"] for alert in budgets] == [f"{spent} > 0.8 * 5000", f"{spent} > 1 * 5000"]
    assert "the budget is 5000 USD" in budgets[0]["annotations"]["summary"]


ROLE = "eks.amazonaws.com/role-arn"
IRSA = f"""\
    context: lab-admin
    provider: aws
    region: us-east-1
    serviceAccountAnnotations: {{team-a: {{{ROLE}: "arn:aws:iam::123456789012:role/team-a"}}}}
"""


def test_controller_and_jobs_of_an_existing_cluster_have_roles_by_irsa(tmp_path: Path) -> None:
    """The webhook of EKS gives a role to the pods whose service account has the annotation. The web page needs none."""
    annotated = f"serviceAccount: {{annotations: {{{ROLE}: 'arn:aws:iam::123456789012:role/controller'}}}}"
    web = "web: {host: jobs.example.com}"
    platform = f"{PLATFORM.rstrip().removesuffix('}}')}, {annotated}, {web}}}}}\n"
    changes = (("home: east", "home: lab"), ("    context: lab-admin\n", IRSA), (PLATFORM, platform))
    fleet = fleet_file(tmp_path, *changes).fleet
    roles = {}
    for step in plan(fleet, fleet.cluster("lab")).releases:
        if step.name in ("pools", CONTROLLER.name):
            path = tmp_path / "values.json"
            path.write_text(json.dumps(step.values), encoding="utf-8")
            for entry in objects(rendered(tmp_path, "--values", path, chart=step.chart.name)):
                if entry["kind"] == "ServiceAccount":
                    place = f"{entry['metadata']['namespace']}/{entry['metadata']['name']}"
                    roles[place] = entry["metadata"].get("annotations", {}).get(ROLE)
    assert roles == {
        "spotladder-system/spotladder-controller": "arn:aws:iam::123456789012:role/controller",
        "spotladder-system/spotladder-web": None,
        "team-a/training": "arn:aws:iam::123456789012:role/team-a",
        "team-b/training": None,
    }


def test_the_controller_runs_on_system_nodes_under_the_name_of_its_identity(fleet: Fleet, tmp_path: Path) -> None:
    found = installed(tmp_path, fleet, "east")
    (account,) = [entry for entry in found if entry["kind"] == "ServiceAccount"]
    assert account["metadata"]["name"] == "spotladder-controller"
    (deployment,) = [entry for entry in found if entry["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "spotladder-controller"
    assert pod["nodeSelector"] == {"spotladder.io/pool": "system"}
    assert pod["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert {"name": "AWS_REGION", "value": "us-east-1"} in pod["containers"][0]["env"]


@pytest.mark.parametrize("cluster", ["west", "lab", "laptop"])
def test_member_clusters_get_only_permissions(cluster: str, fleet: Fleet, tmp_path: Path) -> None:
    found = installed(tmp_path, fleet, cluster)
    assert not {"Deployment", "ConfigMap"} & {entry["kind"] for entry in found}
    assert "spotladder-token" in {entry["metadata"]["name"] for entry in found if entry["kind"] == "Secret"}
