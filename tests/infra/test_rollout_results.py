"""The printed results of a rollout, and the remedy after a failure."""

from __future__ import annotations

import json

import pytest

from spotladder.cli.infra.rollout_results import print_results
from spotladder.cli.output import Format
from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout.waves import ClusterOutcome, ClusterResult

RETRY_ADVICE = "correct the cause and run the same command again to continue"
GOOD = ClusterResult("east", ClusterOutcome.GOOD, "as of 2026-11-22")
UNCHANGED = ClusterResult("west", ClusterOutcome.UNCHANGED)
UNTOUCHED = ClusterResult("lab", ClusterOutcome.UNTOUCHED)


def failed(cluster: str, *, final: bool = False, can_go_back: bool = False) -> ClusterResult:
    return ClusterResult(cluster, ClusterOutcome.FAILED, "no answer", final, can_go_back)


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


@pytest.mark.parametrize(
    ("results", "remedy"),
    [
        ([failed("east")], [f"{RETRY_ADVICE}; spotladder infra status --cluster east shows what is installed"]),
        (
            [failed("east"), failed("west", can_go_back=True)],
            [f"{RETRY_ADVICE}, or restore the last good rollout: spotladder infra rollback --cluster west"],
        ),
        ([failed("east", final=True)], []),
        (
            [failed("east", final=True), failed("west")],
            [f"{RETRY_ADVICE}; spotladder infra status --cluster west shows what is installed"],
        ),
    ],
)
def test_a_rollback_is_recommended_only_to_an_earlier_good_rollout(
    results: list[ClusterResult], remedy: list[str]
) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        print_results(results, Format.TABLE)
    assert str(raised.value).splitlines() == [*(f"cluster {found.cluster}: no answer" for found in results), *remedy]
