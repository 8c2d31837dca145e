"""A crash of the controller at a fail point; another controller continues."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.kube.world import KubeWorld
from tests.operator import failpoints
from tests.operator.failpoints import Point


class _Died(BaseException):
    """A crash of the controller, which no code catches."""


class Crash:
    """Makes a fail point end the controller under test instead of the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.happened = asyncio.Event()
        self._monkeypatch = monkeypatch

    def _crash(self, point: Point) -> None:
        self.happened.set()
        raise _Died(point)

    async def during(
        self,
        play: Coroutine[Any, Any, None],
        kube: KubeWorld,
        point: Point,
        turn: int = 1,
        *,
        restart: asyncio.Event | None = None,
        **settings: Any,
    ) -> None:
        """Run the controller until it reaches the fail point for this time, then another one until the play ends. The
        latter starts at once, or when the play sets `restart`."""
        armed = failpoints._armed(f"{point}@{turn}")
        failpoints.install(self._monkeypatch.setattr)
        self._monkeypatch.setattr(failpoints, "_points", armed)
        self._monkeypatch.setattr(failpoints, "_crash", self._crash)
        playing = asyncio.create_task(play)
        try:
            died_first = asyncio.create_task(self.happened.wait())
            try:
                async with kube.operator(**settings):
                    await asyncio.wait({playing, died_first}, return_when=asyncio.FIRST_COMPLETED)
            except BaseExceptionGroup as group:
                if not group.subgroup(_Died):
                    raise
            died_first.cancel()
            if playing.done():
                playing.result()
            assert armed[point].hits == turn, f"{point} was reached {armed[point].hits} times"
            if restart is not None:
                await asyncio.wait({playing, asyncio.create_task(restart.wait())}, return_when=asyncio.FIRST_COMPLETED)
            async with kube.operator(**settings):
                await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
