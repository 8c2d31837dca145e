"""Several ranks: one commit with the files of all, the same answers, the same commit to resume from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.progress import progress
from spotladder.checkpoints.store import RightsRefused
from spotladder.core.contract import Notice
from spotladder.core.reasons import Reason
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from spotladder.train import commits, rendezvous, store_retry
from spotladder.train.hub import Hub
from spotladder.train.interruption import HandedOver, Interrupted, RankLost
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.train.builders import Ranks, job, log_of, member, newest_of, train

pytestmark = pytest.mark.usefixtures("no_waiting")


def in_step(ranks: Ranks, total: int, interval: float = 0.0) -> list[object]:
    """Train on all ranks with a barrier in every step, which stands for an all-reduce."""
    barrier = threading.Barrier(len(ranks.jobs))

    def on_step(_: int) -> None:
        if barrier.wait(600) == 0:
            ranks.clock.now += interval

    return ranks.on_all(lambda job: train(job, total, on_step=on_step, flush=True))


def files_of(folder: Path) -> list[str]:
    newest = newest_of(folder)
    return sorted(file.name for file in newest.files)


def write_own(job: Job, step: int) -> None:
    with job.commit(step, {"rank": job.rank}) as folder:
        (folder / "shared").write_text(f"of {job.rank}")
        (folder / f"shard-{job.rank}").write_text(str(job.rank))
    job.flush()


@pytest.mark.parametrize("size", [2, 4])
def test_one_commit_holds_the_files_of_all_ranks(tmp_path: Path, size: int) -> None:
    with Ranks(tmp_path, size) as ranks:
        assert in_step(ranks, 25) == [[10, 20, 25]] * size
    assert [commit.step for commit in log_of(tmp_path).commits()] == [10, 20, 25]
    assert files_of(tmp_path) == [f"rank-{rank:04d}/sum" for rank in range(size)]


def test_a_notice_to_one_rank_stops_all_ranks_at_the_same_step(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    file.write_text('{"kind": "notice", "reason": "EvictionNotice"}')
    with Ranks(tmp_path, 3, own=[{}, {}, {"notice": file}], interval="1h") as ranks:
        stopped = in_step(ranks, 1000)
    assert all(isinstance(end, Interrupted) for end in stopped)
    newest = newest_of(tmp_path)
    assert [end.step for end in stopped] == [newest.step] * 3  # type: ignore[attr-defined]


def test_every_rank_gets_its_own_files_back(tmp_path: Path) -> None:
    with Ranks(tmp_path, 3) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))
    with Ranks(tmp_path, 3, attempt=2) as ranks:
        assert ranks.on_all(seen) == [
            (5, (0, 1, 2), f"of {rank}", ["shard-0", "shard-1", "shard-2", "shared"]) for rank in range(3)
        ]


def test_the_files_of_all_ranks_are_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiskStore, "folder", None)  # as a bucket
    with Ranks(tmp_path, 2) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))

    def bytes_of(job: Job) -> int:
        with job.resume() as found:
            assert found is not None
            files = (path.stat() for path in found.merged().parent.rglob("*") if path.is_file())
            return sum({file.st_ino: file.st_size for file in files}.values())

    with Ranks(tmp_path, 2, attempt=2) as ranks:
        assert ranks.on_all(bytes_of) == [newest_of(tmp_path).size] * 2


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_shares_of_any_number_of_ranks_hold_each_file_once(tmp_path: Path, size: int) -> None:
    """Of more ranks than have written files, some get an empty folder."""
    with Ranks(tmp_path, 2) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))

    def shared(job: Job) -> set[str]:
        with job.resume() as found:
            assert found is not None
            share = {path.name for path in found.share(job.rank, size).iterdir()}
            assert share == {name for name, (rank, _) in found.shares(size).items() if rank == job.rank}
            return share

    with Ranks(tmp_path, size, attempt=2, cache=tmp_path / "cache") as ranks:
        shares = ranks.on_all(shared)
    assert sorted(name for share in shares for name in share) == ["shard-0", "shard-1", "shared"]


def test_a_rank_without_files_gets_those_of_rank_0(tmp_path: Path) -> None:
    def write(job: Job) -> None:
        with job.commit(5) as folder:
            if job.rank == 0:
                (folder / "shared").write_text("of 0")
        job.flush()

    with Ranks(tmp_path, 2) as ranks:
        assert ranks.on_all(write) == [None, None]
    with Ranks(tmp_path, 2, attempt=2) as ranks:
        assert ranks.on_all(seen) == [(5, (0,), "of 0", ["shared"])] * 2


@pytest.mark.parametrize(
    ("rank", "size"), [(0, 3), (2, 3), (2, 2)], ids=["of rank 0", "of another rank", "of a rank that is no more"]
)
def test_a_damaged_file_of_one_rank_skips_the_commit_on_all_ranks(tmp_path: Path, rank: int, size: int) -> None:
    with Ranks(tmp_path, 3) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))
        ranks.on_all(lambda job: write_own(job, 6))
    file = tmp_path / "digits" / newest_of(tmp_path).path / f"rank-{rank:04d}" / "shared"
    if rank < size:
        file.write_text("nonsense")
    else:
        file.unlink()
    with Ranks(tmp_path, size, attempt=2) as ranks:
        assert [step for step, *_ in ranks.on_all(seen)] == [5] * size


def test_an_error_of_rank_0_after_the_files_are_read_is_raised_on_all_ranks(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))
    (tmp_path / "digits" / newest_of(tmp_path).path / "rank-0001" / "shared").write_text("nonsense")

    def refuse(commit: Commit) -> bool:
        raise RightsRefused("access denied")

    with Ranks(tmp_path, 2, attempt=2) as ranks:
        ranks.jobs[0]._member.log.has = refuse  # type: ignore[method-assign]
        assert [type(end) for end in ranks.on_all(seen)] == [RightsRefused] * 2


def test_a_commit_that_is_deleted_while_it_is_read_is_not_skipped_as_damaged(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2) as ranks:
        ranks.on_all(lambda job: write_own(job, 5))
        ranks.on_all(lambda job: write_own(job, 6))
    folder = tmp_path / "digits" / newest_of(tmp_path).path
    (folder / "rank-0001" / "shared").unlink()
    with Ranks(tmp_path, 2, attempt=2) as ranks:
        log = ranks.jobs[0]._member.log
        older = log.commits()[:1]

        def deleted(commit: Commit) -> bool:
            log.commits = lambda: older  # type: ignore[method-assign]
            return False

        log.has = deleted  # type: ignore[method-assign]

        def resumed(job: Job) -> tuple[int, int]:
            with job.resume() as found:
                assert found is not None
                return found.step, len(found.skipped)

        assert ranks.on_all(resumed) == [(5, 0)] * 2


HANDOVER = '{"kind": "handover", "reason": "EvictionNotice", "deadline": 12.5}'
NODES = [{"node": "a"}, {"node": "b"}, {"node": "c"}]


def test_a_handover_notice_to_one_rank_hands_over_all_ranks_at_the_same_step(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    file.write_text(HANDOVER)
    own: list[dict[str, Any]] = [NODES[0], NODES[1], {**NODES[2], "notice": file}]
    with Ranks(tmp_path, 3, own=own, interval="1h") as ranks:
        stopped = in_step(ranks, 1000)
    newest = newest_of(tmp_path)
    assert [(type(end), end.step, end.leaving) for end in stopped] == [(HandedOver, newest.step, ("c",))] * 3  # type: ignore[attr-defined]
    assert progress(log_of(tmp_path)).hands_over


@pytest.mark.parametrize(
    "own",
    [
        pytest.param([{}, {"notice": "handover"}], id="no restart inside the attempt"),
        pytest.param(
            [{**NODES[0], "notice": "drain"}, {**NODES[1], "notice": "handover"}], id="a drain wins over a handover"
        ),
    ],
)
def test_a_handover_can_end_the_program(tmp_path: Path, own: list[dict[str, str]]) -> None:
    (tmp_path / "handover").write_text(HANDOVER)
    (tmp_path / "drain").write_text('{"kind": "drain"}')
    given = [{**one, "notice": tmp_path / one.get("notice", "none")} for one in own]
    with Ranks(tmp_path, 2, own=given, interval="1h") as ranks:
        ranks.jobs[0]._member.warned.append({"kind": "handover", "node": given[1].get("node", "")})
        stopped = in_step(ranks, 1000)
    assert [type(end) for end in stopped] == [Interrupted] * 2


@pytest.mark.parametrize("rank", [0, 2])
def test_a_request_to_one_rank_commits_once_on_all_ranks_and_the_training_continues(tmp_path: Path, rank: int) -> None:
    file = tmp_path / "notice"
    file.write_text(Notice.of_commit(Reason.EVICTION_NOTICE, time.time() + 60).encode())
    own: list[dict[str, Any]] = [{"notice": file} if each == rank else {} for each in range(3)]
    with Ranks(tmp_path, 3, own=own, interval="1h") as ranks:
        answers = in_step(ranks, 40)
    steps = [commit.step for commit in log_of(tmp_path).commits()]
    assert answers == [steps] * 3
    assert len(steps) == 2
    assert 0 < steps[0] < steps[1] == 40


def test_each_request_and_the_notice_after_it_commit(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    later = time.time() + 60
    asked = {
        10: Notice.of_commit(Reason.EVICTION_NOTICE, later),
        20: Notice.of_commit(Reason.EVICTION_NOTICE, later + 1),
        30: Notice.of(Reason.EVICTION_NOTICE, later + 2),
    }

    def on_step(step: int) -> None:
        if step in asked:
            file.write_text(asked[step].encode())

    one = job(tmp_path / "log", notice=file, interval="1h")
    with pytest.raises(Interrupted):
        train(one, 100, on_step=on_step, flush=True)
    steps = [commit.step for commit in log_of(tmp_path / "log").commits()]
    assert [step // 10 for step in steps] == [1, 2, 3]
    one.close()


def test_a_failed_upload_of_one_rank_raises_on_all_ranks_and_commits_nothing(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2) as ranks:

        def refuse(*_: object) -> None:
            raise RightsRefused("access denied")

        for name in ("put_file", "take_file"):
            setattr(ranks.jobs[1]._member.log.store, name, refuse)
        ends = ranks.on_all(lambda job: write_own(job, 5))
        assert [type(end) for end in ends] == [RightsRefused] * 2
    assert log_of(tmp_path).newest() is None


def test_an_error_in_the_commit_block_of_one_rank_is_raised_on_all_ranks(tmp_path: Path) -> None:
    def write(job: Job) -> None:
        with job.commit(5):
            if job.rank == 1:
                raise KeyError("a bug of the program")
        job.flush()

    with Ranks(tmp_path, 2) as ranks:
        ends = ranks.on_all(write)
        assert isinstance(ends[1], KeyError)
        assert isinstance(ends[0], SpotladderError)
        assert "rank 1 gave up the commit of step 5: KeyError" in str(ends[0])
    assert log_of(tmp_path).newest() is None


def test_ranks_that_commit_different_steps_get_an_error(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2) as ranks:
        ends = ranks.on_all(lambda job: write_own(job, 5 + job.rank))
        assert ["ranks commit different steps [5, 6]" in str(end) for end in ends] == [True, True]
    assert log_of(tmp_path).newest() is None


def test_all_ranks_of_a_replaced_group_are_fenced(tmp_path: Path) -> None:
    with Ranks(tmp_path, 2) as old, Ranks(tmp_path, 2, attempt=2):
        assert [type(end) for end in old.on_all(lambda job: write_own(job, 5))] == [Fenced] * 2
    assert log_of(tmp_path).newest() is None


def test_a_rank_without_a_rank_0_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous.seek, "__kwdefaults__", {**(rendezvous.seek.__kwdefaults__ or {}), "timeout": 0.02})
    with pytest.raises(RankLost, match="rank 1 found no rank 0"):
        member(tmp_path, ProcessRank(1, 2, "test"))


def seen(job: Job) -> tuple[int, tuple[int, ...], str, list[str]]:
    """The commit from which a rank resumes: step, ranks, its own `shared`, and the names of all merged files."""
    with job.resume() as found:
        assert found is not None
        merged = sorted(path.name for path in found.merged().iterdir())
        return found.step, found.ranks, (found.path / "shared").read_text(), merged


@pytest.mark.parametrize("away_for", [{0}, {1}, {0, 1, 2}])
def test_ranks_train_during_an_outage_and_commit_the_same_step_after_it(
    tmp_path: Path, away_for: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_retry, "FIRST_RETRY_INTERVAL", 0.005)
    monkeypatch.setattr(store_retry, "LONGEST_RETRY_INTERVAL", 0.01)
    monkeypatch.setattr(commits, "PREVIOUS_COMMIT_TIMEOUT", 0.05)
    away = threading.Event()
    barrier = threading.Barrier(3)
    seen_during: list[int] = []

    def cut_off(job: Job) -> None:
        store = job._member.log.store
        put = store.put_file

        def put_file(key: str, path: Path) -> FileEntry:
            if away.is_set():
                raise StoreUnavailable("the bucket does not answer")
            return put(key, path)

        for name in ("put_file", "take_file"):
            setattr(store, name, put_file)

    def until_committed(step: int) -> None:
        while (newest := log_of(tmp_path).newest()) is None or newest.step < step:
            time.sleep(0.001)

    def on_step(step: int) -> None:
        if barrier.wait(600) == 0:
            if step == 15:
                until_committed(10)
                away.set()
            if 40 < step < 400:
                time.sleep(0.001)
            if step == 390:
                newest = log_of(tmp_path).newest()
                seen_during.append(newest.step if newest else 0)
            if step == 400:
                away.clear()
        barrier.wait(600)

    with Ranks(tmp_path, 3) as ranks:
        for rank in away_for:
            cut_off(ranks.jobs[rank])
        ends = ranks.on_all(lambda job: train(job, 600, on_step=on_step))
        assert ends == [list(range(10, 601, 10))] * 3
    assert seen_during == [10], "a step was committed during the outage"
    steps = [commit.step for commit in log_of(tmp_path).commits()]
    assert steps[-1] == 600
    assert not any(20 < step < 380 for step in steps)
    assert files_of(tmp_path) == [f"rank-{rank:04d}/sum" for rank in range(3)]
    log = log_of(tmp_path)
    for commit in log.commits():
        log.verify(commit)
    named = {commit.path for commit in log.commits()}
    found = {meta.key.split("/rank-")[0] for meta in log.store.list("attempts/") if "/rank-" in meta.key}
    assert found == named, "files of an abandoned commit remain"


@pytest.mark.parametrize(("exchange", "request_"), [("'commit", "take_file"), ("'resumed", "get_file")])
def test_rank_0_has_patience_while_another_rank_stores_or_reads_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: str, request_: str
) -> None:
    waits, do, rank_0_waits = Hub._wait, getattr(DiskStore, request_), threading.Event()

    def wait(hub: Hub, ready: Callable[[], bool], what: str, *timeout: float | None) -> None:
        if not what.startswith(exchange):
            return waits(hub, ready, what, *timeout)
        rank_0_waits.set()
        with monkeypatch.context() as short:
            short.setattr(hub, "_timeout", 0)
            return waits(hub, ready, what, *(each and 0 for each in timeout))

    def late(store: DiskStore, key: str, path: Path | None) -> FileEntry:
        if "/rank-0001/" in key:
            rank_0_waits.wait(600)
        return do(store, key, path)  # type: ignore[no-any-return]

    with Ranks(tmp_path, 2) as ranks:
        ranks.on_all(lambda job: train(job, 10, flush=True))
    monkeypatch.setattr(Hub, "_wait", wait)
    monkeypatch.setattr(DiskStore, request_, late)

    def trained(job: Job) -> list[int]:
        try:
            return train(job, 20, flush=True)
        except RankLost:
            job._member.channel.close()
            raise

    with Ranks(tmp_path, 2, attempt=2) as ranks:
        assert ranks.on_all(trained) == [[20]] * 2


def test_all_ranks_read_their_files_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ranks(tmp_path, 3) as ranks:
        ranks.on_all(lambda job: train(job, 10, flush=True))
    reading, read = threading.Barrier(3), DiskStore.get_file

    def together(store: DiskStore, key: str, path: Path | None) -> FileEntry:
        if "/rank-" in key and path is None:
            reading.wait(600)
        return read(store, key, path)

    monkeypatch.setattr(DiskStore, "get_file", together)

    def resumed(job: Job) -> int:
        with job.resume() as found:
            assert found is not None
            return found.step

    with Ranks(tmp_path, 3, attempt=2) as ranks:
        assert ranks.on_all(resumed) == [10] * 3
