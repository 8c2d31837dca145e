"""Loss of contact is not loss of capacity: nodes that fall silent together are not lost yet, a single one is."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, silent, spec, tier, worker


def cut_off(number: int = 1, **more: Any) -> AttemptSeen:
    """All nodes of the attempt are silent."""
    pods = (silent("head", PodRole.HEAD), silent(f"w{number}-0"), silent(f"w{number}-1"))
    return attempt(number, *pods, **{"nodes": 3, "silent_nodes": 3, **more})


def job(max_failures: int = 0, **more: Any) -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", max_failures), tier("on-demand", -1), **more)).running()


def test_a_loss_of_contact_with_all_nodes_for_25_s_ends_and_counts_nothing() -> None:
    one = job()
    one.see(cut_off(), after=1)
    assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)
    assert one.impeded.reason is Reason.CONTACT_LOST
    one.see(all_ready(1), after=24)
    assert (one.state.stage, one.state.failures, one.state.impeded, one.number) == (Stage.RUNNING, 0, None, 1)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"nodes": 3, "silent_nodes": 1}, id="one of the job's three"),
        pytest.param({"nodes": 1, "silent_nodes": 1}, id="the job's only one"),
        pytest.param({"nodes": 3, "silent_nodes": 1, "cluster_nodes": 40, "cluster_silent_nodes": 3}, id="few of many"),
        pytest.param({"nodes": 3, "silent_nodes": 1, "contact_restored_at": 0.0}, id="an interruption long ago"),
    ],
)
def test_a_single_silent_node_counts_as_lost_at_once(more: dict[str, Any]) -> None:
    one = job()
    one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), **more), after=1)
    assert (one.end_reason, one.state.failures) == (Reason.MAX_FAILURES_EXCEEDED, 1)


def test_silence_of_most_cluster_nodes_or_a_restored_watch_is_a_loss_of_contact() -> None:
    for more in (
        {"cluster_nodes": 5, "cluster_silent_nodes": 3},
        {"contact_restored_at": job().now},
    ):
        one = job()
        one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), nodes=3, silent_nodes=1, **more), after=1)
        assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)


@pytest.mark.parametrize(("max_failures", "stage"), [(0, Stage.STARTING), (5, Stage.ENDING)])
def test_losses_count_once_after_contact_timeout(max_failures: int, stage: Stage) -> None:
    one = job(max_failures, contact_timeout=60.0)
    one.see(cut_off(), after=1)
    assert one.last.wake_at == pytest.approx(one.now + 60)
    one.see(cut_off(), after=59)
    assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)
    one.see(cut_off(), after=1)
    assert (one.state.stage, one.state.failures) == (stage, 3)
    one.see(cut_off(), after=1)
    assert one.state.failures == 3


def test_with_contact_timeout_zero_losses_count_at_once() -> None:
    one = job(5, contact_timeout=0.0)
    one.see(cut_off(), after=1)
    assert one.state.failures == 3


def test_timers_of_a_recovering_job_stop_during_a_loss_of_contact() -> None:
    one = job(5, recovery_timeout=30.0)
    one.see(attempt(1, head(), worker("w1-0", ready=False), worker("w1-1")), after=1)
    assert one.state.stage is Stage.RECOVERING
    for _ in range(9):
        one.see(cut_off(), after=10)
    assert (one.state.stage, one.state.failures) == (Stage.RECOVERING, 0)
    one.see(all_ready(1), after=1)
    assert one.state.stage is Stage.RUNNING


def test_a_loss_with_a_known_cause_counts_during_a_loss_of_contact() -> None:
    one = job(5)
    lost = PodSeen("w1-0", phase=PodPhase.LOST, ready=False, cause=Cause.INTERRUPTION)
    one.see(attempt(1, silent("head", PodRole.HEAD), lost, silent("w1-1"), nodes=2, silent_nodes=2), after=1)
    assert [loss.pod for loss in one.losses] == ["w1-0"]
