"""The runner's loop: load → decide → persist → apply, about twenty times a second, until the job has ended or is
interrupted.

1. The state is saved to the disk before its actions are executed.
2. The first request to stop drains (`suspend`), the second kills; both can be resumed.
3. When a runner is killed, its attempt ends too (`reaper`). The next runner records that attempt as interrupted at the
   time when the runner was last known to be alive: it counts no failure, and no cost for the time since.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from spotladder.core.accounting.held_nodes import account, account_steps
from spotladder.core.backend import apply
from spotladder.core.changes.moving import moved
from spotladder.core.contract import ExitCode
from spotladder.core.diagnosis.verdict import without_library
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    Action,
    Decision,
    Finish,
    Instant,
    JobSpec,
    JobState,
    Move,
    Observation,
    Progress,
    Seconds,
    Stage,
    Timers,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import FAILED_EXIT_CODES, Reason
from spotladder.core.situation import Situation
from spotladder.display.figures import span
from spotladder.display.narrate import waiting_text
from spotladder.display.view import View
from spotladder.display.view_state import ViewSnapshot
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.local.backend import LocalBackend
from spotladder.local.logwatch import LogWatch
from spotladder.local.state import JobFolder
from spotladder.records.model import Decided, Ended, Noted, Record
from spotladder.records.recorder import Recorder

POLL_INTERVAL: Seconds = 0.05
"""Interval between two observations; it bounds the reaction to the end of a process."""

DRAW_INTERVAL: Seconds = 0.25
"""Interval between two updates of the live view."""

WAIT_SHOWN_AFTER: Seconds = 1.5
"""Time after which the view and the timeline show that a job waits. Nodes of this machine are often ready sooner."""

LEAST_SLEEP: Seconds = 60.0
"""A jump of the clock from which this machine has slept, or its clock was wrong."""

SAVE_INTERVAL: Seconds = 5.0
"""Interval between two writes of a state in which only cost and clock have changed."""


class Killed(SpotladderError):
    """A second request to stop: all processes end now; the run can be resumed."""

    exit_code = ExitCode.INTERRUPTED


class Runner:
    """Runs one job until it ends or the user stops it. `names` are those of the job, its namespace and its policy."""

    def __init__(
        self,
        spec: JobSpec,
        policy: Policy,
        backend: LocalBackend,
        *,
        commits: LogWatch,
        keep: JobFolder,
        emit: Callable[[Record], None],
        view: View,
        names: tuple[str, str, str] = ("job", "default", "ordered"),
        clock: Callable[[], Instant] = time.time,
        ticks: Callable[[], Seconds] = time.monotonic,
        wait: Callable[[Seconds], None] = time.sleep,
    ) -> None:
        self._spec, self._policy, self._backend = spec, policy, backend
        self._commits, self._keep, self._emit, self._view = commits, keep, emit, view
        self._clock, self._ticks, self._wait = clock, ticks, wait
        self._ahead = math.inf  # of the clock, compared with the ticks, which stop while the machine sleeps
        job, namespace, self._policy_name = names
        self._recorder = Recorder(job, namespace, (spec, self._policy_name), shown_after=WAIT_SHOWN_AFTER)
        self._asked = 0
        self._saved_at = self._drawn_at = -math.inf
        self._beats: dict[int, tuple[int, Instant]] = {}
        self._steps: dict[int, int] = {}
        self._skipped = ""
        self._away_since: Instant | None = None
        self._without_library = self._closed = False
        self._seen: Observation | None = None
        self.state = JobState()

    def ask_to_stop(self) -> None:
        """First call: drain and commit. Second call: end now. Safe to call from a signal handler."""
        self._asked += 1

    def run(self, state: JobState) -> int:
        """Run until the job ends; returns the exit code. Raises Killed, and EnvironmentFailure if the environment
        fails."""
        self.state = state
        self._skipped = state.progress.skipped
        try:
            return self._until_ended()
        except SpotladderError as error:
            self._emit_cut_short(error)
            raise

    def _until_ended(self) -> int:
        self._keep.save(self.state)
        while True:
            if self._asked > 1:
                raise Killed("killed before it stopped by itself; its commits are kept")
            now = self._clock()
            self._leave_out_sleep(now)
            spec = self._stopped_spec() if self._asked else self._spec
            seen = self._seen = self._backend.observe()
            self._charge_steps(seen.progress)
            before, decision = self.state, decide(spec, self.state, seen, now, self._policy)
            persisted = self._persist(decision, now)
            self._narrate(spec, before, decision, seen, now, persisted=persisted)
            closed = self._closed  # Then `seen` has the log as it was after the end.
            for action in decision.actions:
                self._apply(action)
            self._show(spec, seen, now)
            if self.state.stage in TERMINAL and closed and not decision.moves and not seen.attempts:
                return self._ended(self._exit_code(), now)
            if self.state.stage is Stage.SUSPENDED and spec.suspend and not decision.moves and not seen.attempts:
                return self._ended(ExitCode.INTERRUPTED, now)
            if not decision.moves:
                self._wait(POLL_INTERVAL)

    def _leave_out_sleep(self, now: Instant) -> None:
        """If this machine has slept since the last decision, with all processes of the job, charge nothing, and let the
        running timers begin again."""
        slept, self._ahead = now - self._ticks() - self._ahead, now - self._ticks()
        if slept < LEAST_SLEEP:
            return
        self._emit(
            Noted(now, f"this machine slept for {span(slept)}: that time costs nothing, and no timeout counts it")
        )
        state, timers, attempt = self.state, self.state.timers, self.state.attempt
        timers = replace(
            timers,
            waiting_since=timers.waiting_since and now,
            recovering_since=timers.recovering_since and now,
        )
        if attempt is not None:
            attempt = replace(attempt, all_ready_at=attempt.all_ready_at and now, steps=())
        self.state = replace(state, clock=now, timers=timers, attempt=attempt, impeded=None)

    def _charge_steps(self, progress: Progress) -> None:
        """Charge the nodes for the time that the new steps of the live attempt stand for, repeated steps included."""
        attempt = self.state.attempt
        if attempt is None or not self._spec.step_time:
            return
        beat = next((beat for beat in self._backend.beats() if beat.attempt == attempt.number), None)
        step = max(beat.step if beat else 0, progress.step if progress.attempt == attempt.number else 0)
        before = self._steps.get(attempt.number, attempt.start_step)
        self._steps[attempt.number] = step or before  # It is lower after a restart of the program.
        self.state = account_steps(self.state, self._spec, step - before)

    def _stopped_spec(self) -> JobSpec:
        return replace(self._spec, suspend=True, suspend_reason=Reason.STOP_REQUESTED)

    def _persist(self, decision: Decision, now: Instant) -> bool:
        """Take the new state. Returns whether it was saved."""
        due = decision.state.lasting != self.state.lasting or now - self._saved_at >= SAVE_INTERVAL
        if due:
            self._keep.save(decision.state)
            self._saved_at = now
        self.state = decision.state
        return due

    def _narrate(
        self, spec: JobSpec, before: JobState, decision: Decision, seen: Observation, now: Instant, *, persisted: bool
    ) -> None:
        """Record what was seen, decided and paid."""
        recorder, state = self._recorder, decision.state
        for commit in self._commits.take_new():  # First: the decision must take these commits into account.
            self._emit(commit)
        self._narrate_store(Situation(spec, state, seen, now))
        if persisted:
            for record in (
                *recorder.specified(spec, self._policy_name, now),
                *recorder.decided(before, decision, seen, now),
            ):
                self._emit(record)
        for record in recorder.reached(state.attempt, self._backend.reached(state.number), now):
            self._emit(record)
        for beat in self._backend.beats():
            if self._beats.get(beat.attempt) != (beat.step, beat.at):
                self._beats[beat.attempt] = (beat.step, beat.at)
                self._emit(beat)
        if error := self._commits.take_error():
            self._emit(Noted(now, f"cannot read the commit log: {error}"))
        recorder.charge(spec, before, now)
        self._emit(recorder.billed(state, now))
        unused = "" if self._without_library else without_library(Situation(spec, state, seen, now))
        if unused:
            self._without_library = True
            self._emit(Noted(now, unused))
        for waited in recorder.waits(spec, state, seen, now):
            self._emit(waited)

    def _narrate_store(self, situation: Situation) -> None:
        """Record an outage of the checkpoint store, its end during the same attempt, and commits that could not be
        resumed from."""
        now, skipped, seen = situation.now, situation.state.progress.skipped, situation.attempt_seen
        if skipped and skipped != self._skipped:
            self._emit(Noted(now, skipped))
        self._skipped = skipped
        since = None if seen is None else seen.store_unavailable_since
        if seen is not None and since is not None and self._away_since is None:
            why = f" ({seen.store_message})" if seen.store_message else ""
            self._emit(Noted(now, f"the checkpoint store does not answer{why}: training continues and commits later"))
        elif seen is not None and since is None and self._away_since is not None:
            self._emit(Noted(now, f"the checkpoint store answers again, after {span(now - self._away_since)}"))
        self._away_since = since

    def _apply(self, action: Action) -> None:
        if not isinstance(action, Finish):
            return apply(self._backend, action)
        first, self._closed = not self._closed, True
        try:
            self._backend.finish(action)
        except SpotladderError as error:  # An error here does not change that the job has ended.
            last = f"step {self.state.progress.step} is the newest that was read, and there may be a later one"
            if first:
                self._emit(Noted(self._clock(), f"the commit log was not closed: {error}; {last}"))

    def _show(self, spec: JobSpec, seen: Observation, now: Instant) -> None:
        if now - self._drawn_at < DRAW_INTERVAL and self.state.stage not in (*TERMINAL, Stage.SUSPENDED):
            return
        self._drawn_at = now
        hint = "Ctrl-C again kills" if self._asked else "Ctrl-C drains and commits"
        waited = self._recorder.waited
        waits = "" if waited is None else waiting_text(waited, now)
        self._view.update(ViewSnapshot(now, spec, self.state, seen, hint, self._backend.doing(), waits))

    def _ended(self, code: int, now: Instant) -> int:
        self._keep.save(self.state)
        self._emit_state(now)
        reason = Reason.INTERRUPTED if code == ExitCode.INTERRUPTED else self.state.reason
        nothing = "" if self.state.progress.committed_at is not None else "nothing was committed"
        self._emit(Ended(now, code, reason, "; ".join(filter(None, (self.state.message, nothing)))))
        return code

    def _emit_state(self, now: Instant) -> None:
        """Record the last state."""
        if self._seen is not None:
            self._emit(Decided(now, self._seen, self.state))

    def _emit_cut_short(self, error: SpotladderError) -> None:
        """The reason why the run ends before the job does; the state's own reason is that of the last transition."""
        resumable = isinstance(error, Killed | EnvironmentFailure)
        reason = Reason.INTERRUPTED if resumable else self.state.reason
        with suppress(SpotladderError):  # The disk may be full.
            self._emit_state(self._clock())
            self._emit(Ended(self._clock(), error.exit_code, reason, str(error)))

    def _exit_code(self) -> int:
        if self.state.stage is Stage.SUCCEEDED:
            return 0
        if self.state.reason is Reason.APPLICATION_FAILED and self._backend.last_exit == EnvironmentFailure.exit_code:
            # The error is one of spotladder's: the disk or the bucket of the commit log failed.
            return EnvironmentFailure.exit_code
        return FAILED_EXIT_CODES.get(self.state.reason, 1)


def end_interrupted_attempt(
    spec: JobSpec, state: JobState, progress: Progress, alive_until: Instant
) -> tuple[JobState, list[Move]]:
    """The state after a runner was killed with its attempt, and the transitions to it.

    A standby attempt ended with it. The attempt ended at `alive_until`, when the runner was last known to be alive: the
    cost of its nodes is counted until then. No failure is counted, and the next attempt starts on the same tier.
    """
    situation = Situation(
        spec, account(state, spec, alive_until), Observation(state.revision, (), progress), alive_until
    )
    situation = replace(
        situation, state=replace(situation.state, standby=replace(state.standby, attempt=None, nodes=0))
    )
    moves: list[Move] = []
    while situation.state.attempt is not None:
        reason = {Stage.DRAINING: Reason.DRAINED, Stage.ENDING: Reason.GONE}.get(
            situation.state.stage, Reason.INTERRUPTED
        )
        message = "it ended with its runner" if reason is Reason.INTERRUPTED else ""
        after, move = moved(situation, reason, message)
        situation = replace(situation, state=after)
        moves.append(move)
    return replace(situation.state, timers=Timers(), failed_starts=state.failed_starts), moves
