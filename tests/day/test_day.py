"""A day of recorded spot capacity on real nodes: the controller makes the decisions that the simulator predicts."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from spotladder.cli.recorded import recorded_of
from spotladder.cli.target import ClusterTarget
from tests.absent import absent
from tests.bench import published
from tests.day.day import WORKERS, Day, DayPool, predicted, spot_pool
from tests.day.decisions import agree, decided, logged
from tests.e2e.test_jobset import workload
from tests.e2e.world import E2eCluster

STEPS = 800
"""More work than the spot capacity of the day allows."""

DEADLINE = "630s"
"""With it, the job waits for spot capacity twice, and must finish on on-demand nodes. The policies keep minutes in
reserve, which the test does not compress: so the deadline is long after the day."""

PROVISION_TIMEOUT = "20s"

TOLERANCE = 15.0
"""Seconds by which a decision may come earlier or later on a busy machine than in the simulation, and for which a new
attempt may have trained more or less."""

SHARE = 0.25
"""Share by which the cost and the duration may differ there."""


@pytest.fixture(scope="session")
def traces() -> Path:
    if (folder := published.folder()) is None:
        absent("no traces of spot capacity: set SPOTLADDER_TRACES", "day")
    return folder


@pytest.mark.timeout(1800)
def test_the_controller_makes_the_decisions_that_the_simulator_predicts(
    traces: Path, e2e: E2eCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = (
        spot_pool("spot-a", traces, "us-west-2a_v100_1", notice=8.0),
        spot_pool("spot-b", traces, "us-west-2b_k80_1", notice=8.0),
        DayPool("on-demand", ((0, WORKERS),)),
    )
    day = Day(e2e, pools)
    day.begin()
    e2e.submit(
        *({"name": pool.name, "maxFailures": -1, "provisionTimeout": PROVISION_TIMEOUT} for pool in pools),
        policy="adaptive",
        maxDuration=DEADLINE,
        workload=workload(e2e, WORKERS, STEPS),
    )
    day.run()
    e2e.succeeds()
    e2e.is_the_uninterrupted_result(steps=STEPS)

    for name, value in e2e.bucket.environment.items():
        monkeypatch.setenv(name, value)
    recorded = recorded_of("job", ClusterTarget(e2e.namespace, None, str(e2e.cluster.kubeconfig)), None)
    began, state = recorded.records[0].at, recorded.state
    resumed = {attempt.number: attempt.start_step for attempt in state.history}
    seen = logged(e2e.namespace, began, resumed, e2e.cluster.kubeconfig)
    world, outcome = predicted(recorded, day, median(commit.seconds for commit in e2e.commits()))
    expected = decided(outcome, STEPS, world.program.work)
    print("on the cluster:", *seen, "predicted:", *expected, sep="\n")
    assert {one.tier for one in seen} == {pool.name for pool in pools}
    agree(seen, expected, TOLERANCE, world.program.work / STEPS)
    assert state.ended_at is not None
    assert state.ended_at - began == pytest.approx(outcome.finished, rel=SHARE)
    assert state.spent_usd == pytest.approx(outcome.cost, rel=SHARE)
