"""Ray Train V2 on a local Ray cluster: two workers on two nodes."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.train.environment import Environment
from spotladder.train.membership import join
from spotladder.train.ranks import ProcessRank
from tests.checkpoints.servers import OutageProxy, checked_keys, moto, new_bucket, use_s3
from tests.train.builders import newest_of, newest_step, variables
from tests.train.machine import RayMachines
from tests.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.frameworks]

WATCHER = {"RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": 1}


def starts(folder: Path, rank: int) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split())) for line in (folder / f"starts-{rank}").read_text().splitlines()]


def test_after_a_lost_node_ray_train_resumes_from_the_newest_commit(machine: RayMachines, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    driver = machine.driver("session_loop", tmp_path, {"total": 200, "pause": 0.02}, cache=cache, **WATCHER)
    until(lambda: newest_step(tmp_path) >= 50)
    machine.lose_a_node()
    assert driver.wait(600) == 0
    assert [(tmp_path / f"result-{rank}").read_text() for rank in range(2)] == [str(sum(range(201)))] * 2
    (first, at), (again, resumed) = starts(tmp_path, 0)
    assert (first, at, again) == (1, 0, 1)
    assert resumed >= 50
    assert newest_step(tmp_path) == 200
    restored = (tmp_path / "checkpoints.log").read_text().splitlines()
    assert restored == [f"step {resumed}: 1 of 1 files from the cache on this machine"] * 2


def test_a_notice_ends_the_driver_with_75_and_the_next_attempt_resumes(machine: RayMachines, tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    notice.touch()
    config = {"total": 2000, "pause": 0.02}
    driver = machine.driver("session_loop", tmp_path, config, notice=notice, interval="1h")
    until((tmp_path / "starts-1").exists)
    notice.write_text('{"kind": "drain", "reason": "EvictionNotice"}')
    assert driver.wait(600) == 75
    interrupted = newest_step(tmp_path)
    assert interrupted > 0
    again = machine.driver("session_loop", tmp_path, {**config, "total": interrupted + 10}, attempt=2)
    assert again.wait(600) == 0
    assert starts(tmp_path, 1) == [(1, 0), (2, interrupted)]


def test_a_draining_ray_node_is_a_notice(machine: RayMachines, tmp_path: Path) -> None:
    driver = machine.driver("session_loop", tmp_path, {"total": 5000, "pause": 0.02}, interval="1h", **WATCHER)
    until((tmp_path / "starts-1").exists)
    machine.reclaim_a_node(notice=60)
    try:
        assert driver.wait(600) == 75
    finally:
        machine.lose_a_node()
    assert 0 < newest_step(tmp_path) < 5000


def test_a_bug_of_the_program_is_not_retried(machine: RayMachines, tmp_path: Path) -> None:
    driver = machine.driver("session_loop", tmp_path, {"total": 50, "pause": 0.0, "bug_at": 25})
    assert driver.wait(600) == 1
    assert starts(tmp_path, 0) == [(1, 0)]
    assert newest_step(tmp_path) == 20


def test_a_replaced_attempt_ends_with_76(machine: RayMachines, tmp_path: Path) -> None:
    driver = machine.driver("session_loop", tmp_path, {"total": 5000, "pause": 0.02})
    until(lambda: newest_step(tmp_path) >= 10)
    replacing = join(Environment(variables(tmp_path, attempt=2)), ProcessRank())
    before = newest_step(tmp_path)
    assert driver.wait(600) == 76
    assert newest_step(tmp_path) == before
    replacing.close()


def test_an_outage_of_the_bucket_ends_no_run_and_refused_keys_end_it_with_77(
    machine: RayMachines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeat = tmp_path / "heartbeat"

    def beat() -> dict[str, Any]:
        return json.loads(heartbeat.read_text()) if heartbeat.exists() else {}

    with moto(monkeypatch) as endpoint, closing(OutageProxy(endpoint)) as bucket:
        uri = new_bucket(endpoint).replace(" ", "-")  # moto cannot check a signature over a space
        with checked_keys(endpoint) as keys:
            key, secret = keys.take()
            use_s3(monkeypatch, endpoint, key, secret)
            log = CommitLog(open_store(uri), "digits")
            use_s3(monkeypatch, bucket.endpoint, key, secret)
            config = {"total": 50_000, "pause": 0.02}
            driver = machine.driver("session_loop", tmp_path, config, uri=uri, heartbeat=heartbeat)
            until(lambda: log.newest() is not None)
            bucket.begin("refused")
            until(lambda: "store" in beat())
            during = beat()["step"]
            until(lambda: beat()["step"] > during + 50)  # the program continues after it has waited for a commit
            bucket.end()
            done = beat()["step"]
            until(lambda: (newest := log.newest()) is not None and newest.step >= done)
            keys.revoke(key, secret)
            assert driver.wait(600) == 77
    assert starts(tmp_path, 0) == [(1, 0)], "neither the outage nor the refusal starts the workers again"


def test_a_script_that_only_reports_is_committed_interrupted_and_resumed(machine: RayMachines, tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    notice.touch()
    driver = machine.driver("report_loop", tmp_path, {"epochs": 300, "pause": 0.1}, notice=notice)
    until(lambda: newest_step(tmp_path) >= 3)
    notice.write_text('{"kind": "drain", "reason": "EvictionNotice"}')
    assert driver.wait(600) == 75
    newest = newest_of(tmp_path)
    assert (newest.total, [file.name for file in newest.files]) == (300, ["state.json"])
    done = newest.step
    again = machine.driver("report_loop", tmp_path, {"epochs": done + 12, "pause": 0.1}, attempt=2, **WATCHER)
    until(lambda: newest_step(tmp_path) >= done + 3)
    machine.lose_a_node()
    assert again.wait(600) == 0
    assert json.loads((tmp_path / "result").read_text()) == {"epoch": done + 11, "sum": sum(range(done + 12))}
    for rank in range(2):
        first, second, third = starts(tmp_path, rank)
        assert (first, second) == ((0, 0), (done, sum(range(done))))
        assert third[0] >= done + 3
