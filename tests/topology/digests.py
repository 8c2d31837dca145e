"""`make digests`: the lines of `components.DIGESTS` for all public charts at their pinned versions.

Each chart is downloaded with helm. One whose digest is pinned already must still have it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from spotladder_infra.rollout import charts, components
from spotladder_infra.rollout.components import OWN, Chart, Component


def pinned_charts() -> list[Chart]:
    """All charts of the table of components."""
    found = [value.chart if isinstance(value, Component) else value for value in vars(components).values()]
    return [entry for entry in found if isinstance(entry, Chart)]


def lines(pinned: Iterable[Chart]) -> Iterator[str]:
    """A line for each public chart, by file name. Raises EnvironmentFailure."""
    with tempfile.TemporaryDirectory() as cache:
        for chart in sorted((entry for entry in pinned if entry.source != OWN), key=lambda entry: entry.file):
            yield f'"{chart.file}": "{charts.find(chart, None, Path(cache)).digest}",'


if __name__ == "__main__":
    for line in lines(pinned_charts()):
        print(line)
