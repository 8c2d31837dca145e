"""The gang meter: an incomplete gang that costs more than idleBudget releases its nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.explanation import explain
from spotladder.core.model import JobSpec, Launch, NodeFailures, Price, Stage, Tier
from spotladder.core.policies.greedy import Greedy
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from spotladder.operator.reconcile.load import unpriced_idle
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker

PARTIAL = (attempt(1, head(), worker("w1-0"), pending("w1-1")),)
"""One of two workers has a node."""


def job(budget: float | None = 0.5, **more: object) -> SteppedJob:
    """Two workers on a tier of 3.60 USD per node-hour: 0.001 USD per node and second. provisionTimeout is 1 h."""
    spot = replace(tier("spot-a", -1, 3600), price=Price(3.6, 7.2), idle_budget=budget)
    made = SteppedJob(spec(spot, tier("on-demand"), **more))
    made.see()
    return made


def test_a_gang_that_has_cost_its_budget_is_released_and_the_tier_is_exhausted() -> None:
    made = job()
    made.see(*PARTIAL)
    assert made.last.wake_at == pytest.approx(START + 500)
    made.see(*PARTIAL, after=499)
    assert made.state.stage is Stage.STARTING
    assert made.state.idle_usd == pytest.approx(0.499)
    made.see(*PARTIAL, after=1)
    assert made.end_reason is Reason.IDLE_BUDGET_EXCEEDED
    (ended,) = [move for move in made.moves if move.target is Stage.ENDING]
    assert ended.message == "the nodes that waited for the rest of their gang cost 0.50 USD (idleBudget 0.50)"
    made.see(after=1)
    assert made.state.record("spot-a").exhausted_by is Reason.IDLE_BUDGET_EXCEEDED
    assert (made.state.tier, made.state.idle_usd) == ("on-demand", 0.0)


def test_the_explanation_names_the_budget_while_it_ends_the_wait_before_provision_timeout() -> None:
    made = job()
    made.see(*PARTIAL)
    for _ in range(3):
        made.see(*PARTIAL, after=99.9)
        found = explain(Situation(made.spec, made.state, made.last_seen, made.now))
        assert found is not None
        assert (found.timer, found.until) == ("idleBudget", START + 500)
        assert found.then == "the job releases its nodes and leaves the tier"
    made.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=1)
    found = explain(Situation(made.spec, made.state, made.last_seen, made.now))
    assert found is not None
    assert (found.timer, found.until) == ("provisionTimeout", START + 3600), "no node is paid for"


def test_without_nodes_nothing_is_idle() -> None:
    made = job()
    for _ in range(5):
        made.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=700)
    assert made.state.idle_usd == 0
    assert made.state.stage is Stage.STARTING


@pytest.mark.parametrize("budget", [None, 100.0])
def test_provision_timeout_applies_before_the_budget_is_used_up(budget: float | None) -> None:
    made = job(budget)
    made.see(*PARTIAL)
    made.see(*PARTIAL, after=3600)
    assert made.end_reason is Reason.INSUFFICIENT_CAPACITY


def test_with_a_budget_of_0_the_gang_is_deleted_after_the_first_idle_second() -> None:
    made = job(0.0)
    made.see(attempt(1, head(), pending("w1-0"), pending("w1-1")), after=600)
    made.see(*PARTIAL, after=1)
    assert made.state.stage is Stage.STARTING
    made.see(*PARTIAL, after=1)
    assert made.end_reason is Reason.IDLE_BUDGET_EXCEEDED


def test_the_meter_starts_again_when_the_gang_was_complete() -> None:
    made = job(recovery_timeout=1e6)
    made.see(*PARTIAL)
    made.see(*PARTIAL, after=400)
    made.see(all_ready(1), after=10)
    made.see(all_ready(1), after=100)
    assert made.state.idle_usd == 0
    made.see(attempt(1, head(), worker("w1-0"), lost("w1-1"), pending("new")), after=1)
    made.see(attempt(1, head(), worker("w1-0"), pending("new")), after=499)
    assert made.state.stage is Stage.RECOVERING
    made.see(attempt(1, head(), worker("w1-0"), pending("new")), after=5)
    assert made.end_reason is Reason.IDLE_BUDGET_EXCEEDED


def test_a_start_on_all_nodes_is_not_idle() -> None:
    made = job()
    for _ in range(5):
        made.see(attempt(1, head(), worker("w1-0", ready=False), worker("w1-1", ready=False)), after=100)
    assert made.state.idle_usd == 0


def test_an_unknown_price_is_not_counted_and_is_reported() -> None:
    made = job()
    made.edit(tiers=(replace(made.spec.tiers[0], price=Price(known=False)), made.spec.tiers[1]))
    made.see(*PARTIAL)
    made.see(*PARTIAL, after=3000)
    assert (made.state.stage, made.state.idle_usd) == (Stage.STARTING, 0.0)
    found = unpriced_idle(made.spec)
    assert found is not None
    assert found.message == (
        "spec.tiers[0].idleBudget: no price is known for tier spot-a, so its idle nodes are not counted"
    )
    assert unpriced_idle(JobSpec((Tier("a", price=Price(known=False)), Tier("b", idle_budget=1.0)))) is None


def test_a_policy_that_returns_to_the_tier_keeps_it_open() -> None:
    spot = replace(tier("spot-a", -1, 3600), price=Price(3.6, 7.2), idle_budget=0.5)
    made = SteppedJob(spec(spot, max_duration=1e6, work=3600.0), Greedy())
    made.see()
    made.see(*PARTIAL)
    made.see(*PARTIAL, after=500)
    assert made.end_reason is Reason.IDLE_BUDGET_EXCEEDED
    made.see(after=1)
    assert made.state.record("spot-a").exhausted_by is None
    assert made.see(after=60).actions == (Launch(2, "spot-a"),)


def test_the_budget_of_an_attempt_that_avoids_nodes_does_not_exhaust_the_tier() -> None:
    """Without the avoided nodes the tier may have capacity, and the next attempt has the whole budget."""
    made = job()
    made.see(*PARTIAL)
    assert made.state.attempt is not None
    avoiding = replace(made.state.attempt, avoids=("bad",))
    made.state = replace(made.state, attempt=avoiding, node_failures=(NodeFailures("bad", 9),))
    made.see(*(replace(seen, provisioning=True) for seen in PARTIAL), after=500)
    assert made.end_reason is Reason.INSUFFICIENT_CAPACITY
    assert (made.state.idle_usd, made.state.record("spot-a").exhausted_by) == (0.0, None)
