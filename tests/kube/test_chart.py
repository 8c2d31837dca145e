"""The chart on a real API server: every object is accepted, and the controller's permissions equal its calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.clusters.cluster_address import ClusterAddress
from spotladder.clusters.connection import connect
from spotladder.clusters.credentials import Fixed
from spotladder.clusters.election import Election
from spotladder.clusters.errors import ApiError, Invalid
from spotladder.clusters.registry import sources
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TIEREDJOBS,
    VOLUME_CLAIMS,
    APIResource,
)
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.rayjob.authentication import TOKEN as RAY_TOKEN
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.charts.helm import objects, rendered
from tests.kube.apiserver import TOKEN, ApiServer
from tests.kube.jobset import jobset_installed
from tests.kube.objects import encoded, make, needing
from tests.kube.second_cluster import SecondCluster, second_cluster
from tests.kube.test_clusters import tiers
from tests.kube.world import EVERYTHING, WORKERS, KubeWorld, eventually, world

Right = tuple[str, str, str]
"""API group, resource (with subresource), verb."""

ADMISSION = ("admissionregistration.k8s.io", "v1")
KINDS = {
    "Secret": SECRETS,
    "ServiceAccount": APIResource("", "v1", "serviceaccounts", "ServiceAccount"),
    "ConfigMap": APIResource("", "v1", "configmaps", "ConfigMap"),
    "Service": APIResource("", "v1", "services", "Service"),
    "Deployment": APIResource("apps", "v1", "deployments", "Deployment"),
    "PodDisruptionBudget": APIResource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    "NetworkPolicy": APIResource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    "ValidatingAdmissionPolicy": APIResource(
        *ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
    ),
    "ValidatingAdmissionPolicyBinding": APIResource(
        *ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
    ),
    "PriorityClass": PRIORITY_CLASSES,
    "Role": APIResource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    "RoleBinding": APIResource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    "ClusterRole": APIResource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": APIResource(
        "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
    ),
}

NEVER_CALLED = {
    ("spotladder.io", "tieredjobs/finalizers", "update"): "asked by an admission plugin, not by a call",
    (RAYJOBS.group, RAYJOBS.plural, "patch"): "a launch applies a RayJob whose creation got no response",
    (JOBSETS.group, JOBSETS.plural, "create"): "as for rayjobs, which this walk creates",
    (JOBSETS.group, JOBSETS.plural, "patch"): "a launch applies a JobSet whose creation got no response",
    (JOBSETS.group, JOBSETS.plural, "delete"): "as for rayjobs, which this walk creates",
    ("", "pods/status", "patch"): "pods of a JobSet only",
    ("", "pods/log", "get"): "pods of a JobSet, and KubeRay's submitter",
}

WATCH_JOBSETS = (JOBSETS.group, JOBSETS.plural, "watch")
"""Called as soon as JobSet's kind is served, which may be shortly after its CRD is established."""

CALLED_AFTER_SECONDS = {("coordination.k8s.io", "leases", "list")}
"""The Leases of nodes are listed every few seconds while pods run, so a short walk may end before."""


class Recording(Client):
    """Records which permission each call needed, and which it lacked."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.used: set[Right] = set()
        self.refused: set[Right] = set()

    async def _send(self, method: str, path: str, *, query: Mapping[str, str], **more: Any) -> aiohttp.ClientResponse:
        answer = await super()._send(method, path, query=query, **more)
        rights = set(_rights(method, path, query, created=answer.status == 201))
        self.used |= rights
        if answer.status == 403:
            self.refused |= rights
        return answer


def _rights(method: str, path: str, query: Mapping[str, str], *, created: bool) -> Iterator[Right]:
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return  # /version and /readyz need no permission.
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if not rest:
        return  # Every account may read the list of kinds.
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, name, subresource = rest[0], "".join(rest[1:2]), "".join(rest[2:3])
    verbs = {
        "GET": "get" if name else "watch" if query.get("watch") else "list",
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if name else "deletecollection",
    }
    target = f"{resource}/{subresource}" if subresource else resource
    yield group, target, verbs[method]
    if method == "PATCH" and created:
        yield group, target, "create"


def granted(installed: list[dict[str, Any]]) -> set[Right]:
    """The permissions of the roles that are bound to the controller."""
    bound = {found["roleRef"]["name"] for found in installed if found["kind"].endswith("RoleBinding")}
    return {
        (group, resource, verb)
        for role in installed
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] in bound
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@asynccontextmanager
async def installed(kube: KubeWorld, folder: Path, *values: str) -> AsyncIterator[list[dict[str, Any]]]:
    """The chart's objects, on the API server inside the block."""
    allowed = ("--set", "namespaces={*}", "--set-json", f"tenancy={json.dumps(EVERYTHING)}")
    found = objects(rendered(folder, *allowed, *values, namespace=kube.namespace))
    try:
        for body in found:
            await kube.client.apply(KINDS[body["kind"]], body)
        yield found
    finally:
        for body in found:
            metadata = body["metadata"]
            await kube.client.delete(KINDS[body["kind"]], metadata["name"], metadata.get("namespace", ""))


def as_controller(server: ApiServer, namespace: str) -> Recording:
    """A client with the permissions of the chart's service account."""
    user = {
        "Authorization": f"Bearer {TOKEN}",
        "Impersonate-User": f"system:serviceaccount:{namespace}:spotladder",
        "Impersonate-Group": "system:serviceaccounts",
    }
    return Recording(replace(connect(str(server.kubeconfig)), credentials=Fixed(user)))


@pytest.mark.parametrize("namespaced", [False, True])
async def test_the_permissions_are_those_that_the_controller_uses(
    api_server: ApiServer, tmp_path: Path, namespaced: bool
) -> None:
    async with jobset_installed(api_server), world(api_server) as kube:
        values = ["--set", "rbac.secrets=true"]
        if namespaced:
            values += ["--set", f"namespaces={{{kube.namespace}}}"]
        async with installed(kube, tmp_path, *values) as found, as_controller(api_server, kube.namespace) as client:
            await eventually(lambda: is_fenced(client, kube))
            await lead(client, kube.namespace)
            async with kube.operator(client=client, namespaces_=(kube.namespace,) if namespaced else ()):
                await walk(kube, kube)
                await eventually(lambda: watches_jobsets(kube, client.used))
            assert client.refused == set()
            assert granted(found) - client.used - CALLED_AFTER_SECONDS == set(NEVER_CALLED)


async def test_the_permissions_in_a_member_are_those_that_the_controller_uses(
    api_server: ApiServer, second_server: ApiServer, tmp_path: Path
) -> None:
    """From the Secret with the kubeconfig to the member's roles, without stubs."""
    async with (
        jobset_installed(second_server),
        world(api_server) as kube,
        second_cluster(second_server, kube) as east,
    ):
        await kube.capacity("spot-east", cluster="east")
        member = ("--set", "member.enabled=true,rbac.secrets=true,serviceAccount.create=false",
                  "--set", "member.subjects[0].kind=User,member.subjects[0].name=limited")  # fmt: skip
        home = ("--set", "rbac.secrets=true,clusters.east.kubeconfig.secretName=cluster-east")
        async with (
            installed(east, tmp_path, *member) as rights,
            installed(kube, tmp_path, *home) as found,
            as_controller(api_server, kube.namespace) as client,
        ):
            kubeconfig = (
                second_server.kubeconfig_of("limited", "limited").read_text().replace(second_server.url, east.proxy.url)
            )
            await make(kube, SECRETS, "cluster-east", data=encoded(kubeconfig=kubeconfig))
            address = ClusterAddress.model_validate({"kubeconfig": {"secretName": "cluster-east"}})
            east_by_secret = sources({"east": address}, home=client, namespace=kube.namespace, clock=kube.clock)
            async with kube.operator(client=client, namespaces_=(), sources=east_by_secret):
                await walk(kube, east, tiers=tiers(kube, "spot-east"))
                await eventually(lambda: watches_jobsets(kube, rights_used(east)))
            assert client.refused == set()
            assert ("", "namespaces", "get") in client.used & granted(found)
            used = rights_used(east)
            assert [entry for entry in east.proxy.passed if entry[3] in (401, 403)] == []
            never = {right for right in NEVER_CALLED if right[0] != "spotladder.io"}
            assert granted(rights) - used - CALLED_AFTER_SECONDS == never


async def is_fenced(client: Client, kube: KubeWorld, **changes: Any) -> str:
    """Why the API server refuses a Secret of the controller's that its role allows; "" if it does not."""
    labels = {names.MANAGED_BY: names.MANAGER}
    metadata = {"name": "stolen", "namespace": kube.namespace, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, **changes}
    try:
        await client.create(SECRETS, body, dry_run=True)
    except Invalid as error:
        return error.message
    return ""


async def test_whoever_takes_the_controller_over_may_write_only_its_objects(
    api_server: ApiServer, tmp_path: Path
) -> None:
    async with world(api_server) as kube, as_controller(api_server, kube.namespace) as client:
        pod: dict[str, Any] = {
            "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "theirs"}]}
        }  # fmt: skip
        here = {"namespace": kube.namespace}
        ours = {names.MANAGED_BY: names.MANAGER}
        await kube.client.create(PODS, {**pod, "metadata": {"name": "theirs", **here}})
        await kube.client.create(PODS, {**pod, "metadata": {"name": "ours", "labels": ours, **here}})
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "theirs", **here}}
        await kube.client.create(DISRUPTION_BUDGETS, budget)
        await kube.submit()
        async with installed(kube, tmp_path, "--set", "rbac.secrets=true"):
            await eventually(lambda: is_fenced(client, kube))
            assert "only Secrets spotladder-ray-token" in await is_fenced(client, kube)
            token = {"metadata": {"name": RAY_TOKEN, "labels": ours, **here}}
            assert "of the type Opaque" in await is_fenced(client, kube, type="example.com/token", **token)
            assert "only objects with the label" in await is_fenced(client, kube, metadata={"name": RAY_TOKEN, **here})
            assert await is_fenced(client, kube, **token) == ""
            image = {"spec": {"containers": [{"name": "c", "image": "mine"}]}}
            calls: dict[str, Awaitable[Any]] = {
                "only objects with the label": client.delete(PODS, "theirs", kube.namespace),
                "the spec of pods": client.merge(PODS, "ours", kube.namespace, body=image),
                "the spec of pods, JobSets and TieredJobs": client.merge(
                    TIEREDJOBS, "digits", kube.namespace, body={"spec": {"suspend": True}}
                ),
            }
            for said, call in calls.items():
                with pytest.raises(Invalid, match=said):
                    await call
            with pytest.raises(Invalid, match="only objects with the label"):
                await client.delete_all(DISRUPTION_BUDGETS, kube.namespace, labels="")  # each object is checked
            await kube.client.get(DISRUPTION_BUDGETS, "theirs", kube.namespace)


def rights_used(member: SecondCluster) -> set[Right]:
    """The permissions that the calls to this cluster needed."""
    return {
        right
        for method, path, query, status in member.proxy.passed
        for right in _rights(method, path, query, created=status == 201)
    }


async def watches_jobsets(kube: KubeWorld, used: Collection[Right]) -> bool:
    """Whether JobSets were watched; a kind that was not served yet is listed again after a delay."""
    await kube.clock.advance(1)
    return WATCH_JOBSETS in used


NEEDED: dict[APIResource, dict[str, Any]] = {
    SECRETS: {},
    CONFIG_MAPS: {},
    SERVICE_ACCOUNTS: {},
    VOLUME_CLAIMS: {"spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}},
    PRIORITY_CLASSES: {"value": 1},
    RUNTIME_CLASSES: {"handler": "runc"},
}


async def provide(member: KubeWorld) -> None:
    """All objects to which a template can refer."""
    for kind, fields in NEEDED.items():
        await make(member, kind, "needed", **fields)


def needing_everything() -> dict[str, Any]:
    return needing(
        {"secretRef": {"name": "needed"}},
        {"configMapRef": {"name": "needed"}},
        serviceAccountName="needed",
        priorityClassName="needed",
        runtimeClassName="needed",
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "needed"}}],
    )


async def lead(client: Client, namespace: str) -> None:
    """Take the lease and renew it."""
    election = Election(
        client, namespace=namespace, name="spotladder-controller", identity="controller", clock=SystemClock()
    )
    assert await election.attempt()
    assert await election.attempt()
    await election.release()


async def replace_worker(kube: KubeWorld, member: KubeWorld) -> None:
    """Give the node of a worker a notice: the controller requests a replacement."""
    await member.raycluster(1)
    CommitLog(kube.bucket.store, "digits", namespace=kube.namespace).start(1, "", hands_over=True)
    await member.announce(1)

    async def requested() -> bool:
        return bool((await member.worker_group(1))["replicas"] == WORKERS + 1)

    await eventually(requested)


async def walk(kube: KubeWorld, member: KubeWorld, **spec: Any) -> None:
    """All actions of a controller whose job has its attempts in this cluster: launch, notice, delete, sweep remaining
    objects, release the lease. Nothing garbage-collects the objects of a member cluster."""
    await provide(member)
    await kube.submit(workload=needing_everything(), **spec)
    await eventually(lambda: member.rayjob(1))
    await kube.clock.advance(WRITE_INTERVAL)  # The status of the CapacityTiers is written.
    await member.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    await replace_worker(kube, member)
    await kube.patch(suspend=True)

    async def notified() -> bool:
        return all(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await member.pods(1))

    await eventually(notified)
    await orphan(member, await member.rayjob(1))
    await member.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                        message="Job entrypoint command failed with exit code 75")  # fmt: skip
    await eventually(lambda: no_rayclusters(member))
    await eventually(lambda: all_deleted(member))
    await member.collect(1)  # No kubelet ends the pods.
    await eventually(lambda: kube.has_phase("Suspended"))
    await kube.delete()
    await eventually(kube.is_gone)
    await kube.submit("odd", **spec)
    await eventually(lambda: member.rayjob(1, "odd"))
    await kube.patch("odd", policy="no-such")
    await kube.delete("odd")  # Their kinds are unknown by now: all kinds are swept.
    await eventually(lambda: kube.is_gone("odd"))
    for kind in (PRIORITY_CLASSES, RUNTIME_CLASSES):
        await member.client.delete(kind, "needed")


async def all_deleted(member: KubeWorld) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in await member.pods(1))


async def orphan(member: KubeWorld, rayjob: dict[str, Any]) -> None:
    """A RayCluster of the attempt that KubeRay does not remove."""
    labels = rayjob["metadata"]["labels"]
    pod = {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}
    body = {
        "apiVersion": RAYCLUSTERS.api_version,
        "kind": RAYCLUSTERS.kind,
        "metadata": {"name": "digits-a001-x", "namespace": member.namespace, "labels": labels},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": pod}},
    }
    await member.client.create(RAYCLUSTERS, body)


async def no_rayclusters(kube: KubeWorld) -> bool:
    return not [found async for page in kube.client.pages(RAYCLUSTERS, kube.namespace) for found in page.items]


async def test_a_call_without_its_permission_is_refused(api_server: ApiServer, tmp_path: Path) -> None:
    """Otherwise the test above would pass for a controller with all permissions."""
    async with world(api_server) as kube, as_controller(api_server, kube.namespace) as client:
        with pytest.raises(ApiError, match="forbidden"):
            await client.delete(PODS, "any", kube.namespace)
        assert client.refused == {("", "pods", "delete")}


async def test_with_a_list_of_namespaces_the_controller_has_no_permissions_in_others(
    api_server: ApiServer, tmp_path: Path
) -> None:
    """One value of the chart binds the roles in these namespaces. The API server confirms each permission."""
    async with world(api_server) as kube, world(api_server) as other:
        values = ("--set", f"namespaces={{{kube.namespace}}}", "--set", "rbac.secrets=true")
        async with installed(kube, tmp_path, *values) as found, as_controller(api_server, kube.namespace) as client:
            roles = [body for body in found if body["kind"] == "Role" and body["metadata"]["name"] == "spotladder"]
            assert [role["metadata"]["namespace"] for role in roles] == [kube.namespace]
            rights = sorted({right for role in roles for right in permissions_of(role)})
            assert ("", "pods", "delete") in rights
            assert ("", "secrets", "get") in rights
            for right in rights:
                assert await may(client, right, kube.namespace), right
                assert not await may(client, right, other.namespace), right
                assert not await may(client, right, ""), right
            watched = "", "secrets", "watch"
            assert await may(client, watched, kube.namespace, name=RAY_TOKEN)
            assert not await may(client, watched, kube.namespace), "only this Secret"


def permissions_of(role: dict[str, Any]) -> Iterator[Right]:
    """Its permissions for objects of any name."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"] if not rule.get("resourceNames") else ():
                    yield group, resource, verb


ACCESS_REVIEWS = APIResource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


async def may(client: Client, right: Right, namespace: str, *, name: str = "") -> bool:
    """Whether the user of this client has the permission in that namespace, for the object with that name; in all, or
    for every object, if it is empty."""
    group, resource, verb = right
    plural, _, subresource = resource.partition("/")
    asked = {"group": group, "resource": plural, "subresource": subresource, "verb": verb, "namespace": namespace}
    asked["name"] = name
    body = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": asked},
    }
    return bool((await client.create(ACCESS_REVIEWS, body))["status"]["allowed"])
