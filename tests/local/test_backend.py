"""The local backend with fake nodes: heads and spare heads, drains, exits, and the timeline records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.core.attempt_program import LAST_COMMIT_LIMIT
from spotladder.core.model import Delete, Drain, Exit, Finish, Launch, PodPhase, PodRole
from spotladder.core.reasons import Reason
from spotladder.errors import EnvironmentFailure
from spotladder.local import driver
from spotladder.local.backend import SPARE_AFTER
from spotladder.local.pools import PoolClock, PoolPlan, Window
from spotladder.records.model import DriverExited, DriverStarted, Launched, Resized
from tests.local.rig import BEGAN, BackendRig


def test_an_attempt_starts_its_head_then_its_nodes_then_the_program(rig: BackendRig) -> None:
    rig.backend.launch(Launch(1, "spot-a"))
    assert {pod.phase for pod in rig.observe().pods} == {PodPhase.PENDING}
    assert set(rig.nodes) == {"h1"}
    rig.up("h1")
    rig.observe()
    assert set(rig.nodes) == {"h1", "a1-w1-1", "a1-w2-1"}
    assert rig.submitted, "submitted while the nodes come up"
    assert not (rig.attempt() / "go").exists()
    rig.up("a1-w1-1")
    rig.observe()
    assert not (rig.attempt() / "go").exists()
    rig.up("a1-w2-1")
    assert all(pod.ready for pod in rig.observe().pods)
    assert (rig.attempt() / "go").exists()


def test_the_program_gets_its_environment_and_command(rig: BackendRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/their/own")
    rig.start_all()
    name, environment = rig.submitted[0]
    assert name == "digits-0001"
    assert environment == {
        "LR": "0.1",
        "RAY_ADDRESS": "10.0.0.1:6379",
        "TMPDIR": str(rig.folder / "tmp" / "a1"),
        "TORCHINDUCTOR_CACHE_DIR": str(rig.folder / "compiled/torch"),
        "TRITON_CACHE_DIR": str(rig.folder / "compiled/triton"),
        "JAX_COMPILATION_CACHE_DIR": "/their/own",
        "SPOTLADDER_URI": "s3://b/p",
        "SPOTLADDER_JOB": "digits",
        "SPOTLADDER_NAMESPACE": "team-a",
        "SPOTLADDER_ATTEMPT": "1",
        "SPOTLADDER_TIER": "spot-a",
        "SPOTLADDER_NOTICE": str(rig.attempt() / "notice.json"),
        "SPOTLADDER_HEARTBEAT": str(rig.attempt() / "heartbeat.json"),
    }
    program = json.loads((rig.attempt() / "program.json").read_text())
    assert program == {"entrypoint": "python train.py", "cwd": str(rig.folder)}


def test_the_size_of_an_elastic_program_is_observed_and_its_changes_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = BackendRig(tmp_path, monkeypatch, workers=4, min_workers=2)
    rig.backend.launch(Launch(1, "spot-a"))
    heartbeat = rig.attempt() / "heartbeat.json"
    sizes = []
    for size in (None, 4, 4, 3, 4):
        if size is not None:
            driver.note(heartbeat, step=1, workers=size)
        sizes.append(rig.observe().size)
    assert sizes == [None, 4, 4, 3, 4]
    assert rig.of(Resized) == [Resized(BEGAN, 1, size, 4, before) for size, before in ((4, 0), (3, 4), (4, 3))]


def test_a_spare_head_is_started_when_the_program_makes_progress(rig: BackendRig) -> None:
    rig.start_all()
    rig.observe()
    assert "h2" not in rig.nodes
    driver.note(rig.attempt() / "heartbeat.json", step=1, total=9)
    rig.observe()
    rig.observe()
    assert "h2" in rig.nodes
    assert "h3" not in rig.nodes
    rig.up("h2")
    rig.backend.delete(Delete(1, Reason.EVICTION_NOTICE))
    assert not any(rig.nodes[name].alive for name in ("h1", "a1-w1-1", "a1-w2-1"))
    rig.backend.launch(Launch(2, "spot-b"))
    rig.observe(2)
    assert "a2-w1-1" in rig.nodes, "the spare head is up already"


def test_a_spare_head_is_started_while_the_pool_has_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = PoolClock(PoolPlan("pool", dry=(Window(0),)), BEGAN, BEGAN)
    rig = BackendRig(tmp_path, monkeypatch, pools={"spot-a": none})
    rig.backend.launch(Launch(1, "spot-a"))
    rig.observe()
    assert "h2" not in rig.nodes
    rig.up("h1")
    rig.observe()
    assert "h2" in rig.nodes


def test_a_dead_spare_head_is_not_used(rig: BackendRig) -> None:
    rig.start_all()
    rig.now += SPARE_AFTER
    rig.observe()
    rig.nodes["h2"].alive = False
    rig.backend.delete(Delete(1, Reason.STALLED))
    rig.backend.launch(Launch(2, "spot-a"))
    assert rig.nodes["h3"].alive


def test_no_attempt_is_launched_while_recorded_checkpoints_are_missing(rig: BackendRig) -> None:
    rig.log.gone = "step 482 was committed, and the commit log has no commit now"
    with pytest.raises(EnvironmentFailure, match=r"step 482 was committed.* mount the file system"):
        rig.backend.launch(Launch(1, "spot"))


def test_a_failed_head_start_is_retried_and_then_an_error(rig: BackendRig) -> None:
    rig.backend.launch(Launch(1, "spot-a"))
    for name in ("h1", "h2"):
        rig.nodes[name].why = "Address already in use"
        assert rig.observe().exit is None
    rig.nodes["h3"].why = "Address already in use"
    with pytest.raises(EnvironmentFailure, match=r"Address already in use.*--continue"):
        rig.backend.observe()


def test_a_dead_head_is_reported_as_lost(rig: BackendRig) -> None:
    rig.start_all()
    rig.nodes["h1"].alive = False
    (head,) = [pod for pod in rig.observe().pods if pod.role is PodRole.HEAD]
    assert head.phase is PodPhase.LOST


def test_a_refused_submission_ends_the_run_with_its_cause(rig: BackendRig) -> None:
    rig.start_all()
    rig.backend._attempts[1].program.submission_error = "Ray refused the program: no"
    with pytest.raises(EnvironmentFailure, match="Ray refused the program"):
        rig.backend.observe()


@pytest.mark.parametrize(("reason", "kind"), [(Reason.EVICTION_NOTICE, "notice"), (Reason.STOP_REQUESTED, "drain")])
def test_a_drain_writes_the_notice_file_of_the_program(rig: BackendRig, reason: Reason, kind: str) -> None:
    rig.start_all()
    rig.backend.drain(Drain(1, BEGAN + 30, reason))
    notice = json.loads((rig.attempt() / "notice.json").read_text())
    assert notice == {"kind": kind, "deadline": BEGAN + 30, "reason": reason.value}
    assert rig.observe().exit is None, "the program has time to commit"


def test_a_drain_before_the_program_started_ends_the_attempt_at_once(rig: BackendRig) -> None:
    rig.backend.launch(Launch(1, "spot-a"))
    rig.backend.drain(Drain(1, BEGAN + 30, Reason.STOP_REQUESTED))
    assert rig.observe().exit is Exit.INTERRUPTED


def test_a_node_lost_during_a_drain_is_not_replaced(rig: BackendRig) -> None:
    rig.start_all()
    rig.backend.drain(Drain(1, BEGAN + 30, Reason.STOP_REQUESTED))
    rig.nodes["a1-w1-1"].alive = False
    rig.observe()
    assert "a1-w3-1" not in rig.nodes


def test_an_exit_is_observed_with_its_message_and_recorded_once(rig: BackendRig) -> None:
    rig.start_all()
    (rig.attempt() / "driver.log").write_text("KeyError: 'x'\n")
    driver.note(rig.attempt() / "exited.json", code=1, at=BEGAN)
    seen = rig.observe()
    assert seen.exit is Exit.FAILED
    assert seen.message.startswith("exit code 1: KeyError: 'x'")
    rig.observe()
    rig.backend.delete(Delete(1, Reason.APPLICATION_FAILED))
    assert len(rig.of(Launched)) == len(rig.of(DriverStarted)) == 1
    assert rig.of(DriverExited) == [DriverExited(BEGAN, 1, 1)]
    assert rig.backend.last_exit == 1
    assert rig.log.polls == 1


def test_the_wait_for_the_last_commit_is_limited_during_a_bucket_outage(rig: BackendRig) -> None:
    rig.start_all()
    rig.log.current = False
    driver.note(rig.attempt() / "exited.json", code=0, at=BEGAN)
    assert rig.observe().exit is None
    rig.now += LAST_COMMIT_LIMIT
    assert rig.observe().exit is Exit.SUCCEEDED


def test_the_program_of_a_deleted_attempt_is_recorded_as_killed(rig: BackendRig) -> None:
    rig.start_all()
    rig.observe()
    rig.backend.delete(Delete(1, Reason.STALLED))
    assert rig.of(DriverExited) == [DriverExited(BEGAN, 1, None)]


def test_finishing_ends_all_attempts_and_records_the_outcome(rig: BackendRig) -> None:
    rig.start_all()
    rig.backend.finish(Finish(succeeded=False, reason=Reason.TIERS_EXHAUSTED))
    assert rig.backend.observe().attempts == ()
    assert rig.log.ended == [(False, "TiersExhausted")]
    assert rig.pool.held == 0


def test_heartbeats_of_the_program_are_timestamped_with_the_runners_clock(rig: BackendRig) -> None:
    rig.start_all()
    assert rig.observe().moved_at is None
    driver.note(rig.attempt() / "heartbeat.json", step=3, total=9, loss=0.5, at=1.0)
    rig.now += 5
    seen = rig.observe()
    assert (seen.moved_at, seen.total) == (BEGAN + 5, 9)
    (beat,) = rig.backend.beats()
    assert (beat.step, beat.total, beat.metrics) == (3, 9, {"loss": 0.5})


def test_a_hang_is_observed_until_the_program_has_ended(rig: BackendRig) -> None:
    rig.start_all()
    assert rig.observe().hung == ""
    driver.note(rig.attempt() / "heartbeat.json", step=3, hang="no step for 60 s")
    assert rig.observe().hung == "no step for 60 s"
    driver.note(rig.attempt() / "exited.json", code=75, at=BEGAN)
    assert rig.observe().hung == ""


def test_the_phase_of_a_start_is_reported_until_the_first_step_is_done(rig: BackendRig) -> None:
    """Regression: no output during the 30 s in which a framework started."""
    said: list[str] = []

    def observe() -> None:
        rig.observe()
        said.append(rig.backend.doing())

    assert rig.backend.doing() == ""
    rig.backend.launch(Launch(1, "spot-a"))
    observe()
    rig.up("h1")
    rig.nodes["h1"].used = False
    observe()
    rig.up("a1-w1-1", "a1-w2-1")
    observe()
    driver.note(rig.attempt() / "started.json", pid=1, at=rig.now)
    observe()
    rig.nodes["h1"].used = True
    observe()
    for words in ({"phase": "joined"}, {"step": 0, "total": 9, "phase": "first step"}, {"step": 1, "total": 9}):
        driver.note(rig.attempt() / "heartbeat.json", **words)
        observe()
    assert said == [
        "Ray starts",
        "Ray has started, its nodes are starting",
        "Ray starts the program",
        "the program starts and imports its modules",
        "the program has connected to Ray, its workers start and import their modules",
        "the program has joined its commit log and starts its first step",
        "the first step runs",
        "",
    ]
