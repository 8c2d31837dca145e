"""The same over HTTP: a real S3 server behind a port that refuses, answers 503 or hangs for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from spotladder.checkpoints import bucket, upload
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import open_store
from spotladder.train import commits, patience
from spotladder.train.environment import Environment
from spotladder.train.membership import join
from spotladder.train.ranks import World
from spotladder.train.session import Job
from tests.checkpoints.servers import Outage, moto, new_bucket
from tests.train.builders import variables

AWAY = 3.0
PAUSE = 0.01


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as endpoint:
        yield endpoint


@pytest.fixture
def outage(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outage]:
    for name in ("SMALL_REQUEST_TIMEOUT", "DATA_REQUEST_TIMEOUT", "RETRY_TIMEOUT"):
        monkeypatch.setattr(bucket, name, timedelta(seconds=0.5))
    monkeypatch.setattr(upload, "RETRY_TIMEOUT", 0.1)
    monkeypatch.setattr(commits, "PREVIOUS_COMMIT_TIMEOUT", 0.2)
    monkeypatch.setattr(patience, "FIRST_RETRY_INTERVAL", 0.1)
    monkeypatch.setattr(patience, "LONGEST_RETRY_INTERVAL", 0.3)
    away = Outage(server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", away.endpoint)
    yield away
    away.close()


@pytest.mark.parametrize("kind", ["refused", "503", "hanging"])
def test_training_goes_on_and_commits_when_the_store_is_back(server: str, outage: Outage, kind: str) -> None:
    uri = new_bucket(server)
    settings = variables(Path(), uri=uri, interval="10steps")
    job = Job(join(Environment(settings), World()))
    log = CommitLog(open_store(uri), "digits")
    during: list[int] = []
    began = back = 0.0
    longest = 0.0
    for step in job.steps(0, 100_000):
        begun = time.monotonic()
        if step == 30:
            outage.begin(kind)
            began = begun
        if began and not back and begun - began > AWAY:
            outage.end()
            back = begun
        if back and begun - back > 2.0:
            break
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "w").write_bytes(b"%d" % step)
        if began and not back:
            during.append(step)
        longest = max(longest, time.monotonic() - begun)
        time.sleep(PAUSE)
    assert len(during) > 50, "training stood still"
    assert longest < 1.0
    newest = log.newest()
    assert newest is not None
    assert newest.step > during[-1] - 20, "what was done during the outage is committed"
    log.verify(newest)
    job.flush()
    job.close()


def test_an_attempt_waits_for_a_store_that_is_away_when_it_starts(server: str, outage: Outage) -> None:
    uri = new_bucket(server)
    outage.begin("refused")
    threading.Timer(1.0, outage.end).start()
    began = time.monotonic()
    job = Job(join(Environment(variables(Path(), uri=uri)), World()))
    assert time.monotonic() - began > 1.0
    job.close()
