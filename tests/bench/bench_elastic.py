"""Time without a step when an elastic job loses a worker on real nodes and when another one joins it, beside the same
job that must wait for a node.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import rows
from tests.bench.bench_moves import START_LIMIT, Pause, pause
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.test_elastic import trains_with, workload
from tests.e2e.world import E2eCluster

GOAL = 20.0
"""Maximum seconds without a step when an elastic job loses a worker without notice."""

WORKERS = 4


def measure() -> Sequence[Row]:
    with installed("elastic", image.build(), "kuberay") as site:
        shrunk, grown = _shrinks_and_grows(site)
        replaced = _waits_for_a_node(site)
    what = (
        f"one of {WORKERS} workers killed: last step → first step with {WORKERS - 1} ({shrunk.repeated} steps repeated)"
    )
    compared_with = f"elastic.min {WORKERS}, another node is free ({replaced.repeated} steps repeated)"
    again = f"another node comes: last step with {WORKERS - 1} → first with {WORKERS} ({grown.repeated} steps repeated)"
    return [
        Row(what, shrunk.seconds, "s", compared_with, replaced.seconds, "≤ 20 s", shrunk.seconds <= GOAL),
        Row(again, grown.seconds, "s", "-", None, "no step repeated", grown.repeated == 0),
    ]


def _shrinks_and_grows(site: E2eSite) -> tuple[Pause, Pause]:
    """The pause when the job loses a worker, and when it has all workers again."""
    with site.world() as here:
        _begins(here, WORKERS, {"min": 2, "growAfter": "10s"})
        shrunk = _loses_a_worker(here)
        before = here.done()[-1].process
        here.give(SPOT)
        trains_with(here, WORKERS, START_LIMIT)
        return shrunk, pause(here, before)


def _waits_for_a_node(site: E2eSite) -> Pause:
    with site.world() as here:
        _begins(here, WORKERS + 1, {"min": WORKERS, "growAfter": "10m"})
        return _loses_a_worker(here)


def _begins(here: E2eCluster, machines: int, elastic: Object) -> None:
    here.pool(SPOT, machines)
    here.submit({"name": SPOT, "maxFailures": 5}, workload=workload(here, WORKERS), elastic=elastic)
    here.runs(SPOT)


def _loses_a_worker(here: E2eCluster) -> Pause:
    before = here.done()[-1].process
    here.cluster.kill(here.worker_node())
    return pause(here, before)


if __name__ == "__main__":
    rows.main(measure, "Elastic job on a real cluster", skipped=provider.missing())
