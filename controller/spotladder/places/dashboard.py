"""Reads program output from Ray's dashboard on the head, the only source with HTTPMode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from spotladder.clusters.ray_token import token_headers

if TYPE_CHECKING:
    from spotladder.clusters.client import Client

PORT = 8265
POLL_INTERVAL = 1.0
LARGEST_LOG = 64 << 20
"""Maximum bytes of the job's whole output: Ray sends no part of it."""

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


async def printed(
    client: Client,
    pod: str,
    namespace: str,
    token: tuple[str, str] | None,
    *,
    follow: bool,
    tail: int | None,
    most: int,
) -> AsyncIterator[bytes]:
    """Yield the output of the job on this head in pieces; with `follow` until the job has ended. `token` is that of
    `token_headers`. Raises TooLarge if the whole output has more than `most` bytes."""
    printed, headers = 0, await token_headers(client, namespace, token)
    while True:
        jobs = await client.ask(pod, namespace, PORT, "api/jobs/", headers=headers)
        job = next((entry for entry in jobs if entry.get("submission_id")), None)
        if job is not None:
            path = f"api/jobs/{quote(str(job['submission_id']), safe='')}/logs"
            answer = await client.ask(pod, namespace, PORT, path, headers=headers, most=most)
            text = str(answer.get("logs") or "")
            if tail is not None and not printed:
                printed = len(text) - len("".join(text.splitlines(keepends=True)[-tail:] if tail else ""))
            if len(text) > printed:
                yield text[printed:].encode()
                printed = len(text)
        if not follow or (job is not None and job.get("status") in ENDED):
            return
        await asyncio.sleep(POLL_INTERVAL)
