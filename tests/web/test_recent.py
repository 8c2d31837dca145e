"""Answers that many pages share."""

from __future__ import annotations

import asyncio

import pytest

from spotladder.places.recent import Recent


class Cluster:
    """Counts how often it is asked, and answers once the test lets it."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()

    async def read(self) -> int:
        self.asked += 1
        number = self.asked
        await self.answers.wait()
        if number == 2:
            raise ValueError("no answer")
        return number


async def test_pages_that_ask_at_the_same_time_share_one_answer() -> None:
    cluster, recent = Cluster(), Recent[str, int](60.0)
    waiting = [asyncio.create_task(recent.get("west", cluster.read)) for _ in range(200)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # a page that was closed
    cluster.answers.set()
    assert set(await asyncio.gather(*waiting[1:])) == {1}
    assert await recent.get("west", cluster.read) == 1
    assert cluster.asked == 1


async def test_an_old_answer_is_asked_for_again_and_a_failure_is_not_kept_for_longer() -> None:
    cluster, recent = Cluster(), Recent[str, int](0.0)
    cluster.answers.set()
    assert await recent.get("west", cluster.read) == 1
    with pytest.raises(ValueError, match="no answer"):
        await recent.get("west", cluster.read)
    assert await recent.get("west", cluster.read) == 3
