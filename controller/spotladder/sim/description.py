"""What a trace contains, in figures: its time, its capacity and prices, and how long capacity lasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Seconds
from spotladder.display.figures import NONE, percent, span
from spotladder.sim.readers.any_format import PRICE_HISTORY, Reading
from spotladder.sim.spells import durations, surviving
from spotladder.sim.trace import Trace, mean_price, share_of

COLUMNS = ("Zone", "Format", "Duration", "Nodes", "Price", "Share", "Lost after", "Back after", ">1 h")
"""`Lost after` and `Back after` are the times with and without capacity, each divided by the number of their ends;
`>1 h` is the share of the spells of capacity that last longer."""


@dataclass(frozen=True, slots=True)
class Description:
    """The traces of one zone, which are together `seconds` long. `nodes` are the fewest and the most nodes, None
    without counts. `usd` are the lowest, the mean and the highest price of a node-hour, None without prices. `share` is
    the share of the time with capacity for all workers. `lost_after` and `back_after` are the mean lengths of a spell
    with and without it in seconds, None where the trace is too short to tell, and `over_an_hour` is the share of the
    spells with it that last longer than an hour."""

    zone: str
    formats: tuple[str, ...]
    files: int
    seconds: Seconds
    nodes: tuple[int, int] | None
    usd: tuple[float, float, float] | None
    share: float
    lost_after: Seconds | None
    back_after: Seconds | None
    over_an_hour: float | None

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`."""
        usd = None if self.usd is None else [f"${price:.4g}" for price in (self.usd[0], self.usd[-1])]
        return (
            self.zone,
            " and ".join(self.formats),
            span(self.seconds),
            NONE if self.nodes is None else "–".join(map(str, self.nodes)),
            NONE if usd is None else "–".join(dict.fromkeys(usd)),
            percent(self.share, 1),
            span(self.lost_after),
            span(self.back_after),
            percent(self.over_an_hour),
        )

    @property
    def notes(self) -> list[str]:
        """What the reader of the figures must know, one sentence each."""
        if PRICE_HISTORY not in self.formats:
            return []
        return [f"{self.zone}: a price history has no data about capacity; the zone always has capacity"]

    @property
    def data(self) -> dict[str, Any]:
        """The figures as data for JSON and YAML."""
        return {
            "zone": self.zone,
            "formats": list(self.formats),
            "files": self.files,
            "seconds": round(self.seconds, 3),
            "nodes": self.nodes and {"fewest": self.nodes[0], "most": self.nodes[1]},
            "priceUsd": self.usd and {"lowest": self.usd[0], "mean": round(self.usd[1], 6), "highest": self.usd[2]},
            "availableShare": round(self.share, 6),
            "lostAfterSeconds": self.lost_after,
            "backAfterSeconds": self.back_after,
            "overAnHourShare": self.over_an_hour,
        }


def describe(zone: str, readings: Sequence[Reading], workers: int) -> Description:
    """The traces of one zone, for a gang of `workers` workers."""
    traces = [reading.trace for reading in readings]
    held = [spell for trace in traces for spell in durations(trace, workers, available=True)]
    return Description(
        zone=zone,
        formats=tuple(dict.fromkeys(reading.format for reading in readings)),
        files=len(readings),
        seconds=sum(trace.end for trace in traces),
        nodes=_nodes(traces),
        usd=_prices([trace for trace in traces if trace.prices is not None]),
        share=share_of(traces, workers),
        lost_after=_mean(held),
        back_after=_mean([spell for trace in traces for spell in durations(trace, workers, available=False)]),
        over_an_hour=float(surviving(held, [HOUR])[0]) if held else None,
    )


def _mean(spells: Sequence[tuple[Seconds, bool]]) -> Seconds | None:
    ended = sum(ends for _length, ends in spells)
    return sum(length for length, _ends in spells) / ended if ended else None


def _nodes(traces: Sequence[Trace]) -> tuple[int, int] | None:
    if not any(trace.counted for trace in traces):
        return None
    return min(int(trace.nodes.min()) for trace in traces), max(int(trace.nodes.max()) for trace in traces)


def _prices(traces: Sequence[Trace]) -> tuple[float, float, float] | None:
    mean, prices = mean_price(traces), [price for trace in traces if trace.prices is not None for price in trace.prices]
    return None if mean is None else (float(min(prices)), mean, float(max(prices)))
