"""Outages over HTTP: an S3 server behind a proxy that refuses connections, answers 503 or hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from spotladder.checkpoints import bucket
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.train import commits, store_retry
from spotladder.train.environment import Environment
from spotladder.train.membership import join
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.checkpoints.servers import OutageProxy, checked_keys, moto, new_bucket, use_profile, write_profile
from tests.train.builders import variables

AWAY = 1.5
"""Minimum duration of an outage in seconds."""

STEPS = 100
"""Steps that the training makes during an outage."""

LIMIT = 600.0
"""Maximum seconds for them, and for a commit after the outage."""

PAUSE = 0.01


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as endpoint:
        yield endpoint


@pytest.fixture
def uri_of_log(server: str) -> tuple[str, CommitLog]:
    """A new bucket, and a reader of its log that connects directly and with the usual timeouts."""
    uri = new_bucket(server)
    return uri, CommitLog(open_store(uri), "digits")


@pytest.fixture
def outage(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OutageProxy]:
    for name in ("SMALL_REQUEST_TIMEOUT", "DATA_REQUEST_TIMEOUT", "RETRY_TIMEOUT"):
        monkeypatch.setattr(bucket, name, timedelta(seconds=0.5))
    monkeypatch.setattr(commits, "PREVIOUS_COMMIT_TIMEOUT", 0.2)
    monkeypatch.setattr(store_retry, "FIRST_RETRY_INTERVAL", 0.1)
    monkeypatch.setattr(store_retry, "LONGEST_RETRY_INTERVAL", 0.3)
    away = OutageProxy(server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", away.endpoint)
    yield away
    away.close()


@pytest.mark.parametrize("kind", ["refused", "503", "hanging"])
def test_training_continues_and_commits_after_the_outage(
    uri_of_log: tuple[str, CommitLog], outage: OutageProxy, kind: str
) -> None:
    uri, log = uri_of_log
    settings = variables(Path(), uri=uri, interval="10steps")
    job = Job(join(Environment(settings), ProcessRank()))
    during: list[int] = []
    began = back = 0.0
    for step in job.steps(0, 100_000):
        now = time.monotonic()
        if step == 30:
            outage.begin(kind)
            began = now
        if began and not back and now - began > AWAY and len(during) >= STEPS:
            outage.end()
            back = now
        if back and step % 20 == 0 and _newest(log) > during[-1]:
            break
        assert not began or now - (back or began) < LIMIT, (
            f"no commit after the outage, or no step in it: {len(during)}"
        )
        if job.should_commit(step):
            with job.commit(step) as folder:
                (folder / "w").write_bytes(b"%d" % step)
        if began and not back:
            during.append(step)
        time.sleep(PAUSE)
    newest = log.newest()
    assert newest is not None
    log.verify(newest)
    job.flush()
    job.close()


def _newest(log: CommitLog) -> int:
    newest = log.newest()
    return 0 if newest is None else newest.step


@pytest.fixture
def uri(server: str) -> str:
    return new_bucket(server).replace(" ", "-")  # moto cannot check a signature over a space


def test_replaced_keys_of_a_credentials_file_are_read_again(
    server: str, uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    with checked_keys(server) as keys:
        old, new = keys.take(), keys.take()
        use_profile(monkeypatch, server, file, *old)
        monkeypatch.setattr(store_retry, "FIRST_RETRY_INTERVAL", 0.1)
        job = Job(join(Environment(variables(Path(), uri=uri, interval="1steps")), ProcessRank()))
        _commit(job, 1)
        keys.revoke(*old)
        replaced = threading.Timer(1.0, write_profile, (file, *new))
        replaced.start()
        _commit(job, 2)
        assert replaced.finished.is_set()
        job.close()
        newest = CommitLog(open_store(uri), "digits").newest()
    assert newest is not None
    assert newest.step == 2


def _commit(job: Job, step: int) -> None:
    with job.commit(step) as folder:
        (folder / "w").write_bytes(b"%d" % step)
    job.flush()
