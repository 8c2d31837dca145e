"""The end of a controller at one of its changes, as in a crash. A change is a call that writes to an API server, or the
end of a commit log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import pytest

from spotladder.clusters.client import Client
from spotladder.operator import leader
from spotladder.operator.storage.commit_logs import Logs
from tests.kube.world import KubeWorld

VERBS = {
    "apply": "apply", "create": "create", "delete": "delete", "delete_all": "delete", "merge": "patch",
    "patch": "patch", "replace": "update",
}  # fmt: skip
"""The methods of a client that change objects, and the verbs of their changes."""

REPORTS = ("create events", "patch capacitytiers")
"""Changes that no controller depends on. A crash at any change is not at these."""


@dataclass(frozen=True)
class Point:
    """Before or after (`when`) a change is made for the `turn`-th time. `change`: its verb and resource, "" for any. As
    text: `before create rayjobs`, or `after patch tieredjobs@2` for the second time."""

    when: str
    change: str = ""
    turn: int = 1

    def fits(self, change: str) -> bool:
        return change == self.change or (not self.change and change not in REPORTS)

    @classmethod
    def parse(cls, text: str) -> Self:
        name, _, turn = text.partition("@")
        when, _, change = name.partition(" ")
        return cls(when, change, int(turn or 1))


class Changes:
    """Counts the changes of a controller, and calls `crash` at the point. No change is made afterwards."""

    def __init__(self, point: Point, crash: Callable[[], None]) -> None:
        self.made: list[str] = []
        self._point = point
        self._crash = crash
        self._ended = False

    def methods_of(self, kind: type[Client]) -> dict[str, Any]:
        """The methods of this kind of client that change objects, counted."""

        def change(verb: str) -> Callable[..., str]:
            return lambda resource, *_: f"{verb} {resource.plural}"

        return {name: self.counted(getattr(kind, name), change(verb)) for name, verb in VERBS.items()}

    def counted(self, method: Callable[..., Awaitable[Any]], change: Callable[..., str]) -> Callable[..., Any]:
        """The method, each call of which is a change; `change` makes its name of the arguments."""

        async def counted(self_: Any, *given: Any, **more: Any) -> Any:
            name = change(*given)
            self._reach("before", name)
            result = await method(self_, *given, **more)
            self.made.append(name)
            self._reach("after", name)
            return result

        return counted

    def _reach(self, when: str, name: str) -> None:
        point = self._point
        if not self._ended and when == point.when and point.fits(name):
            number = sum(map(point.fits, self.made)) + (when == "before")
            self._ended = number == point.turn
        if self._ended:
            self._crash()


class Died(BaseException):
    """The end of the controller under test, which no code catches."""


class Crash:
    """Ends the first controller under test at a point, instead of the process."""

    def __init__(self, point: Point) -> None:
        self.happened = asyncio.Event()
        self._changes = Changes(point, self._die)

    def _die(self) -> None:
        self.happened.set()
        raise Died

    def _counted(self, client: Client) -> Client:
        """The client for the controller, whose changes count."""
        counted, kind = copy(client), type(client)
        counted.__class__ = type(kind.__name__, (kind,), self._changes.methods_of(kind))
        return counted

    async def during(self, play: Coroutine[Any, Any, None], kube: KubeWorld, **settings: Any) -> None:
        """Run the controller until it ends, then another one until the play ends."""
        playing = asyncio.create_task(play)
        try:
            await self._first(playing, kube, **settings)
            if playing.done():
                return playing.result()
            async with kube.operator(**settings):
                await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    async def _first(self, playing: asyncio.Task[None], kube: KubeWorld, **settings: Any) -> None:
        died = asyncio.create_task(self.happened.wait())
        made = vars(leader)["Client"]  # that of a member cluster in memory, if there is one
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(Logs, "end", self._changes.counted(Logs.end, _end_log))
            patches.setattr(leader, "Client", lambda **given: self._counted(made(**given)))
            try:
                async with kube.operator(client=self._counted(kube.client), **settings):
                    await asyncio.wait({playing, died}, return_when=asyncio.FIRST_COMPLETED)
            except BaseExceptionGroup as group:
                if not group.subgroup(Died):
                    raise
            finally:
                died.cancel()


def _end_log(*_: object) -> str:
    return "end log"
