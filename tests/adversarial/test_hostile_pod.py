"""A pod answers whatever it wants. No answer takes the controller more memory than its limit."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web

from spotladder.clusters.client import LARGEST_ANSWER, Client
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.responses import LONGEST_REFUSAL
from spotladder.errors import SpotladderError, TooLarge
from spotladder.workloads.workload import AttemptObjects
from tests.clusters.test_client import api
from tests.operator.storage.test_program_output import pod, rayjob, read

MIB = 1 << 20
HUGE = 400
GIVE_UP = 600.0
"""Seconds after which a request fails: many times what it needs."""


class Pod:
    """Answers with `HUGE` MiB in pieces; counts those that were taken."""

    def __init__(self, *, status: int = 200, bomb: bool = False) -> None:
        self._status = status
        self._bomb = bomb
        self.taken = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Encoding": "deflate"} if self._bomb else {}
        response = web.StreamResponse(status=self._status, headers=headers)
        await response.prepare(request)
        try:
            async for piece in self._pieces():
                await response.write(piece)
            await response.write_eof()
        except OSError:
            pass
        return response

    async def _pieces(self) -> AsyncIterator[bytes]:
        packing = zlib.compressobj(9)
        for number in range(HUGE):
            if not self._bomb:
                piece = b" " * MIB
            elif number < 2:  # After a full flush, the same content is packed to the same bytes.
                piece = packing.compress(b" " * MIB) + packing.flush(zlib.Z_FULL_FLUSH)
            yield piece
            self.taken += 1


async def asked(client: Client) -> object:
    return await client.ask("head", "ns", 8265, "api/jobs/")


@pytest.mark.parametrize("bomb", [False, True])
async def test_a_huge_answer_is_given_up_at_the_limit(bomb: bool) -> None:
    pod = Pod(bomb=bomb)
    async with api(pod.answer, timeout=GIVE_UP) as client:
        says = rf"api/jobs/: has at least {LARGEST_ANSWER + 1:,} bytes, and at most {LARGEST_ANSWER:,} are read"
        with pytest.raises(TooLarge, match=says):
            await asked(client)
    assert bomb or pod.taken < HUGE / 4, "only what the sockets buffer is taken"


async def test_a_huge_error_is_cut() -> None:
    pod = Pod(status=500)
    async with api(pod.answer) as client:
        with pytest.raises(ClusterUnreachable) as caught:
            await asked(client)
    assert len(str(caught.value)) < LONGEST_REFUSAL
    assert pod.taken < HUGE / 4


@pytest.mark.parametrize("content", [b"[" * 1000, b"[" * 100_000, b"\xff", b'{"a":', b""])
async def test_an_answer_that_is_no_json_is_a_typed_error(content: bytes) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type="application/json")

    async with api(answer) as client:
        with pytest.raises(SpotladderError):
            await asked(client)


async def test_the_name_of_a_job_does_not_lead_to_another_path_of_the_api_server() -> None:
    asked: list[str] = []

    def answer(request: web.Request) -> object:
        asked.append(request.rel_url.raw_path)
        if "/api/v0/" in asked[-1]:
            return web.Response(status=404)
        return [{"submission_id": "../../../../../kube-system/secrets?limit=1#"}] if len(asked) == 1 else {"logs": ""}

    async with api(answer) as client:
        head = pod()
        assert await read(cast("Any", client), AttemptObjects(top=rayjob(), pods=(head,))) == {}
    assert len(asked) == 3
    assert all(path.startswith("/api/v1/namespaces/") and f"/pods/{head.name}:8265/proxy/" in path for path in asked)


@pytest.mark.parametrize("jobs", [{"a": 1}, [1], ["x"], "x", 7, None, [{"submission_id": {}}]])
async def test_a_list_of_jobs_of_another_form_is_no_output(jobs: object) -> None:
    async with api(lambda _: web.json_response(jobs)) as client:
        assert await read(cast("Any", client), AttemptObjects(top=rayjob(), pods=(pod(),))) == {}
