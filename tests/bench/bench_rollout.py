"""Time to install the platform in two clusters: `spotladder infra rollout`, compared with the same commands by hand.

It needs two real clusters, as the rollout tests of `make test-infra` do. Without them it is skipped, and
tests/bench/results.md keeps its figures.
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

MAX_RATIO = 1.3


def by_hand(both: Sites) -> float:
    """Seconds to install CRDs and releases by hand, in the order of the rollout, one cluster after the other."""
    fleet = read_fleet(both.folder / "fleet.yaml", TODAY).fleet
    started = time.perf_counter()
    for name in NAMES:
        kube = both.kube(name)
        asked = plan(fleet, fleet.cluster(name))
        for chart in asked.crds:
            crds = chart_folder(both, chart.name) / ("templates" if chart.name == "spotladder-crds" else "crds")
            kube.run("apply", "--server-side", "-f", str(crds))
        for component in asked.releases:
            values = both.folder / f"{name}-{component.name}.json"
            values.write_text(json.dumps(component.values))
            kube.helm(
                "upgrade", "--install", component.release, str(chart_folder(both, component.chart.name)),
                "--values", str(values), "--namespace", component.namespace, "--create-namespace", "--skip-crds",
                "--wait",
            )  # fmt: skip
    return time.perf_counter() - started


def undo(both: Sites) -> None:
    """Uninstall everything, including the CRDs."""
    fleet = read_fleet(both.folder / "fleet.yaml", TODAY).fleet
    for name in NAMES:
        kube = both.kube(name)
        for step in reversed(plan(fleet, fleet.cluster(name)).releases):
            kube.helm("uninstall", step.release, "--namespace", step.namespace, "--wait")
        kube.run("delete", "crd", "--all")


def chart_folder(both: Sites, chart: str) -> Path:
    """The folder of a chart: that of the test, else that of the repository."""
    mirrored = both.folder / "charts" / chart
    return mirrored if mirrored.is_dir() else ROOT / "charts" / chart


def measure() -> Sequence[Row]:
    with tempfile.TemporaryDirectory() as folder, sites(Path(folder)) as both:
        by_hand(both)  # unpacks images and fills the page cache
        undo(both)
        hand = by_hand(both)
        undo(both)
        started = time.perf_counter()
        both.run("rollout", "--no-smoke")
        ours = time.perf_counter() - started
    by, met = "the same helm and kubectl commands by hand", ours <= MAX_RATIO * hand
    return [Row("rollout to 2 clusters", ours, "s", by, hand, f"≤ {MAX_RATIO} ×", met)]


if __name__ == "__main__":
    if why := provider.missing() or missing():
        sys.exit(f"not measured: {why}")
    rows.main(measure, "Rollout")
