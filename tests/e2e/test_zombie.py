"""An attempt that cannot be stopped: its machines are cut off from the API server and continue to train."""

from __future__ import annotations

import time

import pytest

from tests.e2e.world import E2eCluster


@pytest.mark.smoke
def test_a_zombie_trains_on_and_commits_nothing(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2, applyTo="WorkersAndHead")
    e2e.pool("on-demand", 2)
    e2e.submit("spot", "on-demand", program="chain.py --steps 100000", contactTimeout="20s")
    e2e.runs("spot")
    e2e.cluster.partition(*e2e.nodes["spot"])
    cut_off = time.time()
    e2e.runs("on-demand", past=e2e.steps())
    zombie = [step for step in e2e.done() if step.attempt == 1 and step.at > cut_off + 5]
    assert zombie, "it is no zombie: it stopped with its machines"
    taken_over = min(step.at for step in e2e.done() if step.attempt > 1)
    assert not [commit for commit in e2e.commits() if commit.attempt == 1 and commit.at > taken_over]
    e2e.until("the zombie has found out that it is fenced", lambda: silent(e2e, 1))
    assert e2e.last_on_each_tier()[0] == ("spot", "MaxFailuresExceeded")
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
    e2e.cluster.heal(*e2e.nodes["spot"])


def silent(e2e: E2eCluster, attempt: int, seconds: float = 5.0) -> bool:
    """Whether an attempt is silent while the next one runs."""
    newest = max(step.at for step in e2e.done())
    return max(step.at for step in e2e.done() if step.attempt == attempt) < newest - seconds
