"""The records of simulated runs, read like those of a job of a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.checkpoints.store import folder_of
from spotladder.display.report import gather
from spotladder.planner.recording import Recording
from spotladder.planner.simulated import Assumptions, outcomes
from spotladder.policies.registry import by_name
from spotladder.records.recorded_job import recorded_in
from spotladder.records.replay import answers, recorded_decisions
from tests.checkpoints.memory_store import MemoryStore
from tests.planner.test_plan import given


@pytest.mark.parametrize("policy", ["ordered", "greedy"])
def test_the_report_of_a_recorded_run_has_the_figures_of_the_run(policy: str) -> None:
    asked, store = replace(given(), policy=policy), MemoryStore()
    (outcome,) = outcomes(asked, Assumptions(), [3], recording=Recording(store, "digits", "team-a"))
    (unrecorded,) = outcomes(asked, Assumptions(), [3])
    assert (outcome.cost, outcome.finished, outcome.losses) == (unrecorded.cost, unrecorded.finished, unrecorded.losses)
    name = f"digits-{policy}-3"
    recorded = recorded_in(folder_of(store, name), name)
    facts = gather(recorded)
    assert outcome.evictions > 1, "otherwise there is nothing to compare"
    assert (facts.job, facts.namespace, facts.reason) == (name, "team-a", outcome.reason)
    assert (facts.exit_code == 0, len(facts.attempts)) == (outcome.succeeded, outcome.attempts)
    assert facts.spent == pytest.approx(outcome.cost, rel=0.01)
    assert facts.time.total == pytest.approx(outcome.finished, abs=1)
    assert facts.recomputed == pytest.approx(outcome.recomputed, abs=outcome.evictions)
    assert facts.start is not None
    assert facts.start.known == tuple(each.known for each in asked.tiers)
    assert facts.time.new == pytest.approx(facts.steps, rel=0.001), "a step is a second of work"


def test_the_policy_decides_again_as_it_did() -> None:
    store = MemoryStore()
    outcomes(given(), Assumptions(), [3], recording=Recording(store, "digits", "team-a"))
    decisions = recorded_decisions(recorded_in(folder_of(store, "digits-ordered-3"), "digits-ordered-3").records)
    assert len(decisions) > 3
    assert answers(decisions, "ordered", by_name("ordered")).differences == []
