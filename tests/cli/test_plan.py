"""`spotladder plan` as a user sees it, on the pools of a world file."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from spotladder.api.read import read_job
from spotladder.core.codec import dump
from spotladder.core.model import JobState, Stage, TierRecord
from spotladder.core.reasons import Reason
from spotladder.display.figures import span
from spotladder.display.report.plan_comparison import compare
from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call, earlier_run

Capture = pytest.CaptureFixture[str]


RATE = ("--evictions-per-node-hour", "0.2", "--runs", "10")

UNKNOWN_RATE = changed(WORLD, ("interruptions: {at: [20s, 45s]}", "interruptions: {at: [20s]}"))

WITH_AND_WITHOUT_AN_ESTIMATE = ((RATE, WORLD), (("--runs", "0"), WORLD), ((), UNKNOWN_RATE))
"""Options and world files: with simulated runs, without them, and without a known eviction rate."""


def planned(capsys: Capture, folder: Path, *more: str | Path, job: str = JOB, world: str = WORLD) -> Answer:
    files = written(folder, "job.yaml", job), written(folder, "world.yaml", world)
    runs = () if "--runs" in more else ("--runs", "10")
    return call(capsys, "plan", "-f", files[0], "--world", files[1], "--hours", "5", *runs, *more)


def test_a_table_with_tiers_choices_and_risks(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "0.5", "--overhead", "0.2")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "2 workers, 5 h on demand only"
    assert "as written" in answer.out
    assert "blended" in answer.out
    assert "risk: " in answer.out
    rows = [line.split() for line in lines[: lines.index("")] if line.startswith(("spot-a", "on-demand"))]
    assert [row[:3] for row in rows] == [
        ["spot-a", "g5-spot-use1a", "spot"],
        ["on-demand", "g5-od-use1", "on-demand"],
    ]


def test_json_and_yaml_have_the_same_data(capsys: Capture, tmp_path: Path) -> None:
    options = ("--evictions-per-node-hour", "0.5", "--overhead", "0.2", "-o")
    found = json.loads(planned(capsys, tmp_path, *options, "json").out)
    assert YAML(typ="safe").load(planned(capsys, tmp_path, *options, "yaml").out) == found
    assert [tier["name"] for tier in found["tiers"]] == ["spot-a", "on-demand"]
    assert found["overheadHours"] == 0.2
    own = found["choices"][0]
    assert own["maxFailures"] is None
    assert own["spotFraction"] == pytest.approx(4 / 5)  # 3 failures tolerated, one an hour: the fourth after 4 h
    assert own["expectedFailures"] == pytest.approx(4)
    assert own["totalHours"] == pytest.approx(5.8)
    blended = own["accountings"]["blended"]
    assert blended["costUsd"] == pytest.approx(blended["costOnDemandHours"] * 2 * 1.41, abs=1e-3)


def test_unknown_rates_are_not_estimated(capsys: Capture, tmp_path: Path) -> None:
    trace = changed(WORLD, ("interruptions: {at: [20s, 45s]}", "interruptions: {at: [20s]}"))
    answer = planned(capsys, tmp_path, world=trace)
    assert answer.code == 0
    assert "cannot be estimated" in answer.out
    assert "set --evictions-per-node-hour" in answer.out
    found = json.loads(planned(capsys, tmp_path, "-o", "json", world=trace).out)
    assert (found["choices"], found["cheapest"]) == ([], None)


def test_bad_input(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    for arguments, said in (
        (("-f", tmp_path / "none.yaml", "--hours", "5", "--world", world), "none.yaml"),
        (("-f", job, "--world", world), "--hours"),
        (("-f", job, "--world", world, "--hours", "0"), "--hours"),
        (("-f", job, "--world", world, "--hours", "5", "--overhead", "-1"), "--overhead"),
        (("-f", world, "--world", world, "--hours", "5"), "TieredJob"),
        (("-f", job, "--world", job, "--hours", "5"), "world"),
        (("--hours", "5", "--world", world), "expected exactly one job file"),
        ((job, "-f", job, "--hours", "5", "--world", world), "exactly one"),
        ((job, "--hours", "5", "--world", world, "--polarity", "available"), "--polarity: goes with --trace"),
    ):
        answer = call(capsys, "plan", *arguments)
        assert (answer.code, answer.out) == (2, ""), arguments
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    other = written(tmp_path, "job2.yaml", changed(JOB, ("capacityTier: g5-spot", "capacityTier: g6-spot")))
    answer = call(capsys, "plan", "-f", other, "--world", world, "--hours", "5")
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
    assert (
        answer.err
        == "error: the expected number of failures must be at most 1e+06, got 1e+07: check that the eviction rate is "
        "per hour\n"
    )


def test_help_has_an_example(capsys: Capture) -> None:
    assert "spotladder plan job.yaml --hours 5" in call(capsys, "plan", "--help").out


def test_submit_accepts_a_single_file(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    alone = call(capsys, "plan", job, "--world", world, "--hours", "5")
    assert alone.code == 0
    assert alone.out == call(capsys, "plan", "-f", job, "--world", world, "--hours", "5").out


def test_the_simulated_estimate_is_in_the_table(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--what-if", "spot-a.maxFailures=0..2")
    assert (answer.code, answer.err) == (0, "")
    assert "Simulated: 10 runs, " in answer.out
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("Cost", "Ends"))] == ["Cost", "Ends", "Cost", "Cost"]
    start = lines.index("What if: spot-a.maxFailures=0..2")
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == ["MAXFAILURES", "0", "1", "2"]
    assert "advice: commit every " in answer.out
    assert "assumed: requests for nodes on spot-a succeed at all other times: their capacity is unknown" in answer.out
    assert "assumed: spot-a provides no new nodes from 1m to 2m, after the start of the job" in answer.out


def test_a_what_if_of_the_idle_budget(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--what-if", "spot-a.idleBudget=0.5,20")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    start = lines.index("What if: spot-a.idleBudget=0.5,20")
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["IDLEBUDGET", "0.5", "20"]


def test_a_what_if_of_the_probe(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--what-if", "spot-a.probe=0,1")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    start = lines.index("What if: spot-a.probe=0,1")
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["PROBE", "0", "1"]


def test_the_simulated_estimate_is_in_the_data(capsys: Capture, tmp_path: Path) -> None:
    options = (*RATE, "--what-if", "spot-a.provisionTimeout=5m,10m", "--seed", "7", "-o", "json")
    first, again = (planned(capsys, tmp_path, *options).out for _ in range(2))
    assert first == again
    found = json.loads(first)["simulation"]
    assert (found["seed"], found["runs"], found["onDemandUsd"]) == (7, 10, pytest.approx(14.1))
    assert 0 <= found["successProbability"] <= 1
    assert list(found["costUsd"]) == ["mean", "p10", "p50", "p90", "p99"]
    assert [tier["name"] for tier in found["tiers"]] == ["spot-a", "on-demand"]
    assert [entry["value"] for entry in found["whatIf"][0]["values"]] == ["5m", "10m"]
    advice = found["advice"]
    assert len(advice["commitIntervalByAge"]) == 7
    assert advice["tierOrderCurve"][0]["tiers"] == ["spot-a", "on-demand"]
    assert [one["maxFailures"] for one in advice["maxFailuresCurve"]] == [*range(11), -1]
    assert list(advice["maxFailuresCurve"][0]) == ["maxFailures", "meanCostUsd", "successProbability", "runs"]
    (timeouts,) = advice["provisionTimeoutCurves"]
    assert timeouts["tier"] == "spot-a"
    assert [one["provisionTimeout"] for one in timeouts["values"]] == ["5m", "10m", "20m", "40m", "1h20m"]


def test_the_runs_use_the_policy_of_the_job(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("  suspend: false", "  suspend: false\n  policy: {name: greedy}\n  maxDuration: 12h"))
    answer = planned(capsys, tmp_path, *RATE, job=job)
    assert (answer.code, answer.err) == (0, "")
    assert "assumed: the policy greedy chooses the tiers of the simulated runs; the closed formulas" in answer.out
    assert "assumed: the policy ordered chooses the tiers\n" in planned(capsys, tmp_path, *RATE).out


def test_the_duration_of_a_commit_is_that_of_the_jobs_run(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world's spot pool gives 5 s of notice."""
    state = earlier_run(tmp_path, monkeypatch, JobState(commit_seconds=93.4))
    sentence = "a commit takes 1m34s, the longest that a run of the job measured"
    risk = "risk: spec.tiers[0]: a commit takes 1m34s, tier spot-a gives 5s notice"
    found = planned(capsys, tmp_path, *RATE).out
    assert sentence in found
    assert risk in found
    given = planned(capsys, tmp_path, *RATE, "--commit-time", "2s").out
    assert "a commit takes 2s\n" in given
    state.write_text("damaged")
    assert "a commit takes 10s\n" in planned(capsys, tmp_path, *RATE).out


def test_the_last_run_of_the_job_is_compared_with_the_simulated_ones(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = JobState(
        stage=Stage.SUCCEEDED,
        reason=Reason.COMPLETED,
        started_at=1000.0,
        ended_at=1000.0 + 9 * 3600,
        tiers=(TierRecord("spot-a", cost=0.25),),
    )
    state = earlier_run(tmp_path, monkeypatch, ended)
    sentence = (
        "compared: the job has run before: $0.25 in 9h 00m (Completed); 0 % of the simulated runs cost less, 100 % end"
    )
    assert sentence in planned(capsys, tmp_path, *RATE).out
    last = json.loads(planned(capsys, tmp_path, *RATE, "-o", "json").out)["simulation"]["lastRun"]
    assert (last["costUsd"], last["hours"], last["cheaperRunsShare"]) == (0.25, 9.0, 0.0)
    state.write_text(dump(replace(ended, stage=Stage.RUNNING, ended_at=None)))
    assert "compared: " not in planned(capsys, tmp_path, *RATE).out


@pytest.mark.parametrize(
    ("run", "comparable"),
    [
        (JobState(ended_at=1094.0), False),
        (JobState(ended_at=1000.0 + 90 * 3600), False),
        (JobState(ended_at=1000.0 + 90 * 3600, total=360, timed_steps=100, timed_seconds=5000.0), True),
        (JobState(ended_at=1000.0 + 5 * 3600, total=360, timed_steps=100, timed_seconds=50.0), False),
    ],
    ids=["a demo", "a long run", "a long wait", "fewer steps"],
)
def test_a_run_with_other_work_is_not_compared(
    run: JobState, comparable: bool, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_run(tmp_path, monkeypatch, replace(run, started_at=1000.0, stage=Stage.SUCCEEDED, reason=Reason.COMPLETED))
    last = json.loads(planned(capsys, tmp_path, *RATE, "-o", "json").out)["simulation"]["lastRun"]
    assert (last["cheaperRunsShare"] is not None, last["fasterRunsShare"] is not None) == (comparable, comparable)
    said = "compared: the job has run before: $0.00 in "
    answer = planned(capsys, tmp_path, *RATE).out
    assert said in answer
    assert ("; not compared with the simulated runs, because its work took " in answer) is not comparable


def test_only_the_closed_formulas(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "0.2", "--runs", "0", "-o", "json")
    assert json.loads(answer.out)["simulation"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "spot-a",
            (
                "expected TIER.maxFailures=0..10, TIER.provisionTimeout=5m,10m, TIER.idleBudget=0.5,2 or "
                "TIER.probe=0,1, got 'spot-a'"
            ),
        ),
        ("spot-a.price=1", "expected TIER.maxFailures=0..10"),
        ("spot-z.maxFailures=1", "the job has no tier 'spot-z' (expected one of spot-a, on-demand)"),
        ("spot-a.maxFailures=x", "expected 0..10, or numbers from -1 like 0,3,5, got 'x'"),
        ("spot-a.maxFailures=5..1", "expected 1 to 50 values, got 0"),
        ("spot-a.idleBudget=-1", "expected amounts in USD like 0.5,2, got '-1'"),
        ("spot-a.probe=-1", "expected numbers of workers like 0,1, got '-1'"),
        ("spot-a.maxFailures=0..99", "expected 1 to 50 values, got 100"),
        ("spot-a.probe=0,3", "expected at most the 2 workers of the job, got 3"),
        ("spot-a.provisionTimeout=soon", "'soon'"),
        ("spot-a.provisionTimeout=5m,0s", "expected more than 0s, got '5m,0s'"),
    ],
)
def test_bad_what_ifs(text: str, said: str, capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--what-if", text)
    assert (answer.code, answer.out) == (2, "")
    assert f"--what-if: {said}" in answer.err


def test_the_time_on_each_tier_has_percentiles(capsys: Capture, tmp_path: Path) -> None:
    found = json.loads(planned(capsys, tmp_path, *RATE, "-o", "json").out)["simulation"]
    for tier, price in zip(found["tiers"], (0.42, 1.41), strict=True):
        at = tier["hoursPercentiles"]
        assert 0 <= at["p50"] <= at["p90"] <= at["p99"]
        assert tier["costUsd"]["p90"] == pytest.approx(2 * price * at["p90"], abs=1e-3)
    rows = planned(capsys, tmp_path, *RATE).out.splitlines()
    (row,) = [row for row in rows if row.startswith("Time on spot-a")]
    spot = found["tiers"][0]
    figures = (spot["hours"], *spot["hoursPercentiles"].values())
    assert row.split()[3:] == " ".join(span(value * 3600) for value in figures).split()


def test_stored_commits_cost_what_the_bucket_charges(capsys: Capture, tmp_path: Path) -> None:
    priced = "interval: 5m\n    price: {perGiBMonth: 20, perThousandWrites: 0.005}"
    job = changed(JOB, ("interval: 5m", priced))
    unknown = planned(capsys, tmp_path, *RATE, job=job).out
    assert "assumed: commits cost nothing: their size is unknown, set --checkpoint-gib\n" in unknown
    answer = planned(capsys, tmp_path, *RATE, "--checkpoint-gib", "10", job=job)
    assert "assumed: commits cost nothing" not in answer.out
    assert " for storage, " in answer.out
    found = json.loads(planned(capsys, tmp_path, *RATE, "--checkpoint-gib", "10", "-o", "json", job=job).out)
    assert found["simulation"]["extraUsd"]["storage"] > 0
    bare = json.loads(planned(capsys, tmp_path, *RATE, "-o", "json").out)["simulation"]["onDemandUsd"]
    assert found["simulation"]["onDemandUsd"] > bare


def test_what_if_needs_simulated_runs(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--runs", "0", "--what-if", "spot-a.maxFailures=1")
    assert (answer.code, answer.out) == (2, "")
    assert "--what-if: needs simulated runs: omit --runs" in answer.err
    answer = planned(capsys, tmp_path, "--what-if", "spot-a.maxFailures=1")
    assert "--what-if: needs simulated runs: specify --evictions-per-node-hour" in answer.err


def test_a_duration_without_unit_is_refused_without_simulated_runs_too(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, "--restart", "3")
    assert (answer.code, answer.err) == (2, "error: --restart: '3' has no unit: write 3h, 3m or 3s\n")


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
    answer = planned(capsys, tmp_path, *RATE, "--runs", "30", job=job)
    assert "\nEnds after, if it succeeds  " in answer.out
    assert "the deadline leaves" not in answer.out
    answer = planned(capsys, tmp_path, *RATE, "--runs", "30", job=changed(job, ("5h20m", "20h")))
    assert "\nEnds after  " in answer.out
    assert "the deadline leaves 14h" in answer.out


def test_the_standard_errors_shrink_with_the_number_of_runs(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("spec:\n  tiers:\n", "spec:\n  maxDuration: 5h20m\n  tiers:\n"))
    few, more = (
        json.loads(planned(capsys, tmp_path, *RATE, "--runs", number, "-o", "json", job=job).out)["simulation"]
        for number in ("10", "60")
    )
    for key in ("costUsdStandardError", "successProbabilityStandardError"):
        assert 0 < more[key] < few[key], key
    answer = planned(capsys, tmp_path, *RATE, "--runs", "60", job=job).out
    share = f"±{100 * more['successProbabilityStandardError']:.1f} %"
    cost = f"±${more['costUsdStandardError']:.2f}"
    assert f"confidence: the standard error of the mean cost is {cost}, that of the share of runs {share}\n" in answer


def test_a_break_even_table(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--runs", "0")
    assert "\nBreak-even of the job as written (blended)\n" in answer.out
    assert "\n× 10 " in answer.out
    found = json.loads(planned(capsys, tmp_path, *RATE, "--runs", "0", "-o", "json").out)
    rates = found["breakEven"]["lossRates"]
    assert rates[0] == {"factor": 1.0, **found["choices"][0]}
    factor = found["breakEven"]["lossRateFactor"]
    assert f"it saves nothing from {factor:.3g} times the loss rate on" in answer.out
    calm = ("--evictions-per-node-hour", "0", "--runs", "0")
    assert "Break-even" not in planned(capsys, tmp_path, *calm).out


def test_a_budget_below_the_work_at_the_lowest_price(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("  suspend: false", '  suspend: false\n  budget: "0.01"'))
    for options, world in WITH_AND_WITHOUT_AN_ESTIMATE:
        answer = planned(capsys, tmp_path, *options, job=job, world=world)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"error: {tmp_path}/job.yaml:")
        assert ": spec.budget: expected $" in answer.err
        assert answer.err.endswith(" or more (the work at the lowest price), got $0.01: raise it\n")


def test_the_advised_job_is_written_and_valid(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "advised.yaml"
    job = changed(JOB, ("maxFailures: 3", "maxFailures: 0"), ("interval: 5m", "interval: 1h"))
    rate = ("--evictions-per-node-hour", "0.3", "--runs", "20")
    answer = planned(capsys, tmp_path, *rate, "--write", target, job=job)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == f"advised job: {target}"
    assert "advice: use maxFailures " in answer.out
    advised = read_job(target)
    assert advised.spec.tiers[0].max_failures != 0
    assert call(capsys, "validate", target).code == 0
    again = planned(capsys, tmp_path, *rate, "--write", target, job=job)
    assert (again.code, again.out) == (2, "")
    assert f"--write: {target} exists: name a new file" in again.err


def test_a_job_without_better_settings_is_written_as_it_is(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "advised.yaml"
    rate = ("--evictions-per-node-hour", "0", "--runs", "5", "-o", "json")
    answer = planned(capsys, tmp_path, *rate, "--write", target)
    assert json.loads(answer.out)["simulation"]["advice"]["proposal"] is None
    assert target.read_text() == JOB


def test_an_advised_job_needs_simulated_runs(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, *RATE, "--runs", "0", "--write", tmp_path / "advised.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert "--write: needs simulated runs" in answer.err


def test_a_picture_of_the_plan(capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.svg"
    answer = planned(capsys, tmp_path, *RATE, "--what-if", "spot-a.maxFailures=0..2", "--plot", picture)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == f"plot: {picture}"
    text = picture.read_text()
    settings = ("spot-a.maxFailures=0..2", "maxFailures on all spot tiers", "provisionTimeout of spot-a")
    panels = ("share of runs", *settings, "Commit interval")
    assert [word for word in panels if word not in text] == []
    answer = planned(capsys, tmp_path, *RATE, "--plot", "plan.txt")
    assert (answer.code, answer.out) == (2, "")
    assert "--plot: must be a file name that ends with .png or .svg" in answer.err


@pytest.mark.parametrize(
    ("option", "name"), [("--plot", "nowhere/plan.svg"), ("--plot", "folder.svg"), ("--write", "nowhere/job.yaml")]
)
def test_a_file_that_cannot_be_written_is_refused_before_the_simulation(
    option: str, name: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    simulated: list[str] = []
    monkeypatch.setattr("spotladder.cli.forecast.simulate", lambda *_: simulated.append("simulated"))
    (tmp_path / "folder.svg").mkdir()
    answer = planned(capsys, tmp_path, *RATE, option, tmp_path / name)
    assert (answer.code, answer.out, simulated) == (5, "", [])
    cause = "No such file or directory" if "nowhere" in name else "Is a directory"
    assert answer.err == f"error: {option}: {tmp_path / name} cannot be written: {cause}; name another file\n"


def test_a_picture_needs_matplotlib(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr("spotladder.cli.forecast.simulate", lambda *_: pytest.fail("it is checked after the work"))
    answer = planned(capsys, tmp_path, *RATE, "--plot", tmp_path / "plan.svg")
    assert (answer.code, answer.err) == (5, "error: --plot needs matplotlib: pip install 'spotladder[sim]'\n")


def test_a_plan_in_json_can_be_compared_with_a_run(capsys: Capture, tmp_path: Path) -> None:
    """The input of `spotladder report --plan`."""
    plan = json.loads(planned(capsys, tmp_path, *RATE, "--runs", "5", "-o", "json").out)
    found = compare(plan, JobState(), now=0.0)
    rows = {row.key: row for row in found.job}
    assert rows["costUsd"].planned["mean"] == plan["simulation"]["costUsd"]["mean"]
    assert rows["hours"].formulas == plan["choices"][0]["totalHours"]
    for row in (*found.job, *(row for tier in found.tiers.values() for row in tier)):
        assert set(row.planned) == {"mean", "p10", "p50", "p90"}, row


def test_a_plan_without_a_world_file_and_without_a_cluster(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    answer = call(capsys, "plan", written(tmp_path, "job.yaml", JOB), "--hours", "5")
    assert (answer.code, answer.out) == (2, "")
    assert "no cluster is configured: name the pools' file with --world" in answer.err
