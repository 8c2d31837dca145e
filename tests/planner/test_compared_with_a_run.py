"""A plan of a job beside its run on a cluster: `spotladder plan -o json`, then `spotladder report --plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.core import codec
from spotladder.core.model import AttemptRecord, JobState, Stage, TierRecord
from spotladder.core.reasons import Reason
from tests.api.builders import JOB, WORLD, written
from tests.cli.terminal import call
from tests.planner.api_server import api_server

Capture = pytest.CaptureFixture[str]

BEGAN = 1_700_000_000.0
PATH = "/apis/spotladder.io/v1alpha1/namespaces/team-a/tieredjobs/digits"

RUNNING = JobState(
    stage=Stage.RUNNING,
    tier="spot-a",
    started_at=BEGAN,
    failures=2,
    tiers=(TierRecord("spot-a", 1, 1, 7200.0, 3.25, 9.0),),
    history=(AttemptRecord(1, "spot-a", BEGAN, BEGAN + 2, BEGAN + 7200, Reason.COMPLETED, 2, 0, 60),),
)
ENDED = JobState(
    stage=Stage.SUCCEEDED,
    reason=Reason.COMPLETED,
    tier="spot-a",
    started_at=BEGAN,
    ended_at=BEGAN + 7200,
    failures=2,
    tiers=RUNNING.tiers,
    history=RUNNING.history,
)


def tiered_job(state: JobState) -> dict[str, Any]:
    return {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        "metadata": {"namespace": "team-a", "name": "digits", "uid": "1", "resourceVersion": "7", "generation": 1},
        "spec": {},
        "status": {"phase": "Succeeded", "state": codec.pack(state)},
    }


def planned(capsys: Capture, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The file of a plan of the job, and its content."""
    job, world = written(folder, "job.yaml", JOB), written(folder, "world.yaml", WORLD)
    rate = ("--evictions-per-node-hour", "0.1")
    text = call(capsys, "plan", job, "--world", world, "--hours", "5", *rate, "--runs", "5", "-o", "json").out
    return written(folder, "plan.json", text), json.loads(text)


@pytest.mark.parametrize(("state", "title"), [(ENDED, ""), (RUNNING, ", which has not ended")])
def test_the_run_of_a_cluster_is_compared_with_its_plan(
    state: JobState, title: str, capsys: Capture, tmp_path: Path
) -> None:
    file, plan = planned(capsys, tmp_path)
    with api_server(tmp_path, {PATH: tiered_job(state)}) as kubeconfig:
        command = ("report", "digits", "-n", "team-a", "--kubeconfig", kubeconfig, "--plan", file)
        table, data = call(capsys, *command), call(capsys, *command, "-o", "json")
    assert (table.code, table.err, data.code, data.err) == (0, "", 0, "")
    lines = table.out.splitlines()
    assert lines[-14] == f"The plan and the run{title}"
    assert [(line.split()[0], line.split()[-1]) for line in lines[-12:-8:2]] == [
        ("Cost", "$3.2500"),
        ("Failures", "2.0"),
    ]
    found = json.loads(data.out)["plan"]
    simulated = plan["simulation"]
    assert found["costUsd"] == {
        **{name: simulated["costUsd"][name] for name in ("p50", "p10", "p90", "mean")},
        "formulas": plan["choices"][0]["accountings"][plan["accounting"]]["costUsd"],
        "happened": 3.25,
    }
    assert found["failures"]["happened"] == 2
    assert found["lostWorkHours"]["happened"] is None, "the status has no timeline"
    spot, on_demand = found["tiers"]
    assert (spot["name"], on_demand["name"]) == ("spot-a", "on-demand")
    assert [spot[key]["happened"] for key in ("costUsd", "hours", "failures")] == [3.25, 1.0, 1.0]
    assert [on_demand[key]["happened"] for key in ("costUsd", "hours", "failures")] == [0.0, 0.0, 0.0]
    assert spot["hours"]["mean"] == simulated["tiers"][0]["hours"]
    assert spot["failures"]["p90"] == simulated["tiers"][0]["lossesPercentiles"]["p90"]
    assert spot["hours"]["formulas"] == plan["tiers"][0]["expectedHours"]
    assert spot["failures"]["formulas"] == pytest.approx(plan["choices"][0]["expectedFailures"])
    if state is ENDED:
        assert found["hours"]["happened"] == 2.0


def test_a_job_that_no_controller_has_reconciled_has_cost_nothing(capsys: Capture, tmp_path: Path) -> None:
    file, _ = planned(capsys, tmp_path)
    job = {key: value for key, value in tiered_job(ENDED).items() if key != "status"}
    with api_server(tmp_path, {PATH: job}) as kubeconfig:
        command = ("report", "digits", "-n", "team-a", "--kubeconfig", kubeconfig, "--plan", file, "-o", "json")
        found = json.loads(call(capsys, *command).out)["plan"]
    assert [found[key]["happened"] for key in ("costUsd", "hours", "failures")] == [0.0, None, 0.0]


def test_a_damaged_plan_is_refused_before_the_cluster_is_asked(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "report", "digits", "--kubeconfig", tmp_path / "none", "--plan", written(tmp_path, "p", "[]"))
    assert (answer.code, answer.out) == (2, "")
    assert "is not a plan: write it with `spotladder plan" in answer.err
