"""Contact is not capacity: nodes that fall silent together are not lost yet, one that falls silent alone is."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import Job, attempt, head, spec, tier, whole, worker


def silent(uid: str, role: PodRole = PodRole.WORKER) -> PodSeen:
    return PodSeen(uid, role, PodPhase.LOST, ready=False, cause=Cause.NODE_LOST, silent=True)


def cut_off(number: int = 1, **more: Any) -> AttemptSeen:
    """All nodes of the attempt are silent."""
    pods = (silent("head", PodRole.HEAD), silent(f"w{number}-0"), silent(f"w{number}-1"))
    return attempt(number, *pods, **{"nodes": 3, "silent_nodes": 3, **more})


def job(max_failures: int = 0, **more: Any) -> Job:
    return Job(spec(tier("spot-a", max_failures), tier("on-demand", -1), **more)).running()


def test_a_cut_of_all_nodes_for_25_s_ends_and_counts_nothing() -> None:
    one = job()
    one.see(cut_off(), after=1)
    assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)
    assert one.state.impeded is not None
    assert one.state.impeded.reason is Reason.CONTACT_LOST
    one.see(whole(1), after=24)
    assert (one.state.stage, one.state.failures, one.state.impeded, one.number) == (Stage.RUNNING, 0, None, 1)


def test_the_first_node_that_is_marked_is_judged_with_those_whose_heartbeats_stopped_too() -> None:
    one = job()
    one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), nodes=3, silent_nodes=3), after=1)
    assert one.state.failures == 0


def test_contact_that_comes_back_node_by_node_counts_nothing() -> None:
    one = job()
    one.see(cut_off(), after=1)
    one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), nodes=3, silent_nodes=1), after=20)
    assert one.state.failures == 0
    one.see(whole(1), after=5)
    assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"nodes": 3, "silent_nodes": 1}, id="one of the job's three"),
        pytest.param({"nodes": 1, "silent_nodes": 1}, id="the job's only one"),
        pytest.param({"nodes": 3, "silent_nodes": 1, "cluster_nodes": 40, "cluster_silent_nodes": 3}, id="few of many"),
        pytest.param({"nodes": 3, "silent_nodes": 1, "contact_restored_at": 0.0}, id="an interruption long ago"),
    ],
)
def test_a_node_that_falls_silent_alone_is_lost_at_once(more: dict[str, Any]) -> None:
    one = job()
    one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), **more), after=1)
    assert (one.reasons[-1], one.state.failures) == (Reason.MAX_FAILURES_EXCEEDED, 1)


def test_most_nodes_of_a_cluster_or_a_restored_watch_are_a_loss_of_contact_too() -> None:
    for more in (
        {"cluster_nodes": 5, "cluster_silent_nodes": 3},
        {"contact_restored_at": job().now},
    ):
        one = job()
        one.see(attempt(1, head(), silent("w1-0"), worker("w1-1"), nodes=3, silent_nodes=1, **more), after=1)
        assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)


@pytest.mark.parametrize(("max_failures", "stage"), [(0, Stage.ENDING), (5, Stage.ENDING)])
def test_after_contact_timeout_it_is_counted_as_ever_and_once(max_failures: int, stage: Stage) -> None:
    one = job(max_failures, contact_timeout=60.0)
    one.see(cut_off(), after=1)
    assert one.last.wake_at == pytest.approx(one.now + 60)
    one.see(cut_off(), after=59)
    assert (one.state.stage, one.state.failures) == (Stage.RUNNING, 0)
    one.see(cut_off(), after=1)
    assert (one.state.stage, one.state.failures) == (stage, 3)
    one.see(cut_off(), after=1)
    assert one.state.failures == 3


def test_without_a_contact_timeout_everything_counts_at_once() -> None:
    one = job(5, contact_timeout=0.0)
    one.see(cut_off(), after=1)
    assert one.state.failures == 3


def test_the_timers_of_a_job_that_recovers_or_starts_stand_still_without_contact() -> None:
    one = job(5, recovery_timeout=30.0)
    one.see(attempt(1, head(), worker("w1-0", ready=False), worker("w1-1")), after=1)
    assert one.state.stage is Stage.RECOVERING
    for _ in range(9):
        one.see(cut_off(), after=10)
    assert (one.state.stage, one.state.failures) == (Stage.RECOVERING, 0)
    one.see(whole(1), after=1)
    assert one.state.stage is Stage.RUNNING


def test_a_pod_that_is_lost_for_a_known_cause_meanwhile_counts() -> None:
    one = job(5)
    lost = PodSeen("w1-0", phase=PodPhase.LOST, ready=False, cause=Cause.INTERRUPTION)
    one.see(attempt(1, silent("head", PodRole.HEAD), lost, silent("w1-1"), nodes=2, silent_nodes=2), after=1)
    assert [loss.pod for loss in one.losses] == ["w1-0"]
