"""Computes every figure of the report of a job, finished or live, from its records.

Times are in seconds of the run, without the time in which no runner was active (between an interrupt and `--continue`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from spotladder.core.accounting.savings import uninterrupted_usd
from spotladder.core.model import TERMINAL, Instant, JobSpec, JobState, Seconds, Stage, Tier, TierRecord
from spotladder.core.reasons import Cause, Reason
from spotladder.display.figures import NONE, saved
from spotladder.display.narrate import Narrator, Sentence
from spotladder.display.report.attempts import AttemptFacts, Span, attempts_of
from spotladder.display.report.plan import PlanPlace
from spotladder.display.report.work import Stretch, done_again, stretches
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import (
    Beat,
    Began,
    Billed,
    Committed,
    Ended,
    Looked,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    PoolChanged,
    Record,
    Specified,
)
from spotladder.records.recorded import Recorded
from spotladder.records.restarts import Restart, restarts


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at one moment on one tier."""

    at: Seconds
    tier: str
    attempt: int
    what: str = ""
    step: int = 0


@dataclass(frozen=True, slots=True)
class TimeUse:
    """How the time of the run was used, in seconds, without that in which it was suspended. The sum of the parts is
    the total."""

    new: Seconds = 0.0  # steps done for the first time
    recomputed: Seconds = 0.0  # steps done again
    waiting: Seconds = 0.0  # gang not ready: provisioning, recovering, no capacity
    starting: Seconds = 0.0  # gang ready, no step done yet
    handover: Seconds = 0.0  # draining and ending attempts
    idle: Seconds = 0.0  # gang ready and program started, but no step done: a last commit, a stall

    @property
    def total(self) -> Seconds:
        return self.new + self.recomputed + self.waiting + self.starting + self.handover + self.idle

    @property
    def goodput(self) -> float | None:
        """The share of the time in which new steps were done."""
        return self.new / self.total if self.total > 0 else None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The whole run. `going_on`: it had not ended when the report was written. `gaps`: sentences about missing data."""

    job: str
    namespace: str
    spec: JobSpec
    state: JobState
    exit_code: int | None
    reason: Reason
    message: str
    began_at: Instant
    length: Seconds
    sessions: int
    attempts: tuple[AttemptFacts, ...]
    time: TimeUse
    steps: int
    total: int
    committed: int
    recomputed: int | None  # None if unknown
    evictions: tuple[Mark, ...]
    notices: tuple[Mark, ...]
    commits: tuple[Mark, ...]
    dry: Mapping[str, tuple[Span, ...]]
    breaks: tuple[tuple[Seconds, Seconds], ...]  # when the run was interrupted, and for how long
    progress: tuple[tuple[Seconds, int], ...]
    losses: Mapping[int, tuple[tuple[int, float], ...]]
    bill: tuple[tuple[Seconds, float, float], ...]  # at, spent, on demand
    events: tuple[tuple[Seconds, Sentence], ...]
    going_on: bool = False
    damaged: int = 0
    gaps: tuple[str, ...] = ()
    printed: tuple[tuple[int, str, tuple[str, ...]], ...] = ()  # attempt, source, its last lines
    causes: Mapping[Cause, int] = field(default_factory=dict)
    start: Began | None = None  # None if it was not recorded
    plan: PlanPlace | None = None  # None if it is unknown or was not computed
    restarts: tuple[Restart, ...] = ()
    """The restarts, with times of the clock, not of the run."""

    def ended_by(self, attempt: AttemptFacts) -> str:
        """Why this attempt has ended; for one that had not, "running", or why the run has ended."""
        live = self.state.attempt
        if live is None or live.number != attempt.number or live.ending.reason is not None:
            return str(attempt.reason)
        return "running" if self.going_on else NONE if self.exit_code is None else str(self.reason)

    @property
    def spent(self) -> float:
        """USD paid so far."""
        return self.state.spent_usd

    @property
    def on_demand(self) -> float:
        """USD that the job would have paid for the same node-seconds on demand, and for everything else."""
        return self.state.on_demand_usd

    @property
    def unpriced(self) -> tuple[str, ...]:
        """That of `JobState`."""
        return self.state.unpriced

    @property
    def saved(self) -> float | None:
        """The share saved against the same nodes on demand; None if prices are unknown."""
        return None if self.unpriced else saved(self.spent, self.on_demand)

    @property
    def uninterrupted(self) -> float | None:
        """Estimated USD of the same steps on on-demand nodes without an interruption; None if that is unknown."""
        return uninterrupted_usd(self.spec, self.state)

    @property
    def failures(self) -> int:
        """Failures counted over all attempts."""
        return sum(attempt.failures for attempt in self.attempts)

    @property
    def node_hours(self) -> float:
        return sum(tier.node_seconds for tier in self.state.tiers) / 3600

    @property
    def tiers(self) -> tuple[tuple[Tier, TierRecord], ...]:
        """Each tier of the spec with its events."""
        return tuple((tier, self.state.record(tier.name)) for tier in self.spec.tiers)


def gather(recorded: Recorded) -> RunFacts:
    """The facts of a run. Raises `EnvironmentFailure` if the records do not name the job."""
    records, state = recorded.records, recorded.state
    start_steps = {attempt.number: attempt.start_step for attempt in state.history}
    if state.attempt:
        start_steps[state.attempt.number] = state.attempt.start_step
    specified = [record for record in records if isinstance(record, Began | Specified)]
    if not specified:
        raise EnvironmentFailure("the records have no beginning, so there is no report: run the job first")
    spec = specified[-1].spec
    clock = _RunClock(records, stretches(records, start_steps) if spec.step_time else [], spec.step_time)
    narrator = Narrator()
    events = tuple((clock.of(each.at), sentence) for each in records if (sentence := narrator.describe(each)))
    began_at, restarted = records[0].at, restarts(records)
    records = tuple(replace(each, at=clock.of(each.at)) for each in records)
    work = stretches(records, start_steps)
    last = next(record for record in reversed(records) if isinstance(record, Began | Specified | Ended | Looked))
    ended = last if isinstance(last, Ended) else None
    beats = [record for record in records if isinstance(record, Beat)]
    attempts = _counted(attempts_of(records, clock.length, spec, start_steps, work, measured=bool(beats)), state)
    commits = [record for record in records if isinstance(record, Committed)]
    losses = [record for record in records if isinstance(record, Lost)]
    return RunFacts(
        job=specified[-1].job,
        namespace=specified[-1].namespace,
        spec=spec,
        state=state,
        exit_code=ended.exit_code if ended else None,
        reason=ended.reason if ended else state.reason,
        message=(ended.message if ended else "") or state.message,
        began_at=began_at,
        length=clock.length,
        sessions=max(1, sum(isinstance(record, Began) for record in records)),
        attempts=attempts,
        time=_time_use(records, clock.length, work, attempts),
        steps=max((stretch.last for stretch in work), default=0),
        total=max(
            (*(beat.total for beat in beats), *(commit.total for commit in commits)), default=state.progress.total
        ),
        committed=max((record.step for record in commits), default=state.progress.step),
        recomputed=done_again(work, measured=bool(beats)),
        evictions=tuple(
            Mark(each.at, each.loss.tier, each.loss.attempt, f"{each.loss.pod} ({each.loss.cause})") for each in losses
        ),
        notices=tuple(
            Mark(each.at, each.tier, each.attempt, each.node)
            for each in records
            if isinstance(each, NodeChanged) and each.change is NodeChange.NOTICED
        ),
        commits=tuple(Mark(each.at, each.tier, each.attempt, step=each.step) for each in commits),
        dry=_dry(records, clock.length),
        breaks=clock.breaks,
        progress=_progress(work),
        losses=_loss_curves(beats, commits),
        bill=tuple((each.at, each.spent, each.on_demand) for each in records if isinstance(each, Billed)),
        events=events,
        going_on=isinstance(last, Looked),
        damaged=recorded.damaged,
        gaps=recorded.gaps,
        printed=recorded.printed,
        causes=Counter(each.loss.cause for each in losses),
        start=next((each for each in records if isinstance(each, Began) and not each.resumed), None),
        restarts=restarted,
    )


def _counted(attempts: tuple[AttemptFacts, ...], state: JobState) -> tuple[AttemptFacts, ...]:
    """The attempt with the failures that the state has counted, if the state has it: a timeline may lack some."""
    counts = {attempt.number: attempt.failures for attempt in state.history}
    if state.attempt:
        counts[state.attempt.number] = state.attempt.failures
    return tuple(replace(each, failures=counts.get(each.number, each.failures)) for each in attempts)


class _RunClock:
    """Converts times to seconds of the run, without the time in which no runner was active, and with `step_time`
    seconds more for each step of `work`."""

    def __init__(self, records: tuple[Record, ...], work: list[Stretch], step_time: Seconds) -> None:
        self._start, self._step_time = records[0].at, step_time
        self._work = sorted(work, key=lambda each: each.end)
        self._ends = [each.end for each in self._work]
        self._done = [0, *accumulate(each.steps for each in self._work)]
        self._begun = [*accumulate((each.start for each in reversed(self._work)), min)][::-1]  # of all from each on
        self._gaps = [
            (before.at, after.at)
            for before, after in pairwise(records)
            if isinstance(after, Began) and after.at > before.at
        ]
        self.length = self.of(max(record.at for record in records))
        self.breaks = tuple((self.of(start), end - start) for start, end in self._gaps)

    def of(self, at: Instant) -> Seconds:
        away = sum(min(max(at, start), end) - start for start, end in self._gaps)
        return max(0.0, at - self._start - away) + self._step_time * self._steps(at)

    def _steps(self, at: Instant) -> float:
        """The number of steps that are done at that moment."""
        ended, begun = bisect_right(self._ends, at), bisect_left(self._begun, at)
        return self._done[ended] + sum(each.steps_until(at) for each in self._work[ended:begun])


_SPENT_ON: Mapping[Stage, str] = {
    Stage.IDLE: "waiting",
    Stage.STARTING: "waiting",
    Stage.RECOVERING: "waiting",
    Stage.DRAINING: "handover",
    Stage.ENDING: "handover",
    Stage.RUNNING: "idle",
    Stage.REPLACING: "idle",
}


def _time_use(
    records: tuple[Record, ...], length: Seconds, work: list[Stretch], attempts: tuple[AttemptFacts, ...]
) -> TimeUse:
    """Attribute time with work to the work, and all other time to the stage of the job."""
    stages: list[tuple[Seconds, Stage]] = [(0.0, Stage.IDLE)]
    stages += [(record.at, record.move.target) for record in records if isinstance(record, Moved)]
    end = stages[-1][0] if stages[-1][1] in TERMINAL else length
    new = sum(each.seconds for each in work if each.new)
    again = sum(each.seconds for each in work if not each.new)
    rest = {"waiting": 0.0, "handover": 0.0, "idle": 0.0}
    busy = [span for attempt in attempts for span in attempt.work]
    for (start, stage), (until, _) in pairwise([*stages, (max(end, stages[-1][0]), Stage.IDLE)]):
        if stage in _SPENT_ON:
            worked = sum(max(0.0, min(until, span.end) - max(start, span.start)) for span in busy)
            rest[_SPENT_ON[stage]] += max(0.0, until - start - worked)
    starting = sum(
        max(0.0, (attempt.work[0].start if attempt.work else attempt.all_ready[0].end) - attempt.all_ready[0].start)
        for attempt in attempts
        if attempt.all_ready
    )
    starting = min(starting, rest["idle"])
    return TimeUse(new, again, rest["waiting"], starting, rest["handover"], rest["idle"] - starting)


def _dry(records: tuple[Record, ...], length: Seconds) -> Mapping[str, tuple[Span, ...]]:
    """The intervals in which each tier's pool had no capacity."""
    since: dict[str, Seconds] = {}
    spans: dict[str, tuple[Span, ...]] = {}
    for record in records:
        if not isinstance(record, PoolChanged):
            continue
        if not record.available:
            since.setdefault(record.tier, record.at)
        elif record.tier in since:
            spans[record.tier] = (*spans.get(record.tier, ()), Span(since.pop(record.tier), record.at))
    for tier, start in since.items():
        spans[tier] = (*spans.get(tier, ()), Span(start, length))
    return spans


def _progress(work: list[Stretch]) -> tuple[tuple[Seconds, int], ...]:
    """The step over time. Steps that a restart does not find in a commit are shown as lost when the work stopped."""
    points: list[tuple[Seconds, int]] = []
    for stretch in work:
        if points and points[-1][1] > stretch.first:
            points.append((points[-1][0], stretch.first))
        start = (stretch.start, stretch.first)
        if not points or points[-1] != start:
            points.append(start)
        points.append((stretch.end, stretch.last))
    return tuple(points)


def _loss_curves(beats: list[Beat], commits: list[Committed]) -> Mapping[int, tuple[tuple[int, float], ...]]:
    """The loss over the steps, for each attempt, without values that are not numbers.

    Between two commits a heartbeat may repeat the loss of the last commit. Such a value says nothing about its step.
    """
    known = {commit.metrics.get("loss") for commit in commits}
    samples: list[Beat | Committed] = [*commits, *(beat for beat in beats if beat.metrics.get("loss") not in known)]
    curves: dict[int, list[tuple[int, float]]] = {}
    for sample in samples:
        loss = sample.metrics.get("loss")
        if loss is not None and math.isfinite(loss):
            curves.setdefault(sample.attempt, []).append((sample.step, loss))
    return {attempt: tuple(sorted(curve)) for attempt, curve in sorted(curves.items())}
