"""The page for all users, with the chart's permissions, tokens and reviews of a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession

from spotladder.clusters.connection import connect
from spotladder.clusters.credentials import Fixed
from spotladder.clusters.transport import path_of
from spotladder.places import cluster
from spotladder.places.cluster import JobsOfCluster
from spotladder.resources import SERVICE_ACCOUNTS
from spotladder.web import cluster_users, reviews
from spotladder.web.cluster_users import ClusterUsers
from spotladder.web.server import serving
from tests.kube.apiserver import TOKEN, ApiServer
from tests.kube.commands import set_status
from tests.kube.kubelet import kubelet, ray_pod
from tests.kube.objects import make
from tests.kube.test_chart import KINDS, Recording, granted, installed
from tests.kube.world import KubeWorld, eventually, world

HOST = "spotladder.example"


async def reader(kube: KubeWorld, name: str, *, home: str, everywhere: bool = False) -> str:
    """A token of a service account with what the role view aggregates, in this namespace or in all. `home` is the
    namespace of the chart."""
    await make(kube, SERVICE_ACCOUNTS, name)
    kind = KINDS["ClusterRoleBinding" if everywhere else "RoleBinding"]
    for role in (f"{home}-spotladder-view", "system:aggregate-to-view"):  # no controller here fills the role view
        metadata = {"name": f"{kube.namespace}-{name}-{role}".replace(":", "-")}
        body = {
            "apiVersion": f"{kind.group}/{kind.version}",
            "kind": kind.kind,
            "metadata": metadata if everywhere else {**metadata, "namespace": kube.namespace},
            "roleRef": {"apiGroup": kind.group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": kube.namespace}],
        }
        await kube.client.apply(kind, body)
    path = path_of(SERVICE_ACCOUNTS, kube.namespace, name, "token")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await kube.client._call("create", SERVICE_ACCOUNTS, "POST", path, body=asked)
    return str(answer["status"]["token"])


class Page:
    """The page with the permissions of the chart's service account."""

    def __init__(self, client: Recording, browser: ClientSession) -> None:
        self.client, self._browser = client, browser

    async def get(self, path: str, token: str) -> tuple[int, str]:
        headers = {"Host": HOST, "Authorization": f"Bearer {token}"}
        async with self._browser.get(path, headers=headers) as answer:
            return answer.status, (await answer.text()).partition("<body>")[2]

    async def shows(self, token: str, *words: str, path: str = "/") -> bool:
        status, text = await self.get(path, token)
        return status == 200 and all(word in text for word in words)


@asynccontextmanager
async def page_of(kube: KubeWorld) -> AsyncIterator[Page]:
    user = {
        "Authorization": f"Bearer {TOKEN}",
        "Impersonate-User": f"system:serviceaccount:{kube.namespace}:spotladder-web",
        "Impersonate-Group": "system:serviceaccounts",
    }
    connection = replace(connect(str(kube.server.kubeconfig)), credentials=Fixed(user))
    async with (
        Recording(connection) as client,
        serving([JobsOfCluster(client, "west", "", shared=True)], "127.0.0.1", 0, ClusterUsers(client, HOST)) as port,
        ClientSession(f"http://127.0.0.1:{port}") as browser,
    ):
        yield Page(client, browser)


async def test_each_user_sees_the_namespaces_in_which_the_cluster_lets_this_user_list_jobs(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "OUTPUT_INTERVAL", 0.0)
    monkeypatch.setattr(reviews, "REFUSAL_TTL", 0.0)
    monkeypatch.setattr(reviews, "REVIEWS_AT_ONCE", 10_000)
    monkeypatch.setattr(cluster_users, "REQUESTS_AT_ONCE", 10_000)
    values = ("--set", f"web.host={HOST}")
    async with (
        world(api_server) as one,
        world(api_server) as two,
        kubelet(one) as (logs, node),
        installed(one, tmp_path, *values) as chart,
        page_of(one) as page,
    ):
        await one.submit()
        await two.submit("letters")
        await one.capacity("rare")
        ada, ben = [await reader(kube, name, home=one.namespace) for kube, name in ((one, "ada"), (two, "ben"))]
        await eventually(lambda: page.shows(ada, "digits"))
        await eventually(lambda: page.shows(ben, "letters"))
        for path, token, concealed in (("/", ada, two.namespace), ("/", ben, one.namespace), ("/tiers", ada, "rare")):
            status, text = await page.get(path, token)
            assert status == 200
            assert concealed not in text
        theirs = f"/jobs/west/{two.namespace}/letters"
        assert [(await page.get(theirs, token))[0] for token in (ada, ben)] == [404, 200]
        assert (await page.get("/", f"{ada}x"))[0] == 401
        admin = await reader(one, "admin", home=one.namespace, everywhere=True)
        await eventually(lambda: page.shows(admin, "digits", "letters"))
        await eventually(lambda: page.shows(admin, f"{one.namespace}-rare", path="/tiers"))

        mine = f"/jobs/west/{one.namespace}/digits"
        await set_status(one, phase="Running", attempt=2, tier="spot-a", attempts=[{"number": 1, "tier": "spot-a"}])
        head = await ray_pod(one, node, "digits-a002-head", role="head", containers=["ray-job-submitter"])
        logs.logs = {(head, "ray-job-submitter"): ["step 40"]}
        await eventually(lambda: page.shows(ada, "step 40", path=f"{mine}/output"))
        assert await page.shows(ada, f"spotladder logs digits -n {one.namespace}", path=f"{mine}/output?attempt=1")
        assert await page.shows(ada, "no access to buckets", f"spotladder report digits -n {one.namespace}", path=mine)
        assert (await page.get(f"{mine}/output", ben))[0] == 404
        status, fleet = await page.get("/fleet", ada)
        assert (status, "TieredJob v1alpha1" in fleet, "unreachable" in fleet) == (200, True, False)

        ours = {each["metadata"]["name"] for each in chart if each["metadata"]["name"].endswith("-web")}
        roles = [each for each in chart if each["metadata"]["name"] in ours]
        needed = {right for right in page.client.used if right[1] != "deployments"}
        assert needed == granted(roles)
        assert {right[1] for right in page.client.refused} <= {"deployments"}
