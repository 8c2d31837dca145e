"""Time without a step when an elastic job loses a worker on real nodes, beside the same job that must wait for a node.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import rows
from tests.bench.bench_moves import Pause, pause
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.test_elastic import workload

GOAL = 20.0
"""Maximum seconds without a step when an elastic job loses a worker without notice."""

WORKERS = 4


def measure() -> Sequence[Row]:
    with installed("elastic", image.build(), "kuberay") as site:
        shrunk = _loses_a_worker(site, least=2, machines=WORKERS)
        replaced = _loses_a_worker(site, least=WORKERS, machines=WORKERS + 1)
    what = (
        f"one of {WORKERS} workers killed: last step → first step with {WORKERS - 1} ({shrunk.repeated} steps repeated)"
    )
    compared_with = f"elastic.min {WORKERS}, another node is free ({replaced.repeated} steps repeated)"
    return [Row(what, shrunk.seconds, "s", compared_with, replaced.seconds, "≤ 20 s", shrunk.seconds <= GOAL)]


def _loses_a_worker(site: E2eSite, least: int, machines: int) -> Pause:
    with site.world() as here:
        here.pool(SPOT, machines)
        elastic = {"min": least, "growAfter": "10m"}
        here.submit({"name": SPOT, "maxFailures": 5}, workload=workload(here, WORKERS), elastic=elastic)
        here.runs(SPOT)
        before = here.done()[-1].process
        here.cluster.kill(here.worker_node())
        return pause(here, before)


if __name__ == "__main__":
    rows.main(measure, "Elastic job on a real cluster", skipped=provider.missing())
