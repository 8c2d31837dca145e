"""The protocol by which all ranks get the same answer from `should_commit` without a collective in every step.

Rank 0 decides that a commit is due and announces its step to the other ranks. First it *holds* every rank: a held rank
returns the last step for which its program called `should_commit`, and answers no further call. Then rank 0 sets the
*agreed step*, which is after all of these, and the ranks continue. So no rank can pass the agreed step without
committing, whatever the speed of the ranks. In synchronous data-parallel training no rank can finish step s + 1 before
rank 0 has entered it, so the agreed step is the next step and each rank waits only for one message. Ranks exchange no
message while no commit is due. Commits every N steps need no message at all.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgreedStep:
    """Commit at the first call of `should_commit` whose step is `step` or later; stop after it if `stop`. `leaving` are
    the Ray nodes without which the program continues; empty: the program ends."""

    step: int
    stop: bool
    leaving: tuple[str, ...] = ()


class Agreement:
    """The state of one rank: the last step that its program reached, the agreed step, and whether the rank is held."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = 0
        self._held = False
        self._agreed: list[AgreedStep] = []
        self._failure: BaseException | None = None

    def hold(self) -> int:
        """Hold this rank until `set_step`. Returns the last step that the program reached."""
        with self._changed:
            self._held = True
            return self._asked

    def set_step(self, step: int, stop: bool, leaving: tuple[str, ...] = ()) -> None:
        """Set the agreed step: the program commits at `step`, or at the next step that the program reaches."""
        with self._changed:
            self._agreed.append(AgreedStep(step, stop, leaving))
            self._held = False
            self._changed.notify_all()

    def fail(self, failure: BaseException) -> None:
        """Record that rank 0 is lost: ranks that wait for the agreed step raise this error."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def answer(self, step: int) -> AgreedStep | None:
        """The decision for this step, returned once; None if this step has no commit. Waits while this rank is held.

        A new agreed step does not replace an earlier one that this rank has not reached: a faster rank may have
        committed the earlier one already.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._failure is not None)
            if self._held and self._failure is not None:
                raise self._failure
            self._asked = max(self._asked, step)
            due = [agreed for agreed in self._agreed if agreed.step <= step]
            self._agreed = [agreed for agreed in self._agreed if agreed.step > step]
            return _together(step, due) if due else None

    @property
    def pending(self) -> bool:
        """Whether this rank has not reached the agreed step yet."""
        return bool(self._agreed)


def _together(step: int, due: list[AgreedStep]) -> AgreedStep:
    """Combine several agreed steps: an end of the program wins over a handover."""
    stops = [agreed for agreed in due if agreed.stop]
    ends = any(not agreed.leaving for agreed in stops)
    leaving = () if ends else tuple(sorted({node for agreed in stops for node in agreed.leaving}))
    return AgreedStep(step, bool(stops), leaving)
