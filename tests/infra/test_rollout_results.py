"""The printed results of a rollout, and the remedy after a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.output import Format
from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import waves
from spotladder_infra.rollout.cluster_rollout import RolloutSite
from spotladder_infra.rollout.waves import ClusterOutcome, ClusterResult
from tests.topology.builders import fleet_file

GOOD = ClusterResult("east", ClusterOutcome.GOOD, "as of 2026-11-22")
UNCHANGED = ClusterResult("west", ClusterOutcome.UNCHANGED)
UNTOUCHED = ClusterResult("lab", ClusterOutcome.UNTOUCHED)


def failed(cluster: str, *, final: bool = False) -> ClusterResult:
    return ClusterResult(cluster, ClusterOutcome.FAILED, "no answer", final)


def test_each_cluster_has_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([GOOD, UNCHANGED], Format.TABLE)
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["east", "good, as of 2026-11-22"], ["west", "unchanged"]]


def test_results_are_printed_as_json_after_a_failure_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EnvironmentFailure):
        print_results([UNCHANGED, failed("east"), UNTOUCHED], Format.JSON)
    assert json.loads(capsys.readouterr().out) == [
        {"cluster": "west", "result": "unchanged", "message": ""},
        {"cluster": "east", "result": "failed", "message": "no answer"},
        {"cluster": "lab", "result": "not begun", "message": ""},
    ]


@pytest.mark.parametrize(("final", "named"), [(True, []), (False, ["west"])])
def test_a_failure_that_may_end_has_a_remedy(final: bool, named: list[str]) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        print_results([failed("east", final=True), failed("west", final=final)], Format.TABLE)
    lines = str(raised.value).splitlines()
    assert lines[:2] == ["cluster east: no answer", "cluster west: no answer"]
    assert [line.partition("rollback --cluster ")[2].partition(";")[0] for line in lines[2:]] == named


def test_a_cluster_out_of_reach_keeps_no_other_from_its_rollback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def platform(_: RolloutSite, name: str) -> str:
        if name == "west":
            raise EnvironmentFailure("cluster west: Google Cloud has no credentials")
        return name

    monkeypatch.setattr(RolloutSite, "platform", platform)
    monkeypatch.setattr(waves, "_back", lambda *_: "as of 2026-11-22")
    results = waves.rollback(RolloutSite(fleet_file(tmp_path).fleet, tmp_path), lambda *_: None)
    assert {found.cluster for found in results if found.outcome is ClusterOutcome.FAILED} == {"west"}
    assert {found.cluster for found in results if found.outcome is ClusterOutcome.GOOD} >= {"east", "alpha", "lab"}
