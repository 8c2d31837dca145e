"""A standby attempt: its program boots, waits without a write to the log, and takes over at the controller's notice."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.progress import progress
from spotladder.checkpoints.standby import is_held
from spotladder.core.contract import Notice
from spotladder.train import rendezvous
from spotladder.train.membership import Member
from spotladder.train.putback import put_back
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.train.builders import ManualClock, job, log_of, member, train
from tests.waiting import until


@pytest.fixture
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4)


class Standby:
    """Attempt 2, launched as a standby."""

    def __init__(self, folder: Path, world: ProcessRank | None = None) -> None:
        self.folder, self.notice = folder, folder / "notice.json"
        self.heartbeat, self.world = folder / "heartbeat.json", world or ProcessRank()

    def member(self) -> Member:
        given: dict[str, Any] = {
            "attempt": 2,
            "tier": "spot",
            "standby": "true",
            "notice": self.notice,
            "heartbeat": self.heartbeat,
        }
        return member(self.folder, self.world, **given)

    def join(self) -> Job:
        return Job(self.member(), ManualClock())

    def train(self, total: int = 30) -> list[int]:
        done: list[int] = []
        train(self.join(), total, on_step=done.append)
        return done

    def waits(self) -> bool:
        return self.heartbeat.exists() and json.loads(self.heartbeat.read_text()).get("phase") == "standby"

    def ask(self, notice: Notice) -> None:
        draft = self.notice.with_suffix(".draft")
        draft.write_text(notice.encode())
        draft.replace(self.notice)


def still_waits(running: Future[Any]) -> bool:
    time.sleep(0.3)
    return not running.done()


def test_a_standby_writes_nothing_until_it_takes_over_and_resumes_from_the_last_commit(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    first, standby = job(tmp_path), Standby(tmp_path)
    assert progress(log_of(tmp_path)).stands_by
    running = pool.submit(standby.train)
    until(standby.waits)
    assert is_held(log_of(tmp_path).store, 2)
    for step in first.steps(0, 20):
        if first.should_commit(step):
            with first.commit(step) as folder:
                (folder / "sum").write_text("0")
            first.flush()
    assert still_waits(running)
    assert progress(log_of(tmp_path)).attempt == 1
    standby.ask(Notice.of_takeover())
    assert running.result(600) == list(range(21, 31))
    commits = log_of(tmp_path).commits()
    assert [(commit.attempt, commit.step) for commit in commits][-1] == (2, 30)


def test_the_own_checkpoint_of_a_program_is_put_back_after_the_takeover(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    job(tmp_path)
    standby, program = Standby(tmp_path), tmp_path / "program"
    program.mkdir()
    running = pool.submit(put_back, standby.member(), program)
    until(standby.waits)
    assert still_waits(running)
    standby.ask(Notice.of_takeover())
    assert running.result(600).found is None
    assert progress(log_of(tmp_path)).attempt == 2


def test_after_an_in_place_restart_the_attempt_does_not_wait_again(tmp_path: Path) -> None:
    standby = Standby(tmp_path)
    standby.ask(Notice.of_takeover())
    with standby.join().resume():
        pass
    standby.notice.unlink()
    with standby.join().resume():
        pass
    start = log_of(tmp_path).read().start
    assert start is not None
    assert (start.attempt, start.restart) == (2, 1)


def test_a_standby_that_restarts_while_it_waits_is_found_by_its_ranks(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """The log has no new entry, so both starts would publish their address under the same number."""
    job(tmp_path)
    for restart in range(2):
        ranks = [Standby(tmp_path, ProcessRank(rank, 2, "test")) for rank in range(2)]
        joined = [pool.submit(each.join) for each in ranks]
        jobs = [each.result(600) for each in joined]
        if not restart:
            for each in jobs:
                each.close()
    resumed = [pool.submit(each.resume().__enter__) for each in jobs]
    time.sleep(0.3)
    assert not any(each.done() for each in resumed)
    ranks[0].ask(Notice.of_takeover())
    assert [each.result(600) for each in resumed] == [None, None]
    assert progress(log_of(tmp_path)).attempt == 2


@pytest.fixture
def ray_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Train's broadcast from rank 0, for one group of threads."""
    given: Future[dict[str, Any]] = Future()

    def broadcast(value: dict[str, Any] | None) -> dict[str, Any]:
        if value is not None:
            given.set_result(value)
        return given.result(600)

    monkeypatch.setattr(rendezvous, "broadcast_by_ray", broadcast)


@pytest.mark.usefixtures("ray_group")
def test_the_workers_of_ray_train_join_and_wait_where_they_resume(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """The model is built and the collectives are up by then. Another rank learns from rank 0 when it may continue."""
    pytest.importorskip("ray")
    from spotladder.train.rayreports import Routed

    first = job(tmp_path)
    ranks = [Standby(tmp_path, ProcessRank(rank, 2, "ray")) for rank in range(2)]
    joined = [each.result(600) for each in [pool.submit(each.join) for each in ranks]]
    assert not ranks[0].waits(), "joining does not wait"
    members = [each._member for each in joined]
    pending = [pool.submit(Routed(member, "", 0).get_checkpoint) for member in members]
    until(ranks[0].waits)
    train(first, 20, flush=True)
    assert not any(each.done() for each in pending)
    ranks[0].ask(Notice.of_takeover())
    found = [each.result(600) for each in pending]
    assert all(Path(each.path, "sum").exists() for each in found)
    start = log_of(tmp_path).read().start
    assert start is not None
    assert ({member.started for member in members}, start.attempt) == ({start.seq}, 2)


@pytest.mark.usefixtures("ray_group")
def test_ranks_of_ray_train_that_resume_by_the_job_resume_from_the_last_commit(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    first = job(tmp_path)
    ranks = [Standby(tmp_path, ProcessRank(rank, 2, "ray")) for rank in range(2)]
    joined = [each.result(600) for each in [pool.submit(each.join) for each in ranks]]
    resumed = [pool.submit(each.resume().__enter__) for each in joined]
    until(ranks[0].waits)
    train(first, 20, flush=True)
    assert not any(each.done() for each in resumed)
    ranks[0].ask(Notice.of_takeover())
    assert [found and found.step for found in (each.result(600) for each in resumed)] == [20, 20]


def test_without_a_notice_file_nothing_could_end_the_wait(tmp_path: Path) -> None:
    with job(tmp_path, attempt=2, standby="true").resume() as found:
        assert found is None
    assert progress(log_of(tmp_path)).attempt == 2
