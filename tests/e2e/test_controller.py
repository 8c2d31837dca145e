"""The controller dies, or is upgraded and rolled back: no action is repeated or lost.

A fallback creates one object, because the guards of the job are there: so it never is between objects.
"""

from __future__ import annotations

from pathlib import Path

from spotladder.core import codec
from tests.e2e.conftest import controller
from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster
from tests.operator import newer
from tests.operator.failpoints import CRASHED, Point

POINTS = [
    Point.AFTER_LOAD,
    Point.AFTER_DECIDE,
    Point.BEFORE_DELETE,
    Point.AFTER_DELETE,
    Point.BEFORE_LAUNCH,
    Point.AFTER_LAUNCH,
    Point.BEFORE_STATUS,
    Point.AFTER_STATUS,
    Point.AFTER_EVENTS,
]


def test_a_controller_killed_at_any_step_of_a_fallback_continues_it_after_a_restart(
    alone: E2eCluster, tmp_path: Path
) -> None:
    """A tier without machines for each step; the last one finishes the job."""
    e2e = alone
    tiers = [f"dry-{index}" for index in range(len(POINTS))]
    for tier in tiers:
        e2e.pool(tier, 0, applyTo="WorkersAndHead")
    e2e.pool("on-demand", 2)
    e2e.submit(
        *({"name": tier, "provisionTimeout": "3s"} for tier in tiers), "on-demand", program="chain.py --steps 30"
    )
    for index, point in enumerate(POINTS):
        with controller(e2e, tmp_path) as process:  # up to the middle of attempt `index + 1`
            e2e.until(f"attempt {index + 1}", lambda n=index + 1: e2e.status().get("attempt", 0) >= n)  # type: ignore[misc]
            process.kill()
            process.wait()
        if index:  # the first successor waits for the lease of the dead one to expire
            e2e.kube.run("delete", "lease", "--all")
        with controller(e2e, tmp_path, fail=point) as process:
            e2e.until(f"it dies at {point}", lambda: process.poll() is not None)
            assert process.returncode == CRASHED, (tmp_path / "controller.log").read_text()[-3000:]
        e2e.kube.run("delete", "lease", "--all")
    with controller(e2e, tmp_path):
        e2e.succeeds()
    assert e2e.last_on_each_tier() == [*((tier, "InsufficientCapacity") for tier in tiers), ("on-demand", "Completed")]
    assert [attempt["number"] for attempt in e2e.status()["attempts"]] == list(range(1, len(e2e.path()) + 1))
    e2e.is_the_uninterrupted_result(steps=30)


def test_a_job_trains_on_while_its_controller_is_upgraded_and_rolled_back(alone: E2eCluster, tmp_path: Path) -> None:
    alone.pool(SPOT, 2, applyTo="WorkersAndHead")
    alone.submit(SPOT, program="chain.py --steps 100000")
    with controller(alone, tmp_path):
        alone.runs(SPOT)
    with controller(alone, tmp_path, program=newer.__name__):
        alone.until("the later version has written the state", lambda: newer.FIELD in state(alone))
        alone.runs(SPOT, past=alone.steps())
    assert alone.status()["phase"] == "Running", alone.picture()
    with controller(alone, tmp_path):
        alone.runs(SPOT, past=alone.steps())
        status = alone.status()
        assert (status["attempt"], status["failures"], alone.path()) == (1, 0, [])
        alone.suspend()
    assert newer.FIELD in state(alone), "it is kept for the next upgrade"
    alone.is_the_uninterrupted_result(steps=alone.steps())


def state(e2e: E2eCluster) -> str:
    """The stored state, with the fields that this version does not know."""
    return codec.dump(codec.load_state(e2e.status()["state"]))
