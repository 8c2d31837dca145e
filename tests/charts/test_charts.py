"""The charts: rendered objects, rejected values, and consistency with the code and the docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings, read_settings
from tests import golden
from tests.charts import dashboards
from tests.charts.dashboards import DASHBOARDS
from tests.charts.helm import CHARTS, GLOBAL, Name, changes, helm, named, objects, release
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.apiserver import ROOT

MONITORED = ("--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true",
             "--set", "prometheusRule.runbookUrl=https://docs.example/runbook",
             "--set", "prometheusRule.monthlyBudgets.team-a=5000")  # fmt: skip
CASES: dict[str, tuple[str, ...]] = {
    "default": (),
    "all-namespaces": ("--set", "namespaces={*}"),
    "two-namespaces": ("--set", "namespaces={team-a,team-b}"),
    "everything": (
        *MONITORED,
        "--set", "image.repository=spotladder,image.digest=sha256:" + 64 * "0",
        "--set", "serviceAccount.annotations.identity=spotladder",
        "--set", "controller.environment.AWS_ENDPOINT_URL=https://store.example",
        "--set", "envFrom[0].secretRef.name=bucket,checkpointSecrets={bucket}",
        "--set", "podLabels.team=ml,podAnnotations.note=x,nodeSelector.pool=system,priorityClassName=high",
        "--set", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
        "--set", "networkPolicy.apiServerPorts={6443},networkPolicy.cloudMetadata=false",
        "--set", "tolerations[0].key=system,tolerations[0].operator=Exists",
        "--set", "imagePullSecrets[0].name=registry",
    ),
    "clusters": (
        "--set", "clusters.east.kubeconfig.secretName=cluster-east",
        "--set", "clusters.west.eks.name=training,clusters.west.eks.region=us-west-2",
        "--set", "clusters.europe.gke.project=ml,clusters.europe.gke.location=europe-west4",
        "--set", "clusters.europe.gke.name=training",
    ),
    "access": (
        "--set", "tenancy[0].namespaces={team-a,team-b},tenancy[0].uris={s3://ml/teams/,file:///data}",
        "--set", "tenancy[0].endpoints={https://store.example:9000,http://plain.example}",
        "--set", "tenancy[1].namespaces={*},tenancy[1].uris={gs://*}",
        "--set", "namespaces={team-a,team-b},allowSpotNodes=true",
        "--set", "env[0].name=AWS_ENDPOINT_URL,env[0].value=http://minio.minio:9001/,env[1].name=AWS_REGION",
        "--set", "controller.environment.AWS_ENDPOINT_URL=http://minio.minio:9001,networkPolicy.metricsFrom=null",
    ),
    "dashboards": ("--set", "dashboards.enabled=true,dashboards.instanceSelector.matchLabels.app=grafana"),
    "notify": ("--set", "notify.secretName=receivers,notify.kinds={FellBack,Failed}"),
    "traces": (
        "--set", "notify.otlpEndpoint=http://collector:4318,notify.serviceAccountAnnotations.role=reader",
    ),
    "member": ("--set", "member.enabled=true,rbac.secrets=true"),
    "member-by-group": (
        "--set", "member.enabled=true,serviceAccount.create=false",
        "--set", "member.subjects[0].kind=Group,member.subjects[0].name=spotladder",
        "--set", "member.subjects[0].apiGroup=rbac.authorization.k8s.io,namespaces={team-a}",
    ),
    "nothing-optional": (
        "--set", "serviceAccount.create=false,serviceAccount.name=mine,rbac.create=false,rbac.userRoles=false",
        "--set", "podDisruptionBudget.enabled=false,networkPolicy.enabled=false",
    ),
}  # fmt: skip


@pytest.mark.parametrize("chart", ["spotladder", "spotladder-crds"])
def test_the_charts_pass_helm_lint(chart: str, tmp_path: Path) -> None:
    result = helm(tmp_path, "lint", "--strict", CHARTS / chart)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_rendered_charts_equal_their_golden_files() -> None:
    default, everything = map(with_labels_once, (release(), release(*CASES["everything"])))
    golden.check("charts/golden/default.yaml", default)
    golden.check("charts/golden/everything.diff", golden.difference(default, everything))


def with_labels_once(text: str) -> str:
    """The objects with the labels that all have in the first one only."""
    found = re.search(r"(?:^    (?:app\.kubernetes\.io|helm\.sh)/.*\n)+", text, re.MULTILINE)
    assert found is not None
    before, labels, after = text.partition(found[0])
    return before + labels + after.replace(labels, "    # as above\n")


def test_an_own_name_is_that_of_every_object() -> None:
    default, renamed = (
        re.sub("checksum/config: .*", "", release(*values)) for values in ((), ("--set", "fullnameOverride=ladder"))
    )
    assert re.sub(r"(?<!spot)ladder", "spotladder", renamed) == default


# --- differences from the default release ----------------------------------------------------------------------------

CONFIG = ("ConfigMap", "spotladder-system", "spotladder")
CLUSTER_ROLE = ("ClusterRole", "", GLOBAL)
DEPLOYMENT = ("Deployment", "spotladder-system", "spotladder")
TENANCY = ("ValidatingAdmissionPolicy", "", f"{GLOBAL}-tenancy")
NETWORK = ("NetworkPolicy", "spotladder-system", "spotladder")


def test_namespaces_move_the_permissions_into_roles() -> None:
    default, found = named(*CASES["all-namespaces"]), named(*CASES["two-namespaces"])
    homes = {("team-a", "spotladder"), ("team-b", "spotladder"), ("default", "spotladder-events")}
    assert found.keys() - default.keys() == {(kind, *home) for home in homes for kind in ("Role", "RoleBinding")}
    assert {each for each in default if default[each] != found[each]} == {CONFIG, CLUSTER_ROLE, TENANCY}
    mine = found["Role", "team-a", "spotladder"]["rules"]
    assert mine == found["Role", "team-b", "spotladder"]["rules"]
    for rule in found[CLUSTER_ROLE]["rules"]:
        if rule["resources"] == ["namespaces"]:
            assert rule.pop("resourceNames") == ["team-a", "team-b", "kube-system"]
    assert found[CLUSTER_ROLE]["rules"] + mine == default[CLUSTER_ROLE]["rules"]
    assert ("Role", "default", "spotladder") in named(), "a fresh install runs jobs in one namespace"
    events = found["Role", "default", "spotladder-events"]["rules"]
    assert events == [{"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]}]
    for namespace, name in homes:
        binding = found["RoleBinding", namespace, name]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("Role", name)
        assert binding["subjects"] == default["ClusterRoleBinding", "", GLOBAL]["subjects"]


def test_other_clusters_need_their_kubeconfigs_and_the_identity_of_the_home_cluster() -> None:
    lease = ("Role", "spotladder-system", "spotladder-lease")
    assert changes(*CASES["clusters"]) == (set(), set(), {CONFIG, lease})
    default, found = named(), named(*CASES["clusters"])

    def added(name: Name) -> list[tuple[list[str], list[str], list[str]]]:
        rules = [rule for rule in found[name]["rules"] if rule not in default[name]["rules"]]
        return [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in rules]

    assert added(lease) == [(["secrets"], ["cluster-east"], ["get"])]


def test_the_admission_policy_has_the_rules_and_the_namespaces_of_the_release() -> None:
    name = TENANCY[2]
    default, found = named(*CASES["two-namespaces"]), named(*CASES["access"])
    policy = found[TENANCY]["spec"]
    (namespaces,) = policy["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert (namespaces["operator"], namespaces["values"]) == ("In", ["team-a", "team-b"])
    (allowed,) = [json.loads(entry["expression"]) for entry in policy["variables"] if entry["name"] == "rules"]
    assert allowed == [
        {"namespaces": ["team-a", "team-b"], "uris": ["s3://ml/teams", "file:///data"]},
        {"namespaces": ["*"], "uris": ["gs://*"]},
    ]
    binding = found["ValidatingAdmissionPolicyBinding", "", name]["spec"]
    assert binding == {"policyName": name, "validationActions": ["Deny"]}
    changed = {each for each in default if default[each] != found[each]}
    assert (found.keys(), changed) == (default.keys(), {CONFIG, DEPLOYMENT, NETWORK, TENANCY})
    (container,) = found[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
    (plain,) = default[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
    env = {"AWS_ENDPOINT_URL": "http://minio.minio:9001/", "AWS_REGION": None}
    assert {entry["name"]: entry.get("value") for entry in container.pop("env")} == env
    assert container == plain


def test_a_release_may_have_only_what_runs_the_controller() -> None:
    found = named(*CASES["nothing-optional"])
    policies = {
        (f"ValidatingAdmissionPolicy{kind}", "", f"{GLOBAL}-{name}")
        for kind in ("", "Binding")
        for name in ("fence", "tenancy")
    }
    runs = {CONFIG, DEPLOYMENT, ("Service", "spotladder-system", "spotladder"), ("PriorityClass", "", GLOBAL)}
    assert set(found) == runs | policies
    added, _removed, changed = changes(*CASES["nothing-optional"])
    assert (added, changed) == (set(), {DEPLOYMENT, ("ValidatingAdmissionPolicy", "", f"{GLOBAL}-fence")})
    assert found[DEPLOYMENT]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_a_member_has_the_default_permissions_without_those_for_jobs() -> None:
    """TieredJobs and their Events, CapacityTiers and the election exist only in the home cluster."""
    group = ("--set", "member.subjects[0].kind=Group,member.subjects[0].name=spotladder,serviceAccount.create=false")
    everywhere = CASES["all-namespaces"]
    default = named(*everywhere)
    found = named("--set", "member.enabled=true", *everywhere, *group)
    heartbeats = f"{GLOBAL}-heartbeats"
    assert set(found) == {
        (kind, namespace, name)
        for kind, namespace, name in default
        if name in (GLOBAL, heartbeats, f"{GLOBAL}-fence") and kind != "PriorityClass"
    }
    home = {"spotladder.io", "events.k8s.io"}
    kept = [rule for rule in default[CLUSTER_ROLE]["rules"] if not home & {*rule["apiGroups"]}]
    assert found[CLUSTER_ROLE]["rules"] == kept
    role = ("Role", "kube-node-lease", heartbeats)
    assert found[role] == default[role]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("replicas=3", "replicas"),
        ("controller.worker=1", "worker"),
        ("controller.workers=0", "controller.workers"),
        ("image.digest=latest", "image.digest"),
        ("networkPolicy.egressPorts={0}", "egressPorts"),
        ("namespaces={Team_A}", "namespaces"),
        ("prometheusRule.runbookUrl=docs", "runbookUrl"),
        ("prometheusRule.monthlyBudgets.team-a=much", "team-a"),
        ("tenancy[0].uris={s3://bucket}", "namespaces"),
        ("tenancy[0].namespaces={a},tenancy[0].uri={s3://b}", "uri"),
        ("namespaces=null", "namespaces"),
        ("tenancy[0].namespaces={a},tenancy[0].efa=yes", "efa"),
        ("tenancy[0].namespaces={a},tenancy[0].uris={s3://b/../c}", "uris"),
        ("tenancy[0].namespaces={a},tenancy[0].uris={s3://b/%2e%2e}", "uris"),
        ("tenancy[0].namespaces={a},tenancy[0].uris={s3://b*}", "uris"),
        ("tenancy[0].namespaces={a},tenancy[0].endpoints={https://user@store.example}", "endpoints"),
        ("allowSpotNodes=yes", "allowSpotNodes"),
        ("clusters.home.eks.name=a,clusters.home.eks.region=b", "home"),
        ("clusters.east.eks.name=a", "region"),
        ("clusters.east.kubeconfig.file=/etc/east", "secretName"),
        ("member.subjects[0].kind=User", "name"),
        ("member.subjects[0].kind=Role,member.subjects[0].name=spotladder", "kind"),
        ("member.subjects[0].kind=ServiceAccount,member.subjects[0].name=spotladder", "namespace"),
    ],
)
def test_misspelt_values_are_refused(given: str, said: str, tmp_path: Path) -> None:
    result = helm(tmp_path, "template", CHARTS / "spotladder", "--set", given)
    assert result.returncode != 0
    assert said.rpartition(".")[2] in result.stderr


def test_values_and_schema_have_the_same_keys() -> None:
    (values,) = objects((CHARTS / "spotladder" / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHARTS / "spotladder" / "values.schema.json").read_text(encoding="utf-8"))

    def names(part: dict[str, Any], at: str = "") -> set[str]:
        found = set()
        for name, entry in part.get("properties", {}).items():
            found |= {at + name} | names(entry, f"{at}{name}.")
        return found

    def given(part: dict[str, Any], at: str = "") -> set[str]:
        found = set()
        for name, entry in part.items():
            known = f"{at}{name}"
            nested = isinstance(entry, dict) and any(other.startswith(f"{known}.") for other in names(schema))
            found |= {known} | (given(entry, f"{known}.") if nested else set())
        return found

    assert given(values) == names(schema) - {"global"}


def of_kind(text: str, kind: str) -> list[dict[str, Any]]:
    return [found for found in objects(text) if found["kind"] == kind]


def test_a_rule_that_lists_only_endpoints_restricts_no_address() -> None:
    rule = "tenancy[0].namespaces={*},tenancy[0].endpoints={https://store.example}"
    policy = named("--set", rule)[TENANCY]
    (allowed,) = [entry["expression"] for entry in policy["spec"]["variables"] if entry["name"] == "rules"]
    assert json.loads(allowed) == [{"namespaces": ["*"]}]


def test_the_controller_may_run_on_spot_nodes_where_the_values_allow_it() -> None:
    """The golden file has the labels of the spot nodes that it stays off by default."""
    (deployment,) = of_kind(release("--set", "allowSpotNodes=true"), "Deployment")
    assert set(deployment["spec"]["template"]["spec"]["affinity"]) == {"podAntiAffinity"}


def network_policy(*values: str) -> dict[str, Any]:
    (policy,) = of_kind(release(*values), "NetworkPolicy")
    return dict(policy["spec"])


@pytest.mark.parametrize(
    ("given", "ports"),
    [
        ((), set()),
        (("tenancy[0].namespaces={a},tenancy[0].endpoints={http://b,http://c:9000}",), {9000, 80}),
        (("tenancy[0].namespaces={a},tenancy[0].endpoints={https://[fd12::1]:9443}",), {9443}),
        (("controller.environment.AWS_ENDPOINT_URL=http://minio.minio:9000/",), {9000}),
        (("env[0].name=AWS_ENDPOINT_URL,env[0].value=HTTP://minio:9002/path",), {9002}),
        (("networkPolicy.egressPorts={443,9003}",), {9003}),
    ],
)  # fmt: skip
def test_the_controller_may_reach_the_endpoints_that_the_values_name(given: tuple[str, ...], ports: set[int]) -> None:
    values = [part for value in given for part in ("--set", value)]
    _dns, out, *_ = network_policy(*values)["egress"]
    assert {entry["port"] for entry in out["ports"]} == {443, 6443} | ports


def test_metrics_are_for_the_monitoring_namespace() -> None:
    (into,) = network_policy()["ingress"]
    assert into["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    other = "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus"
    (into,) = network_policy("--set", other)["ingress"]
    assert into["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    assert network_policy("--set", "networkPolicy.metricsFrom=null")["ingress"] == []


def rules(text: str) -> list[dict[str, Any]]:
    return [rule for role in (*of_kind(text, "Role"), *of_kind(text, "ClusterRole")) for rule in role["rules"]]


def test_permissions_have_no_wildcards_and_secrets_only_names() -> None:
    for name, case in CASES.items():
        for rule in rules(release(*case)):
            assert not {"*"} & {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"pods/exec"} & set(rule["resources"])
            if "secrets" in rule["resources"] and name != "member":
                named = [name for name in rule.get("resourceNames", ()) if name != "spotladder-ray-token"]
                assert named in ([], ["bucket"], ["cluster-east"])
                if rule["verbs"] == ["list", "watch"]:
                    assert rule["resourceNames"] == ["spotladder-ray-token"]
                else:
                    assert rule["verbs"] == (["get"] if "resourceNames" in rule else ["create"])


def test_rbac_secrets_allows_reading_all_secrets() -> None:
    given = ("--set", "rbac.secrets=true", "--set", "checkpointSecrets={bucket}")
    found = [rule for rule in rules(release(*given)) if "secrets" in rule["resources"]]
    assert [rule["verbs"] for rule in found] == [["get"], ["create"], ["list", "watch"]]
    assert [rule.get("resourceNames") for rule in found] == [None, None, ["spotladder-ray-token"]]


def test_a_member_release_installs_only_permissions() -> None:
    roles = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    fence = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    kinds = {found["kind"] for found in objects(release(*CASES["member"]))}
    assert kinds == {"ServiceAccount", "Secret"} | roles | fence
    text = release(*CASES["member-by-group"])
    assert {found["kind"] for found in objects(text)} == roles | fence
    assert all("spotladder.io" not in rule["apiGroups"] for rule in rules(text))
    (binding,) = of_kind(text, "ClusterRoleBinding")
    assert binding["subjects"] == [{"kind": "Group", "name": "spotladder", "apiGroup": "rbac.authorization.k8s.io"}]


def test_member_subjects_do_not_affect_a_home_release() -> None:
    text = release("--set", "member.subjects[0].kind=User,member.subjects[0].name=me,namespaces={team-a}")
    bindings = [*of_kind(text, "ClusterRoleBinding"), *of_kind(text, "RoleBinding")]
    assert len(bindings) == 5
    account = {"kind": "ServiceAccount", "name": "spotladder", "namespace": "spotladder-system"}
    assert all(binding["subjects"] == [account] for binding in bindings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "serviceAccount.create=false",
            "serviceAccount.create=false: set the controller's identity in member.subjects or serviceAccount.name",
        ),
        (
            "serviceAccount.create=false,rbac.create=false",
            "set the controller's identity in member.subjects or serviceAccount.name",
        ),
        ("clusters.west.eks.name=a,clusters.west.eks.region=b", "set clusters in the release of the home cluster"),
    ],
)
def test_an_unusable_member_release_is_rejected(given: str, said: str, tmp_path: Path) -> None:
    result = helm(tmp_path, "template", CHARTS / "spotladder", "--set", "member.enabled=true", "--set", given)
    assert result.returncode != 0
    assert said in result.stderr


def test_a_member_may_have_a_service_account_that_exists() -> None:
    given = "member.enabled=true,serviceAccount.create=false,serviceAccount.name=mine"
    (binding,) = of_kind(release("--set", given), "ClusterRoleBinding")
    assert [subject["name"] for subject in binding["subjects"]] == ["mine"]


def test_with_namespaces_cluster_permissions_are_read_only_except_one_status() -> None:
    text = release("--set", "namespaces={team-a}", "--set", "rbac.userRoles=false")
    (role,) = of_kind(text, "ClusterRole")
    rights = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    reads = {(resource, verb) for resource in ("nodes", "capacitytiers") for verb in ("list", "watch")}
    classes = {("priorityclasses", "get"), ("runtimeclasses", "get")}
    metadata = {("deployments", "get"), ("namespaces", "get")}
    assert rights == {*reads, *classes, *metadata, ("capacitytiers/status", "patch")}
    (named,) = [rule["resourceNames"] for rule in role["rules"] if rule["resources"] == ["deployments"]]
    assert named == ["kuberay-operator", "karpenter"]


@pytest.mark.parametrize("case", [name for name in CASES if not name.startswith("member")])
def test_the_controller_reads_its_settings(case: str, tmp_path: Path) -> None:
    config = of_kind(release(*CASES[case]), "ConfigMap")[0]
    file = tmp_path / "config.yaml"
    file.write_text(config["data"]["config.yaml"], encoding="utf-8")
    settings = read_settings(file, {})
    assert settings.lease_namespace == "spotladder-system"
    assert settings.namespaces == {
        "two-namespaces": ("team-a", "team-b"), "access": ("team-a", "team-b"), "all-namespaces": ()
    }.get(case, ("default",))  # fmt: skip
    assert len(settings.tenancy) == (2 if case == "access" else 0)
    assert set(settings.clusters) == ({"east", "west", "europe"} if case == "clusters" else set())


def test_unset_values_are_the_controllers_defaults(tmp_path: Path) -> None:
    (config,) = of_kind(release(*CASES["all-namespaces"]), "ConfigMap")
    file = tmp_path / "config.yaml"
    file.write_text(config["data"]["config.yaml"], encoding="utf-8")
    said = read_settings(file, {}).model_dump(exclude={"lease_namespace", "listen"})
    assert said == Settings().model_dump(exclude={"lease_namespace", "listen"})


def prometheus_rules() -> list[dict[str, Any]]:
    (rule,) = of_kind(release(*MONITORED), "PrometheusRule")
    return [entry for group in rule["spec"]["groups"] for entry in group["rules"]]


def test_rules_and_dashboards_query_existing_metrics() -> None:
    known = {"spotladder_namespace_cost_usd"}  # in the name of a recording rule
    for family in Metrics(SteppedClock()).registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count")}.get(family.type, ("",))
        known |= {f"{family.name}{suffix}" for suffix in suffixes}
    queries = [rule["expr"] for rule in prometheus_rules()]
    queries += [query for board in DASHBOARDS for panel in board.panels for query in panel.queries.values()]
    for query in queries:
        asked = set(re.findall(r"spotladder_[a-z_]+", query))
        assert asked
        assert asked <= known, query


def test_the_dashboards_of_the_chart_are_those_of_their_table_and_both_loaders_find_them() -> None:
    names = sorted(dashboards.files())
    assert names == sorted((CHARTS / "spotladder" / "dashboards").iterdir())
    for path, text in dashboards.files().items():
        assert path.read_text(encoding="utf-8") == text, "`make dashboards` writes it anew"
    new, gone, changed = changes(*CASES["dashboards"])
    held = ("ConfigMap", "spotladder-system", "spotladder-dashboards")
    custom = {("GrafanaDashboard", "spotladder-system", f"spotladder-{path.stem}") for path in names}
    assert (new, gone, changed) == ({held, *custom}, set(), set())
    found = named(*CASES["dashboards"])
    assert found[held]["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found[held]["data"] == {f"spotladder-{path.name}": text for path, text in dashboards.files().items()}
    for name in custom:
        assert found[name]["spec"]["instanceSelector"] == {"matchLabels": {"app": "grafana"}}
        reference = found[name]["spec"]["configMapRef"]
        assert reference["name"] == held[2]
        assert f"{found[name]['metadata']['name']}.json" == reference["key"]


def test_every_alert_has_a_section_in_the_runbook() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    headings = {line.removeprefix("## ") for line in runbook.splitlines() if line.startswith("## Spotladder")}
    found = [rule for rule in prometheus_rules() if "alert" in rule]
    assert {alert["alert"] for alert in found} == headings
    for alert in found:
        assert alert["annotations"]["runbook_url"] == f"https://docs.example/runbook#{alert['alert'].lower()}"


def test_the_image_is_pinned_and_not_root() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG PYTHON=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON}", "${PYTHON}"]
    assert "\nUSER 65532:65532\n" in text
    for path in re.findall(r"^COPY ([^-\s]\S*)", text, re.MULTILINE):
        assert (ROOT / path).exists()


def test_notifications_come_from_a_pod_that_only_reads_jobs() -> None:
    new, gone, changed = changes(*CASES["notify"])
    role = ("ClusterRole", "", f"{GLOBAL}-notify")
    pod = ("Deployment", "spotladder-system", "spotladder-notify")
    account = ("ServiceAccount", "spotladder-system", "spotladder-notify")
    assert (new, gone, changed) == ({role, pod, account, ("ClusterRoleBinding", "", f"{GLOBAL}-notify")}, set(), set())
    found = named(*CASES["notify"])
    assert [rule["verbs"] for rule in found[role]["rules"]] == [["list", "watch"]]
    assert found[pod]["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--on=FellBack", "--on=Failed"]


def test_the_pod_that_sends_traces_needs_no_receivers() -> None:
    found = named(*CASES["traces"])
    assert found["ServiceAccount", "spotladder-system", "spotladder-notify"]["metadata"]["annotations"] == {
        "role": "reader"
    }
    pod = found["Deployment", "spotladder-system", "spotladder-notify"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["notify", "--all-namespaces"]
    assert pod["containers"][0]["env"] == [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}]
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp"]
