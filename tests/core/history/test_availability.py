"""The observations of a job about the availability of its tiers, through `decide`."""

from __future__ import annotations

import pytest

from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.core.facts.tier_view import view_of
from spotladder.core.history.availability import with_sightings
from spotladder.core.model import AttemptSeen, JobState, Spell, Stage, TierChoice, TierView
from spotladder.core.policies.greedy import Greedy
from spotladder.core.policies.safety_net import RETRY_INTERVAL
from spotladder.core.reasons import Reason
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, pending, refused, spec, tier

HOUR = 3600.0


def view(job: SteppedJob, *, live: bool = True) -> TierView:
    return view_of(job.situation, live=live)


def test_a_spell_ends_when_the_next_one_begins_if_no_decision_was_made_without_its_tier() -> None:
    before = with_sightings(JobState(), {"a": True}, 10.0)
    seen_at_the_last_decision, not_seen = (with_sightings(before, {"a": False}, 70.0, last) for last in (10.0, 40.0))
    assert seen_at_the_last_decision.record("a").spells == (Spell(True, 10.0, 70.0), Spell(False, 70.0, 70.0))
    assert not_seen.record("a").spells == (Spell(True, 10.0, 10.0), Spell(False, 70.0, 70.0))


def test_extending_a_spell_does_not_cause_a_status_write() -> None:
    before = with_sightings(JobState(), {"a": True}, 1.0)
    assert with_sightings(before, {"a": True}, 9.0).lasting == before.lasting
    assert with_sightings(before, {"a": False}, 9.0).lasting != before.lasting


def test_a_tier_is_available_while_the_job_runs_on_it_or_the_backend_offers_it() -> None:
    job = SteppedJob().running()
    job.see(all_ready(1), after=5, unavailable={"spot-b": "limit"}, offered=frozenset({"on-demand"}))
    outlooks = {outlook.name: outlook for outlook in view(job).outlooks}
    assert {name: outlook.capacity for name, outlook in outlooks.items()} == {
        "spot-a": True,
        "spot-b": False,
        "on-demand": True,
    }
    assert view(job).spells("spot-a") == (Spell(True, START + 10, START + 15),)
    job.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=5)
    assert view(job).outlook("spot-a").capacity is None, "pods that wait for a node do not tell for how long"


def deadline_job(hours: float, **more: object) -> SteppedJob:
    tiers = (tier("spot-a", -1, 600), tier("on-demand", -1, 600))
    job = spec(*tiers, work=2 * HOUR, deadline=START + hours * HOUR, overhead=300.0, stall_timeout=1e6, **more)
    return SteppedJob(job, Greedy())


def test_a_spot_tier_without_capacity_is_not_exhausted() -> None:
    job = deadline_job(10).planned()
    job.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=1)
    job.see_again(after=600)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.INSUFFICIENT_CAPACITY)
    job.see(after=1)
    assert (job.state.stage, job.state.record("spot-a").exhausted_by) == (Stage.IDLE, None)
    assert not job.state.record("spot-a").spells[-1].available
    job.see(after=61)
    assert (job.state.tier, job.number) == ("spot-a", 2)
    job.see(attempt(2, head(), pending("w2-0"), pending("w2-1")), after=1)
    job.see_again(after=598)
    assert job.state.stage is Stage.STARTING, "the pause before the attempt used up no provisionTimeout"
    job.see_again(after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.INSUFFICIENT_CAPACITY)


def test_a_job_without_an_attempt_asks_its_policy_again_when_the_policy_wants() -> None:
    job = deadline_job(10).planned()
    job.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=1)
    job.see_again(after=600)
    job.see(after=1)
    newest = job.state.record("spot-a").spells[-1]
    assert (job.state.stage, job.last.wake_at) == (Stage.IDLE, newest.until + RETRY_INTERVAL)
    job.policy = NeverReviews()
    job.see(after=1)
    assert job.last.wake_at == job.now + ACTION_RETRY_INTERVAL, "no time is named"


def test_the_safety_net_requeues_the_job_and_moves_it_to_on_demand_in_time() -> None:
    job = deadline_job(3).running()
    latest = START + 3 * HOUR - 2 * HOUR - 300.0 - 90.0 - 60.0
    assert job.last.wake_at is not None
    assert job.last.wake_at <= latest
    job.see(all_ready(1), after=latest - job.now)
    assert job.state.stage is Stage.RUNNING
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.moves[-1].reason) == (Stage.DRAINING, Reason.POLICY)
    assert job.moves[-1].message == "on-demand is preferred (only on-demand can still meet the deadline)"


class NeverReviews:
    def choose(self, seen: TierView) -> TierChoice:
        return TierChoice(None)


class ReviewInThePast:
    def choose(self, seen: TierView) -> TierChoice:
        return TierChoice("spot-a", review_at=START - 5)


def test_a_review_time_in_the_past_does_not_cause_a_busy_loop() -> None:
    job = SteppedJob(policy=ReviewInThePast()).running()
    assert job.last.wake_at == job.now + ACTION_RETRY_INTERVAL


@pytest.mark.parametrize(("seen", "available"), [(attempt(1, head(), refused("w1-0")), False), (all_ready(1), True)])
def test_the_live_attempt_shows_whether_its_tier_has_capacity(seen: AttemptSeen, available: bool) -> None:
    job = deadline_job(10).planned()
    job.see(seen, after=1)
    assert [spell.available for spell in job.state.record("spot-a").spells] == [available]
