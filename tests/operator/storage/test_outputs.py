"""When the output of an attempt is read and stored, and which operations do not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.outputs import Output, kept, of_job, read
from spotladder.checkpoints.store import folder_of
from spotladder.core.model import Attempt, AttemptSeen, Exit, JobState, Observation, Stage
from spotladder.errors import SpotladderError
from spotladder.operator.storage import outputs as module
from spotladder.operator.storage.allowed_addresses import Grant
from spotladder.operator.storage.bucket_log import keep_outputs
from spotladder.operator.storage.commit_logs import LogAddress
from spotladder.operator.storage.outputs import READING_AT_THE_END, Outputs
from spotladder.output.redact import secret_values
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.checkpoints.memory_store import MemoryStore
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import jobset, member

DRIVER = Output(1, 0, "driver")
SECRET = {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_REGION": "us-east-1"}


NOTHING = AttemptObjects()


class ClusterWithBucket:
    """A cluster whose readable output is `printed`, and a bucket that first raises the errors in `errors`."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.store = MemoryStore()
        self.printed: dict[Output, str] = {}
        self.errors: list[SpotladderError] = []
        self.reads = self.writes = 0
        self.gate: asyncio.Event | None = None
        self.problem = ""
        self.woken: list[tuple[str, str]] = []

    async def read(self, _attempt: int, _found: object) -> Mapping[Output, str]:
        self.reads += 1
        if self.gate:
            await self.gate.wait()
        return dict(self.printed)

    async def keep(self, address: LogAddress, texts: Mapping[Output, str]) -> None:
        self.writes += 1
        if self.errors:
            raise self.errors.pop(0)
        log = CommitLog(self.store, address.job, namespace=address.namespace, uid=address.uid)
        keep_outputs(log, texts, secret_values(address.grant.secret))

    async def address(self) -> LogAddress:
        return LogAddress("digits", "ns", "u", "s3://b/p", Grant(SECRET, isolated=True, secret=SECRET))

    def loaded(
        self,
        ended: Exit | None = None,
        *,
        forced: bool = False,
        stage: Stage = Stage.ENDING,
        objects: AttemptObjects = NOTHING,
    ) -> Any:
        located = SimpleNamespace(cluster=SimpleNamespace(problem=self.problem), objects=objects)
        return SimpleNamespace(
            record=SimpleNamespace(uid="u", key=("ns", "digits"), forced=forced),
            state=JobState(stage=stage, attempt=Attempt(1, "spot-a", 0.0)),
            seen=Observation(1, (AttemptSeen(1, exit=ended),)),
            found=SimpleNamespace(attempts={1: located}),
        )

    def outputs(self) -> Outputs:
        return Outputs(cast("Any", self), clock=self.clock, changed=self.woken.append, read=cast("Any", self.read))

    @property
    def kept(self) -> dict[Output, str]:
        folder = of_job(folder_of(self.store, "digits"), "u")
        found = kept(folder)
        return dict(zip(found, read(folder, found), strict=True))


async def run_background_tasks() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_output_is_stored_once_and_without_secrets_before_the_attempt_is_deleted() -> None:
    world = ClusterWithBucket()
    world.printed = {DRIVER: "key wJalrXUtnFEMI in us-east-1\n"}
    async with world.outputs() as outputs:
        for _ in range(3):
            await outputs.before_delete(world.loaded(), 1, world.address)
        await run_background_tasks()
        assert world.kept == {DRIVER: "key [redacted] in us-east-1\n"}
        assert world.reads == 1
        assert outputs._writing == set(), "a finished write is forgotten"


async def test_the_end_of_the_term_cancels_pending_reads() -> None:
    world = ClusterWithBucket()
    world.gate = asyncio.Event()
    async with world.outputs() as outputs:
        outputs.collect(world.loaded(Exit.FAILED), world.address)
        await run_background_tasks()
        assert world.reads == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_at_the_end_of_the_job_the_wait_for_the_output_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READING", 0.01)
    world = ClusterWithBucket()
    world.printed, world.gate = {DRIVER: "x\n"}, asyncio.Event()
    ended = world.loaded(Exit.SUCCEEDED, stage=Stage.SUCCEEDED)
    async with world.outputs() as outputs:
        assert not await outputs.before_delete(ended, 1, world.address)
        await world.clock.advance(READING_AT_THE_END)
        assert await outputs.before_delete(ended, 1, world.address)


@pytest.mark.parametrize("case", ["forced", "cluster away", "nothing there", "nothing printed"])
async def test_nothing_is_stored_without_output_or_when_it_cannot_be_read(case: str) -> None:
    world = ClusterWithBucket()
    world.printed = {} if case == "nothing printed" else {DRIVER: "x\n"}
    world.problem = "no answer" if case == "cluster away" else ""
    async with world.outputs() as outputs:
        attempt = 2 if case == "nothing there" else 1
        await outputs.before_delete(world.loaded(forced=case == "forced"), attempt, world.address)
        await run_background_tasks()
    assert (world.writes, world.kept) == (0, {})


async def test_output_that_cannot_be_stored_is_a_warning() -> None:
    world = ClusterWithBucket()
    world.printed, world.errors = {DRIVER: "x\n"}, [SpotladderError("no permission")]
    with capture_logs() as logs:
        async with world.outputs() as outputs:
            await outputs.before_delete(world.loaded(), 1, world.address)
            await run_background_tasks()
    assert [(entry["log_level"], entry["error"]) for entry in logs] == [("warning", "no permission")]


def ranks(*pods: PodRecord, restarts: int = 0) -> AttemptObjects:
    return AttemptObjects(top=jobset(restarts=restarts), pods=pods)


def of_rank(index: int, restart: int = 0) -> Output:
    return Output(1, restart, f"workers-0-{index}")


async def test_the_output_of_ranks_before_a_restart_in_place_is_stored() -> None:
    """JobSet deletes the pods of all ranks when one of them is lost, and their logs go with them."""
    world = ClusterWithBucket()
    killed = member(0, phase="Failed", exit_code=137)
    async with world.outputs() as outputs:

        async def look(*pods: PodRecord, restarts: int = 0) -> None:
            loaded = world.loaded(stage=Stage.RUNNING, objects=ranks(*pods, restarts=restarts))
            outputs.collect(loaded, world.address)
            await run_background_tasks()
            outputs.collect(loaded, world.address)
            await run_background_tasks()

        world.printed = {of_rank(0): "killed at 7\n", of_rank(1): "step 7\n"}
        await look(member(0), member(1))
        assert world.reads == 0  # no rank stops
        await look(killed, member(1))
        assert (world.reads, world.kept) == (1, {})
        world.printed = {of_rank(1): "step 7\npeer lost\n"}
        await look(member(1, deleted=True))
        world.printed = {of_rank(0, 1): "step 7 again\n"}
        await look(member(0, restart=1), member(1, deleted=True), restarts=1)
        assert (world.reads, world.kept) == (2, {})  # rank 1 may still print
        await look(member(0, restart=1), member(1, restart=1), restarts=1)
        assert world.kept == {of_rank(0): "killed at 7\n", of_rank(1): "step 7\npeer lost\n"}
        await look(member(0, restart=1), member(1, restart=1), restarts=1)
        assert (world.reads, world.writes) == (2, 1)
        await outputs.before_delete(world.loaded(objects=ranks(restarts=1)), 1, world.address)
        await run_background_tasks()
        assert world.kept[of_rank(0, 1)] == "step 7 again\n"


async def test_ranks_that_stop_during_a_read_are_read_again() -> None:
    world = ClusterWithBucket()
    async with world.outputs() as outputs:
        world.gate = asyncio.Event()
        going = world.loaded(stage=Stage.RUNNING, objects=ranks(member(0, phase="Failed"), member(1)))
        gone = world.loaded(stage=Stage.RUNNING, objects=ranks(member(0, phase="Failed"), member(1, deleted=True)))
        for loaded in (going, gone):
            outputs.collect(loaded, world.address)
            await run_background_tasks()
        assert world.reads == 1
        world.gate.set()
        await run_background_tasks()
        assert world.woken == [("ns", "digits")]
        outputs.collect(gone, world.address)
        await run_background_tasks()
        assert world.reads == 2
