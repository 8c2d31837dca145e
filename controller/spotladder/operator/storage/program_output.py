"""Reads the output of an attempt's programs while its objects exist.

| program | read from |
|---|---|
| Ray, KubeRay's submitter prints it (SidecarMode, K8sJobMode) | the submitter's log |
| Ray, HTTPMode | Ray's dashboard on the head |
| Ray, neither answers | the RayJob's status: Ray appends the last 10 lines to the message of a failure |
| Ray, if the program never started | the log of the head, if it ended with an error |
| JobSet | the log of every rank, of the newest restart in place first, then those that failed |

The driver of a Ray program prints what its ranks print. Only the last lines are requested, and only a limited number
of bytes is kept in memory. Output that cannot be read is left out: no function raises an error for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote

import structlog
from pydantic_core import from_json

from spotladder.checkpoints.outputs import CUT, LONGEST, Output, from_next_line
from spotladder.clusters.client import Client
from spotladder.clusters.ray_token import token_headers
from spotladder.core.model import PodRole, Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.inventory.clusters import Located
from spotladder.resources import PODS
from spotladder.workloads.causes import silent
from spotladder.workloads.kinds import main_kinds
from spotladder.workloads.records import PodRecord, WorkloadRecord
from spotladder.workloads.workload import DriverOutput

T = TypeVar("T")

DASHBOARD = 8265
"""Port of Ray's dashboard on a head."""

LINES = 5_000
"""Number of lines that are requested from a driver, or from one rank."""

LONGEST_RANK = 65_536
"""Bytes kept of one rank's output."""

RANKS = 64
"""Maximum number of ranks of a JobSet whose output is read."""

AT_ONCE = 8
"""Number of logs of one attempt that are read concurrently."""

ONE: Seconds = 15.0
"""Timeout of one log. Only this read waits that long."""

LONGEST_ANSWER = 67_108_864
"""Maximum bytes of a dashboard's response; beyond that, the read is abandoned."""

_log = structlog.get_logger("spotladder")


async def printed(attempt: int, found: Located, *, lines: int = LINES, ranks: int = RANKS) -> dict[Output, str]:
    """The end of the output of each program of the attempt so far; empty if nothing can be read.

    At most `lines` lines of a driver, or of each of a limited number of ranks.
    """
    try:
        return await _printed(attempt, found, lines, ranks)
    except Exception as error:  # noqa: BLE001 – a defect here must not keep an attempt from being deleted
        _log.error("reading the output of an attempt failed with an unexpected error", attempt=attempt, exc_info=error)
        return {}


async def _printed(attempt: int, found: Located, lines: int, ranks: int) -> dict[Output, str]:
    nodes = found.cluster.inventory.nodes_of(found.objects)
    alive = [pod for pod in found.objects.pods if pod.node and not silent(nodes.get(pod.node))]
    client, top, text = found.cluster.client, found.objects.top, ""
    if top is not None:
        driver = main_kinds()[top.kind].driver_output(found.objects)
        if driver is None:
            return await _ranks(attempt, client, alive, lines, ranks)
        text = await _driver(client, top, driver, alive, lines)
    return {Output(attempt, 0, "driver"): text} if text else await _crashed_head(attempt, client, alive)


async def _driver(
    client: Client, top: WorkloadRecord, driver: DriverOutput, alive: Sequence[PodRecord], lines: int
) -> str:
    if driver.pods:
        return await _submitter(client, top, driver, lines) or await _message(client, top, driver)
    for head in alive:
        if head.role is PodRole.HEAD and head.phase == "Running":
            container = driver.container
            read = _log_of(client, head, container, lines) if container else _dashboard(client, head, lines)
            if text := await read:
                return text
    return await _message(client, top, driver)


async def _dashboard(client: Client, head: PodRecord, lines: int) -> str:
    """The state API sends only the last lines but needs a working agent on the head; the jobs API sends all lines."""

    headers: dict[str, str] = {}

    def asked(path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        return client.read(head.name, head.namespace, DASHBOARD, path, query, headers=headers)

    async def submitted() -> str:
        headers.update(await token_headers(client, head.namespace, head.token))
        jobs = await client.ask(head.name, head.namespace, DASHBOARD, "api/jobs/", headers=headers)
        return next((str(entry["submission_id"]) for entry in jobs if entry.get("submission_id")), "")

    async def all_of(job: str) -> str:
        # The pod chose the name: unescaped, it would lead to another path of the API server.
        path = f"api/jobs/{quote(job, safe='')}/logs"
        return _end_of_json(await _tail(asked(path, {}), 2 * LONGEST, LONGEST_ANSWER))

    what = f"the dashboard of {head.name}"
    job = await _tried(what, submitted(), "")
    if not job:
        return ""
    last = asked("api/v0/logs/file", {"submission_id": job, "lines": str(lines)})
    return await _tried(what, _end_of(last, LONGEST), "") or await _tried(what, all_of(job), "")


async def _submitter(client: Client, top: WorkloadRecord, driver: DriverOutput, lines: int) -> str:
    """The log of the submitter, which runs in its own pod."""

    async def pods() -> list[PodRecord]:
        pages = client.pages(PODS, top.namespace, labels=driver.pods)
        return [PodRecord.of(pod) async for page in pages for pod in page.items]

    for pod in (await _tried(f"the submitter of {top.name}", pods(), []))[-1:]:
        usual = any(entry.name == driver.container for entry in pod.containers)  # A template may have another name.
        return await _log_of(client, pod, driver.container if usual else pod.program, lines)
    return ""


async def _message(client: Client, top: WorkloadRecord, driver: DriverOutput) -> str:
    """The last lines in the status of the attempt's main object."""
    if (log_of := driver.log_of) is None:
        return ""

    async def ask() -> str:
        pages = client.pages(top.kind, top.namespace, fields=f"metadata.name={top.name}")
        messages = [
            str((entry.get("status") or {}).get("message") or "") async for page in pages for entry in page.items
        ]
        return log_of(messages[0]) if messages else ""

    return await _tried(f"{top.kind.kind} {top.name}", ask(), "")


async def _crashed_head(attempt: int, client: Client, pods: Sequence[PodRecord]) -> dict[Output, str]:
    for pod in pods:
        program = pod.program_container
        ended = program is not None and bool(program.exit_code)
        if pod.role is PodRole.HEAD and ended and (text := await _log_of(client, pod, pod.program, LINES)):
            return {Output(attempt, 0, "head"): text}
    return {}


async def _ranks(attempt: int, client: Client, pods: Sequence[PodRecord], lines: int, ranks: int) -> dict[Output, str]:
    chosen, gate = _chosen(pods)[:ranks], asyncio.Semaphore(AT_ONCE)

    async def one(pod: PodRecord) -> str:
        async with gate:
            return await _log_of(client, pod, pod.program, lines, LONGEST_RANK)

    texts = await asyncio.gather(*map(one, chosen))
    outputs = (Output(attempt, pod.restart, pod.slot or pod.name) for pod in chosen)
    return {output: text for output, text in zip(outputs, texts, strict=True) if text}


def _chosen(pods: Sequence[PodRecord]) -> list[PodRecord]:
    """The pods whose program has started: of the newest restart first, then those that failed, then by rank."""
    begun = [(pod, program) for pod in pods if (program := pod.program_container) is not None and program.begun]
    ordered = sorted(begun, key=lambda each: (-each[0].restart, not each[1].exit_code, _rank(each[0].slot)))
    return [pod for pod, _ in ordered]


def _rank(slot: str) -> tuple[tuple[int, str], ...]:
    """Sorts `workers-0-10` after `workers-0-9`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in slot.split("-"))


async def _log_of(client: Client, pod: PodRecord, container: str, lines: int, longest: int = LONGEST) -> str:
    pieces = client.log(pod.name, pod.namespace, container=container, tail=lines)
    return await _tried(f"the log of {pod.name}", _end_of(pieces, longest), "")


async def _tried(what: str, reading: Awaitable[T], otherwise: T) -> T:
    try:
        async with asyncio.timeout(ONE):
            return await reading
    except (SpotladderError, TimeoutError, ValueError, AttributeError, TypeError) as error:  # A pod answers anything.
        _log.info("output of an attempt cannot be read", what=what, error=str(error) or f"no answer in {ONE:g} s")
        return otherwise


async def _end_of(pieces: AsyncIterator[bytes], longest: int) -> str:
    """The last lines that fit into this many bytes."""
    cut, data = await _tail(pieces, longest)
    text = data.decode(errors="replace")
    return from_next_line(text) if cut else text


async def _tail(pieces: AsyncIterator[bytes], longest: int, most: int = 0) -> tuple[bool, bytes]:
    """Whether something is missing, and the last bytes; keeps no more than that in memory. Raises TimeoutError if
    there are more than `most` bytes (0: no limit)."""
    kept: deque[bytes] = deque()
    size, read = 0, 0
    async for piece in pieces:
        kept.append(piece)
        size, read = size + len(piece), read + len(piece)
        while kept and size - len(kept[0]) >= longest:
            size -= len(kept.popleft())
        if most and read > most:
            raise TimeoutError(f"more than {most} bytes")
    return read > longest, b"".join(kept)[-longest:]


def _end_of_json(tail: tuple[bool, bytes]) -> str:
    """The end of the text in `{"logs": "…"}`, whose beginning may be missing."""
    cut, data = tail
    if not cut:
        return str(from_json(data).get("logs") or "")
    # Start at the first complete line: a truncated escape sequence is dropped with its line.
    text = data.rpartition(b'"')[0]
    lines = text.partition(b"\\n")[2] or text.partition(b"\\r")[2]
    return CUT + str(from_json(b'"' + lines + b'"'))
