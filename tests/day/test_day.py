"""A day of recorded spot capacity on real nodes: the controller takes the path that the simulator predicts."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest

from spotladder.cli.cluster.connected_cluster import ConnectedCluster, on_cluster
from spotladder.cli.cluster.snapshot import JobSnapshot, snapshot_of
from spotladder.cli.target import ClusterTarget
from tests.absent import absent
from tests.bench import published
from tests.day.day import WORKERS, Day, DayPool, predicted, recorded, spot_pool
from tests.e2e.test_jobset import workload
from tests.e2e.world import E2eCluster

STEPS = 600
"""More work than the spot capacity of the day allows."""

DEADLINE = "340s"
"""With it, the job waits for spot capacity once, and must finish on on-demand nodes."""

PROVISION_TIMEOUT = "12s"

TOLERANCE = 15.0
"""Seconds by which an attempt may begin or end later on a busy machine than in the simulation."""

SHARE = 0.25
"""Share by which the cost and the duration may differ there."""


@pytest.fixture(scope="session")
def traces() -> Path:
    if (folder := published.folder()) is None:
        absent("no traces of spot capacity: set SPOTLADDER_TRACES", "day")
    return folder


@pytest.mark.timeout(1800)
def test_a_job_takes_the_path_that_the_simulator_predicts(
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
        policy={"name": "uniform-progress"},
        maxDuration=DEADLINE,
        workload=workload(e2e, WORKERS, STEPS),
    )
    day.run()
    e2e.succeeds()
    e2e.is_the_uninterrupted_result(steps=STEPS)

    for name, value in e2e.bucket.environment.items():
        monkeypatch.setenv(name, value)
    snapshot = _snapshot(e2e)
    records = snapshot.timeline(time.time())[0].records
    seen = recorded(snapshot, records)
    expected = predicted(snapshot, records, day, median(commit.seconds for commit in e2e.commits()))
    print("on the cluster:", seen, "predicted:", expected, sep="\n")
    assert {attempt.tier for attempt in seen.attempts} == {pool.name for pool in pools}
    assert seen.path == expected.path
    for real, simulated in zip(seen.attempts, expected.attempts, strict=True):
        assert (real.began, real.ended) == pytest.approx((simulated.began, simulated.ended), abs=TOLERANCE)
    assert seen.seconds == pytest.approx(expected.seconds, rel=SHARE)
    assert seen.usd == pytest.approx(expected.usd, rel=SHARE)


def _snapshot(e2e: E2eCluster) -> JobSnapshot:
    async def read(cluster: ConnectedCluster) -> JobSnapshot:
        return await snapshot_of(cluster, await cluster.job("job"))

    return on_cluster(ClusterTarget(e2e.namespace, None, str(e2e.cluster.kubeconfig)), read)
