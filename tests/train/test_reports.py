"""`ray.train.report` without a Ray cluster: the ranks are threads, and Ray's own part of a report is left out."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from spotladder.core.contract import Notice
from spotladder.train.interruption import Interrupted, RankLost
from spotladder.train.session import Job
from tests.train.builders import Ranks, job, log_of, newest_of, newest_step

pytest.importorskip("ray.train", reason="Ray is not installed")
pytestmark = pytest.mark.usefixtures("no_waiting")


class Disobedient:
    """A metric of a library that refuses every conversion."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements cannot be converted")

    def __str__(self) -> str:
        raise RuntimeError("no text either")


def reports(rayreports: Any, job: Job, folder: Path, *, reporting: int, lost_at: int) -> None:
    """Rank 1 is lost before its report of step `lost_at`; the ranks below `reporting` report a checkpoint."""
    routed = rayreports.Routed(job._member, "run", 100)
    for step in range(1, 6):
        if job.rank == 1 and step == lost_at:
            job._member.channel._link.close()  # type: ignore[attr-defined]
            return
        checkpoint = None
        if job.rank < reporting:
            files = folder / f"{step}-{job.rank}"
            files.mkdir()
            (files / f"state-{job.rank}").write_text(str(step))
            checkpoint = rayreports.Checkpoint.from_directory(str(files))
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
    rayreports: Any, tmp_path: Path, reporting: int, lost_at: int, committed: int
) -> None:
    with Ranks(tmp_path / "log", 2) as ranks:
        errors = ranks.on_all(lambda job: reports(rayreports, job, tmp_path, reporting=reporting, lost_at=lost_at))
    assert [type(error) for error in errors] == [RankLost, type(None)]
    assert newest_step(tmp_path / "log") == committed


def test_a_program_has_the_compile_caches_with_its_checkpoint(
    rayreports: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, waited = job(tmp_path), list[str]()
    monkeypatch.setattr(one._member.log, "await_compiled", lambda: waited.append("waited"))
    assert routed_of(rayreports, one).get_checkpoint() is None
    assert waited == ["waited"]
    one.close()


Files = dict[str, str]


def folder_of(files: Files, at: Path) -> Path:
    for name, content in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(content)
    return at


def report_once(
    rayreports: Any, ranks: Ranks, folder: Path, by_rank: list[Files | None], step: int = 1
) -> list[object]:
    """Every rank reports its files; None reports no checkpoint. Returns each rank's error."""

    def do(job: Job) -> None:
        files = by_rank[job.rank]
        at = None if files is None else folder_of(files, folder / f"{step}-{job.rank}")
        routed = routed_of(rayreports, job)
        routed.report({"step": step}, None if at is None else rayreports.Checkpoint.from_directory(str(at)))
        job.flush()

    return ranks.on_all(do)


def routed_of(rayreports: Any, job: Job) -> Any:
    """The same object for each report of a rank."""
    routed: dict[str, Any] = job.__dict__
    return routed.setdefault("_routed_in_test", rayreports.Routed(job._member, "run", 100))


def committed_files(at: Path) -> Files:
    log = log_of(at)
    newest = log.newest()
    assert newest is not None
    log.verify(newest)
    return {file.name: log.store.get(f"{newest.path}/{file.name}").decode() for file in newest.files}


@pytest.mark.parametrize(
    ("by_rank", "kept", "warned"),
    [
        pytest.param([{"w": "zero"}, {"w": "one"}], {"w": "zero"}, True, id="rank 0 owns a name that does not say"),
        pytest.param([{"w": "whole"}, {"w": "who"}], {"w": "whole"}, True, id="a torn copy of another rank is dropped"),
        pytest.param([{"w": "a"}, {"w": "a"}], {"w": "a"}, False, id="equal files are no conflict"),
        pytest.param(
            [{"rng_state_0.pth": "0", "rng_state_1.pth": "to"}, {"rng_state_0.pth": "", "rng_state_1.pth": "torn"}],
            {"rng_state_0.pth": "0", "rng_state_1.pth": "torn"},
            True,
            id="a name with a rank belongs to this rank",
        ),
        pytest.param([{"w": "0"}, {"b": "1"}], {"w": "0", "b": "1"}, False, id="the files of all ranks are one folder"),
        pytest.param([None, {"w": "1"}], {"w": "1"}, False, id="only another rank than rank 0 reports a checkpoint"),
        pytest.param([{"d/w": "0"}, {"d/w": "x", "d/b": "1"}], {"d/w": "0", "d/b": "1"}, True, id="in a subfolder"),
    ],
)
def test_a_name_that_several_ranks_report_is_stored_once_and_verifies(
    rayreports: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    by_rank: list[Files | None],
    kept: Files,
    warned: bool,
) -> None:
    with Ranks(tmp_path / "log", 2) as ranks:
        assert report_once(rayreports, ranks, tmp_path, by_rank) == [None, None]
    assert committed_files(tmp_path / "log") == kept
    assert ("of different content" in caplog.text) == warned


def test_different_files_are_warned_of_once_per_pattern_of_names(
    rayreports: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Ranks(tmp_path / "log", 2) as ranks:
        for step in (1, 2, 3):
            by_rank: list[Files | None] = [{f"c-{step}/w": str(rank), f"c-{step}/b": str(rank)} for rank in (0, 1)]
            assert report_once(rayreports, ranks, tmp_path, by_rank, step) == [None, None]
    assert caplog.text.count("of different content") == 2


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


def replaced_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


def with_a_name_that_buckets_refuse(folder: Path) -> None:
    (folder / "a\nb").write_text("")


@pytest.mark.parametrize("spoil", [removed, replaced_by_a_file, with_a_name_that_buckets_refuse])
@pytest.mark.parametrize("size", [1, 2])
def test_a_folder_that_cannot_be_committed_drops_the_commit_and_the_job_continues(
    rayreports: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None], size: int
) -> None:
    def do(job: Job) -> None:
        routed = routed_of(rayreports, job)
        for step in (1, 2, 3):
            at = folder_of({f"w{job.rank}": str(step)}, tmp_path / f"{step}-{job.rank}")
            if step == 2 and job.rank == size - 1:
                spoil(at)
            routed.report({"step": step}, rayreports.Checkpoint.from_directory(str(at)))
            job.flush()
            assert job._member.commits.dropped == (step == 2)

    with Ranks(tmp_path / "log", size) as ranks:
        assert ranks.on_all(do) == [None] * size
    assert [commit.step for commit in log_of(tmp_path / "log").read().commits] == [1, 3]
    assert "the checkpoint of step 2 is dropped" in caplog.text


def test_a_dropped_commit_does_not_end_a_drained_attempt(rayreports: Any, tmp_path: Path) -> None:
    with Ranks(tmp_path / "log", 1) as ranks:
        (job,) = ranks.jobs
        job._member.listener.hear(Notice())
        gone = rayreports.Checkpoint.from_directory(str(tmp_path / "gone"))
        assert ranks.on_all(lambda job: routed_of(rayreports, job).report({}, gone)) == [None]
        (error,) = report_once(rayreports, ranks, tmp_path, [{"w": "1"}], 7)
    assert isinstance(error, Interrupted)
    assert error.step == 7


def test_links_of_a_checkpoint_are_followed_once(rayreports: Any, tmp_path: Path) -> None:
    outside = folder_of({"shard": "s"}, tmp_path / "outside")
    at = folder_of({"w": "1"}, tmp_path / "1-0")
    (at / "linked").symlink_to(outside)
    (at / "again").symlink_to(at)
    (at / "dangling").symlink_to(tmp_path / "nothing")
    with Ranks(tmp_path / "log", 1) as ranks:
        assert report_once(rayreports, ranks, tmp_path, [{"w": "1"}]) == [None]
    assert committed_files(tmp_path / "log") == {"w": "1", "linked/shard": "s"}


@pytest.mark.parametrize(
    ("metrics", "step", "total"),
    [
        pytest.param({}, 6, 100, id="no step: the number of commits"),
        pytest.param({"step": 3}, 6, 100, id="a step that does not increase"),
        pytest.param({"step": 20}, 20, 100, id="a step that increases"),
        pytest.param({"step": 20.0, "total": 40.0}, 20, 40, id="steps as floats"),
        pytest.param({"step": numpy.int64(20), "total": numpy.int32(50)}, 20, 50, id="numbers of NumPy"),
        pytest.param({"step": numpy.float32(20), "losses": numpy.zeros(3)}, 20, 100, id="a float of NumPy, an array"),
        pytest.param({"step": 20.5, "total": math.nan}, 6, 0, id="numbers that are no steps"),
        pytest.param({"step": 1e30, "total": 1e30}, 6, 0, id="numbers that the log does not have"),
        pytest.param({"step": "20", "total": None}, 6, 0, id="text"),
        pytest.param({"step": True, "total": -1}, 6, 0, id="a boolean, a negative total"),
        pytest.param({"step": 120}, 120, 0, id="a report after the last step: the total is unknown"),
        pytest.param({"step": Disobedient(), "loss": Disobedient()}, 6, 100, id="values that refuse every conversion"),
        pytest.param({"loss": math.nan, "n": 10**400, "x": [1, 2], 3: object()}, 6, 100, id="values without JSON"),
    ],
)
def test_no_metric_ends_a_report(
    rayreports: Any, tmp_path: Path, metrics: dict[Any, Any], step: int, total: int
) -> None:
    with Ranks(tmp_path / "log", 1) as ranks:
        assert report_once(rayreports, ranks, tmp_path, [{"w": "1"}], 5) == [None]
        at = rayreports.Checkpoint.from_directory(str(folder_of({"w": "2"}, tmp_path / "next")))
        assert ranks.on_all(lambda job: routed_of(rayreports, job).report(metrics, at)) == [None]
    newest = newest_of(tmp_path / "log")
    assert (newest.step, newest.total) == (step, total)
