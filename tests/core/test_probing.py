"""Probes: `probe` workers ask for a node before the rest of their gang."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.explanation import explain
from spotladder.core.impediment import classify
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Launch,
    Observation,
    Overlap,
    PodPhase,
    PodSeen,
    Price,
    Progress,
    Stage,
    Ungate,
)
from spotladder.core.probing import ungating
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker

GATED = tuple(PodSeen(f"w{index}", phase=PodPhase.PENDING, ready=False, gated=True) for index in range(1, 4))
PLACED = PodSeen("w0", phase=PodPhase.PENDING, ready=False, scheduled=True)


def job(probe: int = 1, **more: object) -> SteppedJob:
    """Four workers on a tier with a probe, before an on-demand tier without one."""
    spot = replace(tier("spot-a", 3, 600), probe=probe, price=Price(3.6, 7.2))
    made = SteppedJob(spec(spot, tier("on-demand", -1, price=Price(7.2)), **{"workers": 4, **more}))
    made.see()
    return made


def seen(*pods: PodSeen, **more: object) -> AttemptSeen:
    return attempt(1, head(), *pods, **more)


def test_the_workers_of_a_tier_with_a_probe_are_launched_gated() -> None:
    assert job().see().actions == (Launch(1, "spot-a", gated=True),)


@pytest.mark.parametrize(("probe", "workers"), [(0, 4), (4, 4), (1, 1)])
def test_a_probe_of_the_whole_gang_gates_nothing(probe: int, workers: int) -> None:
    assert job(probe, workers=workers).see().actions == (Launch(1, "spot-a"),)


def test_one_worker_asks_for_a_node_first_and_the_others_once_it_has_one() -> None:
    made = job()
    first = replace(GATED[0], uid="w0")
    assert made.see(seen(first, *GATED)).actions == (Ungate(1, ("w0",)),)
    assert made.see(seen(pending("w0"), *GATED), after=30).actions == ()
    assert made.see(seen(PLACED, *GATED), after=30).actions == (Ungate(1, ("w1", "w2", "w3")),)
    assert made.see(seen(PLACED, pending("w1"), pending("w2"), GATED[2]), after=1).actions == (Ungate(1, ("w3",)),)
    made.see(all_ready(1, 4), after=30)
    assert made.state.stage is Stage.RUNNING


def test_a_probe_of_two_workers() -> None:
    made = job(2)
    assert made.see(seen(pending("w0"), *GATED)).actions == (Ungate(1, ("w1",)),)
    assert made.see(seen(PLACED, pending("w1"), *GATED[1:]), after=1).actions == ()
    both = (PLACED, replace(PLACED, uid="w1"))
    assert made.see(seen(*both, *GATED[1:]), after=1).actions == (Ungate(1, ("w2", "w3")),)


def test_the_replacement_of_a_lost_worker_asks_at_once_while_another_one_has_a_node() -> None:
    made = job()
    made.see(all_ready(1, 4), after=1)
    left = (worker("w1-0"), worker("w1-1"), worker("w1-2"))
    replacement = replace(GATED[0], uid="new")
    made.see(seen(*left, lost("w1-3"), replacement), after=1)
    assert made.see(seen(*left, replacement), after=1).actions == (Ungate(1, ("new",)),)


def test_after_the_loss_of_all_nodes_one_replacement_asks_first() -> None:
    made = job(recovery_timeout=1e6)
    made.see(all_ready(1, 3), after=1)
    made.see(seen(*GATED), after=1)
    replacements = (*GATED, replace(GATED[0], uid="w0"))
    assert made.see(seen(*replacements), after=1).actions == (Ungate(1, ("w1",)),)


def test_provision_timeout_runs_over_the_probe_and_the_rest() -> None:
    made = job()
    made.see(seen(pending("w0"), *GATED))
    made.see(seen(PLACED, *GATED), after=500)
    made.see(seen(worker("w0"), *(pending(pod.uid) for pod in GATED)), after=99)
    assert made.last.wake_at == START + 600
    made.see_again(1)
    assert made.end_reason is Reason.INSUFFICIENT_CAPACITY
    made.see(after=1)
    assert made.state.tier == "on-demand"
    assert made.see().actions == (Launch(2, "on-demand"),)


def test_a_probe_without_capacity_costs_nothing_and_one_that_waits_for_the_rest_its_own_node() -> None:
    made = job()
    made.see(seen(pending("w0"), *GATED))
    made.see(seen(pending("w0"), *GATED), after=500)
    assert made.state.spent_usd == 0
    made.see(seen(worker("w0"), *(pending(pod.uid) for pod in GATED)), after=1)
    made.see_again(50)
    assert made.state.spent_usd == pytest.approx(50 * 3.6 / 3600)


def test_the_idle_budget_ends_the_wait_of_a_probe_for_the_rest_of_its_gang() -> None:
    """A node for 3.6 USD an hour: the budget of 0.05 USD lasts for 50 s, or for 25 s with two nodes."""
    spot = replace(tier("spot-a", 3, 600), probe=1, price=Price(3.6, 7.2), idle_budget=0.05)
    made = SteppedJob(spec(spot, tier("on-demand", -1, price=Price(7.2)), workers=4))
    made.see()
    made.see(seen(pending("w0"), *GATED), after=500)
    assert made.state.idle_usd == 0
    made.see(seen(worker("w0"), *GATED), after=1)
    rest = tuple(pending(pod.uid) for pod in GATED)
    made.see(seen(worker("w0"), *rest), after=20)
    made.see(seen(worker("w0"), worker("w1"), *rest[1:]), after=10)
    assert made.last.wake_at == pytest.approx(made.now + 10)
    made.see_again(11)
    assert made.end_reason is Reason.IDLE_BUDGET_EXCEEDED


def test_the_explanation_names_the_pod_that_is_waited_for_and_not_the_gated_ones() -> None:
    made = job()
    made.see(seen(pending("w0"), *GATED))
    here = Situation(made.spec, made.state, made.last_seen, made.now)
    matched, found = classify(here), explain(here)
    assert matched is not None
    assert matched.message == "waiting for a node or an image: w0"
    assert found is not None
    assert found.message == "pods wait for nodes and images (3 of 4 workers ask for a node after the probe)"
    assert (found.timer, found.until) == ("provisionTimeout", START + 600)


def test_without_the_probe_in_the_spec_all_gated_workers_ask() -> None:
    made = job()
    made.see(seen(pending("w0"), *GATED))
    made.edit(tiers=(replace(made.spec.tiers[0], probe=0), made.spec.tiers[1]))
    assert made.see(seen(pending("w0"), *GATED), after=1).actions == (Ungate(1, ("w1", "w2", "w3")),)


def test_nothing_is_ungated_in_an_unreachable_cluster_or_for_an_attempt_that_ends() -> None:
    made = job()
    made.see(seen(pending("w0"), *GATED))
    assert not _ungated(made.see(seen(PLACED, *GATED, reachable=False), after=1).actions)
    made.edit(suspend=True)
    assert not _ungated(made.see(seen(PLACED, *GATED), after=1).actions)


def test_a_hedge_on_a_tier_with_a_probe_is_probed() -> None:
    """A standby attempt asks like a live one."""
    spot = replace(tier("spot-a", 3, 600), price=Price(3.6, 7.2))
    beside = replace(tier("spot-b", 3, 600), probe=1, price=Price(3.6, 7.2))
    made = SteppedJob(spec(spot, beside, workers=4, overlap=Overlap(budget=5.0, hedge_after=60.0)))
    made.progress = Progress()
    made.see()
    waits = attempt(1, head(), *(pending(f"a{index}") for index in range(4)))
    made.see(waits)
    made.see(waits, after=60)
    assert made.see(waits, after=1).actions == (Launch(2, "spot-b", standby=True, gated=True),)
    hedge = attempt(2, head(), pending("w0"), *GATED, held=False)
    assert made.see(waits, hedge, after=1).actions == ()
    hedge = attempt(2, head(), PLACED, *GATED, held=False)
    assert made.see(waits, hedge, after=1).actions == (Ungate(2, ("w1", "w2", "w3")),)


def test_a_standby_attempt_is_ungated_while_the_live_one_commits() -> None:
    spot, beside = tier("spot-a", 3, 600, price=Price(3.6, 7.2)), tier("on-demand", -1, price=Price(7.2))
    made = SteppedJob(spec(replace(spot, probe=1), beside, workers=4, overlap=Overlap(budget=5.0)))
    standby = Attempt(2, "spot-a", START, workers=4, standby=True)
    live = Attempt(1, "on-demand", START, workers=4)
    for stage in (Stage.RUNNING, Stage.DRAINING, Stage.ENDING):
        state = replace(made.state, stage=stage, tier="on-demand", attempt=live, standby=standby)
        seen = Observation(1, (all_ready(1, 4), attempt(2, head(), PLACED, *GATED, held=False)))
        assert ungating(Situation(made.spec, state, seen, START)) == (Ungate(2, ("w1", "w2", "w3")),)


def _ungated(actions: tuple[object, ...]) -> bool:
    return any(isinstance(action, Ungate) for action in actions)
