"""Losing machines on real nodes: from the loss to the first new step, ours beside the same RayJob under KubeRay alone.

Needs what `make test-e2e` needs; without it, the page keeps its figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.bench import rows
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.losses import ALONE, LOSSES, SPOT, handover, lose, lose_alone
from tests.e2e.site import Site, installed
from tests.e2e.world import HEADS

GOAL = 90.0
"""Seconds, with nodes that count as lost after 10 s of silence."""

SURGE_GOAL = 15.0
"""Seconds without a step when a worker is replaced before its node goes."""


def measure() -> Sequence[Row]:
    found = []
    with installed("bench", image.build(), "kuberay", "jobset") as site:
        for loss in LOSSES:
            with site.world() as here:
                here.heads(1 + loss.spare(HEADS))
                here.pool(SPOT, 2 + loss.spare(SPOT), notice=f"{loss.notice:g}s")
                here.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
                here.runs(SPOT)
                ours = lose(here, loss)
                print(ours, flush=True)
            with site.world() as here:
                here.heads(1 + loss.spare(HEADS))
                here.pool(SPOT, 2 + loss.spare(SPOT))
                here.submit_alone(SPOT, program="chain.py --steps 100000")
                alone = lose_alone(here, loss)
                print("KubeRay alone:", alone, flush=True)
            beside = "KubeRay alone" if alone is not None else f"KubeRay alone: not within {ALONE:g} s"
            what, met = f"{loss.name} → first new step", ours.first_step <= GOAL
            found.append(Row(what, ours.first_step, "s", beside, alone, "≤ 90 s", met))
            timeline = f"{loss.name} → counted as a failure ({ours.again} steps done again)"
            found.append(Row(timeline, ours.counted, "s", "-"))
        found.append(_with_a_free_node(site))
    return found


def _with_a_free_node(site: Site) -> Row:
    """The worker is replaced before its node goes: the time without a step, inside the same attempt."""
    loss = next(loss for loss in LOSSES if loss.name == "notice of 45 s")
    with site.world() as here:
        here.pool(SPOT, 3, notice="30s")
        here.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
        here.runs(SPOT)
        ours = lose(here, loss)
        pause = handover(here.done())
    what = f"{loss.name}, a free node: last step → next step ({ours.again} steps done again)"
    return Row(what, pause, "s", "-", None, "≤ 15 s", pause <= SURGE_GOAL and ours.next_attempt is None)


if __name__ == "__main__":
    if why := provider.missing():
        print(f"left out, there is no cluster to lose machines of: {why}")
        sys.exit(0)
    rows.main(measure, "Losing machines on real nodes")
