"""A node on which pods fail repeatedly is avoided by later attempts, and its further failures do not count."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.explanation import AVOIDANCE
from spotladder.core.history.bad_nodes import AVOIDED_NODES_LIMIT, KEPT_NODES, bad_nodes, with_node_failures
from spotladder.core.model import AttemptSeen, Blocker, JobState, Launch, PodPhase, PodRole, PodSeen, Stage, Tier
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import AVOIDANCE_TIMEOUT
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker


def failed(uid: str, node: str = "n1", cause: Cause = Cause.UNKNOWN) -> PodSeen:
    return lost(uid, cause, node=node)


def replaced(job: SteppedJob, *pods: PodSeen) -> None:
    """The attempt loses these pods and gets others in their place."""
    number = job.number
    job.see(attempt(number, head(), worker(f"w{number}-0"), *pods), after=1)
    job.see(all_ready(number), after=5)


def test_a_further_failure_on_a_bad_node_does_not_count_and_ends_the_attempt() -> None:
    """In place, the pod would fail there for ever: no limit counts its failures, and each recovery restarts the stall
    timer."""
    job = SteppedJob(spec(tier("spot-a", 9))).running()
    replaced(job, failed("a"))
    assert bad_nodes(job.state) == ()
    replaced(job, failed("b"))
    assert bad_nodes(job.state) == ("n1",)
    before = job.state.failures
    job.see(attempt(1, head(), worker("w1-0"), failed("c")), after=1)
    assert (job.state.stage, job.end_reason) == (Stage.ENDING, Reason.INTERRUPTED)
    assert "n1" in job.state.message
    assert (job.state.failures, job.state.record("spot-a").failures) == (before, before)
    job.see(after=1)
    assert (job.number, job.state.tier, job.attempt.avoids) == (2, "spot-a", ("n1",))
    job.running(2).see(attempt(2, head(), worker("w2-0"), failed("w2-1", "n2")), after=1)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, before + 1)


def test_several_pods_that_fail_on_a_node_at_once_are_the_first_failures_there() -> None:
    job = SteppedJob(spec(tier("spot-a", 9), workers=3)).running(workers=3)
    job.see(attempt(1, head(), *(failed(f"w1-{index}") for index in range(3))), after=1)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 3)


def test_a_bad_node_that_is_reclaimed_does_not_end_the_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 9))).running()
    replaced(job, failed("a"))
    replaced(job, failed("b"))
    job.see(attempt(1, head(), worker("w1-0"), failed("c", cause=Cause.INTERRUPTION)), after=1)
    assert job.state.stage is Stage.RECOVERING


def crashed(job: SteppedJob, number: int, node: str = "n1") -> None:
    """The attempt is launched and its worker crashes on this node; its objects are gone afterwards."""
    job.see(after=301)
    assert job.number == number
    pod = PodSeen("w", PodRole.WORKER, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, node=node, exit_code=1)
    job.see(attempt(number, head(), pod), after=1)
    assert job.state.reason is Reason.START_CRASHED
    job.see(after=1)


def avoiding(*tiers: Tier, **more: object) -> SteppedJob:
    """A job whose third attempt avoids the node n1, on which two have crashed."""
    job = SteppedJob(spec(*tiers, **more))
    crashed(job, 1)
    crashed(job, 2)
    job.see(after=301)
    assert (job.number, job.attempt.avoids) == (3, ("n1",))
    return job


def unplaced(number: int, **more: object) -> AttemptSeen:
    return attempt(number, head(), worker("w-0"), pending("w-1"), **more)


def test_crashes_at_the_start_count_against_the_node() -> None:
    job = SteppedJob(spec(tier("spot-a", 9)))
    crashed(job, 1)
    crashed(job, 2)
    assert (bad_nodes(job.state), job.state.stage, job.state.failures) == (("n1",), Stage.IDLE, 0)


def test_an_attempt_that_no_other_node_can_take_is_followed_by_one_that_avoids_none() -> None:
    """Within a minute, and not after provisionTimeout: a fixed pool of one node has no other."""
    job = avoiding(tier("spot-a", 9, 600), tier("on-demand"))
    job.see(unplaced(3), after=AVOIDANCE_TIMEOUT - 1)
    assert job.state.stage is Stage.STARTING
    assert job.last.wake_at == job.now + 1
    job.see(unplaced(3), after=1)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY
    assert "no capacity without the avoided nodes n1 (2 failed pods)" in job.state.message
    job.see(after=1)
    assert (job.number, job.state.tier, job.attempt.avoids) == (4, "spot-a", ())
    job.see(unplaced(4))
    assert job.last.wake_at == job.now + 600, "provisionTimeout begins anew with the next attempt"


def test_the_wait_of_an_attempt_that_avoids_nodes_is_explained() -> None:
    job = avoiding(tier("spot-a", 9, 600))
    job.see(unplaced(3), after=1)
    waits = job.explanation
    assert waits.message == "pods wait for nodes and images; the attempt avoids n1"
    assert (waits.timer, waits.until) == (AVOIDANCE, job.now - 1 + AVOIDANCE_TIMEOUT)
    assert waits.then == "the next attempt may use the avoided nodes"


def test_an_attempt_for_which_a_node_is_being_added_continues_to_avoid_the_bad_one() -> None:
    job = avoiding(tier("spot-a", 9, 600))
    job.see(unplaced(3, provisioning=True), after=AVOIDANCE_TIMEOUT)
    job.see(unplaced(3, provisioning=True), after=300)
    assert (job.state.stage, job.number) == (Stage.STARTING, 3)
    job.see(all_ready(3), after=1)
    assert job.state.stage is Stage.RUNNING


def test_another_impediment_suspends_the_timer_of_the_avoidance() -> None:
    job = avoiding(tier("spot-a", 9, 600))
    for _ in range(20):
        job.see(unplaced(3, blocked="the image cannot be pulled", blocked_by=Blocker.IMAGE), after=10)
    job.see(unplaced(3), after=10)
    job.see(unplaced(3), after=AVOIDANCE_TIMEOUT - 1)
    assert job.state.stage is Stage.STARTING
    job.see(unplaced(3), after=1)
    assert job.state.stage is Stage.ENDING


def test_a_tier_without_capacity_beside_its_bad_nodes_is_not_exhausted() -> None:
    """A node that may be bad is better than a fallback: Ray may have been slow, not the node."""
    job = avoiding(tier("spot-a", 9, 60), tier("on-demand"))
    job.see(unplaced(3, provisioning=True), after=60)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY
    assert "no capacity without the avoided nodes n1 (2 failed pods)" in job.state.message
    job.see(after=1)
    assert (job.number, job.state.tier, bad_nodes(job.state)) == (4, "spot-a", ())
    job.see(unplaced(4), after=59)
    assert job.state.stage is Stage.STARTING
    job.see(unplaced(4), after=1)
    job.see(after=1)
    assert job.state.tier == "on-demand"


def test_an_attempt_launched_before_its_nodes_were_bad_shows_that_its_tier_lacks_capacity() -> None:
    """Its pods may use every node."""
    job = SteppedJob(spec(tier("spot-a", 9, 60), tier("on-demand"), recovery_timeout=600.0)).running()
    replaced(job, failed("a"))
    replaced(job, failed("b"))
    assert bad_nodes(job.state) == ("n1",)
    job.see(attempt(1, head(), worker("w1-0"), pending("c")), after=1)
    job.see(attempt(1, head(), worker("w1-0"), pending("c")), after=60)
    job.see(after=1)
    assert job.state.tier == "on-demand"


def test_an_attempt_avoids_suspected_nodes_until_no_other_node_can_take_it() -> None:
    """A suspected node that sends heartbeats again can take the next attempt. A tier is exhausted in its time, even if
    a node is suspected at any time."""
    job = SteppedJob(spec(tier("spot-a", 9, 150), tier("on-demand")))
    launches: dict[Any, Any] = {}
    suspects = frozenset({"n7"})
    job.see(suspects=suspects)
    for _ in range(240):
        launches |= {action.attempt: action for action in job.last.actions if isinstance(action, Launch)}
        seen = [unplaced(job.number)] if job.state.stage is Stage.STARTING else []
        job.see(*seen, after=1, suspects=suspects)
    found = [(launch.tier, launch.avoids) for launch in launches.values()]
    assert found == [("spot-a", ("n7",)), ("spot-a", ()), ("on-demand", ("n7",))]


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
