"""`spotladder sim run` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.places.recorded import RecordedJobs
from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call

Capture = pytest.CaptureFixture[str]

ALONE = changed(WORLD, ("    unavailable: [{from: 60s, to: 120s}]\n", ""))


def ticks(*runs: tuple[int, int]) -> str:
    """A trace in CSV: for each run its value, 1 for available, and its length in ticks of ten minutes."""
    flags = [value for value, length in runs for _ in range(length)]
    return "time,available\n" + "".join(f"{600 * at},{flag}\n" for at, flag in enumerate(flags))


LOST_ONCE = ticks((1, 30), (0, 12), (1, 80))


def simulated(capsys: Capture, folder: Path, *more: str | Path, job: str = JOB, text: str = LOST_ONCE) -> Answer:
    files = written(folder, "job.yaml", job), written(folder, "world.yaml", WORLD)
    trace = written(folder, "zone.csv", text)
    options = ("--world", files[1], "--hours", "6", "--trace", f"spot-a={trace}")
    return call(capsys, "sim", "run", files[0], *options, *more)


def test_a_table_of_the_policies(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, "--policy", "ordered", "--policy", "on-demand")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "6 h of work on 2 nodes; on demand without interruptions: $16.92"
    assert lines[1].split()[:3] == ["POLICY", "SUCCEEDED", "COST"]
    assert lines[2].split()[:4] == ["ordered", "1", "of", "1"]
    assert lines[3].split()[:4] == ["on-demand", "1", "of", "1"]
    assert "assumed: each run begins at a random moment of the traces of spot-a" in answer.out


def test_the_cost_of_one_run(capsys: Capture, tmp_path: Path) -> None:
    """Spot capacity ends after 5 h and is back after 2 h. The job waits for it for provisionTimeout, and then finishes
    on demand, from the newest commit."""
    found = json.loads(simulated(capsys, tmp_path, "--restart", "0s", "-o", "json").out)
    assert found["seeds"] == 1
    (policy,) = found["policies"]
    (run,) = policy["runsBySeed"]
    assert (policy["policy"], run["succeeded"], run["losses"], run["attempts"]) == ("ordered", True, 2, 3)
    assert run["nodeHours"]["spot-a"] == pytest.approx(10, abs=0.1)
    assert run["finishHours"] == pytest.approx(6 + 1 / 6, abs=0.1)
    assert run["costUsd"] == policy["costUsd"]["mean"]


def test_every_policy_has_the_same_seeds(capsys: Capture, tmp_path: Path) -> None:
    options = ("--seeds", "4", "--policy", "ordered", "--policy", "greedy", "--policy", "ordered", "-o", "json")
    first, again = (simulated(capsys, tmp_path, *options).out for _ in range(2))
    assert first == again
    policies = json.loads(first)["policies"]
    assert [one["policy"] for one in policies] == ["ordered", "greedy"]
    assert len({run["costUsd"] for run in policies[0]["runsBySeed"]}) > 1


def test_the_policy_and_the_limits_are_those_of_the_job(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("  suspend: false", "  suspend: false\n  policy: greedy\n  maxDuration: 6h10m"))
    answer = simulated(capsys, tmp_path, job=job)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[2].split()[:4] == ["greedy", "1", "of", "1"]
    answer = simulated(capsys, tmp_path, "--policy", "ordered", job=job)
    assert answer.out.splitlines()[2].split()[:4] == ["ordered", "0", "of", "1"]
    assert "ordered: runs without success ended with DeadlineExceeded\n" in answer.out


def test_a_synthetic_trace(capsys: Capture, tmp_path: Path) -> None:
    found = simulated(capsys, tmp_path, "--trace", "spot-a=synthetic", "--seeds", "3", "-o", "json")
    assert found.code == 2
    assert "zone 'spot-a' is given twice" in found.err
    files = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    options = ("--world", files[1], "--hours", "6", "--trace", "spot-a=synthetic", "--seeds", "3", "-o", "json")
    runs = json.loads(call(capsys, "sim", "run", files[0], *options).out)["policies"][0]["runsBySeed"]
    assert all(run["succeeded"] for run in runs)
    assert len({run["nodeHours"]["spot-a"] for run in runs}) > 1


def test_a_tier_without_a_trace_loses_nodes_at_its_rate(capsys: Capture, tmp_path: Path) -> None:
    files = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", ALONE)
    options = (files[0], "--world", files[1], "--hours", "6", "--seeds", "5")
    answer = call(capsys, "sim", "run", *options, "--evictions-per-node-hour", "0.2", "-o", "json")
    assert json.loads(answer.out)["policies"][0]["losses"] > 0


def test_recorded_runs_are_jobs_of_the_page(capsys: Capture, tmp_path: Path) -> None:
    options = ("--policy", "ordered", "--policy", "greedy", "--seeds", "2", "--to", tmp_path / "runs")
    assert simulated(capsys, tmp_path, *options).err == ""
    place = RecordedJobs(str(tmp_path / "runs"))
    place.look()
    runs = {job["metadata"]["name"]: job["status"]["phase"] for job in place.jobs()}
    assert runs == dict.fromkeys(
        ("digits-greedy-0", "digits-greedy-1", "digits-ordered-0", "digits-ordered-1"), "Succeeded"
    )
    again = simulated(capsys, tmp_path, *options)
    assert (again.code, again.err) == (2, f"error: --to: {tmp_path / 'runs'} is not empty: name a new folder\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "orderd"), "error: --policy: no policy is called 'orderd'"),
        (("--hours", "nan"), "Invalid value for '--hours': Input should be less than or equal to 1000000"),
        (("--seeds", "0"), "--seeds"),
        (("--seeds", "501", "--to", "runs"), "error: --to: 501 runs, at most 500 are recorded: use fewer --seeds"),
        (("--restart", "3"), "--restart: '3' has no unit: write 3h, 3m or 3s"),
        (("--trace", "on-demand=nowhere.csv"), "nowhere.csv: cannot be read"),
        (("--trace", "spot-b=zone.csv"), "zone.csv: cannot be read"),
        (("--trace", "synthetic"), "--trace: expected TIER=FILE or TIER=synthetic, got 'synthetic'"),
    ],
)
def test_bad_input(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    answer = simulated(capsys, tmp_path, *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
