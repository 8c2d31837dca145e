"""Commits that take longer than the notice of a tier, and the remedies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.facts.notice_fit import misfits_of, notice_misfits
from spotladder.core.model import CapacityType, JobSpec, JobState, Measured, Tier, TierRecord
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready

SPOT = Tier("spot-a", capacity_type=CapacityType.SPOT, notice=30.0)
ON_DEMAND = Tier("on-demand", notice=30.0)


def test_the_message_names_the_tier_and_both_remedies() -> None:
    (found,) = notice_misfits((ON_DEMAND, SPOT), 93.2, 2, {"spot-a": 0.1})
    assert (found.index, found.ranks) == (1, 4)
    assert found.message == (
        "a commit takes 1m34s, tier spot-a gives 30s notice, so each eviction loses work: "
        "write each checkpoint with 4 times as many ranks, or commit every 30m"
    )


@pytest.mark.parametrize(
    ("tier", "commit"),
    [(SPOT, 0.0), (SPOT, 29.1), (SPOT, 30.0), (replace(SPOT, notice=0.0), 94.0), (ON_DEMAND, 94.0)],
)
def test_a_commit_that_fits_or_a_tier_without_notice_is_no_misfit(tier: Tier, commit: float) -> None:
    assert notice_misfits((tier,), commit) == ()


def test_without_a_rate_of_evictions_only_the_ranks_are_advised() -> None:
    (found,) = notice_misfits((SPOT,), 94.0)
    assert found.message.endswith("write each checkpoint with 4 times as many ranks")


def test_a_job_uses_its_own_evictions_and_skips_exhausted_tiers() -> None:
    spec = JobSpec((SPOT, replace(SPOT, name="spot-b")))
    records = (TierRecord("spot-a", 2, node_seconds=7200.0), TierRecord("spot-b", exhausted_by=Reason.POLICY))
    state = JobState(tiers=records, measured=Measured(commit_seconds=94.0))
    (found,) = misfits_of(spec, state)
    assert (found.tier, found.interval) == ("spot-a", 900.0)
    assert misfits_of(spec, replace(state, measured=Measured(commit_seconds=0.0))) == ()


def test_a_running_job_has_the_same_message_at_every_moment_of_an_hour() -> None:
    """The message is part of a condition: a message that changes is a write."""
    record = TierRecord("spot-a", 20)
    states = [
        JobState(tiers=(replace(record, node_seconds=400000.0 + 60 * minute),), measured=Measured(commit_seconds=94.0))
        for minute in range(60)
    ]
    assert len({misfits_of(JobSpec((SPOT,)), state)[0].message for state in states}) == 1


def test_the_state_keeps_the_longest_commit_of_the_log() -> None:
    job = SteppedJob().running()
    for step, seconds in ((10, 4.0), (20, 94.0), (30, 5.0)):
        job.commit(step)
        job.progress = replace(job.progress, commit_seconds=seconds)
        job.see(all_ready(1), after=5)
    assert job.state.measured.commit_seconds == 94
