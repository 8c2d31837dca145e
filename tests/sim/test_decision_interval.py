"""A job with more frequent decisions takes the same path: a policy announces every change of its choice over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from spotladder.core.model import Overlap, Stage
from spotladder.core.policies.safety_net import LEAST_STAY
from spotladder.core.reasons import Reason
from spotladder.policies import registry
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from tests.searching import FUZZ, examples
from tests.sim.builders import HOUR, market, runner, zone

WORKERS = 2

ROUNDING = 1e-3
"""Seconds by which the paths may differ: `wake_at` is just after a limit that must be exceeded."""

SEEDS = examples(30)

RARE = (1022, 1090, 1104, 1121)
"""A commit, or a loss of capacity, within a second after a limit; 1104: a commit makes leaving on-demand pay for a few
seconds."""

SPECS: dict[str, dict[str, Any]] = {
    "one attempt at a time": {},
    "standby attempts": {"overlap": Overlap()},
    "elastic": {"min_workers": 1},
}


@dataclass
class DecidedOften(SimulationRun):
    """Decides at random moments as well, besides events and `wake_at`."""

    dice: Random = field(default_factory=lambda: Random(0))

    def decide(self) -> None:
        super().decide()
        self.wake_at = min(self.wake_at, self.backend.market.now + self.dice.choice([0.5, 3.0, 40.0, 500.0]))


def outcome(policy: str, seed: int, spec: dict[str, Any], kind: type[SimulationRun]) -> SimulationOutcome:
    """A job of 15 min or 2 h on random capacity of two or three spot tiers and one or two on-demand tiers."""
    dice = Random(seed)
    scale = dice.choice([1, 8])
    names = ["spot-a", "spot-b", "spot-c"][: dice.choice([2, 3])] + dice.choice([[], ["on-demand-a"]])
    plans = [
        zone(name, *_changes(dice, scale), notice=dice.choice([0.0, 5.0, 30.0, 60.0]), price=dice.uniform(1.0, 2.9))
        for name in names
    ]
    here = market(*plans, zone("on-demand", (0, WORKERS), price=3.0), seed=seed)
    limits = {"max_duration": scale * dice.choice([1500.0, 5400.0]), "work": scale * 900.0, "overhead": 30.0}
    job = runner(
        here,
        workers=WORKERS,
        max_failures=dice.choice([0, 1, -1]),
        policy=registry.by_name(policy),
        spec={"recovery_timeout": 90.0, **(limits if policy != "ordered" else {}), **spec},
        work=scale * 900,
        restart=20.0,
        commit_interval=200.0,
        stands_by="overlap" in spec,
        sizes=(1, 2) if "min_workers" in spec else (),
        resume=5.0,
    )
    (found,) = run(here, [kind(job.spec, job.policy, job.backend)], 12 * HOUR)
    return found


def _changes(dice: Random, scale: int) -> tuple[tuple[float, int], ...]:
    """Capacity that is complete, short of one node or absent, for random times; complete at the end."""
    times = [float(scale * at) for at in sorted(dice.sample(range(60, 2400), 6))]
    counts = [dice.choice([WORKERS, WORKERS - 1, 0, 0]) for _ in times]
    return ((0.0, dice.choice([WORKERS, 0])), *zip(times, counts, strict=True), (scale * 2700.0, WORKERS))


def path(found: SimulationOutcome) -> list[tuple[str, str, int, str]]:
    return [(one.move.target, one.move.reason, one.move.attempt, one.move.tier) for one in found.path]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("policy", registry.names())
def test_deciding_more_often_changes_nothing(policy: str, spec: str) -> None:
    first = 0 if FUZZ else list(SPECS).index(spec)  # so that `make test` simulates each seed with one spec
    for seed in (*range(first, SEEDS, 1 if FUZZ else len(SPECS)), *RARE):
        seldom = outcome(policy, seed, SPECS[spec], SimulationRun)
        often = outcome(policy, seed, SPECS[spec], DecidedOften)
        assert often.decisions > seldom.decisions
        assert path(often) == path(seldom), f"seed {seed}"
        apart = [abs(one.at - other.at) for one, other in zip(often.path, seldom.path, strict=True)]
        assert max(apart) <= ROUNDING, f"seed {seed}"


@pytest.mark.parametrize("policy", ["greedy", "uniform-progress", "adaptive"])
def test_a_job_stays_on_an_on_demand_tier_that_runs_when_a_cheaper_one_may_be_back(policy: str) -> None:
    here = market(
        zone("spot", (0, 0)),
        zone("on-demand-a", (0, 0), (600, WORKERS), price=2.5),
        zone("on-demand", (0, WORKERS), price=3.0),
    )
    job = runner(
        here,
        workers=WORKERS,
        policy=registry.by_name(policy),
        spec={"max_duration": 4200.0, "work": 3600.0, "overhead": 60.0},
    )
    (found,) = run(here, [job], 2 * HOUR)
    assert found.succeeded
    assert [each.move.tier for each in found.path if each.move.target is Stage.RUNNING] == ["on-demand"]


@pytest.mark.parametrize("policy", ["uniform-progress", "adaptive"])
@pytest.mark.parametrize("spec", SPECS)
def test_a_spot_attempt_that_starts_near_the_deadline_stays_for_the_least_time(policy: str, spec: str) -> None:
    """The commit of a forced drain left slack: the job started on spot again and was forced off seconds later."""
    for seed in (69, 70, 71):  # without the rule, 70 is forced off
        found = outcome(policy, seed, SPECS[spec], SimulationRun)
        started = {one.move.attempt: one.at for one in found.path if one.move.target is Stage.STARTING}
        for one in found.path:
            drained = one.move.target is Stage.DRAINING and one.move.reason is Reason.POLICY
            if drained and one.move.tier.startswith("spot"):
                assert one.at - started[one.move.attempt] >= LEAST_STAY - ROUNDING, f"seed {seed}"


@pytest.mark.parametrize("spec", SPECS)
def test_nodes_that_arrive_just_before_the_limit_are_not_left_at_once(spec: str) -> None:
    """An attempt waited for spot capacity until the last moment. Its nodes came, and it was forced off at once."""
    for seed in (118, 179, 183, 221, 233, 327, 360, 385, 407, 443):
        found = outcome("greedy", seed, SPECS[spec], SimulationRun)
        ready = {one.move.attempt: one.at for one in found.path if one.move.target is Stage.RUNNING}
        forced = [one for one in found.path if (one.move.target, one.move.reason) == (Stage.DRAINING, Reason.POLICY)]
        stays = [one.at - ready[one.move.attempt] for one in forced if one.move.tier.startswith("spot")]
        assert min(stays, default=LEAST_STAY) >= LEAST_STAY - ROUNDING, f"seed {seed}"
        assert found.succeeded
