"""A followed log whose stream breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from spotladder.clusters.errors import ClusterUnreachable
from spotladder.jobs import printing
from spotladder.jobs.printing import Printer, Printing


class Pod:
    """A source whose streams have these pieces; each but the last one breaks afterwards. Without a container, they come
    from the dashboard of the head."""

    pod, started = "digits-a001-head", True

    def __init__(self, *streams: list[bytes], container: str = "ray-job-submitter") -> None:
        self.streams, self.container = list(streams), container
        self.tails: list[int | None] = []

    async def printed(
        self, _client: object, _namespace: str, *, follow: bool, tail: int | None
    ) -> AsyncIterator[bytes]:
        assert follow
        self.tails.append(tail)
        for piece in self.streams.pop(0):
            yield piece
        if self.streams:
            raise ClusterUnreachable("log of pod digits-a001-head: connection reset")


LIVE = {"status": {"attempt": 1, "phase": "Running"}}
ENDED = {"status": {"attempt": 2, "phase": "Pending", "attempts": [{"number": 1}]}}
OUTAGE = ClusterUnreachable("get tieredjobs/digits: connection refused")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "POLL_INTERVAL", 0.0)


async def followed(pod: Any, *jobs: Any) -> tuple[list[str], list[str]]:
    """The lines, and the notes with the reason of a log that cannot be printed. `jobs` are the answers of the API
    server, by default that the attempt is live."""
    lines: list[str] = []
    notes: list[str] = []
    to = Printer(lines.append, notes.append, AsyncMock())
    job = AsyncMock(side_effect=jobs) if jobs else AsyncMock(return_value=LIVE)
    cluster: Any = SimpleNamespace(client=None, namespace="default", job=job)
    shown = Printing(cluster, cluster, "digits", None, to, follow=True, every_pod=False)
    why = await shown._print(cluster, pod, 1)
    return lines, [*notes, why] if why else notes


BROKE = "the stream of digits-a001-head broke: spotladder logs digits prints lines that are missing"
LOST = "the log of digits-a001-head cannot be read: its node does not answer"
SILENT = "the dashboard of digits-a001-head does not answer: it is starting, or its node is lost"


async def test_a_broken_stream_continues_and_says_where_the_missing_lines_are() -> None:
    pod = Pod([b"step 1\n", b"step"], [], [], [b"step 3\n"])
    assert await followed(pod) == (["step 1\n", "step\n", "step 3\n"], [BROKE]), (
        "half a line is not joined to another one"
    )
    assert pod.tails == [None, 0, 0, 0]


async def test_a_dashboard_that_starts_is_read_from_the_beginning() -> None:
    pod = Pod([], [], [b"step 1\n"], container="")
    assert await followed(pod) == (["step 1\n"], [SILENT])
    assert pod.tails == [None, None, None]


async def test_the_log_of_a_lost_node_is_followed_until_its_attempt_ends() -> None:
    assert await followed(Pod([b"step 1\n"], [], [], []), LIVE, ENDED) == (["step 1\n"], [BROKE])


@pytest.mark.parametrize(("container", "why"), [("", SILENT), ("worker", LOST)])
async def test_an_ended_attempt_whose_log_was_never_read_has_a_reason_so_that_its_stored_output_is_printed(
    container: str, why: str
) -> None:
    assert await followed(Pod([], [], container=container), ENDED) == ([], [why])


async def test_a_restart_of_the_api_server_does_not_end_a_followed_log(capsys: pytest.CaptureFixture[str]) -> None:
    pod = Pod([b"step 1\n"], [b"step 2\n"])
    assert (await followed(pod, OUTAGE, OUTAGE, LIVE))[0] == ["step 1\n", "step 2\n"]
    assert capsys.readouterr().err == f"{OUTAGE}: retrying\n"


async def test_of_a_progress_bar_that_ends_after_hours_the_last_text_is_printed() -> None:
    bars = [b"epoch 1\n", *(b"\r%d%%" % part for part in range(101)), b"\r", b"\n", b"bad \xff byte"]
    assert (await followed(Pod(bars)))[0] == ["epoch 1\n", "100%\n", "bad \ufffd byte\n"]


async def test_the_pods_with_which_a_jobset_restarts_in_its_attempt_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = Pod([b"step 1\n"]), Pod([b"step 2\n"])
    first.pod, second.pod = "workers-0-0-a", "workers-0-0-b"
    found = [[first], [first], [second], [second]]
    jobs = [{"status": {"attempt": 1, "phase": phase}} for phase in ("Running", "Running", "Running", "Succeeded")]
    lines: list[str] = []

    async def job(_name: str) -> dict[str, Any]:
        return jobs.pop(0)

    async def sources(*_: object) -> list[Pod]:
        return found.pop(0)

    cluster: Any = SimpleNamespace(client=None, namespace="default", job=job)
    shown = Printing(
        cluster, cluster, "digits", None, Printer(lines.append, str, AsyncMock()), follow=True, every_pod=False
    )
    monkeypatch.setattr(shown, "_sources", sources)
    await shown._printed(cluster, await job(""), 1)
    assert lines == ["step 1\n", "step 2\n"]
