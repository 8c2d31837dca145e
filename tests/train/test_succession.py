"""Replicated state: another rank finishes the commit when rank 0 is lost, and the log gets it once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.entries import Commit
from spotladder.errors import StoreUnavailable
from spotladder.train import rendezvous, store_retry
from spotladder.train.interruption import RankLost
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.train.builders import Ranks, job, log_of, variables

WAIT = 20.0


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "RETRY_INTERVAL", 0.01)
    monkeypatch.setattr(store_retry, "FIRST_RETRY_INTERVAL", 0.01)


class Group:
    """Ranks of which rank 0 can be stopped at a request to the store, and cut off from the others."""

    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self.folder = folder
        self.ranks = ranks
        self.go_on = threading.Event()
        self._jobs = ranks.jobs

    def at(self, request: str, do: Callable[[], None], *, prefix: str = "", after: bool = False) -> None:
        """Call `do` before, or `after`, the first such request of rank 0's commit."""
        store: Any = self._jobs[0]._member.log.store
        real, pending = getattr(store, request), [do]

        def faulty(key: str, *rest: Any) -> Any:
            mine = pending.pop() if pending and key.startswith(prefix) else None
            if mine and not after:
                mine()
            found = real(key, *rest)
            if mine and after:
                mine()
            return found

        setattr(store, request, faulty)

    def cut_off(self) -> None:
        """The connections of rank 0 end, and rank 0 continues."""
        hub: Any = self._jobs[0]._member.channel
        with hub._changed:  # Before it sees the first end, and tells the others.
            for link in hub._peers.values():
                link.close()

    def stops(self) -> None:
        """Rank 0 is lost, until `go_on`."""
        self.cut_off()
        self.waits()

    def waits(self) -> None:
        assert self.go_on.wait(WAIT)

    def others_commit(self, write: Callable[[Job], None]) -> list[Any]:
        """Every rank submits step 1. Returns the results of all ranks but rank 0, which is not waited for."""

        def run(job: Job) -> None:
            write(job)
            if job.rank > 0:
                job.flush()

        return self.ranks.on_all(run)[1:]

    def rank_0_goes_on(self) -> None:
        """Rank 0 is no longer stopped: its commit ends. It may have the parts of all ranks already, and learn of the
        loss later."""
        self.go_on.set()
        with suppress(RankLost):
            self._jobs[0].flush()

    @property
    def commits(self) -> tuple[Commit, ...]:
        return log_of(self.folder).commits()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    with Ranks(tmp_path, 3) as ranks:
        made = Group(tmp_path, ranks)
        yield made
        made.go_on.set()


def write(job: Job) -> None:
    with job.commit(1, {"loss": 0.5}, replicated=True) as folder:
        (folder / "state").write_text(f"of rank {job.rank}")


def lost(results: list[Any]) -> bool:
    """Whether every rank gets the loss of rank 0."""
    return all(isinstance(result, RankLost) for result in results)


def resumed(folder: Path) -> str:
    with job(folder, attempt=2).resume() as found:
        assert found
        assert found.step == 1
        return (found.path / "state").read_text()


@pytest.mark.parametrize(
    "request_", [("put_file", ""), ("list", "attempts/"), ("put_if_absent", "log/")], ids=lambda one: one[0]
)
def test_another_rank_finishes_the_commit_of_a_rank_0_that_stops(group: Group, request_: tuple[str, str]) -> None:
    """Rank 0 stops before its upload, before the check of its files, and before its entry."""
    name, prefix = request_
    group.at(name, group.stops, prefix=prefix)
    assert lost(group.others_commit(write))
    (commit,) = group.commits
    assert (commit.step, commit.metrics, [file.name for file in commit.files]) == (1, {"loss": 0.5}, ["state"])
    assert commit.path.endswith("ckpt-000001.successor")
    group.rank_0_goes_on()
    assert group.commits == (commit,), "rank 0 was only cut off: it notices that the step is committed"
    assert resumed(group.folder) in {"of rank 1", "of rank 2"}


def test_the_others_find_the_commit_that_rank_0_has_recorded_before_its_loss(group: Group) -> None:
    group.at("put_if_absent", group.stops, prefix="log/", after=True)
    assert lost(group.others_commit(write))
    group.rank_0_goes_on()
    assert [commit.path.split("/")[-1] for commit in group.commits] == ["ckpt-000001"]
    assert resumed(group.folder) == "of rank 0"


def test_a_rank_0_that_is_only_cut_off_and_its_successor_commit_once(group: Group) -> None:
    group.at("put_file", group.cut_off)
    assert lost(group.others_commit(write))
    group.rank_0_goes_on()
    assert [commit.step for commit in group.commits] == [1]


def test_nothing_is_committed_when_a_newer_attempt_has_started(group: Group) -> None:
    def replaced() -> None:
        log_of(group.folder).start(2)
        group.stops()

    group.at("put_file", replaced)
    assert lost(group.others_commit(write))
    assert group.commits == ()


def test_a_rank_0_that_left_in_order_is_replaced_too(group: Group) -> None:
    def leaves() -> None:
        hub: Any = group.ranks.jobs[0]._member.channel
        for link in hub._peers.values():
            link.send({"say": "bye"})
        group.waits()

    group.at("put_file", leaves)
    assert lost(group.others_commit(write))
    assert [commit.step for commit in group.commits] == [1]


def test_ranks_without_the_files_of_rank_0_do_not_commit(group: Group) -> None:
    def write_on_rank_0(job: Job) -> None:
        with job.commit(1, replicated=True) as folder:
            (folder / f"rank-{job.rank}.random").write_text("")
            if job.rank == 0:
                (folder / "state").write_text("whole")

    group.at("put_file", group.stops)
    assert lost(group.others_commit(write_on_rank_0))
    assert group.commits == ()


def test_state_that_is_not_replicated_is_not_committed_without_rank_0(group: Group) -> None:
    def write_own(job: Job) -> None:
        with job.commit(1) as folder:
            (folder / "state").write_text("a part")

    group.at("put_file", group.stops)
    assert lost(group.others_commit(write_own))
    assert group.commits == ()


def test_the_successor_retries_while_the_store_is_unavailable(group: Group) -> None:
    for other in group.ranks.jobs[1:]:
        store: Any = other._member.log.store
        real, failures = store.put_file, [1, 2, 3, 4, 5]

        def faulty(key: str, path: Path, real: Any = real, failures: list[int] = failures) -> Any:
            if failures:
                failures.pop()
                raise StoreUnavailable("503")
            return real(key, path)

        store.put_file = faulty
    group.at("put_file", group.stops)
    assert lost(group.others_commit(write))
    assert [commit.step for commit in group.commits] == [1]


def test_the_files_are_kept_by_one_rank_of_each_machine_until_the_commit(tmp_path: Path) -> None:
    def kept(job: Job) -> bool:
        with job.commit(1, replicated=True) as folder:
            (folder / "state").write_text("")
        return folder.exists()

    with Ranks(tmp_path, 3) as ranks:
        group = Group(tmp_path, ranks)
        group.at("put_file", group.waits)
        ranks.jobs[2]._member.world = ProcessRank(2, 3, "test", local=1)
        assert ranks.on_all(kept) == [True, True, False]
        group.go_on.set()
        assert ranks.on_all(lambda job: job.flush()) == [None] * 3


PROGRAM = textwrap.dedent("""\
    import os, sys
    from spotladder import train
    from spotladder.checkpoints import upload

    def killed(*_):
        os.kill(os.getpid(), 9)

    job = train.current()
    if job.rank == 0:
        upload._upload_file = killed
    for step in job.steps(0, 1):
        with job.commit(step, replicated=True) as folder:
            (folder / "state").write_text(f"of rank {job.rank}")
""")


def test_a_killed_rank_0_does_not_prevent_the_commit(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **variables(tmp_path, rank=rank, world_size=3)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    said = [rank.communicate(timeout=600)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [-signal.SIGKILL, 5, 5], said
    assert all("rank 0 is lost" in text for text in said[1:])
    assert resumed(tmp_path) in {"of rank 1", "of rank 2"}
