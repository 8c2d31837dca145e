"""`adaptive` on real nodes: the job leaves spot when the nodes are gone, and returns beside the running attempt."""

from __future__ import annotations

from pathlib import Path

from spotladder.core.reasons import Reason
from tests.e2e.conftest import controller
from tests.e2e.losses import SPOT
from tests.e2e.test_jobset import workload
from tests.e2e.test_standby import ON_DEMAND, takes_over
from tests.e2e.world import E2eCluster
from tests.operator.crash import CRASHED

WORKERS = 2
STEPS = 6000
"""20 minutes of work: the job is suspended long before it ends. The deadline leaves enough slack to wait for spot
capacity, so that a hedge, and not the policy, moves the job to on-demand."""


def test_a_job_returns_to_spot_beside_its_running_attempt_also_after_restarts_of_the_controller(
    alone: E2eCluster, tmp_path: Path
) -> None:
    """One controller sees the loss, the next one decides to return and dies before it acts, and the last one acts."""
    e2e = alone
    e2e.pool(SPOT, WORKERS)
    e2e.pool(ON_DEMAND, WORKERS)
    with controller(e2e, tmp_path):
        e2e.submit(
            *({"name": name, "maxFailures": -1, "provisionTimeout": "10m"} for name in (SPOT, ON_DEMAND)),
            policy="adaptive",
            overlap={"maxDuration": "15m", "hedgeAfter": "5s", "budget": "1"},
            maxDuration="2h",
            workload=workload(e2e, WORKERS, STEPS),
        )
        e2e.runs(SPOT, past=5)
        e2e.cluster.remove(*e2e.nodes[SPOT])
        e2e.until("the hedge runs", lambda: (e2e.status()["phase"], e2e.status().get("tier")) == ("Running", ON_DEMAND))
    # The policy plans the return as soon as the remaining work is known, so no controller runs until then.
    e2e.runs(ON_DEMAND, past=e2e.steps() + 20)
    attempt = e2e.status()["attempt"]
    assert e2e.path()[-1] == (SPOT, Reason.HEDGED)
    e2e.give(SPOT, WORKERS)
    e2e.kube.run("delete", "lease", "--all")
    with controller(e2e, tmp_path, crashes="before create jobsets") as process:
        e2e.until("it dies when it launches the return", lambda: process.poll() is not None)
        assert process.returncode == CRASHED, (tmp_path / "controller.log").read_text()[-3000:]
    planned = e2e.status()["standby"]
    assert (planned["number"], planned["tier"], planned["reason"]) == (attempt + 1, SPOT, Reason.POLICY)
    assert len(e2e.kube.list("jobsets")) == 1
    e2e.kube.run("delete", "lease", "--all")
    with controller(e2e, tmp_path):
        takes_over(e2e, failures=e2e.status()["failures"], meanwhile=0)
        assert e2e.status()["tier"] == SPOT
        assert e2e.path()[-1] == (ON_DEMAND, Reason.POLICY)
        why = e2e.until("an Event has the reason for the return", lambda: reason_of_end(e2e, attempt))
        assert why.startswith("spot is preferred (spot capacity may be available and ")
        assert "of slack are left" in why
        e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())


def reason_of_end(e2e: E2eCluster, attempt: int) -> str:
    """Returns the message of the Event that tells why the policy ended this attempt, or an empty string."""
    prefix = f"attempt {attempt} on {ON_DEMAND}: "
    messages = (str(event.get("message")) for event in e2e.kube.list("events") if event["reason"] == Reason.POLICY)
    return next((message.removeprefix(prefix) for message in messages if message.startswith(prefix)), "")
