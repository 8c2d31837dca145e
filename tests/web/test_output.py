"""The output of a program that runs, as the page reads it from a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from spotladder.checkpoints.outputs import CUT
from spotladder.clusters.client import Client, Page
from spotladder.places import attempt_output, cluster
from spotladder.workloads.rayjob.records import SUBMITTER


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


class Crowded(Client):
    """The pods of a job whose user fills them with text."""

    async def pages(self, *_what: object, limit: int = 0, **_how: object) -> AsyncIterator[Page]:
        assert limit <= 50
        yield Page([self.pod(f"pod-{number:02}") for number in range(20)], "1")

    def pod(self, name: str) -> dict[str, Any]:
        large = {"large": "x" * 100_000}
        running = {"name": SUBMITTER, "state": {"running": {}}, "imageID": "x" * 100_000}
        containers = [{"name": SUBMITTER, "command": ["x" * 100_000]}, {"name": "other"}]
        metadata = {"name": name, "creationTimestamp": "2026-11-29T00:00:00Z", "annotations": large, "labels": large}
        return {"metadata": metadata, "spec": {"containers": containers}, "status": {"containerStatuses": [running]}}

    async def log(self, pod: str, *_where: object, **_how: object) -> AsyncIterator[bytes]:
        yield f"printed by {pod}\n".encode()


async def test_what_users_write_into_pods_and_jobs_is_not_kept() -> None:
    assert len(str(await attempt_output._pods(Crowded(), "team-a", ""))) < 40_000
    written = {"last-applied-configuration": "x" * 100_000}
    metadata = {"name": "digits", "namespace": "team-a", "uid": "1", "resourceVersion": "7", "annotations": written}
    held = cluster._Held.of({"metadata": metadata})
    assert len(str(held)) < 1000


async def test_a_crowd_of_drivers_has_as_many_outputs_as_a_page_shows() -> None:
    metadata = {"name": "digits", "namespace": "team-a", "uid": "1", "resourceVersion": "7"}
    metadata["creationTimestamp"] = "2026-11-29T00:00:00Z"
    place = cluster.JobsOfCluster(Crowded(), "west", "", shared=True)
    held = cluster._Held.of({"metadata": metadata, "status": {"attempt": 1, "phase": "Running"}})
    shown = await place._of_pods(held, 1)
    assert [each.source for each in shown] == [f"pod-{number:02}" for number in range(cluster.SHOWN_OUTPUTS)]


async def test_only_the_end_of_a_long_output_is_kept_from_the_beginning_of_a_line() -> None:
    line = b"x" * 99 + b"\n"
    text = await cluster._end(pieces(*[line * 100] * 100, b"the last line\n"))
    assert len(text) <= cluster.LONGEST + len(CUT)
    assert text.startswith(f"{CUT}xxx")
    assert text.endswith("x\nthe last line\n")
    assert await cluster._end(pieces(b"a character of two bytes: \xc3", b"\xa4")) == "a character of two bytes: ä"
