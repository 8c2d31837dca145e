"""The results of a comparison of policies."""

from __future__ import annotations

from spotladder.core.reasons import Reason
from spotladder.sim.compare import MOST_DRAWN, Summary, frontier, lanes
from spotladder.sim.world.run import SimulationOutcome
from tests.sim.builders import HOUR


def summary(policy: str, *runs: tuple[bool, float, float]) -> Summary:
    """A policy with these runs: success, USD, hours."""
    return Summary(policy, tuple(outcome(*run) for run in runs))


def outcome(succeeded: bool, cost: float, hours: float) -> SimulationOutcome:
    reason = Reason.COMPLETED if succeeded else Reason.DEADLINE_EXCEEDED
    return SimulationOutcome(
        succeeded=succeeded,
        reason=reason,
        finished=hours * HOUR,
        cost=cost,
        egress=0.0,
        evictions=0,
        attempts=1,
        recomputed=0.0,
        overhead=0.0,
        waiting=0.0,
        node_hours={},
        segments=(),
        samples=(),
        path=(),
        decisions=0,
    )


def test_the_frontier_has_the_policies_that_no_other_one_beats() -> None:
    cheap, fast = summary("cheap", (True, 1.0, 9.0)), summary("fast", (True, 3.0, 5.0))
    worse, failing = summary("worse", (True, 3.0, 6.0)), summary("failing", (False, 0.5, 4.0))
    assert frontier([cheap, worse, fast, failing]) == [fast, cheap]


def test_a_policy_that_succeeds_more_often_is_not_beaten() -> None:
    safe, lucky = summary("safe", (True, 3.0, 9.0), (True, 3.0, 9.0)), summary("lucky", (True, 1.0, 5.0), (False, 1, 5))
    assert frontier([safe, lucky]) == [lucky, safe]


def test_equal_policies_are_both_on_the_frontier() -> None:
    one, other = summary("one", (True, 1.0, 5.0)), summary("other", (True, 1.0, 5.0))
    assert frontier([one, other]) == [one, other]


def test_a_timeline_has_a_row_for_each_job_of_the_first_seed() -> None:
    """Two seeds with two jobs each."""
    runs = [(True, float(run), 5.0) for run in range(4)]
    found = lanes([summary("one", *runs), summary("other", *runs)], 2)
    assert [(name, drawn.cost) for name, drawn in found] == [("one", 0), ("job 1", 1), ("other", 0), ("job 1", 1)]
    assert [name for name, _drawn in lanes([summary("one", *runs)], 1)] == ["one"]
    many = summary("one", *([(True, 1.0, 5.0)] * 2 * (MOST_DRAWN + 1)))
    assert len(lanes([many], MOST_DRAWN + 1)) == MOST_DRAWN
