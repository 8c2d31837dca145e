"""The page over the jobs of a real API server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.installed import DEPLOYMENTS
from spotladder.places import cluster, deleted, fleet
from spotladder.places.cluster import JobsOfCluster
from spotladder.records.model import encode
from spotladder.records.stored import append, of_job
from spotladder.web.server import serving
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.test_report import walk
from tests.kube.world import eventually, world
from tests.records.test_recorded_jobs import TRAINED, began, decided


async def test_the_page_follows_the_jobs_of_a_cluster_and_reads_their_buckets(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "BUCKETS", ("file://",))
    monkeypatch.setattr(cluster, "REPORT_INTERVAL", 0.0)
    async with (
        world(api_server) as kube,
        kube.operator(),
        Client(connect(str(api_server.kubeconfig)), manager="page") as client,
        serving([JobsOfCluster(client, "west", kube.namespace)], "127.0.0.1", 0) as port,
        ClientSession(f"http://127.0.0.1:{port}") as browser,
    ):

        async def shows(*texts: str, path: str = "/") -> bool:
            page = (await (await browser.get(path)).text()).partition("<body>")[2]
            return all(text in page for text in texts)

        assert await shows("No jobs yet")
        async with browser.get("/changes") as changes:
            await walk(kube, tmp_path)
            assert await changes.content.readline() == b"event: changed\n"
        await eventually(lambda: shows("digits", "Running", "spot-b", f"{kube.namespace} · west"))
        job = f"/jobs/west/{kube.namespace}/digits"
        await eventually(lambda: shows("on spot-b", "<h2>Timeline</h2>", "MaxFailuresExceeded", path=job))


async def test_deleted_jobs_stay_visible_as_long_as_their_records(
    api_server: ApiServer, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cluster, deleted):
        monkeypatch.setattr(module, "BUCKETS", ("file://",))
    async with world(api_server) as kube, Client(connect(str(api_server.kubeconfig)), manager="page") as client:
        job = await kube.submit("kept", checkpoints={"uri": tmp_path.as_uri()})
        for name, uid, namespace in (
            ("kept", job["metadata"]["uid"], kube.namespace),
            ("digits", "u1", kube.namespace),
            ("foreign", "u2", "other"),
        ):
            store = of_job(folder_of(open_store(tmp_path.as_uri()), name), uid)
            append(store, [encode(each) for each in (began(name, namespace=namespace), decided(TRAINED))], None)
        listed = await cli("get", "-n", kube.namespace)
        assert "digits" not in listed.out
        every = await cli("get", "--all", "-n", kube.namespace)
        assert (every.code, every.err, "foreign" in every.out) == (0, "", False)
        assert [(*line.split()[:3], line.split()[-1]) for line in every.out.splitlines()[2:]] == [
            ("digits", "Deleted", "spot-a", "deleted")
        ], every.out
        async with (
            serving([JobsOfCluster(client, "west", kube.namespace)], "127.0.0.1", 0) as port,
            ClientSession(f"http://127.0.0.1:{port}") as browser,
        ):

            async def shown() -> bool:
                page = await (await browser.get("/")).text()
                return "Deleted" in page and "digits" in page

            await eventually(shown)
            page = await (await browser.get(f"/jobs/west/{kube.namespace}/digits")).text()
            assert "<h2>Timeline</h2>" in page
            assert (await browser.get(f"/jobs/west/{kube.namespace}/digits/output")).status == 200
            assert (await browser.get("/jobs/west/other/foreign")).status == 404


async def test_the_fleet_has_each_cluster_with_its_problem(api_server: ApiServer) -> None:
    reader = replace(connect(str(api_server.kubeconfig)), server="https://127.0.0.1:1")
    async with (
        world(api_server) as kube,
        Client(connect(str(api_server.kubeconfig)), manager="page") as client,
        Client(reader, manager="page") as silent,
    ):
        home = await fleet.seen(client, "west", home=True)
        assert home.reachable
        assert home.kinds[:2] == ("TieredJob v1alpha1", "RayJob v1")
        assert home.kubernetes.startswith("1.")
        assert "the controller is not installed" in home.problem
        labels = {"app.kubernetes.io/part-of": "spotladder", "app.kubernetes.io/component": "controller"}
        version = {"app.kubernetes.io/version": "0.1.0"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "c", "namespace": kube.namespace, "labels": {**labels, **version}},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
        await kube.client.create(DEPLOYMENTS, body)
        home = await fleet.seen(client, "west", home=True)
        assert (home.controller, home.problem) == (
            "0.1.0", f"no pod of the controller is ready (Deployment {kube.namespace}/c)",
        )  # fmt: skip
        east = await fleet.seen(silent, "east", home=False)
        assert not east.reachable
        assert east.problem
