"""What the shadow policy would have done and saved: estimated from the job's own nodes, in a few numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core import codec
from spotladder.core.model import (
    AttemptSeen,
    CommitSize,
    Decision,
    Price,
    Progress,
    Shadow,
    ShadowTier,
    Stage,
    Tier,
    TierChoice,
    TierView,
)
from spotladder.core.shadowing import REVIEW_INTERVAL, ShadowChoice, summary, with_shadow
from tests.core.builders import SteppedJob, all_ready, lost, priced, spec, tier

HOUR, GIB = 3600.0, 2**30


class Prefers:
    """Chooses a fixed tier, and counts how often it is asked."""

    def __init__(self, name: str | None) -> None:
        self.name, self.asked = name, 0
        self.review_at: float | None = None

    def choose(self, view: TierView) -> TierChoice:
        self.asked += 1
        if self.name == "broken":
            raise KeyError(view.current)
        return TierChoice(self.name, why="it is fixed", review_at=self.review_at)


class ShadowedJob(SteppedJob):
    """A job on two nodes of spot-a at $2, with a shadow policy. Its state passes through JSON, as a restart does."""

    def __init__(self, prefers: str | None = "spot-b", *tiers: Tier, name: str | None = "other", **more: Any) -> None:
        found = tiers or (
            priced("spot-a", 2.0, 6.0, max_failures=9),
            priced("spot-b", 1.0, 6.0),
            priced("on-demand", 6.0, 6.0, max_failures=-1),
        )
        super().__init__(spec(*found, stall_timeout=99 * HOUR, **more))
        self.shadow_policy, self.name = Prefers(prefers), name
        self.chosen: ShadowChoice | None = None

    def see(self, *attempts: AttemptSeen, after: float = 0.0, **more: Any) -> Any:
        decision = super().see(*attempts, after=after, **more)
        self.last, self.chosen = with_shadow(
            decision, self.spec, self.last_seen, self.name, lambda _: self.shadow_policy
        )
        self.state = codec.load_state(codec.dump(self.last.state))
        assert self.state == self.last.state
        return self.last

    @property
    def shadow(self) -> Shadow:
        assert self.state.shadow is not None
        return self.state.shadow


def trained(job: ShadowedJob, hours: float = 1.0, **more: Any) -> ShadowedJob:
    """The job has been observed with all of its workers now, and after these hours."""
    job.see(all_ready(1), **more)
    job.see(all_ready(1), after=hours * HOUR, **more)
    return job


@pytest.mark.parametrize("prefers", ["spot-a", None, "unknown"])
def test_the_same_tier_and_no_tier_are_agreement(prefers: str | None) -> None:
    job = trained(ShadowedJob(prefers).running())
    assert (job.shadow.agreed, job.shadow.tiers, job.shadow.saved_usd) == (pytest.approx(HOUR + 10), (), 0.0)
    assert job.shadow.agreement == 1.0


def test_the_nodes_of_the_job_are_priced_at_the_chosen_tier() -> None:
    job = trained(ShadowedJob("spot-b").running(), hours=3)
    (found,) = job.shadow.tiers
    assert (found.name, found.seconds) == ("spot-b", pytest.approx(3 * HOUR + 10))
    assert (found.actual_usd, found.estimated_usd) == (pytest.approx(12.0), pytest.approx(6.0))
    assert found.assumed == pytest.approx(3 * HOUR), "no job has observed capacity there"
    assert found.uncounted == pytest.approx(10), "the attempt had no nodes yet"
    assert found.actual_usd == pytest.approx(job.state.spent_usd)
    assert job.shadow.saved_usd == pytest.approx(6.0)
    assert job.shadow.agreement == 0.0


def test_a_dearer_tier_costs_more() -> None:
    assert trained(ShadowedJob("on-demand").running()).shadow.saved_usd == pytest.approx(2 * (2.0 - 6.0))


def test_known_capacity_is_no_assumption() -> None:
    job = trained(ShadowedJob("spot-b").running(), offered=frozenset({"spot-b"}))
    assert job.shadow.tiers[0].assumed == 0.0
    assert job.shadow.saved_usd == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("tiers", "more"),
    [
        ((), {"unavailable": {"spot-b": "no capacity"}}),
        ((priced("spot-a", 2.0, 6.0), tier("spot-b", price=Price(known=False))), {}),
        ((tier("spot-a", price=Price(known=False)), priced("spot-b", 1.0, 6.0)), {}),
    ],
    ids=["without capacity", "the price there is unknown", "the price of the attempt is unknown"],
)
def test_time_without_capacity_or_price_has_no_estimate(tiers: tuple[Tier, ...], more: dict[str, Any]) -> None:
    job = trained(ShadowedJob("spot-b", *tiers).running(), **more)
    (found,) = job.shadow.tiers
    assert found.uncounted == found.seconds == pytest.approx(HOUR + 10)
    assert (found.actual_usd, found.estimated_usd, job.shadow.saved_usd) == (0.0, 0.0, None)


def test_a_choice_holds_until_the_next_decision() -> None:
    job = ShadowedJob("spot-b").running()
    job.shadow_policy.name = "spot-a"
    job.see(all_ready(1), after=HOUR)
    job.see(all_ready(1), after=2 * HOUR)
    assert job.shadow.differed == pytest.approx(HOUR + 10)
    assert job.shadow.agreed == pytest.approx(2 * HOUR)


def test_a_change_of_the_choice_during_an_attempt_is_a_move() -> None:
    size = CommitSize(files=2, bytes=10 * GIB)
    away = priced("spot-b", 1.0, 6.0, egress_per_gib=0.1)
    job = ShadowedJob("spot-a", priced("spot-a", 2.0, 6.0), away, overhead=900.0).running()
    job.progress = Progress(10, 100, job.now, 1, size=size, commit_seconds=18.0)
    job.see(all_ready(1))
    job.shadow_policy.name = "spot-b"
    job.see(all_ready(1), after=HOUR)
    start, egress, commit = 2 * 900 / HOUR * 1.0, 10 * 0.1, 2 * 18 / HOUR * 2.0
    assert (job.shadow.moves, job.shadow.moves_usd) == (1, pytest.approx(start + egress + commit))
    job.see(all_ready(1), after=HOUR)
    assert job.shadow.moves == 1
    assert job.shadow.saved_usd == pytest.approx(2.0 - (start + egress + commit))
    job.shadow_policy.name = "spot-a"
    job.see(all_ready(1), after=HOUR)
    assert (job.shadow.moves, job.shadow.moves_usd) == (2, pytest.approx(3 * start + egress + commit))


def test_the_start_of_an_attempt_is_no_move() -> None:
    tiers = [priced(name, 1.0, 6.0) for name in ("spot-a", "spot-b", "spot-c")]
    job = ShadowedJob("spot-a", *tiers).running()
    job.shadow_policy.name = "spot-c"
    job.lose_attempt(lost("w1-0"), lost("w1-1"))
    assert (job.number, job.state.tier) == (2, "spot-b")
    assert (job.shadow.attempt, job.shadow.tier, job.shadow.moves) == (2, "spot-c", 0)


def test_it_is_not_asked_between_attempts_and_after_the_end() -> None:
    job = trained(ShadowedJob("spot-b").running())
    job.edit(suspend=True)
    job.see(all_ready(1))
    assert job.state.stage is Stage.DRAINING
    before, asked = job.shadow, job.shadow_policy.asked
    job.see(all_ready(1), after=20)
    job.see(after=HOUR)
    assert job.state.stage is Stage.SUSPENDED
    assert job.shadow == replace(before, tier="")
    assert (job.shadow_policy.asked, job.chosen) == (asked, None)


@pytest.mark.parametrize(
    ("review", "woken"),
    [(None, None), (math.inf, None), (5.0, REVIEW_INTERVAL), (600.0, 600.0), (99 * HOUR, None)],
    ids=["never", "unknown", "at once", "soon", "after the decision of the job"],
)
def test_a_decision_is_repeated_when_the_choice_may_change(review: float | None, woken: float | None) -> None:
    job = ShadowedJob("spot-b").running()
    without = job.see_again(after=0.0).wake_at
    job.shadow_policy.review_at = None if review is None else job.now + review
    decision = job.see_again(after=0.0)
    assert decision.wake_at == (without if woken is None else job.now + woken)


def test_an_outdated_observation_is_not_shown_to_the_policy() -> None:
    job = ShadowedJob("spot-b").running()
    outdated = replace(job.last_seen, revision=0)
    decision = Decision(job.state)
    assert with_shadow(decision, job.spec, outdated, "other", lambda _: Prefers("spot-a")) == (decision, None)


def test_a_policy_that_fails_counts_nothing() -> None:
    job = trained(ShadowedJob("broken").running())
    assert job.chosen == ShadowChoice("", failed="KeyError: 'spot-a'")
    assert job.shadow == Shadow("other")
    job.shadow_policy.name = "spot-b"
    trained(job)
    assert (job.shadow.moves, job.shadow.differed) == (0, pytest.approx(HOUR))


def test_another_shadow_policy_starts_at_zero_and_none_leaves_nothing() -> None:
    job = trained(ShadowedJob("spot-b").running())
    job.name = "third"
    job.see(all_ready(1))
    assert job.shadow == Shadow("third", "spot-b", 1)
    job.name = None
    job.see(all_ready(1))
    assert (job.state.shadow, job.chosen) == (None, None)


def test_only_the_choice_is_lasting() -> None:
    job = ShadowedJob("spot-b").running()
    before = job.state.lasting
    job.see(all_ready(1), after=HOUR, offered=frozenset({"spot-b"}))
    assert job.state.lasting.shadow == before.shadow
    job.shadow_policy.name = "spot-a"
    job.see(all_ready(1))
    assert job.state.lasting.shadow != before.shadow


@pytest.mark.parametrize(
    ("shadow", "sentence"),
    [
        (Shadow("adaptive", "spot-a", 1), ""),
        (Shadow("adaptive", agreed=2 * HOUR), "adaptive would have used the same tier all the time (2h)"),
        (
            Shadow("adaptive", agreed=52_000.0, tiers=(ShadowTier("spot-b", 11_400.0, 11_400.0, 0.0, 8.4, 4.2),)),
            (
                "adaptive agreed 82 % of the time, and would have used spot-b for 3h10m: estimated 4.20 USD less; "
                "assumes that spot-b had capacity"
            ),
        ),
        (
            Shadow(
                "adaptive",
                agreed=10.0,
                tiers=(
                    ShadowTier("spot-b", 7200.0, 1800.0, 1200.0, 1.0, 2.0),
                    ShadowTier("on-demand", 90.2, 0.0, 90.2),
                ),
                moves=2,
                moves_usd=0.5,
            ),
            (
                "adaptive agreed 0 % of the time, and would have used spot-b for 2h and on-demand for 1m30s: "
                "estimated 1.50 USD more, with 2 moves; assumes that spot-b had capacity for 30m; "
                "no estimate for 20m on spot-b; no estimate for 1m30s on on-demand"
            ),
        ),
        (
            Shadow("on-demand", agreed=60.0, tiers=(ShadowTier("on-demand", 60.0, 0.0, 0.0, 0.0008, 0.0027),)),
            ("on-demand agreed 50 % of the time, and would have used on-demand for 1m: estimated 0.0019 USD more"),
        ),
        (
            Shadow("adaptive", agreed=60.0, tiers=(ShadowTier("spot-b", 60.0, 0.0, 0.0, 1.0, 1.0),), moves=1),
            (
                "adaptive agreed 50 % of the time, and would have used spot-b for 1m: "
                "estimated cost is the same, with 1 move"
            ),
        ),
        (
            Shadow("adaptive", agreed=9999.0, tiers=(ShadowTier("spot-b", 1.0, 0.0, 1.0),)),
            "adaptive agreed 99 % of the time, and would have used spot-b for 1s: no estimate of the cost",
        ),
    ],
    ids=["before any time", "agreement", "one tier", "reservations", "a short run", "the same cost", "no estimate"],
)
def test_the_summary(shadow: Shadow, sentence: str) -> None:
    assert summary(shadow) == sentence
