"""The preflight check: referenced objects and component versions, with a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import web

from spotladder.api.capacitytier import HOME
from spotladder.operator.condition_types import ConditionType
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster
from spotladder.operator.inventory.inventory import Inventory, JobKey
from spotladder.operator.reconcile.conditions import of_preflight
from spotladder.operator.reconcile.preflight import (
    FOUND_TTL,
    LATER,
    MISSING_RETRY_INTERVAL,
    Ahead,
    Preflight,
    Wanted,
    lacking,
    needs,
)
from spotladder.resources import CONFIG_MAPS, PRIORITY_CLASSES, SECRETS
from spotladder.workloads.kueue import LOCAL_QUEUES
from spotladder.workloads.references import Reference
from tests.clusters.stepped_clock import SteppedClock
from tests.clusters.test_client import api, refused
from tests.workloads.builders import job, ray_template, tier, worker_spec

KEY: JobKey = ("team-a", "digits")
BUCKET, SETTINGS = Reference(SECRETS, "bucket"), Reference(CONFIG_MAPS, "settings")


class FakeApiPaths:
    """A fake API server. `existing` has the existing paths, `refuses` the status code for all others, `kubernetes` the
    version, and `releases` the labels of the existing Deployments by path."""

    def __init__(self) -> None:
        self.existing: set[str] = set()
        self.kubernetes = "v1.35.2-eks-1a2b3c4"
        self.releases: dict[str, dict[str, str]] = {}
        self.refuses = 404
        self.kueue = False
        self.asked: list[str] = []
        self.versions_asked = 0

    def __call__(self, request: web.Request) -> Any:
        if request.path == "/version":
            self.versions_asked += 1
            return {"major": "1", "gitVersion": self.kubernetes}
        if request.path == "/apis/kueue.x-k8s.io/v1beta2":
            return {"resources": [{"name": "localqueues"}]} if self.kueue else refused(404)
        assert "PartialObjectMetadata" in request.headers["Accept"]
        if "/deployments/" in request.path:
            labels = self.releases.get(request.path)
            return refused(404) if labels is None else {"metadata": {"labels": labels}}
        self.asked.append(request.path)
        return {"metadata": {}} if request.path in self.existing else refused(self.refuses)


class PreflightScene:
    def __init__(self, place: FakeApiPaths, home: WorkloadCluster) -> None:
        self.place, self.home = place, home
        self.clock = SteppedClock()
        self.woken: list[JobKey] = []
        clusters = Clusters(home, {}, join=cast("Any", None), clock=self.clock, changed=lambda _name: None)
        self.preflight = Preflight(clusters, clock=self.clock, changed=self.woken.append)

    def look(self, version: object = 1, *references: Reference, ray: str | None = None) -> Ahead | None:
        return self.preflight.check(KEY, version, lambda: (Wanted(HOME, references or (BUCKET,), ray),))

    async def woke(self) -> None:
        for _ in range(400):
            if self.woken:
                self.woken.clear()
                return
            await asyncio.sleep(0.005)
        raise AssertionError("no job was requeued")


@asynccontextmanager
async def scene() -> AsyncIterator[PreflightScene]:
    place = FakeApiPaths()
    async with api(place) as client:
        made = PreflightScene(place, WorkloadCluster(HOME, client, cast("Inventory", None), most=1))
        async with made.preflight:
            yield made


async def test_missing_references_are_checked_again_and_found_ones_are_cached() -> None:
    async with scene() as here:
        here.place.existing.add("/api/v1/namespaces/team-a/configmaps/settings")
        for _ in range(2):
            assert await here.preflight.missing(here.home, "team-a", [BUCKET, SETTINGS]) == (BUCKET,)
        assert [path.rpartition("/")[2] for path in here.place.asked] == ["bucket", "settings", "bucket"]
        await here.clock.advance(FOUND_TTL)
        await here.preflight.missing(here.home, "team-a", [SETTINGS])
        assert len(here.place.asked) == 4


@pytest.mark.parametrize("answer", [403, 404])
@pytest.mark.parametrize("installed", [True, False])
async def test_a_missing_queue_is_reported_with_whether_kueue_is_installed(answer: int, installed: bool) -> None:
    queue = Reference(LOCAL_QUEUES, "team")
    async with scene() as here:
        here.place.refuses = answer
        here.place.kueue = installed
        missing = await here.preflight.missing(here.home, "team-a", [queue])
        if installed and answer == 403:
            assert missing == ()
            return
        expected = (
            "namespace team-a lacks LocalQueue team: create it there"
            if installed
            else "namespace team-a lacks LocalQueue team (the cluster has no localqueues of kueue.x-k8s.io/v1beta2): "
            "install Kueue, or remove the queue"
        )
        assert lacking(here.home, "team-a", missing) == expected


async def test_unreadable_references_count_as_existing_and_priority_classes_are_cluster_scoped() -> None:
    async with scene() as here:
        high = Reference(PRIORITY_CLASSES, "high")
        assert await here.preflight.missing(here.home, "team-a", [high]) == (high,)
        assert here.place.asked == ["/apis/scheduling.k8s.io/v1/priorityclasses/high"]
        here.place.refuses = 403
        assert await here.preflight.missing(here.home, "team-a", [BUCKET]) == ()


async def test_the_preflight_check_does_not_block_the_reconciler_and_requeues_the_job_on_a_change() -> None:
    async with scene() as here:
        assert here.look() is None
        assert here.look() is None  # the check is still running
        await here.woke()
        assert here.look() == Ahead("namespace team-a lacks Secret bucket: create it there")
        here.place.existing.add("/api/v1/namespaces/team-a/secrets/bucket")
        await here.clock.advance(MISSING_RETRY_INTERVAL)
        assert here.look() != Ahead()
        await here.woke()
        assert here.look() == Ahead()
        asked = len(here.place.asked)
        await here.clock.advance(LATER - 1)
        here.look()
        await asyncio.sleep(0.05)
        assert len(here.place.asked) == asked
        assert here.look(2, SETTINGS) is None  # a new generation of the job has other references
        await here.woke()
        assert "ConfigMap settings" in str(here.look(2))
        here.preflight.forget(KEY)
        assert here.look(2) is None


async def test_without_an_answer_nothing_counts_as_found_and_the_check_is_repeated() -> None:
    async with scene() as here:
        here.place.refuses = 500
        here.look()
        while not here.place.asked:
            await asyncio.sleep(0.005)
        await asyncio.gather(*(check.task for check in here.preflight._checks.values() if check.task))
        assert here.look() is None
        here.place.refuses = 404
        await here.clock.advance(MISSING_RETRY_INTERVAL)
        here.look()
        await here.woke()
        found = here.look()
        assert found is not None
        assert "bucket" in found.missing


def test_references_must_exist_in_the_cluster_of_the_tier() -> None:
    template = ray_template()
    container = worker_spec(template)["containers"][0]
    container["envFrom"] = [{"secretRef": {"name": "bucket"}}, {"configMapRef": {"name": "settings"}}]
    of = job(template)
    tiers = [tier(of, cluster="east"), tier(of)]
    ray = needs(of, tiers)[0].ray
    assert ray is not None
    assert needs(of, tiers) == tuple(Wanted(cluster, (BUCKET, SETTINGS), ray) for cluster in ("east", HOME))


KUBERAY = "/apis/apps/v1/namespaces/kuberay/deployments/kuberay-operator"
KARPENTER = "/apis/apps/v1/namespaces/kube-system/deployments/karpenter"


@pytest.mark.parametrize(
    ("kubernetes", "releases", "ray", "conflicts"),
    [
        pytest.param(
            "v1.35.2",
            {KARPENTER: {"app.kubernetes.io/version": "1.8.3"}},
            None,
            "Karpenter 1.8.3 does not support Kubernetes 1.35: use Karpenter 1.9 or newer",
            id="Karpenter",
        ),
        pytest.param("v1.35.2", {KARPENTER: {"helm.sh/chart": "karpenter-0.5.0"}}, None, "", id="Karpenter on gcp"),
        pytest.param(
            "v1.35.2",
            {KUBERAY: {"helm.sh/chart": "kuberay-operator-1.6.1"}},
            "2.9.0",
            "KubeRay 1.6.1 does not support Ray 2.9.0: use Ray 2.38 or newer",
            id="Ray",
        ),
        pytest.param("v1.35.2", {KUBERAY: {"team": "ml"}}, "2.9.0", "", id="labels without a version"),
        pytest.param("", {}, "2.9.0", "", id="no known version"),
    ],
)
async def test_version_conflicts_are_reported_in_the_preflight_condition(
    kubernetes: str, releases: dict[str, dict[str, str]], ray: str | None, conflicts: str
) -> None:
    """tests/topology/test_versions.py has the matrix."""
    async with scene() as here:
        here.place.existing.add("/api/v1/namespaces/team-a/secrets/bucket")
        here.place.kubernetes, here.place.releases = kubernetes, releases
        here.look(ray=ray)
        await here.woke()
        found = here.look(ray=ray)
        assert found is not None
        assert (found.missing, conflicts in found.conflicts, bool(found.conflicts)) == ("", True, bool(conflicts))
        updates = of_preflight(found)[ConditionType.PREFLIGHT]
        assert updates.reason == ("VersionConflict" if conflicts else "AllFound")


async def test_the_versions_of_a_cluster_are_read_again_when_it_reconnects() -> None:
    async with scene() as here:
        here.place.existing.add("/api/v1/namespaces/team-a/secrets/bucket")
        here.place.kubernetes = "v1.28.9"
        here.look()
        await here.woke()
        assert "Kubernetes 1.28 is not supported" in str(here.look())
        here.place.kubernetes = "v1.35.2"
        here.preflight.reconnected("another")
        running = asyncio.all_tasks()
        here.look()
        assert asyncio.all_tasks() == running, "no check has begun"
        here.look(2)  # a new generation of the job, which is checked now
        await here.woke()
        assert "Kubernetes 1.28 is not supported" in str(here.look(2))
        assert here.place.versions_asked == 1
        here.preflight.reconnected(HOME)
        here.look(2)
        await here.woke()
        assert here.look(2) == Ahead()
