"""The chart's pod that shows the page to all users of a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spotladder.cli.web import HOST_NAME
from tests.charts.helm import CHARTS, GLOBAL, Name, changes, named
from tests.kube.apiserver import ROOT


def test_the_page_is_a_pod_that_reads_no_secret_and_answers_only_a_proxy(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    shown = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", shown, re.DOTALL)
    values.write_text(text, encoding="utf-8")
    new, gone, changed = changes("--values", str(values))
    home, web = "spotladder-system", "spotladder-web"
    output = ("Role", "default", web)
    role = ("ClusterRole", "", f"{GLOBAL}-web")
    kinds = ("Deployment", "Service", "ServiceAccount", "NetworkPolicy")
    assert (gone, changed) == (set(), set())
    assert new == {
        *((kind, home, web) for kind in kinds), output, ("RoleBinding", *output[1:]),
        role, ("ClusterRoleBinding", *role[1:]),
    }  # fmt: skip
    found = named("--values", str(values))

    def rights(name: Name) -> set[tuple[str, str]]:
        return {(kind, verb) for rule in found[name]["rules"] for kind in rule["resources"] for verb in rule["verbs"]}

    everywhere = {(kind, verb) for kind in ("tieredjobs", "capacitytiers") for verb in ("list", "watch")}
    assert rights(role) == everywhere | {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    assert rights(output) == {("pods", "list"), ("pods/log", "get")}
    spec = found["Deployment", home, web]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"] == ["web", "--all-namespaces", "--host=spotladder.example.com"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not {"env", "envFrom", "volumeMounts"} & container.keys()
    policy = found["NetworkPolicy", home, web]["spec"]
    assert policy["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "oauth2-proxy"
    }
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443, 6443}
    assert 'upstreams = ["http://spotladder-web.spotladder-system"]' in shown
    assert found["Service", home, web]["spec"]["ports"][0]["port"] == 80
    for name in (("Service", home, web), ("NetworkPolicy", home, web)):
        chosen = found[name]["spec"].get("selector") or found[name]["spec"]["podSelector"]["matchLabels"]
        assert chosen.items() <= found["Deployment", home, web]["spec"]["template"]["metadata"]["labels"].items()


def test_with_all_namespaces_the_page_reads_output_everywhere() -> None:
    found = named("--set", "web.host=a.example,namespaces={*}", "--set-json", "web.from=[]")
    assert ("Role", "default", "spotladder-web") not in found
    rules = found["ClusterRole", "", f"{GLOBAL}-web"]["rules"]
    assert {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]} in rules
    policy = found["NetworkPolicy", "spotladder-system", "spotladder-web"]["spec"]
    assert policy["ingress"] == [], "an empty list of peers would open the page to all"


def test_the_chart_and_the_command_accept_the_same_host_names() -> None:
    schema = json.loads((CHARTS / "spotladder" / "values.schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["web"]["properties"]["host"]["pattern"] == f"^({HOST_NAME})?$"
