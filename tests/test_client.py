"""The Python client without a cluster; tests/kube has the rest."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.manifest import manifest
from spotladder.api.review import Review
from spotladder.api.tieredjob import TieredJob
from spotladder.client import AsyncJobs, Jobs
from spotladder.errors import Refused
from spotladder.jobs.printing import Printing
from tests.workloads.builders import job


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    cluster, context = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}, {"cluster": "c", "user": "u"}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"clusters": [cluster], "users": [user], "contexts": [{"name": "c", "context": context}]}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({**config, "current-context": "c"}))
    return str(file)


def test_a_signal_ends_the_call_that_waits(kubeconfig: str) -> None:
    """As Ctrl-C in a notebook, or the signal by which a workflow engine cancels a task."""
    ended = []

    async def waiting() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("waiting")

    with pytest.raises(KeyboardInterrupt), Jobs(kubeconfig=kubeconfig) as jobs:
        jobs._run(waiting())
    assert ended == ["waiting"]


def test_the_output_is_not_read_on_when_its_reader_has_left(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def endless(_jobs: AsyncJobs, _name: str, **_options: Any) -> AsyncIterator[str]:
        try:
            while True:
                yield "a line"
        finally:
            ended.set()

    monkeypatch.setattr(AsyncJobs, "logs", endless)
    with Jobs(kubeconfig=kubeconfig) as jobs:
        for line in jobs.logs("digits", follow=True):
            assert line == "a line"
            break
        assert ended.wait(60)
        left = jobs.logs("digits", follow=True)
        next(left)
    left.close()


async def test_the_output_is_not_read_faster_than_its_lines_are_taken(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    async def fast(printing: Printing, _only: int | None) -> None:
        for piece in range(1000):
            read.append(piece)
            printing._to.write("one\n")
            printing._to.write("two\n")
            await printing._to.flush()

    monkeypatch.setattr(Printing, "attempts", fast)
    async with AsyncJobs(kubeconfig=kubeconfig) as jobs:
        found = jobs.logs("digits")
        assert [await anext(found) for _ in range(3)] == ["one", "two", "one"]
        await asyncio.sleep(0.01)
        assert len(read) == 2
        assert len([line async for line in found]) == 1997
        await found.aclose()


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_a_name_that_would_be_another_path_is_refused(kubeconfig: str, name: str) -> None:
    """An empty name is the list of all jobs, which never ends."""
    with Jobs(kubeconfig=kubeconfig) as jobs, pytest.raises(Refused):
        jobs.wait(name)
    with pytest.raises(Refused), Jobs("..", kubeconfig=kubeconfig):
        pass


def test_a_job_that_a_yaml_library_has_read_is_sent(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a library makes a datetime of a timestamp without quotes."""
    sent: list[Review] = []

    async def sent_to(_cluster: object, found: Review, **_options: Any) -> AsyncIterator[None]:
        sent.append(found)
        yield

    monkeypatch.setattr("spotladder.client.sent_to", sent_to)
    data = manifest(job())
    data["spec"]["deadline"] = datetime(2999, 12, 1, tzinfo=UTC)
    data["spec"]["workload"]["ray"]["template"]["spec"]["entrypoint"] = "echo 🚀"
    with Jobs(kubeconfig=kubeconfig) as jobs:
        assert jobs.submit(data) == "digits"
    (model,) = (entry.model for review in sent for entry in review.objects)
    assert isinstance(model, TieredJob)
    assert model.spec.deadline == data["spec"]["deadline"]
    assert "🚀" in str(model.spec.workload)
