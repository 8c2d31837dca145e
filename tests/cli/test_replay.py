"""`spotladder sim replay` as a user sees it, on the recorded demo."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import Answer, call

Capture = pytest.CaptureFixture[str]

DEMO = Path(__file__).parents[1] / "planner" / "demo"
NAME = "digits-tensorflow"


@pytest.fixture
def states(tmp_path: Path) -> Path:
    """The state folder of a machine on which the demo ran."""
    folder = tmp_path / "states" / "default" / NAME
    folder.mkdir(parents=True)
    for file in ("state.json", "timeline.jsonl"):
        shutil.copy(DEMO / file, folder)
    run = {"began": 1795369631.0, "python": "3.11", "ray": "2.56", "uri": "checkpoints"}
    (folder / "run.json").write_text(json.dumps(run))
    return tmp_path / "states"


def replayed(capsys: Capture, states: Path, *more: str | Path) -> Answer:
    return call(capsys, "sim", "replay", NAME, "--state-dir", states, *more)


def test_a_table_with_the_recorded_run_and_the_replays(capsys: Capture, states: Path) -> None:
    answer = replayed(capsys, states, "--policy", "ordered", "--policy", "on-demand")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == NAME
    assert lines[1].split()[0] == "POLICY"
    assert lines[2].startswith("as recorded  Completed")
    assert [line.split()[0] for line in lines[3:5]] == ["ordered", "on-demand"]
    assert "  3m 28s  " in lines[2]
    assert "assumed: the work takes 32s without" in answer.out
    assert "assumed: the run did not observe the capacity of spot-a, spot-c at all times" in answer.out


def test_the_policy_of_the_job_and_its_shadow_policy_are_the_default(capsys: Capture, states: Path) -> None:
    file = states / "default" / NAME / "timeline.jsonl"
    first, _, rest = file.read_text().partition("\n")
    began = json.loads(first) | {"policy": "ordered", "shadow": "on-demand"}
    file.write_text(f"{json.dumps(began)}\n{rest}")
    answer = replayed(capsys, states)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["ordered", "on-demand"]
    (comparison,) = [line for line in lines if line.startswith("compared: ")]
    assert comparison.startswith("compared: on-demand instead of ordered: $")
    assert comparison.endswith(" more")


def test_a_policy_that_may_not_end_is_not_called_cheaper(capsys: Capture, states: Path) -> None:
    policies = [word for name in ("on-demand", "uniform-progress") for word in ("--policy", name)]
    out = replayed(capsys, states, *policies).out
    assert "compared: uniform-progress instead of on-demand: uniform-progress may not end\n" in out


def test_a_replay_becomes_a_test(capsys: Capture, states: Path, tmp_path: Path) -> None:
    file = tmp_path / "incident.json"
    answer = replayed(capsys, states, "--to", file)
    assert (answer.code, answer.out.splitlines()[-1]) == (0, f"Replay: {file}")
    again = call(capsys, "sim", "replay", file)
    assert (again.code, again.err) == (0, "")
    assert "transitions with policy ordered" in again.out
    data = json.loads(call(capsys, "sim", "replay", file, "-o", "json").out)
    assert (data["file"], data["policy"], data["differences"]) == (str(file), "ordered", [])
    document = json.loads(file.read_text())
    document["spec"]["tiers"][0]["max_failures"] = 9
    file.write_text(json.dumps(document))
    other = call(capsys, "sim", "replay", file)
    assert other.code == 1
    assert " was " in other.out
    data = json.loads(call(capsys, "sim", "replay", file, "-o", "json").out)
    assert data["differences"] == [line.removeprefix(f"{file}: ") for line in other.out.splitlines()]
    refused = call(capsys, "sim", "replay", file, "--policy", "adaptive", "--state-dir", states)
    assert (refused.code, refused.out) == (2, "")
    assert "a file of --to is replayed as it was recorded: remove --policy and --state-dir" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "orderd"), "error: --policy: no policy is called 'orderd'"),
        (("--hours", "0"), "--hours"),
        (("--to", "incident"), "--to: must be a file name that ends with .json, not 'incident'"),
    ],
)
def test_bad_options(options: tuple[str, ...], said: str, capsys: Capture, states: Path) -> None:
    answer = replayed(capsys, states, *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_jobs_and_files_that_do_not_exist(capsys: Capture, states: Path, tmp_path: Path) -> None:
    answer = call(capsys, "sim", "replay", "nothing", "--state-dir", states)
    assert (answer.code, answer.out) == (2, "")
    assert "no run of default/nothing found" in answer.err
    answer = call(capsys, "sim", "replay", tmp_path / "none.json")
    assert (answer.code, answer.out) == (2, "")
    assert "none.json: cannot be read" in answer.err
