"""The first lists of a new leader on an API server that does not answer all of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from spotladder.clusters.client import Page
from spotladder.clusters.errors import ClusterUnreachable, Forbidden
from spotladder.clusters.transport import Object
from spotladder.errors import SpotladderError
from spotladder.operator.leader import FIRST_LIST_TIMEOUT
from spotladder.resources import PODS, APIResource
from tests.clusters.fake import FakeClient
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import filled_world
from tests.operator.reconcile.test_reconciler import running

NO_ANSWER = ClusterUnreachable("list pods: the API server did not answer in time")


class LateLists(FakeClient):
    """The first `failures` lists of pods fail with `error`. `written` are the bodies of all merge patches."""

    def __init__(self, kube: KubeWorld, failures: float, error: SpotladderError = NO_ANSWER) -> None:
        assert isinstance(kube.client, FakeClient)
        super().__init__(kube.client.server, kube.clock)
        self.failures, self.error = failures, error
        self.written: list[str] = []

    async def pages(self, kind: APIResource, *arguments: Any, **options: Any) -> AsyncIterator[Page]:
        if kind == PODS and self.failures > 0:
            self.failures -= 1
            raise self.error
        async for page in super().pages(kind, *arguments, **options):
            yield page

    async def merge(self, *arguments: Any, body: Object, **options: Any) -> Object:
        self.written.append(json.dumps(body))
        return await super().merge(*arguments, body=body, **options)

    @property
    def has_held_a_job(self) -> bool:
        return any("CannotWatch" in body for body in self.written)


async def test_a_first_list_that_is_answered_late_holds_no_job() -> None:
    async with filled_world() as kube:
        async with kube.operator():
            await running(kube)
            await kube.program_starts(1)
        client = LateLists(kube, failures=3)
        async with kube.operator(client=client):
            await kube.kill_worker(1)
            await kube.kill_worker(1)
            await eventually(lambda: kube.is_on("spot-b", 2))
        assert client.failures == 0
        assert not client.has_held_a_job


@pytest.mark.parametrize(
    ("error", "waits"), [(NO_ANSWER, True), (Forbidden(403, "Forbidden", "pods is forbidden"), False)]
)
async def test_a_leader_waits_only_for_lists_without_an_answer_and_not_forever(
    error: SpotladderError, waits: bool
) -> None:
    async with filled_world() as kube:
        async with kube.operator():
            await running(kube)
        client, began = LateLists(kube, failures=float("inf"), error=error), kube.clock.ticks()

        async def held() -> bool:
            await kube.clock.advance(1.0)
            return client.has_held_a_job

        async with kube.operator(client=client):
            await eventually(held)
        assert (kube.clock.ticks() - began >= FIRST_LIST_TIMEOUT) is waits
