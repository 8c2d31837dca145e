"""The timeline of a job on a cluster, from its state and its commit log in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.api.stored import JobRecord
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.cli.cluster.snapshot import JobSnapshot
from spotladder.core.model import Attempt, JobSpec, JobState, Price, Progress, Stage, Tier, TierRecord
from spotladder.display.records import Committed, Recorded, Resized

NOW = 1_800_000_000.0
SPEC = JobSpec(
    tiers=(Tier("spot", max_failures=0, price=Price(0.4, 1.2)),), workers=4, min_workers=2, submitted_at=NOW - 900
)


def snapshot(folder: Path, progress: Progress) -> JobSnapshot:
    state = JobState(
        stage=Stage.RUNNING,
        attempt=Attempt(1, "spot", NOW - 900, seen=True, running_at=NOW - 800, workers=4, min_workers=2),
        tier="spot",
        tiers=(TierRecord("spot", attempts=1, node_seconds=1000.0, cost=1.0, on_demand_cost=3.0),),
        progress=progress,
        clock=NOW,
    )
    job = JobRecord(name="digits", namespace="team-a", uid="u")
    return JobSnapshot(job, SPEC, state, str(folder), (), (), ("ordered", ""))


def kinds(recorded: Recorded, kind: type[Resized | Committed]) -> list[Resized | Committed]:
    return [record for record in recorded.records if isinstance(record, kind)]


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    return CommitLog(open_store(tmp_path), "digits", namespace="team-a", uid="u")


def test_the_sizes_of_an_elastic_job_come_from_the_starts_of_its_programs(log: CommitLog, tmp_path: Path) -> None:
    log.start(1, "spot", workers=4, now=NOW - 700).commit(10, (), total=100, now=NOW - 600)
    log.start(1, "spot", workers=3, now=NOW - 500)
    recorded, missing = snapshot(tmp_path, Progress(10, 100, NOW - 600, attempt=1, workers=3)).timeline(NOW)
    assert kinds(recorded, Resized) == [Resized(NOW - 700, 1, 4, 4), Resized(NOW - 500, 1, 3, 4)]
    assert [record.at for record in kinds(recorded, Committed)] == [NOW - 600]
    assert missing == []


def test_the_size_is_known_before_the_first_commit(log: CommitLog, tmp_path: Path) -> None:
    log.start(1, "spot", workers=3, now=NOW - 700)
    recorded, missing = snapshot(tmp_path, Progress(attempt=1, workers=3)).timeline(NOW)
    assert kinds(recorded, Resized) == [Resized(NOW - 700, 1, 3, 4)]
    assert missing == []


def test_an_elastic_job_had_more_workers_before_its_spec_was_changed(log: CommitLog, tmp_path: Path) -> None:
    log.start(1, "spot", workers=6, now=NOW - 700)
    recorded, _ = snapshot(tmp_path, Progress(attempt=1, workers=6)).timeline(NOW)
    assert kinds(recorded, Resized) == [Resized(NOW - 700, 1, 6, 6)]


def test_a_log_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    recorded, missing = snapshot(tmp_path, Progress(10, 100, NOW - 600, attempt=1, workers=3)).timeline(NOW)
    assert kinds(recorded, Resized) == []
    assert missing == [f"commits are missing: {tmp_path}: no commits found from this machine"]
