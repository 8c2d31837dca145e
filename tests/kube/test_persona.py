"""Someone who may only write the TieredJobs of a namespace tries to get more, on a real API server."""

from __future__ import annotations

import base64
import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.clusters.credentials import Fixed
from spotladder.clusters.errors import ApiError, Invalid
from spotladder.resources import SECRETS, SERVICE_ACCOUNTS, TIEREDJOBS
from spotladder.workloads.pod_security import LABEL
from tests import ways
from tests.kube.apiserver import TOKEN, ApiServer
from tests.kube.conditions import message_of
from tests.kube.second_cluster import ControlledConnection
from tests.kube.test_admission import install, remove
from tests.kube.test_chart import KINDS, installed
from tests.kube.test_clusters import two_clusters
from tests.kube.world import NAMESPACES, KubeWorld, eventually, world
from tests.ways import WAYS, Way


def as_tenant(kube: KubeWorld) -> Client:
    """A client with the permissions of the service account `tenant`."""
    user = {
        "Authorization": f"Bearer {TOKEN}",
        "Impersonate-User": f"system:serviceaccount:{kube.namespace}:tenant",
        "Impersonate-Group": f"system:serviceaccounts:{kube.namespace}",
    }
    return Client(replace(connect(str(kube.server.kubeconfig)), credentials=Fixed(user)))


async def let_write_jobs(kube: KubeWorld) -> None:
    metadata = {"name": "tenant", "namespace": kube.namespace}
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["spotladder.io"], "resources": ["tieredjobs"], "verbs": ["*"]}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }  # fmt: skip
    await kube.client.create(KINDS["Role"], role)
    await kube.client.create(KINDS["RoleBinding"], binding)


def body_of(kube: KubeWorld, spec: dict[str, Any], name: str) -> dict[str, Any]:
    for tier in spec["tiers"]:
        for place in (tier, *tier.get("groups", {}).values()):
            place["capacityTier"] = f"{kube.namespace}-{place['capacityTier']}"
    metadata = {"name": name, "namespace": kube.namespace}
    return {"apiVersion": TIEREDJOBS.api_version, "kind": TIEREDJOBS.kind, "metadata": metadata, "spec": spec}


async def submitted(tenant: Client, kube: KubeWorld, way: Way, name: str) -> str:
    """Why the API server refuses the job; "" if it accepts it."""
    spec = way.spec(ways.spec())
    if way.secret:
        spec["checkpoints"]["credentials"]["secretName"] = name
        data = {key: base64.b64encode(value.encode()).decode() for key, value in way.secret.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": kube.namespace}}
        await kube.client.create(SECRETS, {**secret, "data": data})
    try:
        await tenant.create(TIEREDJOBS, body_of(kube, spec, name))
    except Invalid as error:
        return error.message
    return ""


async def refusal(kube: KubeWorld, name: str) -> str:
    """The message with which the controller holds the job."""
    valid, degraded = await kube.condition("Valid", name), await kube.condition("Degraded", name)
    held = valid.get("status") == "False" or degraded.get("status") == "True"
    return f"{valid.get('message')}; {degraded.get('message')}" if held else ""


async def test_none_of_forty_ways_gives_a_tenant_more(api_server: ApiServer, tmp_path: Path) -> None:
    async with world(api_server, tiers=("spot", "reserved")) as kube, as_tenant(kube) as tenant:
        await kube.capacity("east", cluster="east")
        await let_write_jobs(kube)
        account = {"metadata": {"name": "training", "namespace": kube.namespace}}
        await kube.client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
        document = ways.document(kube.namespace, f"{kube.namespace}-")
        policies = await install(kube, tmp_path, document)
        try:
            probe = body_of(kube, ways.spec("s3://team-b/x"), "probe")
            await eventually(lambda: is_refused(lambda: tenant.create(TIEREDJOBS, probe, dry_run=True)))
            east = ControlledConnection(kube.client.connection)  # The same server has the role of a member.
            async with kube.operator(tenancy=[document], sources={"east": east}):
                open_ways = {}
                for number, way in enumerate(WAYS):
                    answer = await submitted(tenant, kube, way, f"way-{number}")
                    if way.at_admission:
                        assert way.said in answer, (way.name, answer)
                    else:
                        assert not answer, (way.name, answer)
                        open_ways[f"way-{number}"] = way
                for name, way in open_ways.items():
                    message = await eventually(partial(refusal, kube, name))
                    assert way.said in message, (way.name, message)
                await kube.idle()
                assert await kube.rayjobs() == []
                await tenant.create(TIEREDJOBS, body_of(kube, ways.spec(), "honest"))
                await eventually(lambda: kube.rayjob(1, "honest"))
                assert await kube.rayjobs() == ["honest-a001"]
        finally:
            await remove(kube, policies)


async def is_refused(call: Callable[[], Awaitable[Any]]) -> bool:
    try:
        await call()
    except ApiError:
        return True
    return False


async def test_the_level_of_the_namespace_decides_about_templates(api_server: ApiServer) -> None:
    """Before a launch, without an admission policy: also a job that was submitted before the label was set."""
    way = next(way for way in WAYS if way.name == "the network of the node")
    rule = {"namespaces": ["*"], "uris": ["s3://*"], "contact": "#ml-platform"}
    async with world(api_server, tiers=("spot",)) as kube:
        await kube.client.create(TIEREDJOBS, body_of(kube, way.spec(ways.spec()), "digits"))
        account = {"metadata": {"name": "training", "namespace": kube.namespace}}
        await kube.client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
        async with kube.operator(tenancy=[rule]):
            message = await eventually(lambda: refusal(kube, "digits"))
            assert f"Pod Security level baseline of namespace {kube.namespace}" in message
            assert "ask #ml-platform for another label" in message
            assert "Pod Security level" in (await kube.status())["message"], "kubectl get -o wide shows it"
            assert await kube.rayjobs() == []
            labels = {"metadata": {"labels": {LABEL: "privileged"}}}
            await kube.client.merge(NAMESPACES, kube.namespace, body=labels)
            await kube.clock.advance(61)
            await eventually(lambda: kube.rayjob(1))


async def test_a_member_is_used_only_if_both_administrators_say_so(
    api_server: ApiServer, second_server: ApiServer, tmp_path: Path
) -> None:
    way = next(way for way in WAYS if way.name == "the network of the node")
    spec = {**ways.spec(), "tiers": [{"name": "east", "capacityTier": "spot-east"}]}
    limited = Fixed({"Authorization": f"Bearer {TOKEN}", "Impersonate-User": "limited"})
    member = ("--set", "member.enabled=true,serviceAccount.create=false,namespaces={default}",
              "--set", "member.subjects[0].kind=User,member.subjects[0].name=limited")  # fmt: skip
    async with two_clusters(api_server, second_server) as (kube, east):
        listing = {"namespaces": [kube.namespace], "uris": ["s3://*"], "clusters": ["east"]}
        await kube.client.create(TIEREDJOBS, body_of(kube, copy.deepcopy(spec), "digits"))
        source = east.source
        async with kube.operator(tenancy=[{**listing, "clusters": ["west"]}], sources={"east": source}):
            message = await message_of(kube, "Valid", "False", "NotAllowed")
            assert f'"cluster east" is not allowed in namespace {kube.namespace} (clusters: west)' in message
        async with installed(east, tmp_path, *member):
            source = ControlledConnection(replace(connect(str(second_server.kubeconfig)), credentials=limited))
            async with kube.operator(tenancy=[listing], sources={"east": source}):
                message = await message_of(kube, "Degraded", "True", "ClusterUnreachable")
                assert "cluster east cannot be used" in message
        assert await east.rayjobs() == []
        await kube.client.merge(
            NAMESPACES, kube.namespace, body={"metadata": {"labels": {LABEL: "privileged"}}}
        )  # of the home cluster only
        await kube.client.create(TIEREDJOBS, body_of(kube, way.spec(spec), "host"))
        account = {"metadata": {"name": "training", "namespace": kube.namespace}}
        await east.client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
        async with kube.operator(tenancy=[listing], sources={"east": east.source}):
            message = await message_of(kube, "Degraded", "True", "NotAllowed", "host")
            assert f"Pod Security level baseline of namespace {kube.namespace} in cluster east" in message
            await eventually(lambda: east.rayjob(1))
            assert await east.rayjobs() == ["digits-a001"]
