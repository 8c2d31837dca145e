"""The time to install the platform in two clusters: `spotladder infra rollout` beside the same commands by hand.

Needs two real clusters, as `make test-infra` does for its rollouts; without them, the page keeps its figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spotladder_infra.rollout.plan import plan
from spotladder_infra.topology.read import read_fleet
from tests.bench import rows
from tests.bench.rows import Row
from tests.e2e import provider
from tests.infra.sites import NAMES, ROOT, Sites, missing, sites
from tests.topology.builders import TODAY

MOST_RATIO = 1.3


def by_hand(both: Sites) -> float:
    """Seconds for CRDs and releases, in the rollout's order, one cluster after the other."""
    fleet = read_fleet(both.folder / "fleet.yaml", TODAY).fleet
    started = time.perf_counter()
    for name in NAMES:
        kube = both.kube(name)
        asked = plan(fleet, fleet.cluster(name))
        for chart in asked.crds:
            crds = chart_folder(both, chart.name) / ("templates" if chart.name == "spotladder-crds" else "crds")
            kube.run("apply", "--server-side", "-f", str(crds))
        for step in asked.steps:
            component = step.component
            values = both.folder / f"{name}-{component.name}.json"
            values.write_text(json.dumps(step.values))
            kube.helm(
                "upgrade", "--install", component.release, str(chart_folder(both, component.chart.name)),
                "--values", str(values), "--namespace", component.namespace, "--create-namespace", "--skip-crds",
                "--wait",
            )  # fmt: skip
    return time.perf_counter() - started


def undo(both: Sites) -> None:
    """Uninstalls everything, CRDs included."""
    fleet = read_fleet(both.folder / "fleet.yaml", TODAY).fleet
    for name in NAMES:
        kube = both.kube(name)
        for step in reversed(plan(fleet, fleet.cluster(name)).steps):
            kube.helm("uninstall", step.component.release, "--namespace", step.component.namespace, "--wait")
        kube.run("delete", "crd", "--all")


def chart_folder(both: Sites, chart: str) -> Path:
    """A chart of the test, or of this checkout."""
    mirrored = both.folder / "charts" / chart
    return mirrored if mirrored.is_dir() else ROOT / "charts" / chart


def measure() -> Sequence[Row]:
    with tempfile.TemporaryDirectory() as folder, sites(Path(folder)) as both:
        by_hand(both)  # the images are unpacked, programs are in the page cache
        undo(both)
        hand = by_hand(both)
        undo(both)
        started = time.perf_counter()
        both.run("rollout", "--no-smoke", "--concurrency", "1")
        ours = time.perf_counter() - started
        started = time.perf_counter()
        both.run("rollout", "--no-smoke", "--concurrency", "1")
        again = time.perf_counter() - started
    return [
        Row(
            what="rollout to 2 clusters",
            measured=ours,
            unit="s",
            beside="the same helm and kubectl commands by hand",
            peer=hand,
            goal=f"≤ {MOST_RATIO} ×",
            met=ours <= MOST_RATIO * hand,
        ),
        Row(what="rollout to 2 clusters, nothing to change", measured=again, unit="s", beside="–"),
    ]


if __name__ == "__main__":
    if why := provider.missing() or missing():
        sys.exit(f"not measured: {why}")
    rows.main(measure, "Rollout")
