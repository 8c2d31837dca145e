"""maxFailures, failureUnit and backoffLimit: which losses count, how often, and the effect."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.accounting.held_nodes import account
from spotladder.core.history.losses import UNCOUNTED
from spotladder.core.model import Exit, FailureUnit, JobState, PodPhase, PodSeen, Price, Progress, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, noticed, priced, spec, tier, worker


@pytest.mark.parametrize(
    ("max_failures", "losses", "tier_after"),
    [(0, 1, "spot-b"), (1, 1, "spot-a"), (1, 2, "spot-b"), (3, 3, "spot-a"), (3, 4, "spot-b"), (-1, 50, "spot-a")],
)
def test_one_failure_more_than_max_failures_falls_back(max_failures: int, losses: int, tier_after: str) -> None:
    job = SteppedJob(spec(tier("spot-a", max_failures), tier("spot-b", 0))).running()
    for index in range(losses):
        job.see(attempt(1, head(), lost(f"w1-{index}"), worker(f"w1-{index + 1}")), after=1)
    if job.state.stage is Stage.ENDING:
        job.see(after=1)
    assert job.state.tier == tier_after
    assert job.state.record("spot-a").failures == losses


def test_a_pod_that_vanishes_counts_once_with_cause_unknown() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=1)
    assert [(loss.pod, loss.cause) for loss in job.losses] == [("w1-0", Cause.UNKNOWN)]


@pytest.mark.parametrize("rest", ["", "/restart-1"])
def test_a_lost_pod_without_a_name_is_not_called_by_a_random_uid(rest: str) -> None:
    uid = f"5ab3d1c0-0000-4000-8000-0123456789ab{rest}"
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), worker(uid), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=1)
    assert "a pod that is gone" in [loss.pod for loss in job.losses]
    assert uid not in [loss.pod for loss in job.losses]


@pytest.mark.parametrize("cause", sorted(set(Cause) - UNCOUNTED))
def test_a_loss_of_every_counted_cause_exhausts_the_tier(cause: Cause) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).running()
    job.lose_attempt(lost("w1-0", cause), worker("w1-1"))
    assert job.reasons[-3:] == [Reason.MAX_FAILURES_EXCEEDED, Reason.MOVED_ON, Reason.FELL_BACK]
    assert job.state.tier == "on-demand"


def test_both_workers_lost_at_once_are_two_failures_by_pod_and_one_by_interruption() -> None:
    for unit, failures in ((FailureUnit.POD, 2), (FailureUnit.INTERRUPTION, 1)):
        job = SteppedJob(spec(tier("spot-a", 5), failure_unit=unit)).running()
        job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
        assert job.state.failures == failures


def test_with_unit_interruption_a_loss_counts_again_after_all_workers_were_ready() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), failure_unit=FailureUnit.INTERRUPTION)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("new-0"), lost("w1-1")), after=1)
    assert job.state.failures == 1
    job.see(attempt(1, head(), worker("new-0"), worker("new-1")), after=1)
    job.see(attempt(1, head(), lost("new-0"), worker("new-1")), after=1)
    assert job.state.failures == 2


def test_backoff_limit_counts_failures_over_all_tiers_and_fails_the_job() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", -1), backoff_limit=1)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2)
    job.see(attempt(2, head(), lost("w2-0"), worker("w2-1")), after=1)
    assert job.state.stage is Stage.ENDING
    job.see(after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.BACKOFF_LIMIT_EXCEEDED)


def test_a_second_notice_during_the_drain_counts() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), tier("on-demand"))).running()
    job.see(attempt(1, head(), noticed("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), noticed("w1-0"), noticed("w1-1")), after=1)
    assert job.state.record("spot-a").failures == 2
    job.see(attempt(1, head(), exit=None), after=1)
    job.see(after=1)
    assert (job.state.tier, job.reasons[-1]) == ("on-demand", Reason.FELL_BACK)


def test_pods_lost_while_the_attempt_is_drained_for_a_suspension_are_not_failures() -> None:
    job = SteppedJob(spec(tier("spot-a", 0))).running()
    job.edit(suspend=True)
    job.see(all_ready(1), after=1)
    job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    assert job.state.failures == 0


def test_the_loss_of_the_head_ends_the_attempt_and_is_one_failure() -> None:
    job = SteppedJob(spec(tier("spot-a", 1))).running()
    job.see(attempt(1, head(PodPhase.LOST), worker("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(PodPhase.LOST), worker("w1-0"), worker("w1-1")), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.HEAD_LOST)
    assert job.state.record("spot-a").failures == 1


def test_a_vanished_attempt_is_one_failure_and_starts_again_on_the_same_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), tier("on-demand"))).running()
    job.see(after=1)
    assert job.reasons[-3:] == [Reason.VANISHED, Reason.GONE, Reason.STARTED]
    assert (job.state.tier, job.state.record("spot-a").failures, job.number) == ("spot-a", 1, 2)


def test_a_failure_without_a_lost_pod_says_what_was_lost() -> None:
    """Users see it in Events, in the place of the name of a pod."""
    ends = {"its program, which was interrupted": Exit.INTERRUPTED, "its pods": Exit.LOST}
    for name, end in ends.items():
        job = SteppedJob(spec(tier("spot-a", -1))).running()
        job.see(attempt(1, exit=end), after=1)
        assert [(loss.pod, loss.tier) for loss in job.losses] == [(name, "spot-a")]
    job = SteppedJob(spec(tier("spot-a", -1))).running()
    job.see(after=1)
    assert [loss.pod for loss in job.losses] == ["its objects, which were deleted"]
    job = SteppedJob(spec(tier("spot-a", -1), stall_timeout=60)).running()
    job.see(all_ready(1), after=60)
    assert [loss.pod for loss in job.losses] == ["its program, which makes no progress"]


def test_each_reconcile_adds_the_cost_of_the_held_nodes_and_their_on_demand_cost() -> None:
    """Also while a controller that was restarted cannot reach their cluster."""
    job = SteppedJob(spec(priced("spot-a", 0.42, 1.41, max_failures=1), stall_timeout=1e9)).running()
    before = job.state.record("spot-a")
    job.see(after=3600, unavailable={"spot-a": "cluster b does not answer"})
    job.see(all_ready(1), after=3600)
    record = job.state.record("spot-a")
    assert record.node_seconds - before.node_seconds == pytest.approx(2 * 7200)
    assert record.cost - before.cost == pytest.approx(4 * 0.42)
    assert record.on_demand_cost - before.on_demand_cost == pytest.approx(4 * 1.41)


def test_no_cost_is_recorded_before_the_first_reconcile() -> None:
    state = JobState(nodes=2, tier="spot-a")
    assert account(state, spec(priced("spot-a", 0.42, 1.41)), START) == replace(state, clock=START)


def test_node_time_without_a_known_price_is_recorded_as_unpriced() -> None:
    for one, unpriced in (
        (priced("spot-a", 0.42, 1.41, max_failures=1), 0.0),
        (tier("spot-a", 1, price=Price(known=False)), 2 * 3600),
    ):
        job = SteppedJob(spec(one, stall_timeout=1e9)).running()
        before = job.state.record("spot-a").unpriced
        job.see(all_ready(1), after=3600)
        assert job.state.record("spot-a").unpriced - before == pytest.approx(unpriced)


def test_the_nodes_of_a_tier_that_was_removed_cost_what_they_cost_before() -> None:
    job = SteppedJob(spec(priced("spot-a", 0.42, 1.41), tier("spot-b"), stall_timeout=1e9)).running()
    job.see(all_ready(1), after=3600)
    before = job.state.record("spot-a")
    job.edit(tiers=(tier("spot-b"),)).see(all_ready(1), after=1800)
    job.see(all_ready(1), after=1800)
    record = job.state.record("spot-a")
    assert record.cost - before.cost == pytest.approx(2 * 0.42)
    assert record.on_demand_cost - before.on_demand_cost == pytest.approx(2 * 1.41)
    assert job.state.unpriced == ()


def running_four() -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", -1), workers=4)).running(workers=4)


def gone(*where: tuple[str, str, Cause]) -> list[PodSeen]:
    """Lost pods, each with its node, its unit and its cause."""
    return [lost(f"w1-{index}", cause, node=node, unit=unit) for index, (node, unit, cause) in enumerate(where)]


RECLAIMED, SILENT, DELETED, OOM = Cause.INTERRUPTION, Cause.NODE_LOST, Cause.DELETED, Cause.OOM_KILLED


@pytest.mark.parametrize(
    ("pods", "failures"),
    [
        pytest.param(gone(("n1", "", RECLAIMED), ("n1", "", RECLAIMED)), 1, id="two pods of one node"),
        pytest.param(gone(("n1", "", SILENT), ("n1", "", RECLAIMED)), 1, id="two pods of one node, seen differently"),
        pytest.param(gone(("n1", "", RECLAIMED), ("n2", "", RECLAIMED)), 2, id="pods of different nodes"),
        pytest.param(gone(("n1", "", OOM), ("n1", "", OOM)), 2, id="two programs fail on one node that lives"),
        pytest.param(gone(("", "", RECLAIMED), ("", "", RECLAIMED)), 2, id="nodes that are not known"),
        pytest.param(gone(("n1", "slice-0", DELETED), ("n2", "slice-0", RECLAIMED)), 1, id="the hosts of a slice"),
        pytest.param(gone(("n1", "slice-0", OOM), ("n2", "slice-0", DELETED)), 1, id="a slice without a host"),
        pytest.param(gone(("n1", "slice-0", SILENT), ("n2", "slice-1", SILENT)), 2, id="two slices"),
    ],
)  # fmt: skip
def test_pods_that_go_because_another_went_are_one_failure(pods: list[PodSeen], failures: int) -> None:
    rest = [worker("w1-2"), worker("w1-3")]
    at_once, in_turn = running_four(), running_four()
    at_once.see(attempt(1, head(), *pods, *rest), after=1)
    in_turn.see(attempt(1, head(), pods[0], worker("w1-1", node=pods[1].node), *rest), after=1)
    in_turn.see(attempt(1, head(), *pods, *rest), after=5)
    for job in (at_once, in_turn):
        assert (job.state.failures, len(job.losses)) == (failures, 2), "every lost pod is reported"


def test_a_pod_of_a_node_that_was_lost_before_another_one_is_no_failure_of_its_own() -> None:
    job = running_four()
    first, second, late = gone(("n1", "", RECLAIMED), ("n2", "", RECLAIMED), ("n1", "", RECLAIMED))
    alive = [worker("w1-1", node="n2"), worker("w1-2", node="n1"), worker("w1-3")]
    job.see(attempt(1, head(), first, *alive), after=1)
    job.see(attempt(1, head(), first, second, *alive[1:]), after=1)
    job.see(attempt(1, head(), first, second, late, alive[2]), after=1)
    assert (job.state.failures, len(job.losses)) == (2, 3)


def test_a_unit_that_is_lost_again_after_all_workers_were_ready_is_another_failure() -> None:
    job = running_four()
    rest = [worker("w1-2"), worker("w1-3")]
    job.see(attempt(1, head(), *gone(("n1", "slice-0", SILENT), ("n2", "slice-0", DELETED)), *rest), after=1)
    job.see(attempt(1, head(), worker("w2-0"), worker("w2-1"), *rest), after=60)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 1)
    again = [lost("w2-0", SILENT, node="n1", unit="slice-0"), lost("w2-1", DELETED, node="n2", unit="slice-0")]
    job.see(attempt(1, head(), *again, *rest), after=60)
    assert job.state.failures == 2


def test_each_pod_of_a_large_gang_counts_once() -> None:
    workers = 1000
    job = SteppedJob(spec(tier("spot-a", -1), workers=workers)).running(workers=workers)
    gone = [lost(f"w1-{index}", node=f"n{index // 2}") for index in range(workers)]
    for _ in range(3):
        job.see(attempt(1, head(), *gone), after=1)
    assert (job.state.failures, len(job.losses)) == (workers // 2, workers)


# --- a node that was cut off returns ---


def cut_off(max_failures: int = 1, *, restarts: bool = False) -> SteppedJob:
    """A worker's node is cut off, its pod is counted as lost and replaced, and all workers are ready again. `restarts`:
    the program has restarted without the lost pod; otherwise its rank continues on the node that was cut off."""
    job = SteppedJob(spec(tier("spot-a", max_failures), tier("on-demand"))).running().commit(10, start=3)
    job.see(attempt(1, head(), lost("w1-0", Cause.NODE_LOST), worker("w1-1")), after=60)
    assert job.state.stage is Stage.RECOVERING
    job.commit(20, start=4 if restarts else 3)
    job.see(attempt(1, head(), lost("w1-0", Cause.NODE_LOST), worker("w1-2"), worker("w1-1")), after=30)
    assert (job.state.stage, job.state.loss_counted) == (Stage.RUNNING, False)
    return job


@pytest.mark.parametrize(
    "gone",
    [(), (lost("w1-0", Cause.NODE_LOST),), (lost("w1-0", Cause.DELETED),), (noticed("w1-0"),)],
    ids=["gone", "silent", "deleted", "terminating"],
)
@pytest.mark.parametrize(
    ("how", "later"), [(Exit.INTERRUPTED, 0.0), (Exit.FAILED, 3600.0)], ids=["interrupted", "failed"]
)
def test_the_end_of_a_pod_that_was_counted_while_its_node_was_cut_off_does_not_count_again(
    gone: tuple[PodSeen, ...], how: Exit, later: float
) -> None:
    job = cut_off()
    ended = attempt(1, head(), *gone, worker("w1-2"), worker("w1-1"), exit=how, message="exit code")
    job.see(ended, after=later)
    job.see(ended, after=job.spec.attribution_window)
    job.see(after=1)
    assert job.end_reason is Reason.INTERRUPTED
    assert (job.state.tier, job.state.failures, job.state.application_failures) == ("spot-a", 1, 0)
    assert job.state.timers.paused_until is None
    assert [loss.pod for loss in job.losses] == ["w1-0"]


@pytest.mark.parametrize(
    ("restarts", "pods"),
    [
        (True, (worker("w1-1"), worker("w1-2"))),
        (False, (worker("w1-1"), noticed("w1-2"))),
        (False, (worker("w1-1"), lost("w1-2", Cause.DELETED))),
        (False, (worker("w1-1"), lost("w1-2", Cause.NODE_LOST))),
    ],
    ids=["the program restarted", "another notice", "another deletion", "another loss"],
)
def test_another_interruption_after_a_recovery_counts(restarts: bool, pods: tuple[PodSeen, ...]) -> None:
    job = cut_off(max_failures=1, restarts=restarts)
    job.see(attempt(1, head(), *pods, exit=Exit.INTERRUPTED), after=60)
    job.see(after=1)
    assert (job.state.tier, job.state.failures) == ("on-demand", 2)


@given(st.lists(st.sampled_from(["cut off", "restart", "commit"]), max_size=12), st.booleans())
def test_each_lost_pod_counts_once_whatever_the_program_does_later(events: list[str], ends: bool) -> None:
    """Pods are cut off and replaced, the program restarts without them or not, and its end, if the newest loss explains
    it, adds no failure."""
    job = SteppedJob(spec(tier("spot-a", -1))).running().commit(1, start=1)
    gone: list[str] = []
    alive, start, step, explained = ["w1-0", "w1-1"], 1, 1, False
    for number, event in enumerate(events):
        step += 1
        if event == "cut off":
            gone.append(alive.pop(0))
            explained = True
            job.see(attempt(1, head(), lost(gone[-1], Cause.NODE_LOST), worker(alive[0])), after=60)
            alive.append(f"w1-new-{number}")
        elif event == "restart":
            start, explained = start + 1, False
        job.commit(step, start=start)
        job.see(attempt(1, head(), *(worker(uid) for uid in alive)), after=60)
        assert (job.state.stage, job.state.failures) == (Stage.RUNNING, len(gone))
    if ends:
        job.see(attempt(1, head(), *(worker(uid) for uid in alive), exit=Exit.INTERRUPTED), after=1)
        job.see(after=1)
    assert job.state.failures == len(gone) + (ends and not explained)


# --- a loss that is observed when the pod is already replaced ---


def replaced_unseen(**more: Any) -> SteppedJob:
    """A worker is lost and replaced while the controller does not run."""
    job = SteppedJob(spec(tier("spot-a", 3), **more)).running()
    job.progress = Progress()
    job.see(attempt(1, head(), worker("w1-0"), worker("w1-2")), after=300)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 1)
    return job


def test_a_program_that_finishes_after_an_unseen_recovery_has_finished() -> None:
    job = replaced_unseen()
    job.see(attempt(1, head(), worker("w1-0"), worker("w1-2"), exit=Exit.SUCCEEDED), after=7200)
    assert job.state.stage is Stage.SUCCEEDED


def test_the_next_loss_after_an_unseen_recovery_is_another_interruption() -> None:
    job = replaced_unseen(failure_unit=FailureUnit.INTERRUPTION)
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-2")), after=7200)
    assert job.state.failures == 2


def test_a_program_that_has_not_moved_since_an_unseen_loss_recovers() -> None:
    job = SteppedJob(spec(tier("spot-a", 3))).running()
    replaced = attempt(1, head(), worker("w1-0"), worker("w1-2"), moved_at=job.now)
    job.see(replaced, after=300)
    assert job.state.stage is Stage.RECOVERING
    job.see(replaced, after=job.spec.recovery_timeout)
    assert job.end_reason is Reason.RECOVERY_TIMEOUT


def test_the_loss_of_a_set_of_thousands_of_pods_is_decided_quickly() -> None:
    """Regression: each lost pod was compared with each one that was counted."""
    job = SteppedJob(spec(tier("spot-a", -1), workers=2000)).planned()
    began = time.process_time()
    for restart in ("a", "b", "c"):
        gang = [PodSeen(f"{restart}/{index}") for index in range(2000)]
        job.see(attempt(1, head(), *gang), after=1)
        job.see(attempt(1, head(), *(replace(pod, phase=PodPhase.LOST) for pod in gang)), after=1)
    assert job.state.failures == 6000
    assert time.process_time() - began < 2.0
