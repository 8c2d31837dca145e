"""Time from the loss of a node to the first new step on real nodes, with Kubernetes' own timeouts: they mark a lost
node after 40 to 50 s. Another node is free for each.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import rows
from tests.bench.bench_losses import lost, pause
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.losses import LOSSES, SILENT_LOSSES, SPOT
from tests.e2e.site import installed
from tests.e2e.world import HEADS

GOALS = {
    "node killed, its Node object stays": 40.0,
    "power cut": 55.0,
    "power cut of all its nodes": 55.0,
    "all its nodes without network": 55.0,
}
"""Maximum seconds until the first new step, by loss."""

SEEN_RENEWING = 20.0
"""Seconds after which the controller has seen the Leases of new nodes renewed."""


def measure() -> Sequence[Row]:
    found = []
    with installed("stock", image.build(), "kuberay", stock_timeouts=True) as site:
        for name, goal in GOALS.items():
            loss = next(loss for loss in (*LOSSES, *SILENT_LOSSES) if loss.name == name)
            with site.world() as here:
                here.heads(1 + loss.spare(HEADS))
                ours = lost(here, loss, nodes=2 + loss.spare(SPOT), trains_for=SEEN_RENEWING)
            met = ours.first_step <= goal
            found.append(Row(f"{name} → first new step", ours.first_step, "s", "-", None, f"≤ {goal:g} s", met))
            found.append(Row(f"{name} → counted as a failure", ours.counted, "s", "-"))
            found.append(pause(ours))
    return found


if __name__ == "__main__":
    rows.main(measure, "Lost nodes on a real cluster, Kubernetes' own timeouts", skipped=provider.missing())
