"""Time without a step when an elastic job loses a worker on real nodes and when another one joins it, beside the same
job that must wait for a node.

It has the requirements of `make test-e2e`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import parts
from tests.bench.parts import Group
from tests.bench.pauses import PRICES, Pause, pause
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


def shrinks_and_grows(site: E2eSite) -> Iterator[Row]:
    """The pause when the job loses a worker, and when it has all workers again."""
    with site.world() as here:
        _begins(here, WORKERS + 1, {"min": WORKERS, "growAfter": "10m"})
        waited = _loses_a_worker(here)
    with site.world() as here:
        _begins(here, WORKERS, {"min": 2, "growAfter": "10s"})
        shrunk = _loses_a_worker(here)
        what = f"one of {WORKERS} workers killed: last step → first step with {WORKERS - 1}"
        compared_with = f"elastic.min {WORKERS}, another node is free"
        yield shrunk.row(what, f"≤ {GOAL:g} s", shrunk.seconds <= GOAL, waited, compared_with)
        before = here.done()[-1].process
        here.give(SPOT)
        trains_with(here, WORKERS)
        grown = pause(here, before)
        what = f"another node comes: last step with {WORKERS - 1} → first with {WORKERS}"
        yield grown.row(what, "no step redone", grown.repeated == 0)


def _begins(here: E2eCluster, machines: int, elastic: Object) -> None:
    here.pool(SPOT, machines)
    here.submit({"name": SPOT, "maxFailures": 5}, workload=workload(here, WORKERS), elastic=elastic)
    here.runs(SPOT)


def _loses_a_worker(here: E2eCluster) -> Pause:
    before = here.done()[-1].process
    here.cluster.kill(here.worker_node())
    found = pause(here, before)
    print(found, flush=True)
    return found


def groups() -> list[Group]:
    """One part: the job that grows is the one that shrank."""
    found = {"shrinks and grows": shrinks_and_grows}
    return [Group(lambda: installed("elastic", image.build(), "kuberay"), found)]


if __name__ == "__main__":
    parts.main(groups(), "Elastic job on a real cluster", note=PRICES, skipped=provider.missing())
