"""Programs whose exit code does not tell how they ended: the commit log and the losses tell it."""

from __future__ import annotations

from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster

STEPS = 400


def test_a_job_whose_program_always_exits_0_reaches_its_last_step_after_a_notice(e2e: E2eCluster) -> None:
    e2e.pool(SPOT, 2)
    e2e.pool("on-demand", 2)
    # The notice exhausts the tier, so the attempt ends instead of replacing the worker.
    e2e.submit(SPOT, "on-demand", program=f"chain.py --steps {STEPS} 2>&1 | tee /tmp/log")
    e2e.runs(SPOT)
    e2e.processes.append(e2e.cluster.notice(e2e.worker_node(), 30))
    e2e.until("the next attempt starts", lambda: e2e.status()["attempt"] >= 2)
    status = e2e.succeeds()
    assert status["progress"]["text"] == f"{STEPS}/{STEPS}"
    assert status["failures"] >= 1
    e2e.is_the_uninterrupted_result(steps=STEPS)
