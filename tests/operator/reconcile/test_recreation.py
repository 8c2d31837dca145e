"""The pauses between the creations of an object that someone deletes."""

from __future__ import annotations

import pytest

from spotladder.operator.reconcile.recreation import FIRST_PAUSE, FORGOTTEN_AFTER, LONGEST_PAUSE, Recreations
from tests.clusters.stepped_clock import SteppedClock


class DeletesAtOnce:
    """An object that is deleted whenever it exists."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.recreations = Recreations[str](self.clock)

    async def created_within(self, seconds: float) -> int:
        created = 0
        for _ in range(int(seconds)):
            if self.recreations.may_create("guard"):
                self.recreations.created("guard")
                created += 1
            await self.clock.advance(1.0)
        return created


@pytest.mark.parametrize(
    ("seconds", "created"),
    [
        (1, 1),
        (FIRST_PAUSE, 1),
        (FIRST_PAUSE + 1, 2),
        (3 * FIRST_PAUSE + 1, 3),
        (600, 6),
        (600 + 10 * LONGEST_PAUSE, 16),
    ],
)
async def test_the_pauses_double_up_to_the_longest(seconds: float, created: int) -> None:
    assert await DeletesAtOnce().created_within(seconds) == created


async def test_an_object_that_has_stayed_is_created_at_once() -> None:
    one = DeletesAtOnce()
    assert await one.created_within(100) > 2
    assert not one.recreations.may_create("guard")
    assert one.recreations.repeated("guard")
    await one.clock.advance(FORGOTTEN_AFTER)
    assert one.recreations.may_create("guard")
    assert not one.recreations.repeated("guard")
    one.recreations.created("guard")
    assert not one.recreations.repeated("guard")


async def test_objects_do_not_delay_each_other_and_are_forgotten() -> None:
    clock = SteppedClock()
    recreations = Recreations[int](clock)
    for number in range(1000):
        assert recreations.may_create(number)
        recreations.created(number)
        await clock.advance(10.0)
    assert len(recreations._known) <= FORGOTTEN_AFTER / 10.0
