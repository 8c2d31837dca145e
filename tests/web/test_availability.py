"""When a tier had nodes, hour by hour."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import Spell
from spotladder.timestamps import seconds_of
from spotladder.web.availability import by_hour, heat_map, spells_by_tier
from tests.web.builders import job

NOW = seconds_of("2026-11-29T10:30:00Z")
SPEC = {"tiers": [{"name": "spot", "capacityTier": "a100-spot"}]}


def at(clock: str, day: int = 29) -> float:
    return seconds_of(f"2026-11-{day}T{clock}:00Z")


def attempt(started: str, running: str, ended: str, reason: str = "MaxFailuresExceeded") -> dict[str, Any]:
    times = {"startedAt": started, "runningAt": running, "endedAt": ended}
    named = {key: f"2026-11-29T{clock}:00Z" for key, clock in times.items() if clock}
    return {"number": 1, "tier": "spot", "reason": reason, **named}


def spells(**status: Any) -> list[Spell]:
    found = {**job("digits", **{"tier": "spot", **status}), "spec": SPEC}
    return spells_by_tier([found], NOW).get("a100-spot", [])


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (attempt("08:00", "08:10", "09:00"), [Spell(True, at("08:10"), at("09:00"))]),
        (attempt("08:00", "", "08:20", "InsufficientCapacity"), [Spell(False, at("08:00"), at("08:20"))]),
        (attempt("08:00", "", "08:20", "SuspendRequested"), []),
    ],
)
def test_an_ended_attempt_says_whether_the_tier_had_nodes(ended: dict[str, Any], expected: list[Spell]) -> None:
    assert spells(attempts=[ended]) == expected


def test_the_current_attempt_counts_until_now() -> None:
    ready = {"type": "Running", "status": "True", "lastTransitionTime": "2026-11-29T10:00:00Z"}
    assert spells(conditions=[ready]) == [Spell(True, at("10:00"), NOW)]
    waiting = {"reason": "WaitingForCapacity", "since": "2026-11-29T10:15:00Z"}
    assert spells(waiting=waiting, conditions=[ready]) == [Spell(False, at("10:15"), NOW)]


def test_spells_are_shared_out_to_the_hours() -> None:
    found = by_hour([Spell(True, at("08:30"), at("10:10")), Spell(False, at("09:45"), NOW)], NOW)
    assert found == {(6, 8): (1800, 0), (6, 9): (3600, 900), (6, 10): (600, 1800)}


def test_what_is_older_than_the_map_is_left_out() -> None:
    assert by_hour([Spell(True, at("08:00", 21), at("08:30", 22))], NOW) == {}
    assert by_hour([Spell(True, at("23:30", 22), at("00:30", 23))], NOW) == {(0, 0): (1800, 0)}


def test_each_cell_has_its_value_as_text() -> None:
    drawn = heat_map([Spell(True, at("08:30"), at("09:00"))], "a100-spot", NOW)
    assert drawn is not None
    assert "Nov 29, 08:00 UTC: nodes for 100\u202f% of 30m" in drawn
    assert heat_map([], "a100-spot", NOW) is None
