"""Named places at which a test makes the controller crash: `SPOTLADDER_FAILPOINTS=after-launch`, or `after-launch@2`
for the second time.

`install` wraps the steps of a reconcile with them. `python -m tests.operator.failpoints controller …` is `spotladder
controller …` with fail points.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from spotladder.cli.main import main
from spotladder.clusters.client import Client
from spotladder.core.contract import NoticeKind
from spotladder.core.model import Drain, TakeOver
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile import loader, reconciler
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.persist import Persistence
from spotladder.operator.reconcile.reconciler import Reconciler
from spotladder.operator.storage.commit_logs import Logs

VARIABLE = "SPOTLADDER_FAILPOINTS"
CRASHED = 70


class Point(StrEnum):
    """The steps of a reconcile, in the order in which an attempt needs them."""

    AFTER_LOAD = "after-load"
    AFTER_DECIDE = "after-decide"
    BEFORE_LAUNCH = "before-launch"
    BETWEEN_OBJECTS = "between-objects"  # of an attempt with several objects
    AFTER_LAUNCH = "after-launch"
    AFTER_HANDOVER = "after-handover"  # the leaving pods have the notice and are not removed yet
    BEFORE_CHANGE = "before-change"  # of the requested workers, by a replacement, its handover or a resize
    AFTER_CHANGE = "after-change"
    BEFORE_DRAIN = "before-drain"
    BETWEEN_NOTICES = "between-notices"  # of the pods of an attempt
    AFTER_DRAIN = "after-drain"
    BEFORE_TAKE_OVER = "before-take-over"
    AFTER_TAKE_OVER = "after-take-over"
    BEFORE_DELETE = "before-delete"
    BETWEEN_DELETES = "between-deletes"  # of the objects of an attempt
    AFTER_DELETE = "after-delete"
    BEFORE_FINISH = "before-finish"
    AFTER_FINISH = "after-finish"
    BEFORE_STATUS = "before-status"
    AFTER_STATUS = "after-status"
    AFTER_EVENTS = "after-events"
    BEFORE_RELEASE = "before-release"  # of a deleted job's finalizer


@dataclass(slots=True)
class _Armed:
    turn: int
    hits: int = 0


def _armed(text: str) -> dict[str, _Armed]:
    name, _, turn = text.partition("@")
    return {Point(name): _Armed(int(turn or 1))} if text else {}


_points = _armed(os.environ.get(VARIABLE, ""))


def reach(point: Point) -> None:
    """Crash, if this fail point is set."""
    if _points and (armed := _points.get(point)):
        armed.hits += 1
        if armed.hits == armed.turn:
            _crash(point)


def _crash(_point: Point) -> None:
    """End the process at once without cleanup."""
    os._exit(CRASHED)


Set = Callable[[Any, str, Any], None]


def install(put: Set = setattr) -> None:
    """Wrap the steps of a reconcile with the fail points. `put` sets an attribute."""
    _around(put, Applier, "launch", Point.BEFORE_LAUNCH, Point.AFTER_LAUNCH, when=lambda _, result: result is None)
    _between(put, (Applier, "_make_all"), (Applier, "_make"), Point.BETWEEN_OBJECTS)
    _between(put, (Applier, "_notify"), (Client, "merge"), Point.BETWEEN_NOTICES)
    _around(put, Applier, "_notify", None, Point.AFTER_HANDOVER, when=lambda given, _: _is_handover(given))
    for action, before, after in (
        (Drain, Point.BEFORE_DRAIN, Point.AFTER_DRAIN),
        (TakeOver, Point.BEFORE_TAKE_OVER, Point.AFTER_TAKE_OVER),
    ):
        _around(put, Applier, "change", before, after, only=partial(_does, action))
    _around(put, Applier, "_change", Point.BEFORE_CHANGE, Point.AFTER_CHANGE, only=lambda given: given[1] is not None)
    _around(put, AttemptRemover, "delete", Point.BEFORE_DELETE, Point.AFTER_DELETE)
    _between(put, (AttemptRemover, "remove_attempt"), (AttemptRemover, "remove"), Point.BETWEEN_DELETES)
    _around(put, AttemptRemover, "remove_attempt", None, Point.BETWEEN_DELETES)
    _around(put, Logs, "end", Point.BEFORE_FINISH, Point.AFTER_FINISH)
    _around(put, Persistence, "_write", Point.BEFORE_STATUS, Point.AFTER_STATUS)
    _around(put, Persistence, "decided", None, Point.AFTER_EVENTS, when=_is_written)
    _around(put, Reconciler, "_release", Point.BEFORE_RELEASE, None)
    _before(put, loader, "time_until_log_read", Point.AFTER_LOAD)
    _after(put, reconciler, "decide", Point.AFTER_DECIDE)


def _around(
    put: Set,
    kind: type[Any],
    name: str,
    before: Point | None,
    after: Point | None,
    *,
    only: Callable[[tuple[Any, ...]], bool] = lambda _: True,
    when: Callable[[tuple[Any, ...], Any], bool] = lambda _given, _result: True,
) -> None:
    plain = getattr(kind, name)

    async def wrapped(self: Any, *given: Any, **more: Any) -> Any:
        if before is not None and only(given):
            reach(before)
        result = await plain(self, *given, **more)
        if after is not None and only(given) and when(given, result):
            reach(after)
        return result

    put(kind, name, wrapped)


def _between(put: Set, outer: tuple[type[Any], str], inner: tuple[type[Any], str], point: Point) -> None:
    """The fail point is between two calls of `inner` by one call of `outer`."""
    calls: ContextVar[list[None] | None] = ContextVar(point, default=None)
    plain_outer, plain_inner = getattr(*outer), getattr(*inner)

    async def wrapped_outer(self: Any, *given: Any, **more: Any) -> Any:
        token = calls.set([])
        try:
            return await plain_outer(self, *given, **more)
        finally:
            calls.reset(token)

    async def wrapped_inner(self: Any, *given: Any, **more: Any) -> Any:
        if (known := calls.get()) is not None:
            if known:
                reach(point)
            known.append(None)
        return await plain_inner(self, *given, **more)

    put(*outer, wrapped_outer)
    put(*inner, wrapped_inner)


def _before(put: Set, module: Any, name: str, point: Point) -> None:
    plain = getattr(module, name)

    def wrapped(*given: Any) -> Any:
        reach(point)
        return plain(*given)

    put(module, name, wrapped)


def _after(put: Set, module: Any, name: str, point: Point) -> None:
    plain = getattr(module, name)

    def wrapped(*given: Any) -> Any:
        result = plain(*given)
        reach(point)
        return result

    put(module, name, wrapped)


def _does(action: type[Any], given: tuple[Any, ...]) -> bool:
    return isinstance(given[1], action)


def _is_handover(given: tuple[Any, ...]) -> bool:
    return bool(given[2].kind == NoticeKind.HANDOVER)


def _is_written(given: tuple[Any, ...], result: Any) -> bool:
    loaded: Loaded = given[0]
    return result is not loaded.status


if __name__ == "__main__":
    install()
    sys.exit(main(sys.argv[1:]))
