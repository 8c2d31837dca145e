"""The controller crashes before each of its changes; another one continues. `tests/kube/test_crashes.py` has the plays,
and some of these crashes on a real API server."""

from __future__ import annotations

import itertools

import pytest

from tests.kube.test_crashes import PLAYS, Play, play_in_two_clusters, submit_to_both
from tests.operator.crash import Crash, Point
from tests.operator.member_cluster import two_clusters_in_memory
from tests.operator.memory_world import filled_world

pytestmark = pytest.mark.timeout(900)
"""A play takes as many runs as it has changes."""

CHANGES = 12
"""Every play has more changes than this."""


@pytest.mark.parametrize("play", PLAYS)
async def test_another_controller_continues_whatever_change_was_the_last(play: Play) -> None:
    for turn in itertools.count(1):
        crash = Crash(Point("before", turn=turn))
        async with filled_world() as kube:
            await crash.during(play(kube), kube)
        if not crash.happened.is_set():
            break
    assert turn > CHANGES


async def test_another_controller_continues_between_two_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in itertools.count(1):
        crash = Crash(Point("before", turn=turn))
        with monkeypatch.context() as patches:
            async with two_clusters_in_memory(patches) as (kube, east):
                await submit_to_both(kube, f"{kube.namespace}-spot-east")
                await crash.during(play_in_two_clusters(kube, east), kube, sources={"east": east.source})
        if not crash.happened.is_set():
            break
    assert turn > CHANGES
