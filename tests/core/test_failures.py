"""maxFailures, failureUnit and backoffLimit: what counts, how often, and what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.accounting import account, held_nodes
from spotladder.core.losses import UNCOUNTED
from spotladder.core.model import Delete, Exit, FailureUnit, JobState, Launch, PodPhase, Price, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import START, Job, attempt, head, lost, noticed, priced, spec, tier, whole, worker


def test_the_first_attempt_is_written_down_before_it_is_launched() -> None:
    job = Job()
    decision = job.see()
    assert job.reasons == [Reason.STARTED]
    assert decision.actions == (Launch(1, "spot-a"),)
    assert job.state.stage is Stage.STARTING


@pytest.mark.parametrize(
    ("max_failures", "losses", "tier_after"),
    [(0, 1, "spot-b"), (1, 1, "spot-a"), (1, 2, "spot-b"), (3, 3, "spot-a"), (3, 4, "spot-b"), (-1, 50, "spot-a")],
)
def test_failure_number_max_failures_plus_one_falls_back(max_failures: int, losses: int, tier_after: str) -> None:
    job = Job(spec(tier("spot-a", max_failures), tier("spot-b", 0))).running()
    for index in range(losses):
        job.see(attempt(1, head(), lost(f"w1-{index}"), worker(f"w1-{index + 1}")), after=1)
    if job.state.stage is Stage.ENDING:
        job.see(after=1)
    assert job.state.tier == tier_after
    assert job.state.record("spot-a").failures == losses


def test_a_pod_seen_lost_twice_counts_once() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    for _ in range(3):
        job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    assert job.state.record("spot-a").failures == 1


def test_a_pod_that_vanishes_without_a_trace_counts_as_unknown_and_once() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=1)
    assert [(loss.pod, loss.cause) for loss in job.losses] == [("w1-0", Cause.UNKNOWN)]


def test_a_backend_that_forgets_a_pod_and_shows_it_again_costs_one_failure_at_most() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    for seen in (attempt(1, head(), worker("w1-1")), whole(1)) * 4:
        job.see(seen, after=1)
    assert job.state.record("spot-a").failures == 1
    assert job.state.stage is Stage.RUNNING


@pytest.mark.parametrize("cause", sorted(set(Cause) - UNCOUNTED))
def test_every_cause_counts(cause: Cause) -> None:
    job = Job(spec(tier("spot-a", 0), tier("on-demand"))).running()
    job.lose_attempt(lost("w1-0", cause), worker("w1-1"))
    assert job.reasons[-3:] == [Reason.MAX_FAILURES_EXCEEDED, Reason.GONE, Reason.FELL_BACK]
    assert job.state.tier == "on-demand"


def test_failures_of_one_tier_do_not_count_in_the_next() -> None:
    job = Job(spec(tier("spot-a", 0), tier("spot-b", 1), tier("on-demand"))).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2)
    job.see(attempt(2, head(), lost("w2-0"), worker("w2-1")), after=1)
    assert (job.state.tier, job.state.stage) == ("spot-b", Stage.RECOVERING)
    assert (job.state.record("spot-a").failures, job.state.record("spot-b").failures) == (1, 1)


def test_both_workers_lost_at_once_are_two_failures_by_pod_and_one_by_interruption() -> None:
    for unit, failures in ((FailureUnit.POD, 2), (FailureUnit.INTERRUPTION, 1)):
        job = Job(spec(tier("spot-a", 5), failure_unit=unit)).running()
        job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
        assert job.state.failures == failures


def test_by_interruption_a_new_episode_begins_when_the_job_was_whole_again() -> None:
    job = Job(spec(tier("spot-a", 5), failure_unit=FailureUnit.INTERRUPTION)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("new-0"), lost("w1-1")), after=1)
    assert job.state.failures == 1
    job.see(attempt(1, head(), worker("new-0"), worker("new-1")), after=1)
    job.see(attempt(1, head(), lost("new-0"), worker("new-1")), after=1)
    assert job.state.failures == 2


def test_the_backoff_limit_counts_over_all_tiers_and_ends_the_job() -> None:
    job = Job(spec(tier("spot-a", 0), tier("spot-b", -1), backoff_limit=1)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2)
    job.see(attempt(2, head(), lost("w2-0"), worker("w2-1")), after=1)
    assert job.state.stage is Stage.ENDING
    job.see(after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.BACKOFF_LIMIT_EXCEEDED)


def test_a_notice_counts_the_pod_once_even_when_it_is_lost_afterwards() -> None:
    job = Job(spec(tier("spot-a", 2))).running()
    job.see(attempt(1, head(), noticed("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    assert [loss.cause for loss in job.losses] == [Cause.INTERRUPTION]


def test_a_second_notice_while_draining_counts_too() -> None:
    job = Job(spec(tier("spot-a", 1), tier("on-demand"))).running()
    job.see(attempt(1, head(), noticed("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), noticed("w1-0"), noticed("w1-1")), after=1)
    assert job.state.record("spot-a").failures == 2
    job.see(attempt(1, head(), exit=None), after=1)
    job.see(after=1)
    assert (job.state.tier, job.reasons[-1]) == ("on-demand", Reason.FELL_BACK)


def test_pods_lost_while_we_take_the_attempt_down_are_not_failures() -> None:
    job = Job(spec(tier("spot-a", 0))).running()
    job.edit(suspend=True)
    job.see(whole(1), after=1)
    job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    assert job.state.failures == 0


def test_the_loss_of_the_head_ends_the_attempt_and_is_one_failure() -> None:
    job = Job(spec(tier("spot-a", 1))).running()
    job.see(attempt(1, head(PodPhase.LOST), worker("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(PodPhase.LOST), worker("w1-0"), worker("w1-1")), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.HEAD_LOST)
    assert job.state.record("spot-a").failures == 1


def test_a_vanished_attempt_is_one_failure_and_starts_again_on_the_same_tier() -> None:
    job = Job(spec(tier("spot-a", 1), tier("on-demand"))).running()
    job.see(after=1)
    assert job.reasons[-3:] == [Reason.VANISHED, Reason.GONE, Reason.STARTED]
    assert (job.state.tier, job.state.record("spot-a").failures, job.number) == ("spot-a", 1, 2)


def test_deleting_is_repeated_until_the_attempt_is_gone() -> None:
    job = Job(spec(tier("spot-a", 0), tier("on-demand"))).running()
    gone = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    assert job.see(gone, after=1).actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)
    assert job.see(gone, after=1).actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)


def test_two_pods_lost_within_max_failures_leave_the_job_recovering_in_place() -> None:
    job = Job(spec(tier("spot-a", 2))).running()
    decision = job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    assert job.state.stage is Stage.RECOVERING
    assert decision.actions == ()


def test_a_failure_that_no_pod_shows_is_counted_under_a_name_of_its_own() -> None:
    """The name is what makes it count once; users see it beside the names of pods."""
    ends = {"interrupted": Exit.INTERRUPTED, "lost": Exit.LOST}
    for name, end in ends.items():
        job = Job(spec(tier("spot-a", -1))).running()
        job.see(attempt(1, exit=end), after=1)
        assert [(loss.pod, loss.tier) for loss in job.losses] == [(f"attempt-1/{name}", "spot-a")]
    job = Job(spec(tier("spot-a", -1))).running()
    job.see(after=1)
    assert [loss.pod for loss in job.losses] == ["attempt-1/vanished"]
    job = Job(spec(tier("spot-a", -1), stall_timeout=60)).running()
    job.see(whole(1), after=60)
    assert [loss.pod for loss in job.losses] == ["attempt-1/stalled"]


def test_held_nodes_are_paid_for_from_look_to_look_and_beside_the_price_on_demand() -> None:
    job = Job(spec(priced("spot-a", 0.42, 1.41, max_failures=1), stall_timeout=1e9)).running()
    before = job.state.record("spot-a")
    job.see(whole(1), after=3600)
    record = job.state.record("spot-a")
    assert record.node_seconds - before.node_seconds == pytest.approx(2 * 3600)
    assert record.cost - before.cost == pytest.approx(2 * 0.42)
    assert record.on_demand_cost - before.on_demand_cost == pytest.approx(2 * 1.41)


def test_nothing_is_paid_before_the_first_look() -> None:
    state = JobState(nodes=2, tier="spot-a")
    assert account(state, spec(priced("spot-a", 0.42, 1.41)), START) == replace(state, clock=START)


def test_node_time_without_a_price_is_known_as_such() -> None:
    for one, unpriced in (
        (priced("spot-a", 0.42, 1.41, max_failures=1), 0.0),
        (tier("spot-a", 1, price=Price(known=False)), 2 * 3600),
    ):
        job = Job(spec(one, stall_timeout=1e9)).running()
        before = job.state.record("spot-a").unpriced
        job.see(whole(1), after=3600)
        assert job.state.record("spot-a").unpriced - before == pytest.approx(unpriced)


def test_an_attempt_that_is_not_seen_holds_nothing() -> None:
    assert held_nodes(None) == 0
    assert held_nodes(whole(1)) == 2, "the head stands elsewhere"
