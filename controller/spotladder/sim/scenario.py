"""A job in a world, and its simulated run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import JobSpec, Seconds
from spotladder.core.policies import Policy
from spotladder.policies import registry
from spotladder.sim.world.backend import SimBackend
from spotladder.sim.world.market import START, Market
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, Watch, run
from spotladder.sim.world.zone import ZonePlan


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job and its world. `spec` has no deadline in absolute time; `tiers` maps its tiers to zones. `measured`: the
    job learns its work and the overhead of a start while it runs, as every real job does; otherwise it knows both from
    its start."""

    spec: JobSpec
    program: ProgramPlan
    zones: tuple[ZonePlan, ...]
    tiers: Mapping[str, str]
    measured: bool = False

    @property
    def start(self) -> Seconds:
        """Maximum time from available capacity to the first committed progress of an attempt."""
        waits = (zone.provision_delay + zone.boot for zone in self.zones)
        return max(waits, default=0.0) + self.program.restart + self.program.commit_time

    @property
    def limit(self) -> Seconds:
        """Maximum duration of a run: an hour after the deadline, else after ten times the work."""
        longest = self.spec.max_duration if self.spec.max_duration is not None else 10.0 * self.program.work
        return longest + HOUR

    def market(self, seed: int) -> Market:
        """Its zones. The seed selects the nodes that are reclaimed."""
        return Market.of(self.zones, duration=self.limit, seed=seed)


@cache
def installed(name: str) -> Policy:
    """The policy of that name, loaded once: the search for entry points takes longer than a run, and a policy keeps
    nothing between its choices. Raises InvalidSpec for an unknown one."""
    return registry.by_name(name)


def simulate(scenario: Scenario, policy: str, seed: int, watch: Watch | None = None) -> SimulationOutcome:
    """One run. Raises InvalidSpec for an unknown policy."""
    market = scenario.market(seed)
    spec = replace(scenario.spec, submitted_at=START, min_workers=min(scenario.program.sizes, default=None))
    if not scenario.measured:
        spec = replace(spec, work=float(scenario.program.work), overhead=scenario.start)
    backend = SimBackend(market, spec.workers, scenario.program, scenario.tiers)
    return run(market, [SimulationRun(spec, installed(policy), backend, watch=watch)], scenario.limit)[0]
