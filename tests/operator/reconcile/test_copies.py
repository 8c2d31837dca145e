"""Copies in member clusters: the cleanup keeps those that a job needs, and lost ones are recreated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from spotladder.api.stored import JobRecord
from spotladder.clusters.client import Page
from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.errors import Conflict, Forbidden, Invalid, NotFound
from spotladder.clusters.transport import Object
from spotladder.core.model import Phase
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster
from spotladder.operator.reconcile.copies import RESYNC_INTERVAL, Copies
from spotladder.resources import CONFIG_MAPS, SECRETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.references import COPIED, Reference


class CopyApi:
    """A fake API server. While `gate` is closed, requests for metadata are not answered."""

    def __init__(self) -> None:
        self.objects: dict[tuple[APIResource, str, str], Object] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.version = "1"
        self.listed: list[tuple[APIResource, str, str]] = []

    async def get(self, kind: APIResource, name: str, namespace: str) -> Object:
        return {"metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": self.version}}

    async def metadata(self, kind: APIResource, name: str, namespace: str) -> Object:
        await self.gate.wait()
        try:
            return self.objects[kind, namespace, name]
        except KeyError:
            raise NotFound(404, "NotFound", name) from None

    async def apply(self, kind: APIResource, body: Object) -> Object:
        metadata = body["metadata"]
        made = {**body, "metadata": {**metadata, "uid": f"c-{metadata['name']}"}}
        self.objects[kind, metadata["namespace"], metadata["name"]] = made
        return made

    async def pages(self, kind: APIResource, namespace: str, labels: str = "") -> AsyncIterator[Page]:
        self.listed.append((kind, namespace, labels))
        here = [key for key in self.objects if key[0] == kind and namespace in ("", key[1])]
        yield Page([self.objects[key] for key in here], "1")

    async def delete(self, kind: APIResource, name: str, namespace: str, uid: str = "") -> None:
        del self.objects[kind, namespace, name]


@dataclass
class Far:
    """A member cluster; `at_work` are the jobs that have an attempt in it."""

    client: CopyApi = field(default_factory=CopyApi)
    at_work: set[tuple[str, str]] = field(default_factory=set)
    name: str = "east"
    home: str = "home"
    selector: str = "spotladder.io/home=home"

    @property
    def inventory(self) -> Far:
        return self

    def attempts(self, key: tuple[str, str], _uid: str) -> dict[int, object]:
        return {1: object()} if key in self.at_work else {}


@dataclass
class CopyingJobs:
    found: list[JobRecord]
    caches: tuple[()] = ()

    def all(self) -> list[JobRecord]:
        return self.found


def job(name: str, *copies: Reference) -> JobRecord:
    named = tuple((copy.kind.kind, copy.name) for copy in copies)
    return JobRecord(name=name, namespace="team-a", uid=f"u-{name}", copies=named, phase=Phase.RUNNING)


def keeping(jobs: CopyingJobs, far: Far, clock: SteppedClock, *, home: CopyApi | None = None) -> Copies:
    class FakeClusters:
        others = (far,)

    FakeClusters.home = Far(home or CopyApi())  # type: ignore[attr-defined]

    return Copies(cast("Clusters", FakeClusters()), cast("Any", jobs), namespaces=(), clock=clock)


BUCKET = Reference(SECRETS, "bucket")
SECRET = (SECRETS, "team-a", "bucket")


@dataclass
class RefusingCopyApi(CopyApi):
    """Refuses the named calls."""

    refused: dict[str, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    async def get(self, kind: APIResource, name: str, namespace: str) -> Object:
        if error := self.refused.get("get"):
            raise error
        return await super().get(kind, name, namespace)

    async def metadata(self, kind: APIResource, name: str, namespace: str) -> Object:
        if error := self.refused.get("metadata"):
            raise error
        return await super().metadata(kind, name, namespace)

    async def apply(self, kind: APIResource, body: Object) -> Object:
        if error := self.refused.get("apply"):
            raise error
        return await super().apply(kind, body)


NO = Forbidden(403, "Forbidden", "no rights")


@pytest.mark.parametrize(
    ("home", "member", "reason", "message"),
    [
        (
            {"get": NotFound(404, "NotFound", "")},
            {},
            ConditionReason.REFERENCES_MISSING,
            "spec.copies: Secret team-a/bucket does not exist in the home cluster: create it",
        ),
        ({"get": NO}, {}, ConditionReason.COPY_REFUSED, "spec.copies: Secret team-a/bucket may not be read: no rights"),
        (
            {},
            {"metadata": NO},
            ConditionReason.COPY_REFUSED,
            "spec.copies: Secret team-a/bucket in cluster east: no rights",
        ),
        *(
            ({}, {"apply": error}, ConditionReason.COPY_REFUSED, "spec.copies: Secret team-a/bucket in cluster east: x")
            for error in (
                Conflict(409, "Conflict", "x"),
                Forbidden(403, "Forbidden", "x"),
                Invalid(422, "Invalid", "x"),
                NotFound(404, "NotFound", "x"),
            )
        ),
    ],
)
async def test_a_copy_that_cannot_be_made_is_a_problem_with_its_place(
    home: dict[str, Exception], member: dict[str, Exception], reason: ConditionReason, message: str
) -> None:
    far = Far(RefusingCopyApi(refused=member))
    copies = keeping(CopyingJobs([]), far, SteppedClock(), home=RefusingCopyApi(refused=home))
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [BUCKET]) == Diagnosis(reason, message)
    assert far.client.objects == {}


async def test_a_copy_is_written_when_its_source_has_changed() -> None:
    far, home = Far(), CopyApi()
    copies = keeping(CopyingJobs([]), far, SteppedClock(), home=home)
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [BUCKET]) is None
    copied = far.client.objects[SECRET]
    assert (copied["apiVersion"], copied["kind"]) == ("v1", "Secret")
    assert copied["metadata"]["labels"][names.HOME] == "home"
    assert copied["metadata"]["annotations"] == {names.COPY_OF: "u-bucket/1"}
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [BUCKET]) is None
    assert far.client.objects[SECRET] is copied, "unchanged"
    home.version = "2"
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [BUCKET]) is None
    assert far.client.objects[SECRET]["metadata"]["annotations"] == {names.COPY_OF: "u-bucket/2"}


@pytest.mark.parametrize("labels", [None, {names.HOME: "another", names.COPY: "true"}, {names.HOME: "home"}])
async def test_an_object_that_is_no_copy_of_this_controller_is_not_overwritten(labels: dict[str, str] | None) -> None:
    far = Far()
    users = far.client.objects[SECRET] = {"metadata": {"labels": labels, "annotations": {names.COPY_OF: "u-bucket/1"}}}
    problem = await keeping(CopyingJobs([]), far, SteppedClock()).bring(
        cast("WorkloadCluster", far), "team-a", [BUCKET]
    )
    message = (
        "spec.copies: Secret team-a/bucket in cluster east is not a copy of this controller: remove it there, or "
        "remove it from the list"
    )
    assert problem == Diagnosis(ConditionReason.NAME_TAKEN, message)
    assert far.client.objects[SECRET] is users


async def test_a_job_that_starts_during_the_cleanup_of_copies_keeps_its_copies() -> None:
    bucket, settings = Reference(SECRETS, "bucket"), Reference(CONFIG_MAPS, "settings")
    jobs, far, clock = CopyingJobs([job("old", bucket)]), Far(), SteppedClock()
    copies = keeping(jobs, far, clock)
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [bucket, settings]) is None
    far.client.gate.clear()  # the cleanup has begun and waits for the Secret
    running = asyncio.create_task(copies.run())
    try:
        await clock.advance(RESYNC_INTERVAL)
        jobs.found.append(job("new", settings))
        far.client.gate.set()
        await clock.advance(1)
        assert (CONFIG_MAPS, "team-a", "settings") in far.client.objects
        jobs.found.pop()
        await clock.advance(RESYNC_INTERVAL)
        assert (CONFIG_MAPS, "team-a", "settings") not in far.client.objects
    finally:
        running.cancel()


async def test_copies_are_looked_up_by_label_and_only_in_the_namespaces_of_the_controller() -> None:
    far, clock = Far(), SteppedClock()
    clusters: Any = SimpleNamespace(others=(far,), home=Far())
    of = (SECRETS, "team-b", "bucket")
    found = {"metadata": {"name": "bucket", "namespace": "team-b", "uid": "c", "labels": {names.COPY: "true"}}}
    far.client.objects[of] = found
    copies = Copies(clusters, cast("Any", CopyingJobs([])), namespaces=("team-a", "team-c"), clock=clock)
    running = asyncio.create_task(copies.run())
    try:
        await clock.advance(RESYNC_INTERVAL)
        assert far.client.objects == {of: found}, "it is in a namespace of another controller"
        label = f"{far.selector},{names.COPY}=true"
        assert {(namespace, labels) for _, namespace, labels in far.client.listed} == {
            ("team-a", label),
            ("team-c", label),
        }
        assert {kind for kind, _, _ in far.client.listed} == set(COPIED)
    finally:
        running.cancel()


async def test_a_cluster_whose_copies_cannot_be_updated_is_logged_and_delays_no_other() -> None:
    class Refusing(CopyApi):
        async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Page]:
            raise NO
            yield

    refusing, far, clock = Far(Refusing(), name="west"), Far(at_work={("team-a", "here")}), SteppedClock()
    clusters: Any = SimpleNamespace(others=(refusing, far), home=Far())
    jobs = CopyingJobs([job("here", Reference(SECRETS, "bucket"))])
    running = asyncio.create_task(Copies(clusters, cast("Any", jobs), namespaces=(), clock=clock).run())
    try:
        with capture_logs() as logs:
            await clock.advance(RESYNC_INTERVAL)
        assert list(far.client.objects) == [SECRET]
        (entry,) = logs
        assert (entry["event"], entry["cluster"], entry["log_level"]) == ("copies are not updated", "west", "warning")
        assert "no rights" in entry["error"]
    finally:
        running.cancel()


async def test_a_deleted_copy_is_recreated_in_the_cluster_of_its_job() -> None:
    bucket = Reference(SECRETS, "bucket")
    far, clock = Far(at_work={("team-a", "here")}), SteppedClock()
    jobs = CopyingJobs([job("here", bucket), job("elsewhere", Reference(SECRETS, "other"))])
    running = asyncio.create_task(keeping(jobs, far, clock).run())
    try:
        await clock.advance(RESYNC_INTERVAL)
        assert list(far.client.objects) == [(SECRETS, "team-a", "bucket")]
    finally:
        running.cancel()
