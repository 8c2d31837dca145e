"""`get`, `logs` and `report` of a run on this machine."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.api.status import TieredJobStatus
from spotladder.cli.local import logs
from spotladder.core.model import (
    AttemptRecord,
    JobSpec,
    JobState,
    LeftAttempt,
    Measured,
    Move,
    Price,
    Progress,
    Stage,
    Tier,
    TierRecord,
)
from spotladder.core.reasons import Reason
from spotladder.local.state import JobFolder, RunIdentity
from spotladder.records.model import Beat, Began, Ended, Moved, Waited
from spotladder.records.timeline import Timeline
from tests.cli.terminal import call

BEGAN = 1_700_000_000.0
SPEC = JobSpec(tiers=(Tier("spot-a", price=Price(0.4, 1.0)),))
SUCCEEDED = JobState(
    stage=Stage.SUCCEEDED,
    reason=Reason.COMPLETED,
    last_number=2,
    tier="spot-a",
    failures=1,
    tiers=(TierRecord("spot-a", 1, 2, 3600.0, 0.4, 1.0),),
    progress=Progress(60, 60, BEGAN + 50, 2),
    measured=Measured(timed_seconds=3600.0, timed_steps=60),
    history=(
        AttemptRecord(1, "spot-a", BEGAN, BEGAN + 2, BEGAN + 20, Reason.EVICTION_NOTICE, 1, 0, 24),
        AttemptRecord(2, "spot-a", BEGAN + 20, BEGAN + 22, BEGAN + 60, Reason.COMPLETED, 0, 24, 60),
    ),
)


class Runs:
    """A state folder with the run of a job and its program output."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = JobFolder(root, "default", "digits")
        self.folder.path.mkdir(parents=True)
        self.folder.save_run(RunIdentity(BEGAN, "3.11", "2.58.1", "file:///x"))
        self.folder.save(SUCCEEDED)
        with Timeline(self.folder.timeline) as lines:
            lines.append(Began(BEGAN, "digits", "default", SPEC))
            lines.append(Moved(BEGAN, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "spot-a")))
            lines.append(Moved(BEGAN + 2, Move(Stage.STARTING, Stage.RUNNING, Reason.ALL_READY, 1, "spot-a")))
            lines.append(Beat(BEGAN + 19, 1, 24, 60))
            lines.append(Ended(BEGAN + 60, 0, Reason.COMPLETED))
        self.write(1, "one\ntwo\n")
        self.write(2, "three\nfour")

    def write(self, attempt: int, text: str) -> None:
        log = self.folder.path / "attempts" / f"{attempt:04d}" / "driver.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(text)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The runs of a user who has no cluster."""
    monkeypatch.setenv("SPOTLADDER_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return Runs(tmp_path / "state")


def fields(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The run as `get` prints it for programs."""
    return dict(json.loads(call(capsys, "get", "digits", "-o", "json").out))


def test_get_lists_all_runs_or_one(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    JobFolder(runs.root, "team-a", "other").path.mkdir(parents=True)
    JobFolder(runs.root, "team-a", "other").save_run(RunIdentity(BEGAN, "3.11", "2.58.1", "file:///y"))
    listed = call(capsys, "get")
    assert listed.code == 0
    rows = [line.split() for line in listed.out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [["default", "digits", "Succeeded"], ["team-a", "other", "Interrupted"]]
    assert rows[0][3:9] == ["spot-a", "2", "1", "60/60", "$0.4000", "60"]
    assert "runner   none" in call(capsys, "get", "digits").out
    found = fields(capsys)
    assert (found["kind"], found["status"]["progress"]) == ("TieredJob", {"step": 60, "total": 60, "text": "60/60"})
    assert len(json.loads(call(capsys, "get", "-o", "json").out)["items"]) == 2
    assert call(capsys, "get", "-n", "nobody").err.startswith("No runs found on this machine")


def test_scripts_may_rely_on_what_get_prints(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/cli.md promises it: fields may be added, but none is removed, renamed or of another type."""
    one, several = fields(capsys), json.loads(call(capsys, "get", "-o", "json").out)
    assert several == {"apiVersion": "v1", "kind": "List", "items": [one]}
    assert (one["apiVersion"], one["kind"]) == ("spotladder.io/v1alpha1", "TieredJob")
    assert one["metadata"].items() >= {"name": "digits", "namespace": "default"}.items()
    promised = {
        "phase": "Succeeded", "attempt": 2, "tier": "spot-a", "failures": 1,
        "progress": {"step": 60, "total": 60, "text": "60/60"},
        "cost": {"spent": "0.4000", "onDemandEquivalent": "1.0000", "savingsPercent": "60", "uninterrupted": "1.0000"},
    }  # fmt: skip
    assert {key: one["status"].get(key) for key in promised} == promised
    assert promised.keys() <= {field.alias for field in TieredJobStatus.model_fields.values()}


def test_get_lists_the_runs_even_if_the_cluster_does_not_answer(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    answer = call(capsys, "get")
    assert (answer.code, answer.out.splitlines()[1].split()[:2]) == (0, ["default", "digits"])
    assert answer.err.startswith(f"warning: the jobs of the cluster are missing: {tmp_path / 'none'}: ")
    assert call(capsys, "get", "--state-dir", runs.root).err == ""
    assert call(capsys, "get", "-n", "nobody").code == 5, "there is nothing to show"


def test_get_lists_the_other_runs_if_one_cannot_be_read(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    broken = JobFolder(runs.root, "default", "broken")
    broken.path.mkdir(parents=True)
    broken.save_run(RunIdentity(BEGAN, "3.11", "2.58.1", "file:///y"))
    (broken.path / "state.json").write_text("{", encoding="utf-8")
    answer = call(capsys, "get")
    assert (answer.code, answer.out.splitlines()[1].split()[:2]) == (0, ["default", "digits"])
    assert answer.err.startswith(f"warning: {broken.path / 'state.json'}: ")
    assert call(capsys, "get", "broken").code == 5


def test_get_names_the_place_of_each_job_if_there_are_several(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "elsewhere")
    job = {"apiVersion": "v1", "kind": "TieredJob", "metadata": {"name": "llm", "namespace": "team-a"}}
    monkeypatch.setattr("spotladder.cli.get.on_cluster", lambda _target, _work: ("team-a", [("prod", job)]))
    rows = [line.split() for line in call(capsys, "get").out.splitlines()]
    assert [row[:2] for row in rows] == [["CLUSTER", "NAMESPACE"], ["this", "machine"], ["prod", "team-a"]]
    assert call(capsys, "get", "--context", "prod").out.split()[:2] == ["NAME", "PHASE"]


def test_get_shows_the_process_of_a_live_run(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.folder.save(JobState(stage=Stage.RUNNING, tier="spot-a", last_number=1))
    assert fields(capsys)["status"]["phase"] == "Interrupted"
    with runs.folder.owned():
        said = fields(capsys)
    assert (said["status"]["phase"], said["run"]["process"]) == ("Running", os.getpid())


def test_get_shows_what_a_live_run_waits_for(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    now = time.time()
    runs.folder.save(JobState(stage=Stage.STARTING, tier="spot-a", last_number=1))
    with Timeline(runs.folder.timeline) as lines:
        lines.append(Began(now - 9, "digits", "default", SPEC, resumed=True))
        lines.append(Waited(now - 7, "the pool has 0 nodes", now - 9, "provisionTimeout", now + 111, "the job leaves"))
    assert "waiting" not in fields(capsys)["status"], "no runner is active"
    with runs.folder.owned():
        waiting = fields(capsys)["status"]["waiting"]
        assert (waiting["message"], waiting["timer"]) == ("the pool has 0 nodes", "provisionTimeout")
        assert {waiting["since"][-1], waiting["until"][-1]} == {"Z"}
        shown = next(line for line in call(capsys, "get", "digits").out.splitlines() if line.startswith("waits"))
        assert shown.startswith("waits    the pool has 0 nodes (for ")
        assert "; provisionTimeout in 1m" in shown
        with Timeline(runs.folder.timeline) as lines:
            lines.append(Waited(now))
        assert "waiting" not in fields(capsys)["status"]
        assert "waits" not in call(capsys, "get", "digits").out


def test_get_names_the_attempts_that_are_being_removed(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert "removed" not in call(capsys, "get", "digits").out
    runs.folder.save(replace(SUCCEEDED, left=(LeftAttempt(2, "spot-a", time.time() - 3 * 3600, 2),)))
    shown = call(capsys, "get", "digits").out
    assert "ended    attempt 2 on spot-a is being removed (3h 00m, 2 nodes)" in shown


def test_logs_prints_every_attempt_in_order_with_its_title_on_stderr(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "logs", "digits")
    assert said.out == "one\ntwo\nthree\nfour\n"
    assert "==> attempt 1 on spot-a: EvictionNotice, steps 0 → 24 <==" in said.err
    assert call(capsys, "logs", "digits", "--tail", "1").out == "two\nfour\n"
    assert call(capsys, "logs", "digits", "--attempt", "1").out == "one\ntwo\n"
    refused = call(capsys, "logs", "digits", "--attempt", "3")
    assert (refused.code, refused.err) == (2, "error: digits has no attempt 3: its newest attempt is 2\n")
    assert call(capsys, "logs", "digits", "--all-pods").code == 2


def test_logs_follows_a_run_over_its_attempts_to_its_end(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner goes on when the command has polled."""
    owned, polled = threading.Event(), (threading.Event(), threading.Event())
    answers: list[Any] = []
    monkeypatch.setattr(logs, "time", SimpleNamespace(sleep=lambda _seconds: polled[len(answers)].set()))

    def work() -> None:
        with runs.folder.owned():
            owned.set()
            polled[0].wait()
            runs.write(2, "th\n")
            runs.write(3, "fifth\n")
            polled[1].wait()
            runs.write(3, "last")

    runner = threading.Thread(target=work)
    runner.start()
    owned.wait()
    answers.append(call(capsys, "logs", "--follow", "digits", "--attempt", "2"))
    answers.append(call(capsys, "logs", "--follow", "digits"))
    runner.join()
    assert answers[0].out == "three\nfourth\n"
    assert answers[1].out == "one\ntwo\nthree\nfourth\nfifth\nlast\n"


def test_report_prints_and_writes_the_report(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "report", "digits", "--to", tmp_path / "out")
    assert said.code == 0
    assert "24/60, 0 recomputed" in said.out
    assert (tmp_path / "out" / "report.html").exists()
    assert json.loads(call(capsys, "report", "digits", "-o", "json").out)["job"] == "digits"


def test_the_timeline_in_the_current_folder_has_a_report(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.folder.path)
    assert json.loads(call(capsys, "report", "timeline.jsonl", "-o", "json").out)["job"] == "digits"


def test_the_report_has_the_last_lines_of_each_attempts_program(
    runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs.write(2, "\npassword=hunter2hunter2\n")
    call(capsys, "report", "digits", "--to", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["output"] == [
        {"attempt": 1, "source": "driver", "lines": ["one", "two"]},
        {"attempt": 2, "source": "driver", "lines": ["three", "four", "password=[redacted]"]},
    ]
    assert "password=[redacted]" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["get", "logs", "report"])
def test_a_missing_run_is_reported(runs: Runs, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = call(capsys, verb, "nothing", "--state-dir", tmp_path)
    assert elsewhere.code == 2
    assert "no run of default/nothing found" in elsewhere.err
    both = call(capsys, verb, "digits", "--state-dir", runs.root, "--context", "prod")
    assert both.code == 2
    assert "remove one of them" in both.err
    cluster = call(capsys, verb, "digits", "--kubeconfig", tmp_path / "none")
    assert cluster.code != 0, "a cluster was meant"
    assert "none" in cluster.err


@pytest.mark.parametrize(
    ("verb", "instead"),
    [
        ("events", "spotladder report digits"),
        ("watch", "spotladder logs digits --follow"),
        ("suspend", "press Ctrl-C"),
        ("resume", "spotladder run JOB.yaml --continue"),
        ("delete", "spotladder run JOB.yaml --fresh"),
    ],
)
def test_a_command_for_clusters_says_what_to_do_with_a_run_on_this_machine(
    runs: Runs, verb: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = call(capsys, verb, "digits")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(
        f"error: default/digits: is a run on this machine, and spotladder {verb} is for clusters"
    )
    assert instead in answer.err
    other = call(capsys, verb, "nothing")
    assert (other.code, "kubeconfig" in other.err) == (5, True)


@pytest.mark.parametrize("verb", ["get", "logs", "report"])
def test_a_misspelt_name_without_a_cluster_is_not_a_missing_kubeconfig(
    runs: Runs, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = call(capsys, verb, "digts")
    assert answer.code == 2
    assert f"{runs.root}: no run of default/digts found, and no cluster is configured: " in answer.err
