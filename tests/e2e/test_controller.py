"""The controller dies at every failpoint of a fallback, and no action is repeated or lost."""

from __future__ import annotations

from pathlib import Path

from spotladder.operator.failpoints import CRASHED, Point
from tests.e2e.conftest import controller
from tests.e2e.world import E2eCluster

POINTS = [
    Point.AFTER_LOAD,
    Point.AFTER_DECIDE,
    Point.BEFORE_DELETE,
    Point.AFTER_DELETE,
    Point.BEFORE_LAUNCH,
    Point.BETWEEN_OBJECTS,
    Point.AFTER_LAUNCH,
    Point.BEFORE_STATUS,
    Point.AFTER_STATUS,
    Point.AFTER_EVENTS,
]


def test_it_is_killed_at_every_step_of_a_fallback(alone: E2eCluster, tmp_path: Path) -> None:
    """A tier without machines for each step; the last one finishes the job."""
    here = alone
    tiers = [f"dry-{index}" for index in range(len(POINTS))]
    for tier in tiers:
        here.pool(tier, 0, applyTo="WorkersAndHead")
    here.pool("on-demand", 2)
    here.submit(
        *({"name": tier, "provisionTimeout": "3s"} for tier in tiers), "on-demand", program="chain.py --steps 30"
    )
    for index, point in enumerate(POINTS):
        with controller(here, tmp_path) as process:  # up to the middle of attempt `index + 1`
            here.until(f"attempt {index + 1}", lambda n=index + 1: here.status().get("attempt", 0) >= n)  # type: ignore[misc]
            process.kill()
            process.wait()
        if index:  # the first successor waits for the lease of the dead one to expire
            here.kube.run("delete", "lease", "--all")
        with controller(here, tmp_path, fail=f"{point}:crash") as process:
            here.until(f"it dies at {point}", lambda: process.poll() is not None)
            assert process.returncode == CRASHED, (tmp_path / "controller.log").read_text()[-3000:]
        here.kube.run("delete", "lease", "--all")
    with controller(here, tmp_path):
        here.succeeds()
    assert here.last_on_each_tier() == [*((tier, "InsufficientCapacity") for tier in tiers), ("on-demand", "Completed")]
    assert [attempt["number"] for attempt in here.status()["attempts"]] == list(range(1, len(here.path()) + 1))
    here.is_the_uninterrupted_result(steps=30)
