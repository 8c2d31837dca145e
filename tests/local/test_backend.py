"""The local backend with fake nodes: heads and spare heads, drains, exits, and the timeline records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.core.backend import LAST_COMMIT_LIMIT
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Finish,
    Launch,
    PodPhase,
    PodRole,
    Progress,
    TakeOver,
)
from spotladder.core.reasons import Reason
from spotladder.display.timeline import DriverExited, DriverStarted, Launched, Noted, PoolChanged, Record, Resized
from spotladder.errors import EnvironmentFailure
from spotladder.local import backend as module
from spotladder.local import driver
from spotladder.local.backend import CONNECTS_WITHIN, SPARE_AFTER, LocalBackend
from spotladder.local.local_job import LocalJob, LocalTier
from spotladder.local.pools import PoolClock, PoolPlan
from spotladder.local.program import Program

BEGAN = 1_000_000.0


@dataclass
class FakeNode:
    name: str
    up: bool = False
    alive: bool = True
    why: str | None = None
    address: str = "10.0.0.1:6379"
    agent: str = "http://10.0.0.1:1"
    used: bool = True

    def failed(self) -> str | None:
        return self.why

    def notice(self) -> None: ...

    def kill(self) -> None:
        self.alive = False


@dataclass
class FakeLog:
    progress: Progress = field(default_factory=Progress)
    polls: int = 0
    current: bool = True
    gone: str = ""
    ended: list[tuple[bool, str]] = field(default_factory=list)

    def keep_output(self, attempt: int, file: Path) -> None:
        pass

    def poll_now(self) -> None:
        self.polls += 1

    def end(self, *, succeeded: bool, message: str) -> None:
        self.ended.append((succeeded, message))


class Rig:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **job_fields: Any) -> None:
        self.folder, self.now = folder, BEGAN
        self.nodes: dict[str, FakeNode] = {}
        self.submitted: list[tuple[str, Mapping[str, str]]] = []
        self.records: list[Record] = []
        self.log = FakeLog()

        def node(name: str, *_: object, **__: object) -> FakeNode:
            return self.nodes.setdefault(name, FakeNode(name))

        def submit(_program: Program, _agent: str, name: str, environment: Mapping[str, str]) -> None:
            self.submitted.append((name, environment))

        monkeypatch.setattr(module, "Head", node)
        monkeypatch.setattr(module, "Worker", node)
        monkeypatch.setattr(Program, "submit", submit)
        tier = LocalTier("pool", "python train.py", {"LR": "0.1", "SPOTLADDER_TIER": "not this"})
        machine: Any = SimpleNamespace(folder=folder, temporary=lambda number: folder / "tmp" / f"a{number}")
        self.pool = PoolClock(PoolPlan("pool", nodes=4), BEGAN, BEGAN)
        tiers, environment = {"spot-a": tier, "spot-b": tier}, {"SPOTLADDER_URI": "s3://b/p"}
        job = LocalJob(
            **{"workers": 2, **job_fields},
            name="digits",
            namespace="team-a",
            cwd=folder,
            tiers=tiers,
            environment=environment,
        )
        self.backend = LocalBackend(
            job,
            machine,
            {"spot-a": self.pool, "spot-b": self.pool},
            self.log,
            clock=lambda: self.now,
            emit=self.records.append,
            revision=7,
        )

    def up(self, *names: str) -> None:
        for name in names:
            self.nodes[name].up = True

    def observe(self, number: int = 1) -> AttemptSeen:
        seen = self.backend.observe().attempt(number)
        assert seen is not None
        return seen

    def start_all(self) -> None:
        """Bring up attempt 1 and start its program."""
        self.backend.launch(Launch(1, "spot-a"))
        self.up("h1")
        self.observe()
        self.up("a1-w1-1", "a1-w2-1")
        self.observe()
        driver.note(self.attempt() / "started.json", pid=1, at=self.now)

    def attempt(self, number: int = 1) -> Path:
        return self.folder / "attempts" / f"{number:04d}"

    def of(self, kind: type[Record]) -> list[Record]:
        return [record for record in self.records if isinstance(record, kind)]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


def test_an_attempt_starts_its_head_then_its_nodes_then_the_program(rig: Rig) -> None:
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


def test_the_program_gets_its_environment_and_command(rig: Rig) -> None:
    rig.start_all()
    name, environment = rig.submitted[0]
    assert name == "digits-0001"
    assert environment == {
        "LR": "0.1",
        "RAY_ADDRESS": "10.0.0.1:6379",
        "TMPDIR": str(rig.folder / "tmp" / "a1"),
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


def test_an_elastic_program_starts_without_the_nodes_that_lack_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, monkeypatch, workers=5, min_workers=2)  # the pool has four nodes
    rig.backend.launch(Launch(1, "spot-a"))
    rig.up("h1")
    rig.observe()
    rig.up("a1-w1-1", "a1-w2-1", "a1-w3-1")
    rig.observe()
    assert not (rig.attempt() / "go").exists(), "the fourth node is starting"
    rig.up("a1-w4-1")
    rig.observe()
    assert (rig.attempt() / "go").exists()


def test_the_size_of_an_elastic_program_is_observed_and_its_changes_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, monkeypatch, workers=4, min_workers=2)
    rig.backend.launch(Launch(1, "spot-a"))
    heartbeat = rig.attempt() / "heartbeat.json"
    sizes = []
    for size in (None, 4, 4, 3, 4):
        if size is not None:
            driver.note(heartbeat, step=1, workers=size)
        sizes.append(rig.observe().size)
    assert sizes == [None, 4, 4, 3, 4]
    assert rig.of(Resized) == [Resized(BEGAN, 1, size, 4) for size in (4, 3, 4)]


def test_the_size_of_another_program_is_not_observed(rig: Rig) -> None:
    rig.start_all()
    driver.note(rig.attempt() / "heartbeat.json", step=1, workers=7)
    assert rig.observe().size is None
    assert rig.of(Resized) == []


def test_revisions_continue_after_the_saved_one(rig: Rig) -> None:
    assert rig.backend.observe().revision == 8
    assert rig.backend.observe().revision == 9


def test_a_spare_head_is_started_when_the_program_makes_progress(rig: Rig) -> None:
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


def test_a_spare_head_is_started_after_a_delay_without_heartbeats(rig: Rig) -> None:
    rig.start_all()
    rig.now += SPARE_AFTER
    rig.observe()
    assert "h2" in rig.nodes


def test_a_dead_spare_head_is_not_used(rig: Rig) -> None:
    rig.start_all()
    rig.now += SPARE_AFTER
    rig.observe()
    rig.nodes["h2"].alive = False
    rig.backend.delete(Delete(1, Reason.STALLED))
    rig.backend.launch(Launch(2, "spot-a"))
    assert rig.nodes["h3"].alive


def test_no_attempt_is_launched_while_recorded_checkpoints_are_missing(rig: Rig) -> None:
    rig.log.gone = "step 482 was committed, and the commit log has no commit now"
    with pytest.raises(EnvironmentFailure, match=r"step 482 was committed.* mount the file system"):
        rig.backend.launch(Launch(1, "spot"))


def test_a_failed_head_start_is_retried_and_then_an_error(rig: Rig) -> None:
    rig.backend.launch(Launch(1, "spot-a"))
    for name in ("h1", "h2"):
        rig.nodes[name].why = "Address already in use"
        assert rig.observe().exit is None
    rig.nodes["h3"].why = "Address already in use"
    with pytest.raises(EnvironmentFailure, match=r"Address already in use.*--resume"):
        rig.backend.observe()


def test_a_dead_head_is_reported_as_lost(rig: Rig) -> None:
    rig.start_all()
    rig.nodes["h1"].alive = False
    (head,) = [pod for pod in rig.observe().pods if pod.role is PodRole.HEAD]
    assert head.phase is PodPhase.LOST


def test_a_refused_submission_ends_the_run_with_its_cause(rig: Rig) -> None:
    rig.start_all()
    rig.backend._attempts[1].program.submission_error = "Ray refused the program: no"
    with pytest.raises(EnvironmentFailure, match="Ray refused the program"):
        rig.backend.observe()


@pytest.mark.parametrize(("reason", "kind"), [(Reason.EVICTION_NOTICE, "notice"), (Reason.STOP_REQUESTED, "drain")])
def test_a_drain_writes_the_notice_file_of_the_program(rig: Rig, reason: Reason, kind: str) -> None:
    rig.start_all()
    rig.backend.drain(Drain(1, BEGAN + 30, reason))
    notice = json.loads((rig.attempt() / "notice.json").read_text())
    assert notice == {"kind": kind, "deadline": BEGAN + 30, "reason": reason.value}
    assert rig.observe().exit is None, "the program has time to commit"


def test_a_drain_before_the_program_started_ends_the_attempt_at_once(rig: Rig) -> None:
    rig.backend.launch(Launch(1, "spot-a"))
    rig.backend.drain(Drain(1, BEGAN + 30, Reason.STOP_REQUESTED))
    assert rig.observe().exit is Exit.INTERRUPTED


def test_a_node_lost_during_a_drain_is_not_replaced(rig: Rig) -> None:
    rig.start_all()
    rig.backend.drain(Drain(1, BEGAN + 30, Reason.STOP_REQUESTED))
    rig.nodes["a1-w1-1"].alive = False
    rig.observe()
    assert "a1-w3-1" not in rig.nodes


def test_an_exit_is_observed_with_its_message_and_recorded_once(rig: Rig) -> None:
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


def test_an_exit_is_observed_together_with_the_last_commit(rig: Rig) -> None:
    rig.start_all()
    rig.log.current = False
    driver.note(rig.attempt() / "exited.json", code=0, at=BEGAN)
    assert rig.observe().exit is None
    rig.log.progress, rig.log.current = Progress(2000, 2000, BEGAN, 1), True
    seen = rig.backend.observe()
    assert (seen.attempts[0].exit, seen.progress.step) == (Exit.SUCCEEDED, 2000)


def test_the_wait_for_the_last_commit_is_limited_during_a_bucket_outage(rig: Rig) -> None:
    rig.start_all()
    rig.log.current = False
    driver.note(rig.attempt() / "exited.json", code=0, at=BEGAN)
    assert rig.observe().exit is None
    rig.now += LAST_COMMIT_LIMIT
    assert rig.observe().exit is Exit.SUCCEEDED


def test_the_program_of_a_deleted_attempt_is_recorded_as_killed(rig: Rig) -> None:
    rig.start_all()
    rig.observe()
    rig.backend.delete(Delete(1, Reason.STALLED))
    assert rig.of(DriverExited) == [DriverExited(BEGAN, 1, None)]


def test_finishing_ends_all_attempts_and_records_the_outcome(rig: Rig) -> None:
    rig.start_all()
    rig.backend.finish(Finish(succeeded=False, reason=Reason.TIERS_EXHAUSTED))
    assert rig.backend.observe().attempts == ()
    assert rig.log.ended == [(False, "TiersExhausted")]
    assert rig.pool.held == 0


def test_changes_of_a_pools_availability_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spotladder.local.pools import Window

    rig = Rig(tmp_path, monkeypatch)
    dry = PoolClock(PoolPlan("pool", dry=(Window(0, 10),)), BEGAN, BEGAN)
    rig.backend._pools = {"spot-a": dry}
    for seconds in (0, 5, 10, 15):
        rig.now = BEGAN + seconds
        rig.backend.observe()
    assert rig.of(PoolChanged) == [PoolChanged(BEGAN, "spot-a", False), PoolChanged(BEGAN + 10, "spot-a", True)]


def test_heartbeats_of_the_program_are_timestamped_with_the_runners_clock(rig: Rig) -> None:
    rig.start_all()
    assert rig.observe().moved_at is None
    driver.note(rig.attempt() / "heartbeat.json", step=3, total=9, loss=0.5, at=1.0)
    rig.now += 5
    assert rig.observe().moved_at == BEGAN + 5
    (beat,) = rig.backend.beats()
    assert (beat.step, beat.total, beat.metrics) == (3, 9, {"loss": 0.5})


def test_temporary_files_are_deleted_with_the_attempt(rig: Rig) -> None:
    rig.start_all()
    (rig.folder / "tmp" / "a1" / "left.pb").touch()
    rig.backend.delete(Delete(1, Reason.STALLED))
    assert not (rig.folder / "tmp" / "a1").exists()


def plain(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Start a program that does not use Ray. The returned list grows when the program is killed with its node."""
    killed: list[str] = []
    monkeypatch.setattr(Program, "go_with_node", lambda program: killed.append(program.folder.name))
    rig.start_all()
    rig.nodes["h1"].used = False
    driver.note(rig.attempt() / "heartbeat.json", step=1, total=9)
    rig.observe()
    return killed


def test_a_program_that_does_not_use_ray_is_killed_with_a_lost_node(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = plain(rig, monkeypatch)
    (noted,) = rig.of(Noted)
    assert "counts as running on a1-w1, a1-w2" in str(noted)
    rig.nodes["a1-w2-1"].alive = False
    rig.observe()
    assert killed == ["0001"]
    assert "a1-w3-1" not in rig.nodes, "there is no program left to recover in place"
    driver.note(rig.attempt() / "exited.json", code=-9, at=BEGAN)
    seen = rig.observe()
    assert (seen.exit, seen.message) == (Exit.FAILED, "the program ran on a1-w2, which is lost")


@pytest.mark.parametrize("beats", [True, False])
def test_a_program_that_uses_ray_or_may_still_connect_is_not_killed_with_a_lost_node(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, beats: bool
) -> None:
    killed: list[str] = []
    monkeypatch.setattr(Program, "go_with_node", lambda program: killed.append(program.folder.name))
    rig.start_all()
    rig.nodes["h1"].used = beats
    if beats:
        driver.note(rig.attempt() / "heartbeat.json", step=1, total=9)
    rig.observe()
    rig.nodes["a1-w2-1"].alive = False
    rig.observe()
    rig.observe()
    assert killed == []
    assert "a1-w3-1" in rig.nodes
    assert rig.of(Noted) == []


def test_a_node_loss_before_the_program_counts_as_without_ray_does_not_kill_it_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[str] = []
    monkeypatch.setattr(Program, "go_with_node", lambda program: killed.append(program.folder.name))
    rig.start_all()
    rig.nodes["h1"].used = False
    rig.nodes["a1-w1-1"].alive = False
    rig.observe()
    rig.observe()
    rig.up("a1-w3-1")
    rig.now += CONNECTS_WITHIN
    rig.observe()
    rig.observe()
    assert rig.of(Noted), "the program counts as without Ray now"
    assert killed == []
    rig.nodes["a1-w3-1"].alive = False
    rig.observe()
    assert killed == ["0001"]


def test_a_program_that_does_not_use_ray_runs_until_the_notice_ends(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: Ray drains an idle node at once, and the program was killed 1–2 s after its notice."""
    rig.pool.plan = replace(rig.pool.plan, taken_at=(10.0,), notice=20.0)
    killed = plain(rig, monkeypatch)
    rig.now += 11
    rig.observe()
    rig.nodes["a1-w1-1"].alive = False  # drained
    rig.backend.drain(Drain(1, rig.now + 20, Reason.EVICTION_NOTICE))
    rig.now += 19
    noticed = next(pod for pod in rig.observe().pods if pod.uid == "a1-w1")
    assert (noticed.phase, noticed.noticed, killed) == (PodPhase.RUNNING, True, [])
    rig.now += 1
    rig.observe()
    assert killed == ["0001"]


def test_the_phase_of_a_start_is_reported_until_the_first_step_is_done(rig: Rig) -> None:
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


def standing_by(rig: Rig) -> None:
    """Attempt 1 trains, and the program of attempt 2 waits until it may take over."""
    rig.start_all()
    rig.backend.launch(Launch(2, "spot-b", standby=True))
    rig.backend.observe()
    rig.up("h2")
    rig.backend.observe()
    rig.up("a2-w1-1", "a2-w2-1")
    rig.backend.observe()


def test_a_standby_attempt_starts_beside_the_live_one_and_reports_when_its_program_waits(rig: Rig) -> None:
    standing_by(rig)
    assert rig.observe(1).held is None
    assert (rig.observe(2).held, all(pod.ready for pod in rig.observe(2).pods)) == (False, True)
    (rig.attempt(2) / "heartbeat.json").write_text(json.dumps({"at": 1.0, "phase": "standby"}))
    assert rig.observe(2).held is True
    environments = {name.split("-")[1]: environment for name, environment in rig.submitted}
    assert environments["0002"]["SPOTLADDER_STANDBY"] == "true"
    assert "SPOTLADDER_STANDBY" not in environments["0001"]
    assert set(rig.nodes) & {"h3", "h4"} == set(), "no head is started ahead beside a standby attempt"


def test_a_takeover_is_no_request_to_stop_and_a_later_drain_is(rig: Rig) -> None:
    standing_by(rig)
    for _ in range(2):
        rig.backend.take_over(TakeOver(2))
    notice = rig.attempt(2) / "notice.json"
    assert json.loads(notice.read_text())["kind"] == "takeover"
    assert (rig.observe(2).exit, rig.observe(2).held) == (None, None)
    rig.backend.drain(Drain(2, BEGAN + 30, Reason.POLICY))
    rig.backend.take_over(TakeOver(2))
    assert json.loads(notice.read_text())["kind"] == "drain"
    rig.backend.take_over(TakeOver(9))  # it does not exist
