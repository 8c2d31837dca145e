"""The workload changes while nodes are free: the next attempt boots beside the running one, which trains until then."""

from __future__ import annotations

from tests.e2e.losses import SPOT, handover
from tests.e2e.world import E2eCluster

LIMIT = 40.0
"""Seconds without a step, on a machine with other things to do."""

STEPS = 100_000


def test_a_changed_workload_costs_one_commit_and_no_step(here: E2eCluster) -> None:
    here.heads(2)
    here.pool(SPOT, 4)
    bounds = {"maxDuration": "10m"}
    here.submit(SPOT, program=f"chain.py --steps {STEPS}", overlap=bounds)
    here.runs(SPOT, past=10)
    here.submit(SPOT, program=f"chain.py --steps {STEPS} --pace 0.21", overlap=bounds)
    here.until("the standby attempt is planned", lambda: here.status().get("standby"))
    planned_at = here.done()[-1].step
    here.until("attempt 2 runs", lambda: here.status()["attempt"] == 2 and here.status()["phase"] == "Running")
    here.until("attempt 2 makes steps", lambda: any(step.attempt == 2 for step in here.done()))
    done = here.done()
    gap = handover(done)
    trained = max(step.step for step in done if step.attempt == 1) - planned_at
    numbers = [step.step for step in done]
    print(f"standby: {gap:.1f} s without a step; {trained} steps while it booted")
    assert trained > 20, f"attempt 1 stopped before the standby was ready\n{here.picture()}"
    assert len(numbers) == len(set(numbers)), "a step was done twice"
    assert gap <= LIMIT, here.picture()
    assert here.status()["failures"] == 0
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
