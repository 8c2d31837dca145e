"""The losses of a job on a cluster, and its recoveries from them.

The job's state has the newest losses, with the times at which all workers were ready again. Events, which Kubernetes
keeps for about an hour, have the losses before them, and the names of the pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from spotladder.core.model import AttemptRecord, Instant, Loss, LossRecord, Move, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.core.transitions import TRANSITIONS
from spotladder.display.records import Lost, Moved, Noted

NAMELESS = "a pod"
"""A lost pod whose name is not known."""

_WAITED_IN_VAIN = TRANSITIONS[Stage.RECOVERING].keys() - TRANSITIONS[Stage.RUNNING].keys() - {Reason.ALL_READY}
"""Ends of attempts that only follow a wait for lost workers, once all workers have been ready."""


def with_kept(losses: Sequence[LossRecord], noted: Iterable[Lost | Noted]) -> list[Lost | Noted]:
    """These Events with the losses of the state, each once."""
    events = sorted(noted, key=lambda event: event.at)
    since = losses[0].at if losses else math.inf
    found: list[Lost | Noted] = [event for event in events if event.at < since or isinstance(event, Noted)]
    named = _Names(event for event in events if isinstance(event, Lost) and event.at >= since)
    for kept in reversed(losses):  # The Events of a loss are those after it, up to the next one.
        names = named.take(kept)
        for index in range(kept.pods):
            pod = names[index] if index < len(names) else NAMELESS
            loss = Loss(pod, kept.cause, kept.attempt, kept.tier, noticed=kept.noticed)
            found.append(Lost(kept.at, loss, 0))
    return found


class _Names:
    """The names of lost pods, from Events."""

    def __init__(self, events: Iterable[Lost]) -> None:
        self._left: dict[tuple[int, Cause, bool], list[Lost]] = {}
        for event in events:
            loss = event.loss
            self._left.setdefault((loss.attempt, loss.cause, loss.noticed), []).append(event)

    def take(self, kept: LossRecord) -> list[str]:
        """The names in the Events about such losses since this one, without those that were taken before."""
        alike = self._left.get((kept.attempt, kept.cause, kept.noticed), [])
        own = [event for event in alike if event.at >= kept.at]
        del alike[len(alike) - len(own) :]
        return [event.loss.pod for event in own]


def recoveries(losses: Iterable[LossRecord], attempt: AttemptRecord) -> Iterator[Moved]:
    """The moves of this attempt until all workers were ready again after a loss, or until it ended because it waited in
    vain, as the state tells them."""
    if (began := attempt.running_at) is None:
        return
    own = [loss for loss in losses if loss.attempt == attempt.number]
    lost: dict[Instant, list[LossRecord]] = {}
    for loss in own:
        # A loss during the start ends when all workers are ready for the first time.
        if loss.ready_at is not None and loss.ready_at > began:
            lost.setdefault(min(loss.ready_at, attempt.ended_at), []).append(loss)
    for ready_at, together in lost.items():
        silent = [loss.at for loss in together if not loss.noticed]
        if silent:
            since, stage, reason, ready = min(silent), Stage.RECOVERING, Reason.RECOVERING, Reason.ALL_READY
        else:
            since, stage = min(loss.at for loss in together), Stage.REPLACING
            reason, ready = Reason.REPLACING, Reason.HANDED_OVER
        yield Moved(since, Move(Stage.RUNNING, stage, reason, attempt.number, attempt.tier))
        yield Moved(ready_at, Move(stage, Stage.RUNNING, ready, attempt.number, attempt.tier))
    last = [loss.at for loss in own if loss.ready_at is None and not loss.noticed]
    if last and attempt.reason in _WAITED_IN_VAIN:
        yield Moved(min(last), Move(Stage.RUNNING, Stage.RECOVERING, Reason.RECOVERING, attempt.number, attempt.tier))
