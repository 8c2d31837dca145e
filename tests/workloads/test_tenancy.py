"""What a namespace may not use, by the administrator's rules and by its Pod Security level."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.tenancy import TenantRule
from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.operator.storage.allowed_addresses import AccessDenied, grant
from spotladder.policies.registry import by_name
from spotladder.workloads import review
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.listed_tiers import listed_in
from spotladder.workloads.names import Origin
from spotladder.workloads.tenancy import Level, refusals
from spotladder.workloads.tiers import PlacedTier, price_of, resolve_tier
from tests import ways
from tests.ways import WAYS, Way

NAMESPACE = "team-a"


def capacity(name: str, **spec: Any) -> CapacityTier:
    return CapacityTier.model_validate({
        "apiVersion": "spotladder.io/v1alpha1", "kind": "CapacityTier", "metadata": {"name": name}, "spec": spec
    })  # fmt: skip


CAPACITY = {
    "spot": capacity("spot", extraTolerations=[{"operator": "Exists"}]),
    "reserved": capacity("reserved"),
    "east": capacity("east", cluster="east"),
}


def job_of(spec: dict[str, Any]) -> TieredJob:
    metadata = {"name": "digits", "namespace": NAMESPACE}
    return TieredJob.model_validate(
        {"apiVersion": "spotladder.io/v1alpha1", "kind": "TieredJob", "metadata": metadata, "spec": spec}
    )


def placed(job: TieredJob) -> list[PlacedTier]:
    return [
        resolve_tier(
            index, tier, CAPACITY[tier.capacity_tier], price_of(CAPACITY[tier.capacity_tier]), listed_in(CAPACITY)
        )
        for index, tier in enumerate(job.spec.tiers)
    ]


def refused(spec: dict[str, Any], rules: list[TenantRule], label: str | None = None, secret: Any = None) -> str:
    """Why the controller launches no attempt of a job, in the order of its checks; "" if it does."""
    try:
        job = job_of(spec)
        by_name(job.spec.policy)
    except (InvalidSpec, ValueError) as error:
        return str(error)
    tiers = placed(job)
    if found := review.problems(job, tiers):
        return "; ".join(map(str, found))
    objects = workload_of(job).render(job, Origin("u"), tiers[0], 1, {})
    if missing := refusals(rules, job, tiers, objects, Level(label, f"namespace {NAMESPACE}")):
        return "; ".join(map(str, missing))
    try:
        grant(rules, NAMESPACE, job.spec.checkpoints.uri, secret, "bucket" if secret else "")
    except AccessDenied as error:
        return str(error)
    return ""


def test_the_table_has_forty_ways_with_different_names() -> None:
    assert len({way.name for way in WAYS}) == len(WAYS) >= 40


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_way_gives_a_tenant_more(way: Way) -> None:
    rules = list(ways.rules(NAMESPACE))
    assert refused(ways.spec(), rules) == "", "the job itself is allowed"
    assert way.said in refused(way.spec(ways.spec()), rules, secret=way.secret)


@pytest.mark.parametrize("way", [way for way in WAYS if way.said == ways.LEVEL], ids=lambda way: way.name)
def test_a_privileged_namespace_may_do_what_its_level_allows(way: Way) -> None:
    assert refused(way.spec(ways.spec()), list(ways.rules(NAMESPACE)), "privileged") == ""


def rule(**fields: Any) -> TenantRule:
    return TenantRule.model_validate({"namespaces": [NAMESPACE], "uris": ["s3://team-a"], **fields})


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("a priority class that is not listed", {"priorityClasses": ["high"]}),
        ("a priority class that is not listed", {"priorityClasses": ["*"]}),
        ("a priority class of Kueue", {"priorityClasses": ["high"]}),
        ("a toleration of the system nodes", {"tolerations": ["CriticalAddonsOnly"]}),
        ("a service account that is not listed", {}),
        ("a service account that is not listed", {"serviceAccounts": ["training", "deployer"]}),
        ("a CapacityTier that is not listed", {}),
        ("a cluster that is not listed", {"clusters": ["east"]}),
        ("Ray's autoscaler, which may change RayClusters", {"rayAutoscaling": True}),
        ("the network of the node", {"efa": True}),
        ("the capability IPC_LOCK without EFA", {"efa": True}),
    ],
)
def test_a_rule_allows_what_it_lists(name: str, fields: dict[str, Any]) -> None:
    way = next(way for way in WAYS if way.name == name)
    assert refused(way.spec(ways.spec()), [rule(**fields)]) == ""


def test_efa_is_no_exception_to_a_label_of_the_namespace() -> None:
    way = next(way for way in WAYS if way.name == "the network of the node")
    assert f"{ways.LEVEL} baseline" in refused(way.spec(ways.spec()), [rule(efa=True)], "baseline")


def test_rules_add_up_and_a_field_without_a_list_keeps_its_default() -> None:
    spec = ways.spec()
    spec["workload"]["ray"]["template"]["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"].update(
        priorityClassName="high", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
    )
    everyone = TenantRule.model_validate({"namespaces": ["*"], "priorityClasses": ["high"]})
    assert refused(spec, [rule(priorityClasses=["low"]), everyone]) == ""
    assert "tolerations: none" in refused(spec, [rule(tolerations=[]), everyone])
    assert refused(spec, [rule(tolerations=[]), everyone, rule(tolerations=["nvidia.com/gpu"])]) == ""


def test_a_refusal_names_the_field_the_value_the_setting_and_whom_to_ask() -> None:
    way = next(way for way in WAYS if way.name == "a priority class that is not listed")
    everyone = TenantRule.model_validate({"namespaces": ["*"], "contact": "the help desk"})
    pod = "spec.workload.ray.template.spec.rayClusterSpec.headGroupSpec.template.spec"
    assert refused(way.spec(ways.spec()), [everyone, rule(priorityClasses=["low"], contact="#ml-platform")]) == (
        f'{pod}.priorityClassName: "high" is not allowed in namespace team-a (priorityClasses: low): remove it, or ask '
        "#ml-platform to add it to priorityClasses of the chart's tenancy"
    )


def test_a_template_of_a_jobset_is_checked_too() -> None:
    pod = {"spec": {"hostPID": True, "priorityClassName": "high", "containers": [{"name": "c", "image": "x"}]}}
    jobs = [{"name": "workers", "template": {"spec": {"parallelism": 2, "completions": 2, "template": pod}}}]
    spec = {**ways.spec(), "workload": {"jobSet": {"template": {"spec": {"replicatedJobs": jobs}}}}}
    found = refused(spec, [rule()])
    assert "spec.workload.jobSet.template.spec.replicatedJobs[0].template.spec.template.spec.hostPID" in found
    assert "priorityClassName" in found


def near(value: Any) -> st.SearchStrategy[Any]:
    """Values of any type in the places in which a template has others."""
    odd: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
    odd = odd | st.lists(odd, max_size=2) | st.dictionaries(st.text(max_size=3), odd, max_size=2)
    if isinstance(value, dict):
        return odd | st.fixed_dictionaries({key: near(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return odd | st.tuples(*map(near, value)).map(list)
    return odd | st.just(value)


CONTEXT = {
    "capabilities": {"add": ["A"], "drop": ["B"]}, "seLinuxOptions": {"type": "t"}, "privileged": False,
    "procMount": "Default", "seccompProfile": {"type": "t"}, "windowsOptions": {"hostProcess": False},
}  # fmt: skip
POD = {
    "containers": [
        {"securityContext": CONTEXT, "ports": [{"hostPort": 1}], "lifecycle": {"preStop": {"tcpSocket": {}}}}
    ],
    "volumes": [{"hostPath": {"path": "/"}}], "securityContext": {"sysctls": [{"name": "n"}]},
    "tolerations": [{"key": "k"}], "serviceAccountName": "s", "priorityClassName": "p", "priority": 1, "nodeName": "n",
}  # fmt: skip


@given(
    pod=near({"spec": POD, "metadata": {"annotations": {"a": "b"}}}), level=st.sampled_from(["baseline", "restricted"])
)
def test_a_template_of_any_shape_is_decided(pod: Any, level: str) -> None:
    job = job_of(ways.spec())
    cluster = job.spec.workload.of(RayWorkload).template.spec["rayClusterSpec"]  # type: ignore[union-attr]
    cluster["headGroupSpec"]["template"] = pod
    found = refusals([rule()], job, [], [{"spec": {"rayClusterSpec": cluster}}], Level(level, "here"))
    assert all(str(entry) for entry in found)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"securityContext": {"runAsNonRoot": False}}, "runAsNonRoot"),
        ({"securityContext": {"runAsUser": 0}}, "runAsUser"),
        ({"volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}]}, "volumes[0].nfs"),
    ],
)
def test_a_restricted_namespace_needs_jobs_that_are_restricted(changed: dict[str, Any], said: str) -> None:
    spec = {**ways.spec(), "podSecurity": "restricted"}
    head = spec["workload"]["ray"]["template"]["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    head["containers"][0]["image"] = "mine"
    head.update(changed)
    found = refused(spec, [rule()], "restricted")
    assert said in found if said else found == ""
    assert "allowPrivilegeEscalation" in refused(ways.spec(), [rule()], "restricted"), "without podSecurity"
