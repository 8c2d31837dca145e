"""The attempts of a run, in order, from the recorded transitions and the measured work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from spotladder.core.model import TERMINAL, CapacityType, JobSpec, Move, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import READY
from spotladder.display.report.work import Stretch, done_again
from spotladder.records.model import Billed, Committed, Lost, Moved, Record

BETWEEN = (Stage.IDLE, Stage.SUSPENDED)
"""Stages without an attempt: the reason of a transition from them is not that of the last attempt's end."""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval from `start` to `end`, in seconds of the run."""

    start: Seconds
    end: Seconds

    @property
    def seconds(self) -> Seconds:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt. `all_ready` are the intervals in which every worker was ready, `work` those in which steps were
    done. `new` is the number of seconds in `work` for steps that were done for the first time.

    `recomputed` is the number of steps that were done again; None if unknown. `overhead` is the time from the last new
    step before this attempt, or from `resumed`, to its own first new step: the cost of the restart. `resumed` is when
    the job was last resumed before it; 0: never.
    """

    number: int
    tier: str
    capacity_type: CapacityType
    start: Seconds
    end: Seconds
    reason: Reason
    message: str = ""
    failures: int = 0
    start_step: int = 0
    end_step: int = 0
    committed_step: int = 0
    recomputed: int | None = 0
    overhead: Seconds | None = None
    new: Seconds = 0.0
    all_ready: tuple[Span, ...] = ()
    work: tuple[Span, ...] = ()
    cost: float = 0.0
    on_demand_cost: float = 0.0
    resumed: Seconds = 0.0


def attempts_of(
    records: Iterable[Record],
    length: Seconds,
    spec: JobSpec,
    start_steps: Mapping[int, int],
    work: list[Stretch],
    *,
    measured: bool,
) -> tuple[AttemptFacts, ...]:
    """Every attempt that was planned, in order; a live one ends with the timeline. `measured`: as for `done_again`."""
    ledger = _Ledger(length, spec, start_steps)
    for record in records:
        ledger.enter(record)
    return tuple(_with_work(attempt, work, measured=measured) for attempt in ledger.closed())


class _Ledger:
    """Builds the attempts from the records, one record at a time."""

    def __init__(self, length: Seconds, spec: JobSpec, start_steps: Mapping[int, int]) -> None:
        self._length = length
        self._spec = spec
        self._start_steps = start_steps
        self._found: dict[int, AttemptFacts] = {}
        self._number = 0
        self._all_ready_since: Seconds | None = None
        self._committed = 0
        self._resumed: Seconds = 0.0
        self._payer = 0
        self._bill = (0.0, 0.0)
        self._failures: dict[str, int] = {}

    def enter(self, record: Record) -> None:
        match record:
            case Moved(move=move) if move.source is Stage.SUSPENDED:
                self._resumed = record.at
            case Moved(move=move) if move.target is Stage.STARTING:
                self._open(move, record.at)
            case Moved(move=move) if move.source not in BETWEEN and move.attempt == self._number:
                self._move(move, record.at)
            case Lost():
                self._count(record)
            case Committed(step=step):
                self._committed = step
                self._change(record.attempt, lambda attempt: replace(attempt, committed_step=step))
            case Billed():
                self._charge(record)

    def closed(self) -> list[AttemptFacts]:
        self._end_all_ready(self._length)
        return list(self._found.values())

    def _open(self, move: Move, at: Seconds) -> None:
        tier = self._spec.tier(move.tier)
        kind = tier.capacity_type if tier else CapacityType.ON_DEMAND
        step = self._start_steps.get(move.attempt, self._committed)
        self._number = move.attempt
        self._found[move.attempt] = AttemptFacts(
            move.attempt,
            move.tier,
            kind,
            at,
            self._length,
            move.reason,
            start_step=step,
            committed_step=step,
            resumed=self._resumed,
        )

    def _move(self, move: Move, at: Seconds) -> None:
        if move.target is Stage.RUNNING and move.source is not Stage.REPLACING:
            self._all_ready_since = at
        elif move.target not in READY:
            self._end_all_ready(at)
        if (
            move.source not in (Stage.DRAINING, Stage.ENDING) or move.target in TERMINAL
        ):  # These stages only carry out a reason that is known already.
            self._change(self._number, lambda each: replace(each, reason=move.reason, message=move.message))
        if move.target is Stage.IDLE or move.target in TERMINAL:
            self._change(self._number, lambda each: replace(each, end=at))

    def _end_all_ready(self, at: Seconds) -> None:
        if self._all_ready_since is not None:
            span = Span(self._all_ready_since, at)
            self._change(self._number, lambda each: replace(each, all_ready=(*each.all_ready, span)))
            self._all_ready_since = None

    def _count(self, lost: Lost) -> None:
        """The number of failures by which the tier's count has grown: two lost pods may be one failure, or share one
        record. A count below the last one starts from 0: the tiers were reset."""
        before = self._failures.get(lost.loss.tier, 0)
        more = lost.failures - before if lost.failures >= before else lost.failures
        self._failures[lost.loss.tier] = lost.failures
        self._change(lost.loss.attempt, lambda each: replace(each, failures=each.failures + more))

    def _charge(self, bill: Billed) -> None:
        """Attribute the amount since the last bill to the attempt that was live then, except the parts of earlier ones.
        It keeps those of a standby attempt that was given up, which is no attempt of the report.

        A bill below the last one is the first of a new state: the old state was lost.
        """
        before = self._bill if bill.spent >= self._bill[0] else (0.0, 0.0)
        cost, on_demand = bill.spent - before[0], bill.on_demand - before[1]
        for part in (one for one in bill.left if one.attempt in self._found):
            self._pay(part.attempt, part.spent, part.on_demand)
            cost, on_demand = cost - part.spent, on_demand - part.on_demand
        self._pay(self._payer, cost, on_demand)
        self._payer, self._bill = self._number, (bill.spent, bill.on_demand)

    def _pay(self, number: int, cost: float, on_demand: float) -> None:
        self._change(
            number, lambda each: replace(each, cost=each.cost + cost, on_demand_cost=each.on_demand_cost + on_demand)
        )

    def _change(self, number: int, change: Callable[[AttemptFacts], AttemptFacts]) -> None:
        if number in self._found:
            self._found[number] = change(self._found[number])


def _with_work(attempt: AttemptFacts, work: list[Stretch], *, measured: bool) -> AttemptFacts:
    own = [stretch for stretch in work if stretch.attempt == attempt.number]
    first_new = next((stretch for stretch in own if stretch.new), None)
    before = [stretch for stretch in work if stretch.attempt < attempt.number and stretch.new]
    overhead = None
    if first_new is not None:
        overhead = first_new.start - max(before[-1].end if before else 0.0, attempt.resumed)
    return replace(
        attempt,
        end_step=max((stretch.last for stretch in own), default=attempt.start_step),
        recomputed=done_again(own, measured=measured),
        overhead=overhead,
        new=sum(stretch.seconds for stretch in own if stretch.new),
        work=_joined([Span(stretch.start, stretch.end) for stretch in own]),
    )


def _joined(spans: list[Span]) -> tuple[Span, ...]:
    """Merge intervals that touch."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start - joined[-1].end < 1e-6:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return tuple(joined)
