"""An attempt that cannot be stopped: its machines are cut off from the API server and continue to train."""

from __future__ import annotations

import time

from tests.e2e.world import E2eCluster


def test_a_zombie_trains_on_and_commits_nothing(here: E2eCluster) -> None:
    here.pool("spot", 2, applyTo="WorkersAndHead")
    here.pool("on-demand", 2)
    here.submit("spot", "on-demand", program="chain.py --steps 100000", contactTimeout="20s")
    here.runs("spot")
    here.cluster.partition(*here.nodes["spot"])
    cut_off = time.time()
    here.runs("on-demand", past=here.steps())
    zombie = [step for step in here.done() if step.attempt == 1 and step.at > cut_off + 5]
    assert zombie, "it is no zombie: it stopped with its machines"
    taken_over = min(step.at for step in here.done() if step.attempt > 1)
    assert not [commit for commit in here.commits() if commit.attempt == 1 and commit.at > taken_over]
    here.until("the zombie has found out that it is fenced", lambda: silent(here, 1), 60)
    assert here.last_on_each_tier()[0] == ("spot", "MaxFailuresExceeded")
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
    here.cluster.heal(*here.nodes["spot"])


def silent(here: E2eCluster, attempt: int, seconds: float = 5.0) -> bool:
    """Whether an attempt is silent while the next one runs."""
    newest = max(step.at for step in here.done())
    return max(step.at for step in here.done() if step.attempt == attempt) < newest - seconds
