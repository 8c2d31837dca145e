"""Builders for tests of the in-job library: jobs in a folder of the test, ranks as threads, and a stepped clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.train.environment import Environment
from spotladder.train.membership import Member, join
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job


class ManualClock:
    """A stepped clock, in seconds: it moves only when a test sets `now`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def variables(folder: Path, **more: Any) -> dict[str, str]:
    """The environment of a job `digits` below `folder`; `attempt=2` sets SPOTLADDER_ATTEMPT, and so on."""
    given = {"job": "digits", "uri": folder, "interval": "10steps", **more}
    return {f"SPOTLADDER_{name.upper()}": str(value) for name, value in given.items()}


def log_of(folder: Path) -> CommitLog:
    return CommitLog(open_store(folder), "digits")


def newest_of(folder: Path) -> Commit:
    """The newest commit of the job, which has one."""
    newest = log_of(folder).newest()
    assert newest is not None
    return newest


def newest_step(folder: Path) -> int:
    """The step of the newest commit; 0 if the job has none."""
    newest = log_of(folder).newest()
    return newest.step if newest else 0


def member(
    folder: Path, world: ProcessRank | None = None, *, left: list[int] | None = None, node: str = "", **more: Any
) -> Member:
    """One rank that has joined. `left` collects its exit codes instead of ending the process. With a `node`, a handover
    restarts the rank on another node."""
    leave = None if left is None else left.append
    return join(Environment(variables(folder, **more)), world or ProcessRank(), leave=leave, node=node)


def job(folder: Path, *, clock: Callable[[], float] | None = None, left: list[int] | None = None, **more: Any) -> Job:
    return Job(member(folder, left=left, **more), clock or ManualClock())


class Ranks:
    """A job of several ranks, one thread per rank."""

    def __init__(
        self,
        folder: Path,
        size: int,
        *,
        clock: ManualClock | None = None,
        own: Sequence[dict[str, Any]] = (),
        **more: Any,
    ) -> None:
        self.pool = ThreadPoolExecutor(size)
        self.clock = clock or ManualClock()
        per_rank = own or [{}] * size
        self.jobs: list[Job] = list(
            self.pool.map(
                lambda rank: Job(
                    member(folder, ProcessRank(rank, size, "test"), **{**more, **per_rank[rank]}), self.clock
                ),
                range(size),
            )
        )

    def on_all(self, do: Callable[[Job], Any]) -> list[Any]:
        """Run `do` on all ranks in parallel. Returns the result or the exception of each rank."""

        def guarded(job: Job) -> Any:
            try:
                return do(job)
            except BaseException as error:  # noqa: BLE001 – handed to the test
                return error

        return list(self.pool.map(guarded, self.jobs))

    def close(self) -> None:
        self.on_all(lambda job: job.close())
        self.pool.shutdown()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def train(job: Job, total: int, *, on_step: Callable[[int], object] = lambda _: None, flush: bool = False) -> list[int]:
    """A complete program: sums step numbers and checkpoints the sum. Returns the steps that it committed."""
    committed = []
    start = value = 0
    with job.resume() as found:
        if found:
            value, start = int((found.path / "sum").read_text()), found.step
    for step in job.steps(start, total):
        value += step
        on_step(step)
        if job.should_commit(step):
            with job.commit(step, {"sum": value}) as folder:
                (folder / "sum").write_text(str(value))
            committed.append(step)
            if flush:
                job.flush()
    return committed
