"""The admission policy on a real API server: it decides as the controller does, and does not affect existing
objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.tenancy import TenantRule
from spotladder.clusters.errors import Invalid
from spotladder.operator.storage.allowed_addresses import AccessDenied, grant
from spotladder.resources import TIEREDJOBS
from tests.charts.helm import objects, rendered
from tests.kube.apiserver import ApiServer
from tests.kube.test_chart import KINDS
from tests.kube.world import KubeWorld, eventually, ray_spec, world

WHOLE = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}
URIS = [
    "s3://team", "s3://team/", "s3://team/a/b", "s3://team-evil/a", "s3://Team/a", "s3://team/../other", "s3://team/a/./b",
    "s3://team//a", "s3://team/a%2fb", "s3://team/%2e%2e/b", "s3://team\\a", "s3://team:443/a", "s3://a..b/c", "s3://shared/jobs",
    "s3://shared/jobs/x", "s3://shared/jobsx", "s3://shared", "gs://any/thing", "gs://any", "az://team/a", "file:///data",
    "file:///data/x", "file:///database", "file:///data/../etc", "file:////data", "s3://team/a b", "s3://*", "s3://*/x",
]  # fmt: skip


def body_of(kube: KubeWorld, uri: str, *, secret: bool) -> dict[str, Any]:
    credentials = {"credentials": {"secretName": "bucket"}} if secret else {}
    return {
        "apiVersion": TIEREDJOBS.api_version,
        "kind": TIEREDJOBS.kind,
        "metadata": {"name": "tried", "namespace": kube.namespace},
        "spec": {
            "tiers": [{"name": "a", "capacityTier": "a"}],
            "checkpoints": {"uri": uri, **credentials},
            "workload": {"ray": {"template": {"spec": ray_spec()}}},
        },
    }


@pytest.mark.parametrize("ruled", [True, False])
async def test_the_policy_and_the_controller_decide_alike(api_server: ApiServer, tmp_path: Path, ruled: bool) -> None:
    async with world(api_server) as kube:
        namespace = kube.namespace if ruled else "another"
        rule = {"namespaces": [namespace], "uris": ["s3://team", "s3://shared/jobs/", "gs://*", "file:///data"]}
        found = await install(kube, tmp_path, rule)
        try:
            # The API server has loaded the policy.
            await eventually(lambda: refused(kube, "s3://team/../x", secret=True))
            for uri in URIS:
                for secret in (False, True):
                    try:
                        grant(
                            [TenantRule.model_validate(rule)],
                            kube.namespace,
                            uri,
                            WHOLE if secret else None,
                            "bucket" if secret else "",
                        )
                        allowed = True
                    except AccessDenied:
                        allowed = False
                    # The policy sees only the name of a Secret; the controller also its content.
                    if uri.startswith("az:") and secret and not ruled:
                        allowed = True
                    assert bool(await refused(kube, uri, secret=secret)) is not allowed, (uri, secret)
        finally:
            await remove(kube, found)


async def test_existing_objects_can_be_suspended_changed_and_deleted(api_server: ApiServer, tmp_path: Path) -> None:
    async with world(api_server) as kube:
        await kube.submit()
        found = await install(kube, tmp_path, {"namespaces": ["*"], "uris": ["s3://nowhere"]})
        try:
            assert "not allowed in this namespace" in await eventually(
                lambda: refused(kube, "s3://bucket/x", secret=True)
            )
            await kube.patch(suspend=True)
            await kube.patch(checkpoints={"interval": "1m"})
            with pytest.raises(Invalid, match="not allowed in this namespace"):
                await kube.patch(checkpoints={"credentials": {"secretName": "bucket"}})
            async with kube.operator():
                await eventually(lambda: kube.has_phase("Suspended"))
                await kube.delete()
                await eventually(kube.is_gone)
        finally:
            await remove(kube, found)


async def install(kube: KubeWorld, folder: Path, *rules: dict[str, Any]) -> list[dict[str, Any]]:
    values = ("--set", f"namespaces={{{kube.namespace}}}", "--set-json", f"tenancy={json.dumps(rules)}")
    text = rendered(folder, *values, namespace=kube.namespace)
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    found = [body for kind in kinds for body in objects(text) if body["kind"] == kind]
    assert len(found) == 4
    for body in found:
        await kube.client.apply(KINDS[body["kind"]], body)
    return found


async def remove(kube: KubeWorld, found: list[dict[str, Any]]) -> None:
    for body in found:
        await kube.client.delete(KINDS[body["kind"]], body["metadata"]["name"])


async def refused(kube: KubeWorld, uri: str, *, secret: bool) -> str:
    """Why the API server rejects such a job; empty if it does not."""
    try:
        await kube.client.apply(TIEREDJOBS, body_of(kube, uri, secret=secret), dry_run=True)
    except Invalid as error:
        return error.message if "spec.checkpoints.uri" in error.message else ""
    return ""
