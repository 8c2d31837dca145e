"""The runner of the published benchmark: its choice of windows, and its scores."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from spotladder.core.model import TierChoice, TierView
from tests.bench import published


class AlwaysOnDemand:
    def choose(self, view: TierView) -> TierChoice:
        return TierChoice("on-demand")


class AlwaysSpot:
    def choose(self, view: TierView) -> TierChoice:
        return TierChoice("spot")


def packed(folder: Path, taken: int, windows: int = 40) -> Path:
    """An archive as published, with windows that are all available (0) or all taken (1)."""
    (folder / "frontier-cs").mkdir()
    with tarfile.open(folder / "frontier-cs" / "zones-2022.tar.xz", "w:xz") as archive:
        for zone in published.ZONES:
            for index in range(windows):
                content = json.dumps({"metadata": {"gap_seconds": 600}, "data": [taken] * 421}).encode()
                member = tarfile.TarInfo(f"{zone}/traces/random_start/{index}.json")
                member.size = len(content)
                archive.addfile(member, BytesIO(content))
    return folder


def test_thirty_windows_are_chosen_at_equal_distances_by_name() -> None:
    names = sorted(f"{index}.json" for index in range(300))
    chosen = published._chosen(names)
    assert (len(chosen), chosen[0], chosen[1], chosen[-1]) == (30, names[0], names[10], names[-1])
    assert published._chosen(sorted(f"{index:02}" for index in range(30))) == [f"{index:02}" for index in range(30)]


def test_on_demand_pays_the_overhead_once_and_an_empty_market_misses_every_deadline(tmp_path: Path) -> None:
    starts = published.load(packed(tmp_path, taken=1, windows=30))
    starts = {zone: windows[:1] for zone, windows in starts.items()}
    found = published.scores(starts, lambda _zone, _job: AlwaysOnDemand())
    assert found.missed == 0
    for variant, score in found.variants.items():
        lost = variant.overhead * published.ON_DEMAND
        assert score == pytest.approx(-100 * lost / (published.DEAREST - published.CHEAPEST))
    found = published.scores({zone: windows[:1] for zone, windows in starts.items()}, lambda _zone, _job: AlwaysSpot())
    assert (found.missed, found.runs, found.mean) == (32, 32, published.MISSED)
