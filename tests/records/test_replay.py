"""Recorded decisions are made again: by their own policy with the same result, by another one with an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.core.lifecycle import decide
from spotladder.core.model import Decision, JobSpec, JobState, Observation, Price, Stage, TierChoice, TierView
from spotladder.core.policies import Policy
from spotladder.errors import EnvironmentFailure
from spotladder.policies.registry import by_name
from spotladder.records.model import Began, Decided, Record, encode
from spotladder.records.recorded import decode
from spotladder.records.recorder import Recorder
from spotladder.records.replay import Answers, answers, recorded_decisions
from tests.core.builders import START
from tests.core.world_decider import Decider
from tests.core.world_invariants import specs
from tests.core.worlds import RandomWorld, edit, suspend
from tests.display.builders import CloudEvents, PlayedRun
from tests.searching import examples


def replayed(records: list[Record], policy: str) -> Answers:
    return answers(recorded_decisions(records), policy, by_name(policy))


def read_back(records: list[Record]) -> list[Record]:
    """The records as they are read from a stream."""
    return [record for line in map(encode, records) if (record := decode(line)) is not None]


def recorded_world(seed: int) -> list[Record]:
    """The records of a job in the random world of this seed."""
    dice = Random(seed)
    spec = specs(dice)
    world, recorder = RandomWorld(spec, dice), Recorder("j", "n", (spec, "ordered"))
    decider = Decider(world, 0.0)
    records: list[Record] = [Began(world.now, "j", "n", spec)]

    def recording(spec: JobSpec, state: JobState, seen: Observation, now: float, policy: Policy) -> Decision:
        decision = decide(spec, state, seen, now, policy)
        records.extend(recorder.specified(spec, "ordered", now))
        records.extend(recorder.decided(state, decision, seen, now))
        return decision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.core.world_decider.decide", recording)
        for _ in range(3):
            decider.run(15)
            suspend(world, dice.random() < 0.2)
            edit(world)
    return records


@settings(max_examples=examples(32), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_the_policy_of_the_job_decides_as_recorded(seed: int) -> None:
    found = replayed(read_back(recorded_world(seed)), "ordered")
    assert found.decisions > 3
    assert found.differences == []
    assert found.others == {}


def test_the_night_between_an_interrupt_and_its_continuation_is_not_paid() -> None:
    records = PlayedRun(world=CloudEvents(notices={}, kills=frozenset())).play().records
    cut, night = len(records) // 2, 36_000.0
    later = [replace(each, at=each.at + night) for each in records[cut:]]
    again = replace(next(each for each in records if isinstance(each, Began)), at=later[0].at, resumed=True)
    whole, halves = (replayed(each, "on-demand") for each in (records, [*records[:cut], again, *later]))
    assert 0 < sum(halves.others.values()) <= sum(whole.others.values())


def test_another_policy_is_asked_at_each_decision_and_its_tier_is_priced() -> None:
    run = PlayedRun(world=CloudEvents(notices={}, kills=frozenset())).play()
    found = replayed(run.records, "on-demand")
    assert replayed(run.records, "ordered").differences == []
    start = next(each for each in found.differences if each.instead)
    assert [(move.target, move.tier) for move in start.moves] == [(Stage.STARTING, "spot-a")]
    assert [(move.target, move.tier) for move in start.instead] == [(Stage.STARTING, "on-demand")]
    assert list(found.others) == ["on-demand"]
    assert found.actual_usd == pytest.approx(run.state.spent_usd, rel=0.05)
    assert found.estimated_usd == pytest.approx(found.actual_usd * 1.41 / 0.42)


def test_there_is_no_estimate_on_a_tier_that_was_known_to_be_unavailable_or_whose_price_is_unknown() -> None:
    run = PlayedRun(world=CloudEvents(notices={}, kills=frozenset())).play()

    def without(change: Callable[[Decided], Decided]) -> list[Record]:
        return [change(record) if isinstance(record, Decided) else record for record in run.records]

    gone = {"on-demand": "its cluster does not answer"}
    unavailable = without(lambda one: replace(one, seen=replace(one.seen, unavailable=gone)))
    assert replayed(unavailable, "on-demand").estimated_usd == 0.0
    tiers = tuple(replace(tier, price=Price(known=False)) for tier in run.spec.tiers)
    unpriced = [Began(START, "j", "n", replace(run.spec, tiers=tiers)), *run.records[1:]]
    found = replayed(unpriced, "on-demand")
    assert (found.estimated_usd, found.uncounted) == (0.0, sum(found.others.values()))


def test_an_error_of_a_policy_is_reported_with_its_name() -> None:
    class Broken:
        def choose(self, view: TierView) -> TierChoice:
            raise KeyError(view.current)

    decisions = recorded_decisions(PlayedRun().play(until=5).records)
    with pytest.raises(EnvironmentFailure, match=r"policy night-owl: failed at the decision of .*: KeyError"):
        answers(decisions, "night-owl", Broken())
