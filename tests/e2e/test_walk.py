"""The product's promise: a real training job falls back tier by tier and loses no commit, while a user follows it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.e2e.world import E2eCluster


@pytest.mark.smoke
def test_notice_then_no_capacity_then_killed_nodes_then_on_demand(e2e: E2eCluster) -> None:
    """Like `make demo`, on real nodes: digits with TensorFlow."""
    e2e.pool("spot-a", 2, notice="30s")
    e2e.pool("spot-b", 0)
    e2e.pool("spot-c", 3)
    e2e.pool("on-demand", 2)
    spec = e2e.ray("chain.py", runtimeEnvYAML='env_vars: {TF_CPP_MIN_LOG_LEVEL: "2"}')
    spec["entrypoint"] = "python /opt/examples/digits-tensorflow/train.py --steps 300 --pace 0.01"
    e2e.submit(
        "spot-a",
        {"name": "spot-b", "provisionTimeout": "5s"},
        {"name": "spot-c", "maxFailures": 1},
        "on-demand",
        name="digits",
        checkpoints={**e2e.checkpoints, "interval": "20steps"},
        workload={"ray": {"template": {"spec": spec}}},
    )
    e2e.runs("spot-a", "digits")
    e2e.processes.append(e2e.cluster.notice(e2e.worker_node("digits"), 30))
    e2e.until("it leaves spot-a", lambda: e2e.path("digits"))
    noticed = e2e.steps("digits")
    e2e.runs("spot-c", "digits", past=noticed)
    e2e.cluster.kill(e2e.worker_node("digits"))
    e2e.until("the first loss there is counted", lambda: e2e.status("digits")["failures"] == 2)
    e2e.runs("spot-c", "digits", past=e2e.steps("digits"))
    e2e.cluster.kill(e2e.worker_node("digits"))
    status = e2e.succeeds("digits")
    assert e2e.last_on_each_tier("digits") == [
        ("spot-a", "EvictionNotice"),
        ("spot-b", "InsufficientCapacity"),
        ("spot-c", "MaxFailuresExceeded"),
        ("on-demand", "Completed"),
    ]
    attempts = status["attempts"]
    assert attempts[0]["endStep"] == noticed
    assert all(after["startStep"] == before["endStep"] for before, after in pairwise(attempts)), (
        "nothing is lost between"
    )
    assert attempts[-1]["endStep"] == status["progress"]["step"] == 300
    assert status["failures"] == 3
    assert float(status["cost"]["savingsPercent"]) < 100, "evictions cost repeated steps and waits"
