"""The product's promise: a real training job falls back tier by tier and loses no commit, while a user follows it."""

from __future__ import annotations

from itertools import pairwise

from tests.e2e.world import E2eCluster


def test_notice_then_no_capacity_then_killed_nodes_then_on_demand(here: E2eCluster) -> None:
    """Like `make demo`, on real nodes: digits with TensorFlow."""
    here.pool("spot-a", 2, notice="30s")
    here.pool("spot-b", 0)
    here.pool("spot-c", 3)
    here.pool("on-demand", 2)
    spec = here.ray("chain.py", runtimeEnvYAML='env_vars: {TF_CPP_MIN_LOG_LEVEL: "2"}')
    spec["entrypoint"] = "python /opt/examples/digits-tensorflow/train.py --steps 300 --pace 0.1"
    here.submit(
        "spot-a",
        {"name": "spot-b", "provisionTimeout": "5s"},
        {"name": "spot-c", "maxFailures": 1},
        "on-demand",
        name="digits",
        checkpoints={**here.checkpoints, "interval": "20steps"},
        workload={"ray": {"template": {"spec": spec}}},
    )
    here.runs("spot-a", "digits")
    here.processes.append(here.cluster.notice(here.worker_node("digits"), 30))
    here.until("it leaves spot-a", lambda: here.path("digits"))
    noticed = here.steps("digits")
    here.runs("spot-c", "digits", past=noticed)
    here.cluster.kill(here.worker_node("digits"))
    here.until("the first loss there is counted", lambda: here.status("digits")["failures"] == 2)
    here.runs("spot-c", "digits", past=here.steps("digits"))
    here.cluster.kill(here.worker_node("digits"))
    status = here.succeeds("digits")
    assert here.last_on_each_tier("digits") == [
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
