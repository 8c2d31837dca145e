"""Time to the first step on real nodes when the first tier does not become ready: with a hedge, without one, and
without that tier.

It has the requirements of `make test-e2e`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tests.bench import parts
from tests.bench.parts import Group
from tests.bench.pauses import OVERLAP, PRICES, overlap_usd
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.test_elastic import workload
from tests.e2e.world import E2eCluster

ON_DEMAND = "on-demand"
STAYS = {"name": ON_DEMAND, "maxFailures": -1}
HEDGE: Object = {"overlap": {"hedgeAfter": "10s", "budget": "1"}}
PROVISION = "90s"
"""The provisionTimeout of the first tier of the job without a hedge."""

ALONE = "on the second tier only, s"
"""Column: the same job without its first tier."""


def the_second_tier_runs(site: E2eSite) -> Iterator[Row]:
    """The first tier has no machines."""
    with site.world() as here:
        hedged = _first_step(here, {"name": SPOT, "provisionTimeout": "30m"}, **HEDGE)
        here.runs(ON_DEMAND)
        here.until("no second attempt is left", lambda: not _second(here.status()))
        paid = overlap_usd(here)
    with site.world() as here:
        waited = _first_step(here, {"name": SPOT, "provisionTimeout": PROVISION})
    with site.world() as here:
        direct = _first_step(here, None)
    what, also = "first tier without machines, hedgeAfter 10 s → first step", {OVERLAP: paid, ALONE: direct}
    yield Row(what, hedged, "s", f"without a hedge, provisionTimeout {PROVISION}", waited, also=also)


def _first_step(here: E2eCluster, first: Object | None, **spec: Any) -> float:
    """Submit a job whose two workers need a machine each, on a spot tier without machines, if there is one, and on two
    on-demand machines. Returns the seconds until its first step."""
    here.heads(2)
    here.pool(SPOT, 0)
    here.pool(ON_DEMAND, 2)
    began = time.time()
    here.submit(*([first] if first else []), STAYS, workload=workload(here, 2), **spec)
    here.until("the first step", here.done)
    seconds = here.done()[0].at - began
    print(f"{seconds:.1f} s to the first step", flush=True)
    return seconds


def _second(status: Object) -> bool:
    return bool(status.get("standby") or status.get("removing"))


def groups() -> list[Group]:
    found = {"the second tier runs": the_second_tier_runs}
    return [Group(lambda: installed("hedge", image.build(), "kuberay"), found)]


if __name__ == "__main__":
    parts.main(groups(), "Hedges on a real cluster", note=PRICES, skipped=provider.missing())
