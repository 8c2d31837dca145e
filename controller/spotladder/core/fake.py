"""An `AttemptBackend` in memory: for tests of whatever drives one, and held to the same conformance suite as real ones.

It has no will of its own. Attempts come up when `bring_up` is called, programs end when `end_program` is, nodes go when
`lose` or `notice` is called: a test says what the world does, and the fake keeps the books as a backend must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Finish,
    Instant,
    Launch,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Progress,
)
from spotladder.core.reasons import Cause


@dataclass
class FakeBackend:
    """`calls` are all actions it was given, in order. `keeps_deleted`: numbers that a deletion does not remove yet."""

    workers: int = 2
    calls: list[Launch | Drain | Delete | Finish] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    finished: Finish | None = None
    drained: dict[int, Drain] = field(default_factory=dict)
    keeps_deleted: set[int] = field(default_factory=set)
    revision: int = 0
    _attempts: dict[int, AttemptSeen] = field(default_factory=dict)
    _replacements: int = 0

    # --- the port ---

    def launch(self, action: Launch) -> None:
        """All pods of the attempt are wanted, none runs yet."""
        self.calls.append(action)
        if action.attempt not in self._attempts:
            names = [f"a{action.attempt}-w{index + 1}" for index in range(self.workers)]
            pods = tuple(PodSeen(name, phase=PodPhase.PENDING, ready=False, unschedulable=True) for name in names)
            head = PodSeen(f"a{action.attempt}-head", PodRole.HEAD, PodPhase.PENDING, ready=False)
            self._attempts[action.attempt] = AttemptSeen(action.attempt, pods=(head, *pods))

    def drain(self, action: Drain) -> None:
        """Remember that the program was asked; `end_program` says what it makes of it."""
        self.calls.append(action)
        if action.attempt in self._attempts:
            self.drained.setdefault(action.attempt, action)

    def delete(self, action: Delete) -> None:
        """Forget the attempt, unless a test keeps it for a while."""
        self.calls.append(action)
        if action.attempt not in self.keeps_deleted:
            self._attempts.pop(action.attempt, None)

    def finish(self, action: Finish) -> None:
        """Nothing is left of the job but its outcome."""
        self.calls.append(action)
        self.finished = self.finished or action
        self._attempts.clear()

    def observe(self) -> Observation:
        """What exists now."""
        self.revision += 1
        return Observation(self.revision, tuple(self._attempts.values()), self.progress, dict(self.unavailable))

    # --- the world ---

    def bring_up(self, number: int) -> None:
        """Every pod of the attempt that waits runs from now on."""
        self._change(
            number,
            lambda pod: (
                replace(pod, phase=PodPhase.RUNNING, ready=True, unschedulable=False)
                if pod.phase is PodPhase.PENDING
                else pod
            ),
        )

    def lose(self, uid: str, cause: Cause = Cause.NODE_LOST, *, replaced: bool = True) -> None:
        """The pod is gone; another one is wanted in its place."""
        number = self._owner(uid)
        self._change(
            number, lambda pod: replace(pod, phase=PodPhase.LOST, ready=False, cause=cause) if pod.uid == uid else pod
        )
        if replaced:
            self._replacements += 1
            fresh = PodSeen(f"{uid}-{self._replacements}", phase=PodPhase.PENDING, ready=False, unschedulable=True)
            seen = self._attempts[number]
            self._attempts[number] = replace(seen, pods=(*seen.pods, fresh))

    def notice(self, uid: str, ends_at: Instant) -> None:
        """The pod's node will be reclaimed."""
        self._change(
            self._owner(uid),
            lambda pod: (
                replace(pod, noticed=True, notice_ends_at=ends_at, cause=Cause.INTERRUPTION) if pod.uid == uid else pod
            ),
        )

    def place(self, number: int) -> None:
        """Every pod of the attempt that waits has a node and its image from now on."""
        self._change(
            number,
            lambda pod: (
                replace(pod, scheduled=True, image_pulled=True, unschedulable=False)
                if pod.phase is PodPhase.PENDING
                else pod
            ),
        )

    def fall_silent(self, number: int) -> None:
        """No node of the attempt is heard of, until `be_heard`."""
        self._change(
            number,
            lambda pod: (
                replace(pod, phase=PodPhase.LOST, ready=False, cause=Cause.NODE_LOST, silent=True)
                if pod.phase is PodPhase.RUNNING
                else pod
            ),
        )
        seen = self._attempts[number]
        silent = sum(1 for pod in seen.pods if pod.silent)
        self._attempts[number] = replace(seen, nodes=silent, silent_nodes=silent)

    def be_heard(self, number: int) -> None:
        """The nodes that were silent are heard of again, and their pods have run on."""
        self._change(
            number,
            lambda pod: (
                replace(pod, phase=PodPhase.RUNNING, ready=True, cause=Cause.UNKNOWN, silent=False)
                if pod.silent
                else pod
            ),
        )
        self._attempts[number] = replace(self._attempts[number], nodes=0, silent_nodes=0)

    def crash(self, uid: str, exit_code: int, message: str = "") -> None:
        """The pod's container ends by its own fault."""
        self._change(
            self._owner(uid),
            lambda pod: (
                replace(
                    pod,
                    phase=PodPhase.LOST,
                    ready=False,
                    cause=Cause.APP_ERROR,
                    exit_code=exit_code,
                    exit_message=message,
                )
                if pod.uid == uid
                else pod
            ),
        )

    def end_program(self, number: int, how: Exit, message: str = "") -> None:
        """The attempt's program ended."""
        self._attempts[number] = replace(self._attempts[number], exit=how, message=message)

    def lose_store(self, number: int, since: Instant | None, message: str = "") -> None:
        """The attempt's program cannot reach the checkpoint store since then; None: it can again."""
        seen = self._attempts[number]
        self._attempts[number] = replace(seen, store_unavailable_since=since, store_message=message)

    def vanish(self, number: int) -> None:
        """Somebody else removed the attempt."""
        self._attempts.pop(number, None)

    def _owner(self, uid: str) -> int:
        return next(number for number, seen in self._attempts.items() if any(pod.uid == uid for pod in seen.pods))

    def _change(self, number: int, change: Callable[[PodSeen], PodSeen]) -> None:
        seen = self._attempts[number]
        self._attempts[number] = replace(seen, pods=tuple(change(pod) for pod in seen.pods))
