"""Time from the loss of a node to the first new step on real nodes, compared with the same RayJob under KubeRay alone.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.bench import rows
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.losses import ALONE, LOSSES, SPOT, MachineLoss, Seen, handover, lose, lose_alone
from tests.e2e.site import E2eSite, installed
from tests.e2e.world import HEADS, E2eCluster

GOAL = 90.0
"""Maximum seconds to the first new step, with nodes that count as lost after 10 s of silence."""

SURGE_GOAL = 15.0
"""Maximum seconds without a step when a worker is replaced before its node is reclaimed."""


def measure() -> Sequence[Row]:
    found = []
    with installed("bench", image.build(), "kuberay", "jobset") as site:
        for loss in LOSSES:
            with site.world() as here:
                here.heads(1 + loss.spare(HEADS))
                ours = lost(here, loss, nodes=2 + loss.spare(SPOT))
            with site.world() as here:
                here.heads(1 + loss.spare(HEADS))
                here.pool(SPOT, 2 + loss.spare(SPOT))
                here.submit_alone(SPOT, program="chain.py --steps 100000")
                alone = lose_alone(here, loss)
                print("KubeRay alone:", alone, flush=True)
            compared_with = "KubeRay alone" if alone is not None else f"KubeRay alone: not within {ALONE:g} s"
            what, met = f"{loss.name} → first new step", ours.first_step <= GOAL
            found.append(Row(what, ours.first_step, "s", compared_with, alone, "≤ 90 s", met))
            found.append(Row(f"{loss.name} → counted as a failure", ours.counted, "s", "-"))
            found.append(pause(ours))
        found.append(_with_a_free_node(site))
    return found


def lost(here: E2eCluster, loss: MachineLoss, *, nodes: int, trains_for: float = 0.0) -> Seen:
    """The loss in a pool of this number of nodes, after the job has trained for this time in seconds."""
    here.pool(SPOT, nodes, notice=f"{loss.notice:g}s")
    here.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
    here.runs(SPOT)
    time.sleep(trains_for)
    seen = lose(here, loss)
    print(seen, flush=True)
    return seen


def pause(seen: Seen) -> Row:
    """The time without a new step. A job makes steps after a notice, and for a while after its nodes are cut off."""
    what = f"{seen.name}: last step → first new step ({seen.again} steps repeated)"
    return Row(what, seen.pause, "s", "-")


def _with_a_free_node(site: E2eSite) -> Row:
    """The seconds without a step when a worker is replaced inside the attempt before its node is reclaimed."""
    loss = next(loss for loss in LOSSES if loss.name == "notice of 45 s")
    with site.world() as here:
        ours = lost(here, loss, nodes=3)
        pause = handover(here.done())
    what = f"{loss.name}, a free node: last step → next step ({ours.again} steps repeated)"
    return Row(what, pause, "s", "-", None, "≤ 15 s", pause <= SURGE_GOAL and ours.next_attempt is None)


if __name__ == "__main__":
    rows.main(measure, "Lost nodes on a real cluster", skipped=provider.missing())
