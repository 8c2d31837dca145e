"""`spotladder plan` as a user sees it, on the pools of a world file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from spotladder.core.model import JobState, Measured
from spotladder.planner import advice
from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call, earlier_run

Capture = pytest.CaptureFixture[str]

RATE = ("--evictions-per-node-hour", "0.2")

UNKNOWN_RATE = changed(WORLD, ("interruptions: {at: [20s, 45s]}", "interruptions: {at: [20s]}"))

WITH_AND_WITHOUT_AN_ESTIMATE = ((RATE, WORLD), (("--formula",), WORLD), ((), UNKNOWN_RATE))
"""Options and world files: with simulated runs, without them, and without a known eviction rate."""


def planned(capsys: Capture, folder: Path, *more: str | Path, job: str = JOB, world: str = WORLD) -> Answer:
    """The answer from as few simulated runs as the test needs, and with one other value of maxFailures: the figures
    have tests of their own in tests/planner."""
    files = written(folder, "job.yaml", job), written(folder, "world.yaml", world)
    runs = () if "--runs" in more else ("--runs", "2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice, "LIMITS", (13,))
        return call(capsys, "plan", files[0], "--world", files[1], "--hours", "5", *runs, *more)


@pytest.mark.parametrize("framework", ["torch", "ray", "python"])
def test_the_short_form_of_a_job_is_planned_as_on_a_cluster(capsys: Capture, tmp_path: Path, framework: str) -> None:
    train = f"  train: {{script: train.py, workers: 2, framework: {framework}}}\n"
    answer = planned(capsys, tmp_path, *RATE, "--formula", job=JOB[: JOB.index("  workload:")] + train)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == "2 workers, 5 h on demand only"


def test_a_table_with_tiers_choices_and_risks(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "0.5", "--overhead", "0.2")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "2 workers, 5 h on demand only"
    assert "risk: " in answer.out
    rows = [line.split() for line in lines[: lines.index("")] if line.startswith(("spot-a", "on-demand"))]
    assert [row[:3] for row in rows] == [
        ["spot-a", "g5-spot-use1a", "spot"],
        ["on-demand", "g5-od-use1", "on-demand"],
    ]


def test_json_and_yaml_have_the_same_data(capsys: Capture, tmp_path: Path) -> None:
    options = ("--evictions-per-node-hour", "0.5", "--overhead", "0.2", "--formula", "-o")
    found = json.loads(planned(capsys, tmp_path, *options, "json").out)
    assert YAML(typ="safe").load(planned(capsys, tmp_path, *options, "yaml").out) == found
    assert [tier["name"] for tier in found["tiers"]] == ["spot-a", "on-demand"]
    assert found["overheadHours"] == 0.2
    own = found["estimate"]
    assert own["spotFraction"] == pytest.approx(4 / 5)  # 3 failures tolerated, one an hour: the fourth after 4 h
    assert own["expectedFailures"] == pytest.approx(4)
    assert own["totalHours"] == pytest.approx(5.8)
    assert own["costUsd"] == pytest.approx(own["costOnDemandHours"] * 2 * 1.41, abs=1e-3)


def test_without_history_only_the_runs_give_an_estimate_and_its_range_is_wide(capsys: Capture, tmp_path: Path) -> None:
    """The loss rate of each run is as in public spot traces."""
    answer = planned(capsys, tmp_path, world=UNKNOWN_RATE)
    assert answer.code == 0
    assert "The closed formulas need the eviction rates of the spot tiers: set --evictions-per-node-hour" in answer.out
    assert "assumed: nothing is known about losses on spot-a: each run draws a rate" in answer.out
    found = json.loads(planned(capsys, tmp_path, "-o", "json", "--runs", "12", world=UNKNOWN_RATE).out)
    assert found["estimate"] is None
    usd = found["simulation"]["costUsd"]
    assert usd["p90"] > 1.5 * usd["p10"]


def test_bad_input(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    for arguments, said in (
        ((tmp_path / "none.yaml", "--hours", "5", "--world", world), "none.yaml"),
        ((job, "--world", world), "--hours"),
        ((job, "--world", world, "--hours", "0"), "--hours"),
        ((job, "--world", world, "--hours", "5", "--overhead", "-1"), "--overhead"),
        ((job, "--world", world, "--hours", "5", "--restart", "3"), "--restart: '3' has no unit: write 3h, 3m or 3s"),
        ((world, "--world", world, "--hours", "5"), "TieredJob"),
        ((job, "--world", job, "--hours", "5"), "world"),
        (("--hours", "5", "--world", world), "expected a job file"),
    ):
        answer = call(capsys, "plan", *arguments)
        assert (answer.code, answer.out) == (2, ""), arguments
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    other = written(tmp_path, "job2.yaml", changed(JOB, ("capacityTier: g5-spot", "capacityTier: g6-spot")))
    answer = call(capsys, "plan", other, "--world", world, "--hours", "5")
    assert answer.code == 2
    assert "spec.tiers[0].capacityTier" in answer.err


@pytest.mark.parametrize("option", ["--hours", "--overhead", "--evictions-per-node-hour"])
@pytest.mark.parametrize("value", ["inf", "nan", "1000001"])
def test_numbers_out_of_range(option: str, value: str, capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, option, value)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: Invalid value for '{option}': ")


def test_too_many_expected_failures(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("maxFailures: 3", "maxFailures: -1"))
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "1e6", job=job)
    assert (answer.code, answer.out) == (2, "")
    more = "check that the eviction rate is per hour"
    assert answer.err == f"error: the expected number of failures must be at most 1000000, got 10000000: {more}\n"


def test_the_simulated_estimate_is_in_the_table(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE)
    assert (answer.code, answer.err) == (0, "")
    assert "Simulated: 2 runs, " in answer.out
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("Cost", "Ends"))] == ["Cost", "Ends", "Cost", "Cost"]
    assert "advice: commit every " in answer.out
    assert "assumed: requests for nodes on spot-a succeed at all other times: their capacity is unknown" in answer.out
    assert "assumed: spot-a provides no new nodes from 1m to 2m, after the start of the job" in answer.out
    assert "assumed: the policy ordered chooses the tiers\n" in answer.out


def test_a_better_max_failures_is_advised(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("maxFailures: 3", "maxFailures: 0"))
    rate = ("--evictions-per-node-hour", "0.3", "--runs", "10")
    assert "advice: use maxFailures 13 " in planned(capsys, tmp_path, *rate, job=job).out
    found = json.loads(planned(capsys, tmp_path, *rate, "-o", "json", job=job).out)["simulation"]["advice"]
    assert found["maxFailures"]["value"] == 13
    assert found["maxFailures"]["savingUsd"] > 2 * found["maxFailures"]["savingUsdStandardError"]


def test_the_runs_use_the_policy_of_the_job(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("  suspend: false", "  suspend: false\n  policy: greedy\n  maxDuration: 12h"))
    answer = planned(capsys, tmp_path, *RATE, job=job)
    assert (answer.code, answer.err) == (0, "")
    assert "assumed: the policy greedy chooses the tiers of the simulated runs; the closed formulas" in answer.out


def test_the_duration_of_a_commit_is_that_of_the_jobs_run(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world's spot pool gives 5 s of notice."""
    state = earlier_run(tmp_path, monkeypatch, JobState(measured=Measured(commit_seconds=93.4)))
    sentence = "a commit takes 1m34s, the longest that a run of the job measured"
    risk = "risk: spec.tiers[0]: a commit takes 1m34s, tier spot-a gives 5s notice"
    found = planned(capsys, tmp_path, *RATE).out
    assert sentence in found
    assert risk in found
    given = planned(capsys, tmp_path, *RATE, "--commit-time", "2s").out
    assert "a commit takes 2s\n" in given
    state.write_text("damaged")
    assert "a commit takes 10s\n" in planned(capsys, tmp_path, *RATE).out


def test_stored_commits_cost_what_the_bucket_charges(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("interval: 5m", "interval: 5m\n    storagePerGiBMonth: 20"))
    unknown = planned(capsys, tmp_path, *RATE, job=job).out
    assert "assumed: commits cost nothing: their size is unknown, set --checkpoint-gib\n" in unknown
    known = planned(capsys, tmp_path, *RATE, "--checkpoint-gib", "10", job=job).out
    assert "assumed: commits cost nothing" not in known
    assert " for storage, which" in known


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            "deadline: 2020-01-01T00:00:00Z",
            "spec.deadline: is in the past (expected at least the work, 5 h): set a later",
        ),
        ("maxDuration: 2h", "spec.maxDuration: leaves 2 h (expected at least the work, 5 h): set a longer one,"),
    ],
)
def test_a_deadline_that_cannot_be_met(limit: str, said: str, capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("spec:\n  tiers:\n", f"spec:\n  {limit}\n  tiers:\n"))
    for options, world in WITH_AND_WITHOUT_AN_ESTIMATE:
        answer = planned(capsys, tmp_path, *options, job=job, world=world)
        assert (answer.code, answer.out) == (2, "")
        assert f"job.yaml:7:{3 + len(limit.partition(' ')[0]) + 1}: {said}" in answer.err


def test_times_are_of_all_runs_only_if_all_succeed(capsys: Capture, tmp_path: Path) -> None:
    """The deadline leaves no time after nine of ten runs if fewer end before it."""
    job = changed(JOB, ("spec:\n  tiers:\n", "spec:\n  maxDuration: 5h20m\n  tiers:\n"))
    answer = planned(capsys, tmp_path, *RATE, "--runs", "10", job=job).out
    assert "\nEnds after, if it succeeds  " in answer
    assert "the deadline leaves" not in answer
    found = json.loads(planned(capsys, tmp_path, *RATE, "--runs", "10", "-o", "json", job=job).out)["simulation"]
    share = f"±{100 * found['successProbabilityStandardError']:.1f} %"
    cost = f"±${found['costUsdStandardError']:.2f}"
    assert f"confidence: the standard error of the mean cost is {cost}, that of the share of runs {share}\n" in answer
    answer = planned(capsys, tmp_path, *RATE, job=changed(job, ("5h20m", "20h"))).out
    assert "\nEnds after  " in answer
    assert "the deadline leaves 14h" in answer


def test_the_break_even(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--formula")
    found = json.loads(planned(capsys, tmp_path, *RATE, "--formula", "-o", "json").out)
    factor = found["breakEvenLossRateFactor"]
    assert f"it saves nothing from {factor:.3g} times the loss rate on" in answer.out
    calm = ("--evictions-per-node-hour", "0", "--formula")
    assert "it saves nothing" not in planned(capsys, tmp_path, *calm).out


def test_a_budget_below_the_work_at_the_lowest_price(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("  suspend: false", '  suspend: false\n  budget: "0.01"'))
    for options, world in WITH_AND_WITHOUT_AN_ESTIMATE:
        answer = planned(capsys, tmp_path, *options, job=job, world=world)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"error: {tmp_path}/job.yaml:")
        assert ": spec.budget: expected $" in answer.err
        assert answer.err.endswith(" or more (the work at the lowest price), got $0.01: raise it\n")


def test_a_plan_without_a_world_file_and_without_a_cluster(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    answer = call(capsys, "plan", written(tmp_path, "job.yaml", JOB), "--hours", "5")
    assert (answer.code, answer.out) == (2, "")
    assert "no cluster is configured: name the pools' file with --world" in answer.err
