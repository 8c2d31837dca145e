"""The same over HTTP: a real S3 server behind a port that refuses, answers 503 or hangs for a while."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from spotladder.checkpoints import bucket, upload
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import RightsRefused
from spotladder.train import commits, store_retry
from spotladder.train.ending import exit_code_of
from spotladder.train.environment import Environment
from spotladder.train.membership import join
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.checkpoints.servers import Outage, moto, new_bucket, use_s3
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
    monkeypatch.setattr(store_retry, "FIRST_RETRY_INTERVAL", 0.1)
    monkeypatch.setattr(store_retry, "LONGEST_RETRY_INTERVAL", 0.3)
    away = Outage(server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", away.endpoint)
    yield away
    away.close()


@pytest.mark.parametrize("kind", ["refused", "503", "hanging"])
def test_training_goes_on_and_commits_when_the_store_is_back(server: str, outage: Outage, kind: str) -> None:
    uri = new_bucket(server)
    settings = variables(Path(), uri=uri, interval="10steps")
    job = Job(join(Environment(settings), ProcessRank()))
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
    job = Job(join(Environment(variables(Path(), uri=uri)), ProcessRank()))
    assert time.monotonic() - began > 1.0
    job.close()


@pytest.fixture
def uri(server: str) -> str:
    return new_bucket(server).replace(" ", "-")  # moto cannot check the signature of a blank


@pytest.fixture
def user(server: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """From here on the server checks keys; the environment has those of a user. Call it to take them away."""
    import boto3  # type: ignore[import-untyped]

    def checked_after(requests: str) -> None:
        body = urllib.request.Request(
            f"{server}/moto-api/reset-auth", requests.encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(body, timeout=10).close()

    def take_away() -> None:
        checked_after("1")
        iam.delete_access_key(UserName="u", AccessKeyId=key["AccessKeyId"])

    iam = boto3.client("iam", endpoint_url=server, region_name="us-east-1")
    may = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}]}
    iam.create_user(UserName="u")
    iam.put_user_policy(UserName="u", PolicyName="s3", PolicyDocument=json.dumps(may))
    key = iam.create_access_key(UserName="u")["AccessKey"]
    use_s3(monkeypatch, server, key["AccessKeyId"], key["SecretAccessKey"])
    checked_after("0")
    try:
        yield take_away
    finally:
        checked_after("inf")


def test_keys_that_are_taken_away_end_the_program_with_77(
    uri: str, user: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(join(Environment(variables(Path(), uri=uri, interval="1steps")), ProcessRank()))

    def commit(step: int) -> None:
        with job.commit(step) as folder:
            (folder / "w").write_bytes(b"%d" % step)
        job.flush()

    commit(1)
    user()
    with pytest.raises(RightsRefused, match="access denied: check the bucket's policy and AWS_ACCESS_KEY_ID") as found:
        commit(2)
    assert exit_code_of(found.value) == 77
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(RightsRefused):
        join(Environment(variables(Path(), uri=uri, attempt=2)), ProcessRank())
