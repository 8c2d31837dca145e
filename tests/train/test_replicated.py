"""Replicated state: rank 0's files are the whole checkpoint, and a lost rank does not prevent the commit of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spotladder.train.interruption import RankLost
from spotladder.train.session import Job
from tests.train.builders import Ranks, job, log_of

pytestmark = pytest.mark.usefixtures("no_waiting")


def write(job: Job, step: int, *, replicated: bool = True) -> None:
    with job.commit(step, replicated=replicated) as folder:
        (folder / "state").write_text(f"step {step} of rank {job.rank}")


def committed(folder: Path) -> list[tuple[int, list[str]]]:
    """Step and files of every commit."""
    return [(commit.step, [file.name for file in commit.files]) for commit in log_of(folder).commits()]


def found(job: Job) -> tuple[int, str] | None:
    with job.resume() as found:
        return (found.step, (found.path / "state").read_text()) if found else None


def leaves(job: Job) -> None:
    """The process ends in an orderly way."""
    job._member.channel.close()


def dies(job: Job) -> None:
    """The connection ends without a last message."""
    job._member.channel._link.close()  # type: ignore[attr-defined]


def dies_before_its_part(job: Job) -> None:
    """The rank agrees on the step and dies before it has given its files."""
    offer = {"step": 1, "skipped": False, "gave_up": ""}
    job._member.channel.exchange("folder 1.0", offer, lambda _: None)
    dies(job)


def test_only_the_files_of_rank_0_are_stored(tmp_path: Path) -> None:
    def commit(job: Job) -> None:
        write(job, 1)
        job.flush()

    with Ranks(tmp_path, 3) as ranks:
        assert ranks.on_all(commit) == [None] * 3
    assert committed(tmp_path) == [(1, ["state"])]
    with Ranks(tmp_path, 3) as ranks:
        assert ranks.on_all(found) == [(1, "step 1 of rank 0")] * 3
    assert found(job(tmp_path, attempt=2)) == (1, "step 1 of rank 0")


@pytest.mark.parametrize("how", [leaves, dies, dies_before_its_part])
def test_rank_0_commits_alone_when_another_rank_is_lost_and_then_reports_the_loss(
    tmp_path: Path, how: Callable[[Job], None]
) -> None:
    def run(job: Job) -> None:
        if job.rank == 2:
            how(job)
            return
        write(job, 1)
        try:
            job.flush()
        finally:
            job._member.channel.close()

    with Ranks(tmp_path, 3) as ranks:
        errors = ranks.on_all(run)
    assert [isinstance(error, RankLost) for error in errors] == [True, True, False], errors
    assert committed(tmp_path) == [(1, ["state"])]
    with Ranks(tmp_path, 3) as again:
        assert again.on_all(found) == [(1, "step 1 of rank 0")] * 3


def test_without_the_declaration_a_lost_rank_prevents_the_commit(tmp_path: Path) -> None:
    def run(job: Job) -> None:
        if job.rank == 1:
            dies(job)
            return
        write(job, 1, replicated=False)
        job.flush()

    with Ranks(tmp_path, 2) as ranks:
        assert [type(error) for error in ranks.on_all(run)] == [RankLost, type(None)]
    assert committed(tmp_path) == []


def test_other_ranks_do_not_commit_without_a_rank_0_that_has_begun(tmp_path: Path) -> None:
    def run(job: Job) -> None:
        if job.rank == 0:
            job._member.channel.close()
            return
        write(job, 1)
        job.flush()

    with Ranks(tmp_path, 2) as ranks:
        mine, others = ranks.on_all(run)
    assert mine is None
    assert isinstance(others, RankLost)
    assert committed(tmp_path) == []


def test_rank_0_can_begin_a_commit_after_another_rank_is_lost(tmp_path: Path) -> None:
    def commit_first(job: Job) -> None:
        write(job, 1)
        job.flush()

    with Ranks(tmp_path, 2, interval="30s") as ranks:
        first = ranks.jobs[0]
        steps = first.steps(0, 100)
        assert next(steps) == 1
        assert ranks.on_all(commit_first) == [None, None]
        dies(ranks.jobs[1])
        ranks.clock.now += 31
        assert next(steps) == 2
        assert first.should_commit(2)
        write(first, 2)
        with pytest.raises(RankLost):
            first.flush()
    assert [step for step, _ in committed(tmp_path)] == [1, 2]
