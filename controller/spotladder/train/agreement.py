"""How all ranks give the same answer to `should_commit` without a collective in every step.

Rank 0 decides that a commit is due and announces a step; the others only listen. For that, it first *holds* every
rank: from then on a rank answers no further question, and says which step it was last asked about. Then it *settles*
a step beyond all of those, and the ranks go on. So no rank can have passed the settled step unaware, whatever their
speeds; in synchronous data-parallel training the settled step is simply the next one, and no rank waits for longer
than one message takes, since no rank can end step s + 1 before rank 0 has entered it. Nothing is sent when nothing
is due, and commits every N steps need no message at all.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settled:
    """Commit at the first step asked about from `step` on, and stop after it if `stop`."""

    step: int
    stop: bool


class Agreement:
    """One rank's side: what it was asked about, what was settled, whether it is held."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = 0
        self._held = False
        self._settled: list[Settled] = []
        self._failure: BaseException | None = None

    def hold(self) -> int:
        """Answer nothing until `settle`. Returns the last step that was asked about."""
        with self._changed:
            self._held = True
            return self._asked

    def settle(self, step: int, stop: bool) -> None:
        """A commit at `step` or, if that is never asked about, at the next that is."""
        with self._changed:
            self._settled.append(Settled(step, stop))
            self._held = False
            self._changed.notify_all()

    def fail(self, failure: BaseException) -> None:
        """Rank 0 is lost: ranks that wait for a settled step get this error."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def answer(self, step: int) -> Settled | None:
        """What was settled for this step, once; None if nothing was. Waits while held.

        A step that is settled while an earlier one is not reached yet does not replace it: a faster rank may have
        committed the earlier one already.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._failure is not None)
            if self._held and self._failure is not None:
                raise self._failure
            self._asked = max(self._asked, step)
            due = [settled for settled in self._settled if settled.step <= step]
            self._settled = [settled for settled in self._settled if settled.step > step]
            return Settled(step, any(settled.stop for settled in due)) if due else None

    @property
    def pending(self) -> bool:
        """Whether a settled step has not been reached yet."""
        return bool(self._settled)
