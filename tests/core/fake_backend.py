"""An `AttemptBackend` in memory for tests; the conformance suite tests it like the real backends.

A test controls it: attempts start when the test calls `bring_up`, programs end when it calls `end_program`, nodes are
lost when it calls `lose` or `notice`. The fake keeps the records that a backend must keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from spotladder.core.model import (
    Action,
    AskToCommit,
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
    Replace,
    Resize,
    TakeOver,
)
from spotladder.core.reasons import Cause


@dataclass
class FakeBackend:
    """`calls` are all actions that it got, in order. `keeps_deleted` are the numbers of attempts that a deletion does
    not remove yet. `begins_with_all_workers`: programs begin only when all requested workers are ready."""

    workers: int = 2
    begins_with_all_workers: bool = False
    calls: list[Action] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    finished: Finish | None = None
    drained: dict[int, Drain] = field(default_factory=dict)
    handed_over: set[str] = field(default_factory=set)
    keeps_deleted: set[int] = field(default_factory=set)
    revision: int = 0
    _attempts: dict[int, AttemptSeen] = field(default_factory=dict)
    _replacements: int = 0

    # --- AttemptBackend ---

    def launch(self, action: Launch) -> None:
        """Create the attempt with all of its pods pending."""
        self.calls.append(action)
        if action.attempt not in self._attempts:
            pods = tuple(self._pending(action.attempt, index + 1) for index in range(self.workers))
            head = PodSeen(f"a{action.attempt}-head", PodRole.HEAD, PodPhase.PENDING, ready=False)
            held = False if action.standby else None
            self._attempts[action.attempt] = AttemptSeen(
                action.attempt,
                pods=(head, *pods),
                surplus=0,
                held=held,
                waits_for_all_workers=self.begins_with_all_workers,
            )

    def drain(self, action: Drain) -> None:
        """Record the request; `end_program` decides how the program reacts."""
        self.calls.append(action)
        if action.attempt in self._attempts:
            self.drained.setdefault(action.attempt, action)

    def delete(self, action: Delete) -> None:
        """Remove the attempt, unless it is in `keeps_deleted`."""
        self.calls.append(action)
        if action.attempt not in self.keeps_deleted:
            self._attempts.pop(action.attempt, None)

    def replace(self, action: Replace) -> None:
        """Add a replacement for each of these pods. Pods that are handed over are gone at once."""
        self.calls.append(action)
        seen = self._attempts.get(action.attempt)
        if seen is None:
            return
        if action.remove:
            self.handed_over.update(action.pods)
        pods = [pod for pod in seen.pods if pod.uid not in self.handed_over]
        going = sum(1 for pod in pods if pod.uid in action.pods and pod.phase is PodPhase.RUNNING)
        missing = self.workers + going - sum(1 for pod in pods if _serves(pod))
        pods += [self._wanted(action.attempt) for _ in range(missing)]
        self._attempts[action.attempt] = replace(seen, pods=tuple(pods), surplus=going)

    def resize(self, action: Resize) -> None:
        """Ask for all workers again, or leave out those that are pending without a node."""
        self.calls.append(action)
        seen = self._attempts.get(action.attempt)
        if seen is None:
            return
        fewer = action.workers < self.workers
        pods = [pod for pod in seen.pods if not (fewer and _serves(pod) and not pod.placed)]
        missing = action.workers - sum(1 for pod in pods if _serves(pod))
        pods += [self._wanted(action.attempt) for _ in range(missing)]
        surplus = sum(1 for pod in pods if _serves(pod)) - self.workers
        self._attempts[action.attempt] = replace(seen, pods=tuple(pods), surplus=surplus)
        self._change(action.attempt, lambda pod: pod)

    def take_over(self, action: TakeOver) -> None:
        """Let the program start: its start is the newest in the log."""
        self.calls.append(action)
        if action.attempt in self._attempts:
            self.progress = replace(self.progress, attempt=max(self.progress.attempt, action.attempt))

    def ask_to_commit(self, action: AskToCommit) -> None:
        """Record the request; the test decides how the program reacts."""
        self.calls.append(action)

    def finish(self, action: Finish) -> None:
        """Remove everything of the job except its outcome."""
        self.calls.append(action)
        self.finished = self.finished or action
        self._attempts.clear()

    def observe(self) -> Observation:
        """The current state."""
        self.revision += 1
        return Observation(self.revision, tuple(self._attempts.values()), self.progress, dict(self.unavailable))

    # --- controlled by tests ---

    def bring_up(self, number: int, workers: int | None = None) -> None:
        """Start every pending pod of the attempt: the head, and this number of workers if given."""
        pending = [pod for pod in self._attempts[number].pods if pod.phase is PodPhase.PENDING]
        starts = {pod.uid for pod in [pod for pod in pending if _serves(pod)][:workers]}
        starts |= {pod.uid for pod in pending if pod.role is PodRole.HEAD}
        self._change(
            number,
            lambda pod: (
                replace(pod, phase=PodPhase.RUNNING, ready=True, unschedulable=False) if pod.uid in starts else pod
            ),
        )

    def lose(self, uid: str, cause: Cause = Cause.NODE_LOST) -> None:
        """Lose the pod; a replacement is pending."""
        number = self._owner(uid)
        self._change(
            number, lambda pod: replace(pod, phase=PodPhase.LOST, ready=False, cause=cause) if pod.uid == uid else pod
        )
        seen = self._attempts[number]
        self._attempts[number] = replace(seen, pods=(*seen.pods, self._wanted(number)))

    def notice(self, uid: str, ends_at: Instant) -> None:
        """Announce that the pod's node will be reclaimed."""
        self._change(
            self._owner(uid),
            lambda pod: (
                replace(pod, noticed=True, notice_ends_at=ends_at, cause=Cause.INTERRUPTION) if pod.uid == uid else pod
            ),
        )

    def explain(self, number: int, why: str) -> None:
        """Make the pending pods of the attempt say why they have no node."""
        self._change(number, lambda pod: replace(pod, waiting_message=why) if pod.phase is PodPhase.PENDING else pod)

    def end_program(self, number: int, how: Exit, message: str = "") -> None:
        """End the attempt's program."""
        self._attempts[number] = replace(self._attempts[number], exit=how, message=message)

    def lose_store(self, number: int, since: Instant | None, message: str = "") -> None:
        """Make the checkpoint store unavailable to the attempt's program since then; None makes it available."""
        seen = self._attempts[number]
        self._attempts[number] = replace(seen, store_unavailable_since=since, store_message=message)

    def _wanted(self, number: int) -> PodSeen:
        self._replacements += 1
        return self._pending(number, self.workers + self._replacements)

    def _pending(self, number: int, index: int) -> PodSeen:
        return PodSeen(f"a{number}-w{index}", phase=PodPhase.PENDING, ready=False, unschedulable=True)

    def _owner(self, uid: str) -> int:
        return next(number for number, seen in self._attempts.items() if any(pod.uid == uid for pod in seen.pods))

    def _change(self, number: int, change: Callable[[PodSeen], PodSeen]) -> None:
        seen = self._attempts[number]
        pods = tuple(change(pod) for pod in seen.pods)
        waits = seen.waits_for_all_workers and not all(pod.ready for pod in pods)
        self._attempts[number] = replace(seen, pods=pods, waits_for_all_workers=waits)


def _serves(pod: PodSeen) -> bool:
    return pod.role is PodRole.WORKER and pod.phase is not PodPhase.LOST
