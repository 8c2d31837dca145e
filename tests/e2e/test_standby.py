"""The next attempt of a planned move boots beside the running one, which trains until then."""

from __future__ import annotations

from spotladder.core.reasons import Reason
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT, handover
from tests.e2e.test_jobset import workload
from tests.e2e.world import E2eCluster

BOOT = 400.0
"""Seconds in which a standby attempt boots and takes over, on such a machine."""

BOUNDS = {"maxDuration": "15m"}
PROGRAM = "chain.py --steps 100000"
ON_DEMAND = "on-demand"


def test_a_return_to_spot_waits_for_its_nodes_beside_the_running_attempt(here: E2eCluster) -> None:
    here.heads(2)
    here.pool(ON_DEMAND, 2)
    here.pool(SPOT, 0)
    more: Object = {"policy": {"name": "uniform-progress"}, "overlap": BOUNDS}
    here.submit({"name": ON_DEMAND, "maxFailures": -1}, program=PROGRAM, **more)
    here.runs(ON_DEMAND, past=5)
    tiers = ({"name": SPOT, "maxFailures": -1, "provisionTimeout": "10m"}, {"name": ON_DEMAND, "maxFailures": -1})
    here.submit(*tiers, program=PROGRAM, **more)
    standby = here.until("the standby attempt is planned", lambda: here.status().get("standby"))
    assert (standby["number"], standby["tier"]) == (2, SPOT)
    here.until("its pods wait for nodes", lambda: any("nodeName" not in pod["spec"] for pod in here.pods("worker")))
    without_nodes = here.done()[-1].step
    here.until("attempt 1 trains without them", lambda: here.done()[-1].step > without_nodes + 10)
    here.give(SPOT, 2)
    takes_over(here, attempt=2)
    assert here.status()["tier"] == SPOT
    assert here.path() == [(ON_DEMAND, Reason.POLICY)]
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def test_the_next_tier_boots_during_a_notice_and_a_changed_workload_beside_the_running_one(here: E2eCluster) -> None:
    here.heads(2)
    here.pool(SPOT, 2, notice="75s")
    here.pool(ON_DEMAND, 4)
    tiers = (SPOT, {"name": ON_DEMAND, "maxFailures": -1})
    here.submit(*tiers, program=PROGRAM, overlap=BOUNDS)
    here.runs(SPOT, past=5)
    here.processes.append(here.cluster.notice(here.worker_node(), 90))
    standby = here.until("the next tier's attempt is planned", lambda: here.status().get("standby"))
    assert (standby["tier"], standby["reason"]) == (ON_DEMAND, Reason.EVICTION_NOTICE)
    takes_over(here, attempt=2, failures=1)
    here.submit(*tiers, program=f"{PROGRAM} --pace 0.21", overlap=BOUNDS)
    here.until("the changed attempt is planned", lambda: here.status().get("standby"))
    takes_over(here, attempt=3, failures=1)
    assert here.path() == [(SPOT, Reason.EVICTION_NOTICE), (ON_DEMAND, Reason.SPEC_UPDATED)]
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def test_a_changed_jobset_boots_beside_the_running_one(here: E2eCluster) -> None:
    here.pool(ON_DEMAND, 2)
    tier = {"name": ON_DEMAND, "maxFailures": -1}
    here.submit(tier, workload=workload(here, 1, steps=100_000), overlap=BOUNDS)
    here.runs(ON_DEMAND, past=5)
    here.submit(tier, workload=workload(here, 1, steps=100_001), overlap=BOUNDS)
    here.until("the changed attempt is planned", lambda: here.status().get("standby"))
    takes_over(here, attempt=2)
    assert here.path() == [(ON_DEMAND, Reason.SPEC_UPDATED)]
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def takes_over(here: E2eCluster, *, attempt: int, failures: int = 0) -> None:
    """Wait until the standby attempt trains. The attempt before it trains until it is ready, and no step is redone."""
    planned_at = here.done()[-1].step
    here.until("the standby attempt trains", lambda: any(step.attempt == attempt for step in here.done()), BOOT)
    here.until("the job runs", lambda: (here.status()["attempt"], here.status()["phase"]) == (attempt, "Running"))
    done = here.done()
    gap = handover(done)
    before = [step.step for step in done if step.attempt < attempt]
    numbers = [step.step for step in done]
    print(f"standby: {gap:.1f} s without a step; {max(before) - planned_at} steps while it booted")
    assert max(before) > planned_at + 10, f"training stopped before the standby attempt was ready\n{here.picture()}"
    assert len(numbers) == len(set(numbers)), "a step was done twice"
    assert max(before) < min(step.step for step in done if step.attempt == attempt)
    assert here.status()["failures"] == failures
    assert "standby" not in here.status()
