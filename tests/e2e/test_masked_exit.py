"""Programs whose exit code does not tell how they ended: the commit log and the losses tell it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster

STEPS = 400

ENDS_IN_ORDER = """
trap 'kill -TERM $program; wait $program; exit 0' TERM
python /programs/plain.py --steps 400 & program=$!
wait $program || exit 0
"""
"""As a framework that ends in order at SIGTERM: each end is exit code 0."""


@pytest.mark.parametrize("kind", ["ray", "jobSet"])
def test_a_job_whose_program_always_exits_0_reaches_its_last_step_after_a_notice(e2e: E2eCluster, kind: str) -> None:
    e2e.pool(SPOT, 3)
    more: dict[str, Any] = {}
    if kind == "jobSet":
        alone = {"requests": {"cpu": "1200m", "memory": "256Mi"}}
        pod = e2e.pod("256Mi", command=["bash", "-c", ENDS_IN_ORDER], resources=alone)
        job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
        replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
        more["workload"] = {"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}}
    # Without surge the attempt ends at the notice.
    tier = {"name": SPOT, "maxFailures": -1, "surge": False}
    e2e.submit(tier, program=f"chain.py --steps {STEPS} 2>&1 | tee /tmp/log", **more)
    e2e.runs(SPOT)
    e2e.processes.append(e2e.cluster.notice(e2e.worker_node(), 30))
    e2e.until("the next attempt starts", lambda: e2e.status()["attempt"] >= 2)
    status = e2e.succeeds()
    assert status["progress"]["text"] == f"{STEPS}/{STEPS}"
    assert status["failures"] >= 1
    e2e.is_the_uninterrupted_result(steps=STEPS)
