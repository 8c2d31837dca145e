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
from tests.bench.pauses import OVERLAP, PRICES, START_LIMIT, overlap_usd
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

LATE = 20.0
"""Seconds after the start of the hedge at which the first tier gets its nodes."""


def the_second_tier_runs(site: E2eSite) -> Iterator[Row]:
    """The first tier has no machines."""
    with site.world() as here:
        hedged = _first_step(here, {"name": SPOT, "provisionTimeout": "30m"}, spare=2, **HEDGE)
        paid = _settled(here, ON_DEMAND)
    with site.world() as here:
        waited = _first_step(here, {"name": SPOT, "provisionTimeout": PROVISION}, spare=2)
    with site.world() as here:
        direct = _first_step(here, None, spare=2)
    what, also = "first tier without machines, hedgeAfter 10 s → first step", {OVERLAP: paid, ALONE: direct}
    yield Row(what, hedged, "s", f"without a hedge, provisionTimeout {PROVISION}", waited, also=also)


def the_first_tier_runs(site: E2eSite) -> Iterator[Row]:
    """The first tier gets its nodes after the hedge has got one of its two."""
    with site.world() as here:
        first = {"name": SPOT, "provisionTimeout": "30m"}
        began = _submit(here, first, spare=1, **HEDGE)
        here.until("the next tier is started", lambda: here.status().get("standby"))
        time.sleep(LATE)
        here.give(SPOT, 2)
        seconds = _seconds(here, began)
        paid = _settled(here, SPOT)
    what = f"first tier gets its machines {LATE:g} s after the hedge, which has one of two → first step"
    yield Row(what, seconds, "s", "-", also={OVERLAP: paid})


def _submit(here: E2eCluster, first: Object | None, *, spare: int, **spec: Any) -> float:
    """Submit a job whose workers need a machine each, on a spot tier without machines, if there is one, and on this
    number of on-demand machines. Returns the time."""
    here.heads(2)
    here.pool(SPOT, 0)
    here.pool(ON_DEMAND, spare)
    began = time.time()
    here.submit(*([first] if first else []), STAYS, workload=workload(here, 2), **spec)
    return began


def _first_step(here: E2eCluster, first: Object | None, *, spare: int, **spec: Any) -> float:
    return _seconds(here, _submit(here, first, spare=spare, **spec))


def _seconds(here: E2eCluster, began: float) -> float:
    here.until("the first step", here.done, START_LIMIT)
    seconds = here.done()[0].at - began
    print(f"{seconds:.1f} s to the first step", flush=True)
    return seconds


def _settled(here: E2eCluster, tier: str) -> float:
    """The cost of the hedge in USD, after the job runs on this tier."""
    here.runs(tier)
    here.until("no second attempt is left", lambda: not _second(here.status()))
    return overlap_usd(here)


def _second(status: Object) -> bool:
    return bool(status.get("standby") or status.get("removing"))


def groups() -> list[Group]:
    """Both outcomes of a hedge, in one cluster."""
    found = {"the second tier runs": the_second_tier_runs, "the first tier runs": the_first_tier_runs}
    return [Group(lambda: installed("hedge", image.build(), "kuberay"), found)]


if __name__ == "__main__":
    parts.main(groups(), "Hedges on a real cluster", note=PRICES, skipped=provider.missing())
