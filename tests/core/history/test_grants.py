"""Grants and refusals: which decisions of a job show one, and which grants stand."""

from __future__ import annotations

import pytest

from spotladder.core.history.grants import Answer, answers, standing_grant
from spotladder.core.model import Decision, Instant, JobState, Move, Spell, Stage, TierRecord
from spotladder.core.reasons import Reason

HAD = Spell(True, 0.0, 60.0)
LOST = Spell(False, 60.0, 60.0)
STILL_LOST = Spell(False, 60.0, 300.0)
LOST_AGAIN = Spell(False, 400.0, 400.0)


def move(reason: Reason, tier: str = "spot-a") -> Move:
    return Move(Stage.STARTING, Stage.RUNNING, reason, 1, tier)


def saw(*spells: Spell) -> JobState:
    return JobState(tiers=(TierRecord("spot-a", spells=spells),) if spells else ())


@pytest.mark.parametrize("reason", list(Reason))
def test_only_a_complete_attempt_is_a_grant_and_only_an_end_without_its_nodes_is_a_refusal(reason: Reason) -> None:
    expected = {Reason.ALL_READY: True, Reason.INSUFFICIENT_CAPACITY: False}
    made = move(reason)
    found = list(answers(saw(), Decision(saw(), moves=(made,))))
    assert found == ([Answer("spot-a", expected[reason], made)] if reason in expected else [])


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param((), (), False, id="nothing is observed"),
        pytest.param((), (HAD,), False, id="capacity"),
        pytest.param((), (LOST,), True, id="an outage is the first observation"),
        pytest.param((HAD,), (HAD, LOST), True, id="capacity is lost"),
        pytest.param((HAD, LOST), (HAD, STILL_LOST), False, id="an outage continues"),
        pytest.param((HAD, LOST), (STILL_LOST,), False, id="the oldest observation is dropped"),
        pytest.param((HAD, LOST), (HAD, LOST, Spell(True, 300.0, 300.0)), False, id="an outage ends"),
        pytest.param((HAD, LOST), (LOST, Spell(True, 300.0, 400.0), LOST_AGAIN), True, id="the next outage"),
    ],
)
def test_an_outage_is_one_refusal_when_it_begins(
    before: tuple[Spell, ...], after: tuple[Spell, ...], refused: bool
) -> None:
    found = list(answers(saw(*before), Decision(saw(*after))))
    assert found == ([Answer("spot-a", granted=False)] if refused else [])


def test_a_decision_shows_the_answers_of_several_tiers() -> None:
    left, reached = move(Reason.INSUFFICIENT_CAPACITY), move(Reason.ALL_READY, "spot-b")
    found = list(answers(saw(HAD), Decision(saw(HAD, LOST), moves=(left, reached))))
    assert found == [Answer("spot-a", False), Answer("spot-a", False, left), Answer("spot-b", True, reached)]


@pytest.mark.parametrize(
    ("granted", "refused", "expected"),
    [
        pytest.param(None, None, None, id="no answer"),
        pytest.param(None, 60.0, None, id="only a refusal"),
        pytest.param(0.0, None, 0.0, id="only a grant"),
        pytest.param(60.0, 0.0, 60.0, id="a grant after a refusal"),
        pytest.param(60.0, 60.0, None, id="both at the same time"),
        pytest.param(60.0, 120.0, None, id="a refusal after a grant"),
    ],
)
def test_a_grant_stands_until_a_refusal(
    granted: Instant | None, refused: Instant | None, expected: Instant | None
) -> None:
    assert standing_grant(granted, refused) == expected
