"""The traces of the zones of a simulation: recorded ones, or synthetic ones of one market."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spotladder.errors import InvalidSpec
from spotladder.sim.compare import ZoneSource
from spotladder.sim.synthetic import SyntheticMarket, fit, tick_of
from spotladder.sim.trace import Trace
from spotladder.sim.world.zone import ZonePlan
from spotladder.sim.zone_prices import KnownPrices, prices_in_traces


@dataclass(frozen=True, slots=True)
class SyntheticSettings:
    """What all synthetic zones have in common: `correlation` and `diurnal` of SyntheticMarket; None: not given."""

    correlation: float | None = None
    diurnal: float | None = None


@dataclass(frozen=True, slots=True)
class ZoneTraces:
    """The recorded traces of a zone, one per seed. `synthetic`: the zone has synthetic traces, which are fitted to the
    recorded ones if there are any."""

    traces: tuple[Trace, ...] = ()
    synthetic: bool = False

    @property
    def prices(self) -> KnownPrices:
        """The prices in the traces. A synthetic zone has the mean of those of the recorded one."""
        return prices_in_traces(self.traces)

    def source(self, plan: ZonePlan, workers: int, settings: SyntheticSettings) -> ZoneSource:
        """The zone for a job with this number of workers. Raises InvalidSpec for traces that cannot be fitted."""
        if not self.synthetic:
            return ZoneSource(plan, self.traces)
        market = fit(self.traces, workers) if self.traces else SyntheticMarket()
        # The files are periods of one zone, so they say nothing about the correlation of zones.
        common = replace(market, correlation=settings.correlation or 0.0, diurnal=settings.diurnal or 0.0)
        return ZoneSource(plan, (), common)


def assumptions(zones: Mapping[str, ZoneTraces], settings: SyntheticSettings) -> tuple[str, ...]:
    """Sentences about what is assumed of synthetic zones. Raises InvalidSpec for a value without an effect."""
    synthetic = {name: zone for name, zone in zones.items() if zone.synthetic}
    if not synthetic and settings != SyntheticSettings():
        path = "--diurnal" if settings.correlation is None else "--correlation"
        raise InvalidSpec("goes with --trace synthetic or synthetic:FILE", path=path)
    if settings.correlation is None:
        several = "the synthetic zones lose their capacity independently of each other (--correlation)"
        return (several,) if len(synthetic) > 1 else ()
    if len(synthetic) < 2:
        raise InvalidSpec("goes with two or more synthetic zones", path="--correlation")
    if settings.correlation and len({tick_of(zone.traces) for zone in synthetic.values()}) > 1:
        raise InvalidSpec(
            "needs synthetic zones whose ticks have one length: resample the traces", path="--correlation"
        )
    return ()
