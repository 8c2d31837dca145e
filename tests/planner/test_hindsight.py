"""Where a finished run lies in the plan that its records would have had at its start."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from spotladder.core.accounting.held_nodes import GIB, HOUR
from spotladder.core.model import CommitSize, KnownCapacity, Price
from spotladder.core.policies.ordered import Ordered
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.plan import Place, PlanPlace, sentences
from spotladder.planner.hindsight import hindsight, hindsight_aside
from spotladder.planner.simulated import Assumptions, outcomes
from spotladder.records.model import Began
from spotladder.sim.world.run import PolicyOscillates
from tests.display.builders import SPEC, CloudEvents, PlayedRun
from tests.display.report_checks import facts_of


@pytest.fixture
def _fewer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spotladder.planner.hindsight.RUNS", 24)


few = pytest.mark.usefixtures("_fewer_runs")

CALM = CloudEvents(notices={}, kills=frozenset())
NEVER_LOST = KnownCapacity(evictions=0.0, ready_after=3.0)


def finished(*, spot: KnownCapacity, world: CloudEvents = CALM, until: int = 10_000, **spec: Any) -> RunFacts:
    """A run of which these facts about its spot tiers were known at its start."""
    run = PlayedRun(replace(SPEC, **spec), world)
    began = run.records[0]
    assert isinstance(began, Began)
    run.records[0] = replace(began, known=(spot, spot, NEVER_LOST))
    return facts_of(run.play(until))


@few
def test_a_run_without_losses_takes_as_long_as_a_plan_without_losses_says() -> None:
    facts = finished(spot=NEVER_LOST)
    found = hindsight(facts)
    assert found is not None
    assert found.hours is not None
    assert found.cost is not None
    assert found.chance == 1
    last_commit = Assumptions().commit_time  # The run did not measure any.
    assert found.hours.p10 == found.hours.p90 == pytest.approx((facts.time.total + last_commit) / HOUR, rel=0.01)
    assert found.cost.p50 == pytest.approx(facts.spent, rel=0.15)


def test_a_policy_that_moves_the_job_back_and_forth_gives_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report shows everything else."""
    broken = Mock(side_effect=PolicyOscillates(Ordered(), 1.0))
    monkeypatch.setattr("spotladder.planner.hindsight.outcomes", broken)
    assert hindsight(finished(spot=NEVER_LOST)) is None


async def test_a_process_of_its_own_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a policy that prints."""
    facts = finished(spot=NEVER_LOST)
    about = tmp_path / "noisy-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[spotladder.policies]\nnoisy = noisy:Noisy\n")
    (tmp_path / "noisy.py").write_text(
        "import os\nfrom spotladder.core.policies.ordered import Ordered\n\nclass Noisy(Ordered):\n"
        "    def choose(self, view):\n"
        "        print('hello', flush=True)\n        os.write(1, b'hello')\n        return super().choose(view)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert facts.start is not None
    noisy = replace(facts, start=replace(facts.start, policy="noisy"))
    assert await hindsight_aside(noisy) == hindsight(facts) is not None


async def test_a_plan_that_is_not_wanted_any_more_leaves_no_process() -> None:
    task = asyncio.create_task(hindsight_aside(finished(spot=NEVER_LOST)))
    while not (found := [child for child in psutil.Process().children() if hindsight.__module__ in child.cmdline()]):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert psutil.wait_procs(found, timeout=60)[1] == []


@few
def test_commits_that_cost_something_are_in_the_plan_and_need_no_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(CALM, commit_size=CommitSize(GIB))
    facts = finished(spot=NEVER_LOST, world=large, storage_per_gib_month=50.0)
    assert facts.state.extra.storage > 0
    asked = Mock(wraps=outcomes)
    monkeypatch.setattr("spotladder.planner.hindsight.outcomes", asked)
    found = hindsight(facts)
    assert found is not None
    assert found.cost is not None
    assert found.cost.p50 == pytest.approx(facts.spent, rel=0.15)
    assert asked.call_args.args[0].spec.storage_per_gib_month == 0, "else each commit wakes the controller"


def test_losses_that_the_plan_did_not_expect_put_the_run_above_all_planned_ones() -> None:
    found = hindsight(finished(spot=NEVER_LOST, world=CloudEvents()))
    assert found is not None
    assert found.hours is not None
    assert found.hours.share > 0.99


@few
def test_a_lucky_run_on_tiers_with_many_losses_lies_at_the_low_end() -> None:
    found = hindsight(finished(spot=KnownCapacity(evictions=60.0, ready_after=3.0)))
    assert found is not None
    assert found.hours is not None
    assert found.hours.share < 0.4
    assert found.hours.value < found.hours.p50 < found.hours.p90


@few
def test_a_run_that_failed_has_a_place_by_its_cost_and_no_finish_time() -> None:
    world = CloudEvents(dry=frozenset(tier.name for tier in SPEC.tiers[1:]), kills=frozenset({20, 40}))
    facts = finished(spot=NEVER_LOST, world=world)
    assert facts.exit_code == 3
    found = hindsight(facts)
    assert found is not None
    assert (found.chance, found.hours) == (1, None)
    assert found.cost is not None


@pytest.mark.parametrize(
    "missing",
    [
        {"spot": KnownCapacity()},
        {"spot": NEVER_LOST, "until": 30},
        {"spot": NEVER_LOST, "min_workers": 1},
        {"spot": NEVER_LOST, "budget": 0.0001},
    ],
    ids=["loss rate", "end", "fixed size", "budget"],
)
def test_without_what_a_plan_needs_a_run_has_no_place(missing: dict[str, Any]) -> None:
    assert hindsight(finished(**missing)) is None


def test_a_start_that_an_older_version_recorded_has_no_plan() -> None:
    assert hindsight(facts_of(PlayedRun(SPEC, CALM).play())) is None


@few
def test_without_prices_a_run_has_no_place_by_its_cost() -> None:
    tiers = tuple(replace(tier, price=Price(known=False)) for tier in SPEC.tiers)
    found = hindsight(finished(spot=NEVER_LOST, tiers=tiers))
    assert found is not None
    assert found.cost is None
    assert found.hours is not None


def test_the_sentences_name_the_range_and_the_chance() -> None:
    hours, cost = Place(3.2, 0.64, 2.8, 3.0, 4.0), Place(12.3, 0.4, 11.0, 12.5, 15.0)
    assert sentences(PlanPlace(100, 0.9, cost, hours)) == [
        "took 3h 12m, longer than 64\u202f% of the planned runs that succeed (p10 2h 48m, p90 4h 00m)",
        "paid $12.30, more than 40\u202f% of the planned runs (p10 $11.00, p90 $15.00)",
        "chance of success at the start: 90\u202f%",
    ]
    assert sentences(PlanPlace(100, 1.0, None, hours))[0].startswith(
        "took 3h 12m, longer than 64\u202f% of the planned"
    )
