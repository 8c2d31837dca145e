"""A node on which pods fail repeatedly is avoided by later attempts, and its further failures do not count."""

from __future__ import annotations

import pytest

from spotladder.core.bad_nodes import AVOIDED_NODES_LIMIT, KEPT_NODES, bad_nodes, with_node_failures
from spotladder.core.model import JobState, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker


def failed(uid: str, node: str = "n1", cause: Cause = Cause.UNKNOWN) -> PodSeen:
    return lost(uid, cause, node=node)


def replaced(job: SteppedJob, *pods: PodSeen) -> None:
    """The attempt loses these pods and gets others in their place."""
    number = job.number
    job.see(attempt(number, head(), worker(f"w{number}-0"), *pods), after=1)
    job.see(all_ready(number), after=5)


def test_a_node_is_avoided_after_two_failures_and_further_ones_do_not_count() -> None:
    job = SteppedJob(spec(tier("spot-a", 9))).running()
    replaced(job, failed("a"))
    assert bad_nodes(job.state) == ()
    replaced(job, failed("b"))
    assert bad_nodes(job.state) == ("n1",)
    before = job.state.failures
    for uid in "cdefgh":
        replaced(job, failed(uid))
    assert (job.state.failures, job.state.record("spot-a").failures) == (before, before)
    replaced(job, failed("i", "n2"))
    assert job.state.failures == before + 1


def test_the_message_of_the_next_attempt_names_the_avoided_nodes() -> None:
    job = SteppedJob(spec(tier("spot-a", 9), recovery_timeout=10.0)).running()
    replaced(job, failed("a"))
    job.see(attempt(1, head(), worker("w1-0"), failed("b")), after=1)
    job.see(attempt(1, head(), worker("w1-0")), after=20)
    job.see(after=1)
    assert job.number == 2
    assert "avoids n1 (2 failed pods)" in job.state.message


def test_crashes_at_the_start_count_against_the_node() -> None:
    job = SteppedJob(spec(tier("spot-a", 9)))
    for number in (1, 2):
        job.see(after=301)
        crashed = PodSeen(
            "w", PodRole.WORKER, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, node="n1", exit_code=1
        )
        job.see(attempt(number, head(), crashed), after=1)
        assert job.state.reason is Reason.START_CRASHED
        job.see(after=1)
    assert (bad_nodes(job.state), job.state.stage, job.state.failures) == (("n1",), Stage.IDLE, 0)


def test_a_tier_without_capacity_beside_its_bad_nodes_is_not_exhausted() -> None:
    """A node that may be bad is better than a fallback: Ray may have been slow, not the node."""
    job = SteppedJob(spec(tier("spot-a", 9, 60), tier("on-demand")))
    for number in (1, 2):
        job.see(after=301)
        crashed = PodSeen(
            "w", PodRole.WORKER, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, node="n1", exit_code=1
        )
        job.see(attempt(number, head(), crashed), after=1)
        job.see(after=1)
    job.see(after=301)
    assert (job.number, bad_nodes(job.state)) == (3, ("n1",))
    job.see(attempt(3, head(), worker("w-0"), pending("w-1")), after=60)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY
    assert "no capacity without the avoided nodes n1 (2 failed pods)" in job.state.message
    job.see(after=1)
    assert (job.number, job.state.tier, bad_nodes(job.state)) == (4, "spot-a", ())
    job.see(attempt(4, head(), worker("w-0"), pending("w-1")), after=58)
    assert job.state.stage is Stage.STARTING
    job.see(attempt(4, head(), worker("w-0"), pending("w-1")), after=1)
    job.see(after=1)
    assert job.state.tier == "on-demand"


@pytest.mark.parametrize(
    "cause", [Cause.INTERRUPTION, Cause.NODE_LOST, Cause.MAINTENANCE, Cause.PREEMPTED, Cause.DELETED]
)
def test_losses_of_the_node_itself_do_not_mark_it_as_bad(cause: Cause) -> None:
    state = with_node_failures(JobState(), [failed(str(index), cause=cause) for index in range(9)])
    assert state.node_failures == ()


def test_the_numbers_of_recorded_and_avoided_nodes_are_bounded() -> None:
    pods = [failed(f"{node}-{again}", f"n{node}") for node in range(100) for again in range(2)]
    state = with_node_failures(JobState(), pods)
    assert len(state.node_failures) == KEPT_NODES
    assert len(bad_nodes(state)) == AVOIDED_NODES_LIMIT
    assert "n99" in bad_nodes(state)
