"""`ray.train.report` without a Ray cluster: the ranks are threads, and Ray's own part of a report is left out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.train import rendezvous
from spotladder.train.interruption import RankLost
from spotladder.train.session import Job
from tests.train.builders import Ranks, log_of

pytest.importorskip("ray.train", reason="Ray is not installed")


@pytest.fixture
def rayworkers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from pyarrow.fs import LocalFileSystem
    from ray.train.v2._internal.execution.train_fn_utils import DistributedTrainFnUtils

    from spotladder.train import rayworkers

    storage = SimpleNamespace(experiment_fs_path=str(tmp_path), storage_filesystem=LocalFileSystem())
    monkeypatch.setattr(DistributedTrainFnUtils, "report", lambda *_, **__: None)
    monkeypatch.setattr(rayworkers, "get_train_context", lambda: SimpleNamespace(get_storage=lambda: storage))
    monkeypatch.setattr(rendezvous, "RETRY_INTERVAL", 0.01)
    return rayworkers


def reports(rayworkers: Any, job: Job, folder: Path, *, reporting: int, lost_at: int) -> None:
    """Rank 1 is lost before its report of step `lost_at`; the ranks below `reporting` report a checkpoint."""
    routed = rayworkers.Routed(job._member, "run", 100)
    for step in range(1, 6):
        if job.rank == 1 and step == lost_at:
            job._member.channel._link.close()  # type: ignore[attr-defined]
            return
        checkpoint = None
        if job.rank < reporting:
            files = folder / f"{step}-{job.rank}"
            files.mkdir()
            (files / f"state-{job.rank}").write_text(str(step))
            checkpoint = rayworkers.Checkpoint.from_directory(str(files))
        routed.report({}, checkpoint)


@pytest.mark.parametrize(
    ("reporting", "lost_at", "committed"),
    [
        pytest.param(1, 4, 4, id="only rank 0 reports checkpoints: it commits step 4 alone"),
        pytest.param(1, 1, 0, id="nothing is known before the first report"),
        pytest.param(2, 4, 3, id="every rank reports a part"),
    ],
)
def test_a_lost_rank_does_not_prevent_the_commit_of_a_checkpoint_that_only_rank_0_reports(
    rayworkers: Any, tmp_path: Path, reporting: int, lost_at: int, committed: int
) -> None:
    with Ranks(tmp_path / "log", 2) as ranks:
        errors = ranks.on_all(lambda job: reports(rayworkers, job, tmp_path, reporting=reporting, lost_at=lost_at))
    assert [type(error) for error in errors] == [RankLost, type(None)]
    newest = log_of(tmp_path / "log").newest()
    assert (newest.step if newest else 0) == committed
