"""Replays of runs on tiers whose prices changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from spotladder.core.codec import pack
from spotladder.core.model import AttemptRecord, JobState, PricePoint, Progress, Stage, TierChoice, TierRecord, TierView
from spotladder.core.reasons import Reason
from spotladder.planner.replay.history import RecordedRun, history
from spotladder.planner.replay.incident import differences, read, written
from spotladder.planner.replay.prices import prices_of_run
from spotladder.sim.scenario import simulate
from spotladder.sim.world import run as simulation
from spotladder.sim.world.market import START
from spotladder.sim.world.run import SimulationOutcome
from spotladder.sim.world.zone import ZonePlan
from tests.cli.terminal import call
from tests.docs.markdown import ROOT
from tests.planner.api_server import api_server
from tests.planner.test_from_cluster import capacity_tier
from tests.planner.test_replay import recorded
from tests.sim.builders import HOUR, market, runner, trace, zone

PRICES = (PricePoint(START - 5 * HOUR, 0.8), PricePoint(START + 1800, 2.4))
"""The spot price triples after half an hour of the run."""


def replayed(monkeypatch: pytest.MonkeyPatch, *prices: PricePoint) -> tuple[RecordedRun, SimulationOutcome]:
    """The history of a run with the prices above, of which these are recorded, and the truth."""
    spot = trace((0, 2), (1000, 1), (1200, 2), (1800, 2), prices=(0.8, 0.8, 0.8, 2.4))
    here = market(ZonePlan("spot", spot, zone("spot", price=2.4).price), zone("on-demand", price=3.0))
    records, state, was = recorded(runner(here, workers=2, max_failures=3), monkeypatch)
    return history(records, state, prices={"spot": prices}), was


def test_a_replay_has_the_prices_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found, was = replayed(monkeypatch, *PRICES)
    again = simulate(found.low, "ordered", 0)
    assert again.node_hours["spot"] == pytest.approx(was.node_hours["spot"], rel=0.02)
    assert again.cost == pytest.approx(was.cost, rel=0.05)
    assert "the price of spot changes as recorded: $0.8 to $2.4 per node-hour" in found.assumptions
    without, _was = replayed(monkeypatch)
    assert simulate(without.low, "ordered", 0).cost > 1.3 * was.cost, "the price of today"


def test_a_file_of_a_replay_has_its_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, _was = replayed(monkeypatch, *PRICES)
    outcome = simulate(found.low, "ordered", 0)
    file = tmp_path / "incident.json"
    file.write_text(written(found.low, "ordered", outcome))
    incident = read(file)
    assert differences(incident) == []
    assert simulate(incident.scenario, "ordered", 0).cost == outcome.cost


class Watching:
    """Uses spot capacity, and notes the prices that it knows."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, tuple[PricePoint, ...]]] = []

    def choose(self, view: TierView) -> TierChoice:
        (spot, *_) = view.tiers
        self.seen.append((view.now, spot.price.per_node_hour, spot.prices))
        return TierChoice("spot")


def test_a_policy_knows_the_prices_until_then_and_none_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _was = replayed(monkeypatch, *PRICES)
    policy = Watching()
    monkeypatch.setattr("spotladder.sim.scenario.installed", lambda _name: policy)
    simulate(found.low, "watching", 0)
    before = [entry for entry in policy.seen if entry[0] < START + 1800]
    after = [entry for entry in policy.seen if entry[0] >= START + 1800]
    assert {(price, prices) for _now, price, prices in before} == {(0.8, PRICES[:1])}
    assert {(price, prices) for _now, price, prices in after} == {(2.4, PRICES)}


def test_a_simulation_without_recorded_prices_shows_no_history_to_its_policies() -> None:
    spot = ZonePlan("spot", trace((0, 1), (1800, 1), prices=(0.8, 2.4)), zone("spot").price)
    policy = Watching()
    job = runner(market(spot, zone("on-demand", price=3.0)), policy=policy)
    simulation.run(job.backend.market, [job], 100 * HOUR)
    assert {(price, prices) for _now, price, prices in policy.seen} == {(0.8, ()), (2.4, ())}


def test_before_its_first_recorded_price_a_tier_has_that_price() -> None:
    later = (PricePoint(1000.0, 0.5), PricePoint(9000.0, 0.7))
    found = prices_of_run(later, began=400.0)
    assert found is not None
    assert found.changes == ((0.0, 0.5), (600.0, 0.5), (8600.0, 0.7))
    assert found.known == (PricePoint(START, 0.5),)
    assert found.missing == 600.0
    assert prices_of_run((), began=400.0) is None


def test_the_prices_come_from_the_status_of_the_capacity_tiers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    began = 1_790_000_000.0
    one = AttemptRecord(1, "spot", began, began + 60, began + 4 * HOUR, Reason.COMPLETED, 0, 0, 100)
    state = JobState(
        stage=Stage.SUCCEEDED,
        reason=Reason.COMPLETED,
        tier="spot",
        history=(one,),
        last_number=1,
        ended_at=one.ended_at,
        progress=Progress(100, 100),
        tiers=(TierRecord("spot", attempts=1, node_seconds=8.0 * HOUR, cost=4.0, on_demand_cost=11.28),),
    )
    job = YAML(typ="safe").load((ROOT / "examples" / "on-a-cluster" / "digits.yaml").read_text())
    job["metadata"] |= {"uid": "u", "namespace": "default", "creationTimestamp": "2026-09-21T14:13:20Z"}
    job["status"] = {"state": pack(state)}
    seen = [
        {"since": "2026-09-21T10:00:00Z", "price": "0.3000"},
        {"since": "2026-09-21T16:13:20Z", "price": "0.6000"},
    ]
    spot = capacity_tier("m6i-spot", "spot", "0.60", status={"prices": seen})
    objects = {
        "/apis/spotladder.io/v1alpha1/capacitytiers": {
            "kind": "CapacityTierList",
            "metadata": {"resourceVersion": "7"},
            "items": [spot, capacity_tier("m6i-on-demand", "on-demand", "1.41")],
        },
        "/apis/spotladder.io/v1alpha1/namespaces/default/tieredjobs/digits": job,
        "/api/v1/namespaces/default/events": {"kind": "EventList", "metadata": {"resourceVersion": "7"}, "items": []},
    }
    with api_server(tmp_path, objects) as kubeconfig:
        answer = call(capsys, "sim", "replay", "digits", "--kubeconfig", kubeconfig, "--hours", "4", "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert "the price of spot changes as recorded: $0.3 to $0.6 per node-hour" in found["assumptions"]
    (own,) = found["replays"]
    assert own["withUnobservedCapacity"]["costUsd"] == pytest.approx(2 * (2 * 0.3 + 2 * 0.6) + 4 * 0.1, rel=0.05)
