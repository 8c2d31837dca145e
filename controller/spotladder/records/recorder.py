"""Makes the records of a job's persisted decisions. The local runner and the controller write the same ones.

A recorder keeps only what it has recorded last. Without that, after a restart of the controller, it records the spec
again, what the job waits for, and the milestones of the live attempt; nothing else is recorded twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spotladder.core.accounting.held_nodes import left_costs
from spotladder.core.contract import Milestone
from spotladder.core.explanation import Explanation, explain
from spotladder.core.facts.elastic import resized
from spotladder.core.model import (
    TERMINAL,
    Attempt,
    Decision,
    Instant,
    JobSpec,
    JobState,
    Observation,
    Seconds,
    Stage,
)
from spotladder.core.reasons import FAILED_EXIT_CODES, Reason
from spotladder.core.situation import Situation
from spotladder.records.model import (
    Beat,
    Billed,
    Decided,
    DriverStarted,
    Ended,
    LeftBill,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Noted,
    Reached,
    Record,
    Resized,
    Specified,
    Waited,
)


class Recorder:
    """The recorder of one job. `recorded` are the spec and the policy that were recorded last; None: unknown. A wait of
    the job is recorded after `shown_after`."""

    def __init__(
        self, job: str, namespace: str, recorded: tuple[JobSpec, str] | None = None, *, shown_after: Seconds = 0.0
    ) -> None:
        self._job, self._namespace, self._specified = job, namespace, recorded
        self._shown_after = shown_after
        self._noticed: frozenset[str] = frozenset()
        self._left: dict[int, LeftBill] = {}
        self._reached: set[tuple[int, Milestone]] = set()
        self.waited: Waited | None = None

    def specified(self, spec: JobSpec, policy: str, now: Instant) -> Iterator[Specified]:
        """The spec, if it is not that of the last call."""
        if (spec, policy) != self._specified:
            self._specified = (spec, policy)
            yield Specified(now, self._job, self._namespace, spec, policy)

    def decided(self, before: JobState, decision: Decision, seen: Observation, now: Instant) -> Iterator[Record]:
        """The decision with its input, and the losses, the changes of a standby attempt and the moves that it made."""
        state = decision.state
        if decision.moves or decision.losses or decision.standby_changes:
            yield Decided(now, seen, before, state)
        else:
            yield Decided(now, seen, state)
        for loss in decision.losses:
            yield Lost(now, loss, state.record(loss.tier).failures)
        # After a notice the program still commits: the next attempt may resume from that commit.
        if any(not loss.noticed for loss in decision.losses) and state.progress.committed_at is None:
            yield Noted(now, "nothing was committed before this loss: the job restarts at step 0")
        for change in decision.standby_changes:
            yield Noted(now, change.sentence, change.attempt, warning=False)
        for move in decision.moves:
            yield Moved(now, move)

    def charge(self, spec: JobSpec, before: JobState, now: Instant) -> None:
        """Add what earlier attempts have cost since the state before a decision."""
        for one, spent, on_demand in left_costs(before, spec, now):
            known = self._left.get(one.number, LeftBill(one.number, one.tier, 0.0, 0.0))
            more = replace(known, spent=known.spent + spent, on_demand=known.on_demand + on_demand)
            self._left[one.number] = more

    def billed(self, state: JobState, now: Instant) -> Billed:
        """The costs so far, with those of earlier attempts since the last bill."""
        left, self._left = tuple(self._left.values()), {}
        return Billed(now, state.spent_usd, state.on_demand_usd, state.nodes, left)

    def waits(self, spec: JobSpec, state: JobState, seen: Observation, now: Instant) -> Iterator[Waited]:
        """What the job waits for, once for each change of its cause. The backend says what a start waits for."""
        found = explain(Situation(spec, state, seen, now))
        if state.impeded is None or state.impeded.reason is Reason.WAITING_FOR_PODS:
            found = None
        if found is not None and now - found.since < self._shown_after:
            return
        before, self.waited = self.waited, _waited(found, now)
        if _cause(before) != _cause(self.waited):
            yield self.waited or Waited(now)

    def observed(self, before: JobState, state: JobState, seen: Observation) -> Iterator[Record]:
        """What the observation of a cluster shows: notices, steps, starts and sizes of the program."""
        now, attempt = state.clock, state.attempt
        found = seen.attempt(attempt.number) if attempt is not None else None
        if attempt is not None and found is not None:
            noticed = {pod.uid: pod for pod in found.pods if pod.noticed}
            for uid in sorted(noticed.keys() - self._noticed):
                pod = noticed[uid]
                yield NodeChanged(
                    now,
                    pod.node or pod.called,
                    attempt.number,
                    attempt.tier,
                    NodeChange.NOTICED,
                    pod.cause,
                    pod.notice_ends_at,
                )
            self._noticed = frozenset(noticed)
            # A heartbeat from before the newest commit would look like a restart of the program.
            committed = state.progress.step if state.progress.attempt == attempt.number else 0
            if found.step and found.step >= committed:
                yield Beat(now, attempt.number, found.step, found.total)
        if before.progress.start < state.progress.start:
            yield DriverStarted(now, state.progress.attempt)
        if (size := resized(before, state)) is not None:
            yield Resized(now, state.number, *size)

    def reached(self, attempt: Attempt | None, found: Mapping[Milestone, Instant], now: Instant) -> Iterator[Reached]:
        """The milestones of the live attempt that are not recorded yet. The clocks of machines are not trusted."""
        for milestone, at in found.items():
            if attempt is not None and (attempt.number, milestone) not in self._reached:
                self._reached = {one for one in self._reached if one[0] == attempt.number}
                self._reached.add((attempt.number, milestone))
                yield Reached(min(max(at, attempt.created_at), now), attempt.number, milestone)

    def ended(self, before: JobState, state: JobState, now: Instant) -> Iterator[Ended]:
        """The end of the job, if this decision ended it."""
        if state.stage in TERMINAL and before.stage not in TERMINAL:
            code = 0 if state.stage is Stage.SUCCEEDED else FAILED_EXIT_CODES.get(state.reason, 1)
            yield Ended(now, code, state.reason, state.message)


def _waited(waits: Explanation | None, now: Instant) -> Waited | None:
    return None if waits is None else Waited(now, waits.message, waits.since, waits.timer, waits.until, waits.then)


def _cause(waited: Waited | None) -> tuple[str, str]:
    """The part of a wait that changes only with its cause: a suspended timer moves its end all the time."""
    return ("", "") if waited is None else (waited.message, waited.timer)
