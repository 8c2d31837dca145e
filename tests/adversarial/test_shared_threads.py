"""Buckets that never answer take threads. The log of an honest job of another namespace is read, and its outcome
written, all the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from spotladder.core.model import Progress
from spotladder.operator.storage import commit_logs
from spotladder.operator.storage.commit_logs import PER_BUCKET, READS, LogAddress, Logs
from tests.clusters.stepped_clock import SteppedClock
from tests.operator.storage.test_commit_logs import ScriptedLog

ATTACKERS = 34


class Buckets:
    """Opens logs: those of jobs called "evil…" do not answer until the end of the test."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.logs: dict[str, ScriptedLog] = {}

    def open(self, address: LogAddress) -> ScriptedLog:
        gate = self.over if address.job.startswith("evil") else None
        return self.logs.setdefault(address.job, ScriptedLog(Progress(step=7), gate=gate))

    @property
    def calls(self) -> Counter[str]:
        """The number of calls of each job that has made one."""
        return +Counter({job: log.reads + log.ends for job, log in self.logs.items()})


@pytest.fixture
def buckets() -> Iterator[Buckets]:
    made = Buckets()
    yield made
    made.over.set()


def logs_of(buckets: Buckets) -> Logs:
    return Logs(clock=SteppedClock(), changed=lambda _: None, open_log=buckets.open, jitter=lambda: 0.5)


def follow(logs: Logs, namespace: str, job: str, bucket: str = "") -> LogAddress:
    address = LogAddress(job, namespace, "uid", f"s3://{bucket or job}/prefix")
    logs.follow((namespace, job), address, 10)
    return address


async def until(what: Callable[[], bool]) -> None:
    while not what():
        await asyncio.sleep(0.002)


async def test_the_jobs_of_one_namespace_take_no_more_than_its_share(buckets: Buckets) -> None:
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(ATTACKERS):
            follow(logs, "attacker", f"evil{number}")
        await until(lambda: len(buckets.calls) == READS.per_namespace)
        follow(logs, "honest", "good")
        await until(lambda: buckets.calls["good"] == 1)
        assert sum(buckets.calls.values()) == READS.per_namespace + 1


async def test_deleted_and_recreated_jobs_take_no_more_than_the_share_either(buckets: Buckets) -> None:
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(ATTACKERS):
            follow(logs, "attacker", f"evil{number}")
            await asyncio.sleep(0.001)
            logs.unfollow(("attacker", f"evil{number}"))
        follow(logs, "honest", "good")
        await until(lambda: buckets.calls["good"] == 1)
        assert len(buckets.calls) <= READS.per_namespace + 1


@pytest.mark.parametrize(
    ("namespaces", "stores"),
    [(["team"], ["shared"]), (["team"], ["a", "b"]), (["w", "x", "y", "z"], ["a", "b"])],
    ids=["bucket", "namespace", "total"],
)
async def test_a_read_that_is_cancelled_in_a_queue_keeps_no_turn(
    buckets: Buckets, namespaces: list[str], stores: list[str]
) -> None:
    """The queue of the bucket, of the namespace, or of all."""
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        hanging = list(product(namespaces, stores, range(PER_BUCKET)))
        for namespace, store, number in hanging:
            follow(logs, namespace, f"evil-{namespace}-{store}-{number}", store)
        await until(lambda: len(buckets.calls) == len(hanging))
        for number in range(READS.total):
            follow(logs, "team", f"queued{number}", "shared")
            await asyncio.sleep(0.001)
            logs.unfollow(("team", f"queued{number}"))
        buckets.over.set()
        for number in range(READS.total):
            follow(logs, "team", f"good{number}", "shared")
        await until(lambda: sum(buckets.calls.values()) == len(hanging) + READS.total)
        assert not [job for job in buckets.calls if job.startswith("queued")]


async def test_overdue_reads_give_their_slots_back(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_logs, "READ_TIMEOUT", 0.05)
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(ATTACKERS + READS.total):
            follow(logs, f"attacker{number}", f"evil{number}")
        follow(logs, "honest", "good")
        await until(lambda: buckets.calls["good"] == 1)


async def test_the_outcome_is_written_while_reads_take_all_slots(buckets: Buckets) -> None:
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(ATTACKERS):
            follow(logs, f"attacker{number}", f"evil{number}")
        await until(lambda: len(buckets.calls) == READS.total)
        address = follow(logs, "honest", "good")
        assert (await logs.end(address, "Succeeded", 1, "", keep=3)).left == "kept 3"


async def test_the_outcome_is_written_while_reads_of_the_same_bucket_hang(buckets: Buckets) -> None:
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(PER_BUCKET + 1):
            follow(logs, "team", f"evil{number}", "shared")
        await until(lambda: len(buckets.calls) == PER_BUCKET)
        address = LogAddress("good", "team", "uid", "s3://shared/prefix")
        assert (await logs.end(address, "Failed", 2, "why", keep=1)).left == "kept 1"


async def test_another_namespace_does_not_block_a_bucket_by_its_name(buckets: Buckets) -> None:
    async with logs_of(buckets) as logs, asyncio.timeout(60):
        for number in range(PER_BUCKET):
            follow(logs, "attacker", f"evil{number}", "shared")
        await until(lambda: len(buckets.calls) == PER_BUCKET)
        follow(logs, "honest", "good", "shared")
        await until(lambda: buckets.calls["good"] == 1)


def test_the_library_of_buckets_is_loaded_before_threads_use_it() -> None:
    program = """
import sys
from spotladder.operator.storage.bucket_log import bucket_logs
before = "obstore.store" in sys.modules
bucket_logs()
print(before, {"obstore.store", "obstore.exceptions"} <= sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
