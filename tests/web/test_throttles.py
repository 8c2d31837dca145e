"""Each user has a limit of their own."""

from __future__ import annotations

from spotladder.web.throttles import Throttles
from tests.clusters.stepped_clock import SteppedClock


async def test_each_name_has_its_own_throttle_which_is_kept_only_while_it_limits() -> None:
    clock = SteppedClock()
    throttles = Throttles(10, 2, clock)
    assert [throttles.admits(name) for name in ("a", "a", "a", "b")] == [True, True, False, True]
    assert throttles._kept.keys() == {"a", "b"}
    await clock.advance(0.1)
    assert [throttles.admits(name) for name in ("c", "a", "a")] == [True, True, False]
    assert throttles._kept.keys() == {"a", "c"}
