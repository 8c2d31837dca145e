"""The chart of the pools: rendered objects and rejected values."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.rendering.values import values
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.read import read_fleet
from tests.charts.helm import CHARTS, helm, objects, rendered
from tests.kube.apiserver import ROOT

CHART = "spotladder-pools"
EXAMPLES = {"east": "fleet", "central": "fleet", "train": "pools", "stream": "pools", "spotladder": "kind"}
"""Each cluster of the examples with its fleet file."""


def example(cluster: str) -> Fleet:
    return read_fleet(ROOT / "examples" / "fleet" / f"{EXAMPLES[cluster]}.yaml", date(2026, 11, 22)).fleet


def file_of(folder: Path, given: dict[str, Any]) -> Path:
    path = folder / "values.json"
    path.write_text(json.dumps(given), encoding="utf-8")
    return path


def installed(folder: Path, given: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(rendered(folder, "--values", file_of(folder, given), chart=CHART))


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entry for entry in found if entry["kind"] == kind]


def team(**changes: Any) -> dict[str, Any]:
    return {"namespace": "vision", "serviceAccount": {"name": "training"}, **changes}


def test_a_volume_belongs_to_the_namespace_of_its_team(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [
        {"namespace": "vision", "name": "data", "spec": {"nfs": {"server": "10.0.0.5", "path": "/"}}},
        {"namespace": "speech", "name": "data", "spec": {"csi": {"driver": "d"}, "accessModes": ["ReadOnlyMany"]}},
    ]
    found = installed(tmp_path, {"volumes": given})
    for entry, mode in zip(given, ("ReadWriteMany", "ReadOnlyMany"), strict=True):
        (volume,) = (one for one in of_kind(found, "PersistentVolume") if entry["namespace"] in one["metadata"]["name"])
        claim = {"namespace": entry["namespace"], "name": "data"}
        assert volume["spec"].items() >= {**entry["spec"], "accessModes": [mode], "claimRef": claim}.items()
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        (asks,) = (one for one in found if one["metadata"].get("namespace") == entry["namespace"])
        assert asks["spec"]["volumeName"] == volume["metadata"]["name"]
        assert (asks["spec"]["accessModes"], asks["spec"]["storageClassName"]) == ([mode], "")


def test_the_chart_passes_helm_lint(tmp_path: Path) -> None:
    result = helm(tmp_path, "lint", "--strict", CHARTS / CHART)
    assert result.returncode == 0, result.stdout + result.stderr


def test_empty_values_install_no_objects(tmp_path: Path) -> None:
    assert installed(tmp_path, {}) == []


@pytest.mark.parametrize("cluster", EXAMPLES)
def test_objects_are_those_of_the_values(cluster: str, tmp_path: Path) -> None:
    fleet = example(cluster)
    given = values(fleet, fleet.cluster(cluster))
    found = installed(tmp_path, given)
    wanted = [entry for key in ("nodeClasses", "nodePools", "computeClasses", "capacityTiers") for entry in given[key]]
    assert wanted
    for entry in wanted:
        (same,) = [o for o in of_kind(found, entry["kind"]) if o["metadata"]["name"] == entry["metadata"]["name"]]
        assert (same["apiVersion"], same["spec"]) == (entry["apiVersion"], entry["spec"])
        assert same["metadata"]["labels"].items() >= entry["metadata"].get("labels", {}).items()
        assert same["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert same["metadata"]["labels"]["app.kubernetes.io/name"] == CHART, "the removal selects NodePools by it"
    others = {entry["kind"] for entry in found} - {entry["kind"] for entry in wanted}
    teams = {"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ResourceQuota"}
    assert others <= teams | {"DaemonSet"}


@pytest.mark.parametrize(("given", "level"), [({}, "baseline"), ({"podSecurity": "restricted"}, "restricted")])
def test_namespaces_enforce_a_pod_security_standard(given: dict[str, str], level: str, tmp_path: Path) -> None:
    (namespace,) = of_kind(installed(tmp_path, {"teams": [team(**given)]}), "Namespace")
    labels = namespace["metadata"]["labels"]
    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")} == {level}


def test_a_team_writes_tieredjobs_in_its_namespace_and_reads_capacitytiers(tmp_path: Path) -> None:
    found = installed(tmp_path, {"teams": [team(groups=["vision@example.com"], users=["ada"]), team(namespace="nlp")]})
    (binding,) = of_kind(found, "RoleBinding")
    assert binding["metadata"]["namespace"] == "vision"
    subjects = [(subject["kind"], subject["name"]) for subject in binding["subjects"]]
    assert subjects == [("Group", "vision@example.com"), ("User", "ada")]
    roles = {role["metadata"]["namespace"]: role["rules"] for role in of_kind(found, "Role")}
    assert set(roles) == {"vision", "nlp"}
    for rules in roles.values():
        verbs = {resource: rule["verbs"] for rule in rules for resource in rule["resources"]}
        written = {resource for resource, granted in verbs.items() if granted != ["get", "list", "watch"]}
        assert written - {"tieredjobs/status", "pods/proxy"} == {
            "tieredjobs", "configmaps", "secrets", "persistentvolumeclaims"
        }  # fmt: skip
        assert verbs["tieredjobs"] == ["get", "list", "watch", "create", "update", "patch", "delete"]
        assert verbs["tieredjobs/status"] == verbs["pods/proxy"] == ["get"]
    (tiers,) = of_kind(found, "ClusterRole")
    assert tiers["rules"] == [
        {"apiGroups": ["spotladder.io"], "resources": ["capacitytiers"], "verbs": ["get", "list", "watch"]}
    ]
    (bound,) = of_kind(found, "ClusterRoleBinding")
    assert bound["subjects"] == binding["subjects"]


def test_a_team_without_users_has_no_bindings(tmp_path: Path) -> None:
    found = installed(tmp_path, {"teams": [team()]})
    assert {entry["kind"] for entry in found} == {"Namespace", "ServiceAccount", "Role"}
    (account,) = of_kind(found, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False


def test_permissions_have_no_wildcards(tmp_path: Path) -> None:
    for role in installed(tmp_path, {"teams": [team(groups=["a"])]}):
        for rule in role.get("rules", ()):
            assert not {"*"} & {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"pods/exec", "roles", "rolebindings"} & set(rule["resources"])


def test_prepull_pods_run_unprivileged_on_the_nodes_of_one_pool(tmp_path: Path) -> None:
    toleration = {"key": "spotladder.io/pool", "operator": "Equal", "value": "g5-spot", "effect": "NoSchedule"}
    pull = {
        "pool": "g5-spot",
        "images": ["registry.example.com/train:1", "registry.example.com/eval:2"],
        "nodeSelector": {"karpenter.sh/nodepool": "g5-spot"},
        "tolerations": [toleration],
    }
    (found,) = of_kind(installed(tmp_path, {"prePull": [pull]}), "DaemonSet")
    pod = found["spec"]["template"]["spec"]
    assert (pod["nodeSelector"], pod["tolerations"]) == (pull["nodeSelector"], [toleration])
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert [container["image"] for container in pod["containers"]] == pull["images"]
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]) == {"requests", "limits"}


OBJECT = {"metadata": {"name": "a"}, "spec": {}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nodepools": []}, "nodepools"),
        ({"nodePools": [{**OBJECT, "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool"}]}, "apiVersion"),
        ({"nodePools": [{**OBJECT, "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}]}, "kind"),
        ({"nodePools": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {}, "spec": {}}]}, "name"),
        ({"nodeClasses": [{**OBJECT, "apiVersion": "karpenter.k8s.aws/v1", "kind": "GCENodeClass"}]}, "nodeClasses"),
        ({"computeClasses": [{**OBJECT, "apiVersion": "cloud.google.com/v1", "kind": "Deployment"}]}, "kind"),
        ({"holdDuringUpgrade": "yes"}, "holdDuringUpgrade"),
        ({"capacityTiers": [{**OBJECT, "apiVersion": "v1", "kind": "CapacityTier"}]}, "apiVersion"),
        ({"teams": [{"namespace": "vision"}]}, "serviceAccount"),
        ({"teams": [team(namespace="Vision")]}, "namespace"),
        ({"teams": [team(podSecurity="strict")]}, "podSecurity"),
        ({"teams": [team(groups=["a", "a"])]}, "groups"),
        ({"teams": [team(quota={"requests.cpu": 4})]}, "requests.cpu"),
        ({"prePull": [{"pool": "a", "images": [], "nodeSelector": {"a": "b"}}]}, "images"),
        ({"prePull": [{"pool": "a", "images": ["b"], "nodeSelector": {}}]}, "nodeSelector"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    result = helm(tmp_path, "template", CHART, CHARTS / CHART, "--values", file_of(tmp_path, given))
    assert result.returncode != 0
    assert said in result.stderr


def test_values_and_schema_have_the_same_keys() -> None:
    (defaults,) = objects((CHARTS / CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHARTS / CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(defaults) == set(schema["properties"]) - {"global"}
