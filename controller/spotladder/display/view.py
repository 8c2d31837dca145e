"""What a person sees while a job runs: one picture kept up to date on a terminal, plain lines anywhere else.

A view is told every record of the timeline (`tell`) and shown every snapshot (`update`). It reads no clock and no
file; the picture is a function of what it was given and of the size of the terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from spotladder.core.model import Instant, JobSpec, JobState, Observation, Stage
from spotladder.display.figures import clock, measure, money, percent, rate, saved, span
from spotladder.display.narrate import Narrator, Told, Tone
from spotladder.display.timeline import Beat, Began, Committed, Record

if TYPE_CHECKING:
    from rich.console import Console

PACE_WINDOW = 20.0
"""Seconds of heartbeats that the rate shown is taken from."""

PLAIN_INTERVAL = 10.0
"""Seconds between two lines of progress when the output is not a terminal."""


@dataclass(frozen=True, slots=True)
class ViewSnapshot:
    """One look at the job. `hint` is what the runner has to say just now, e.g. what another Ctrl-C would do; `doing` is
    what an attempt waits for before its first step. `waits` is what a job on a cluster waits for and what follows when,
    in the words of who keeps it waiting."""

    now: Instant
    spec: JobSpec
    state: JobState
    seen: Observation
    hint: str = ""
    doing: str = ""
    waits: str = ""


class View(Protocol):
    """Where a run is shown. `tell` and `update` return at once."""

    def tell(self, record: Record) -> None:
        """Take in one record of the timeline."""

    def update(self, snapshot: ViewSnapshot) -> None:
        """Show the job as it is now."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Heard:
    """What a view remembers of the records it was told: who the job is, how far and how fast it is, the last events."""

    def __init__(self, events: int = 50) -> None:
        self.job = ""
        self.began: Instant | None = None
        self.beat: Beat | None = None
        self.loss: float | None = None
        self.events: deque[Told] = deque(maxlen=events)
        self._spec: JobSpec | None = None
        self._beats: deque[Beat] = deque()
        self._narrator = Narrator()

    def hear(self, record: Record) -> Told | None:
        """Remember the record; the sentence it is worth, if any."""
        match record:
            case Began():
                self.job = f"{record.namespace}/{record.job}"
                self.began = record.at if self.began is None else self.began
                self._spec = record.spec
            case Beat():
                self._hear_beat(record)
            case Committed():
                self.loss = record.metrics.get("loss", self.loss)
        told = self._narrator.tell(record, self._spec)
        if told:
            self.events.append(told)
        return told

    def _hear_beat(self, beat: Beat) -> None:
        if self._beats and (beat.attempt != self._beats[-1].attempt or beat.step < self._beats[-1].step):
            self._beats.clear()
        self._beats.append(beat)
        while beat.at - self._beats[0].at > PACE_WINDOW:
            self._beats.popleft()
        self.beat = beat
        self.loss = beat.metrics.get("loss", self.loss)

    def elapsed(self, now: Instant) -> float:
        """Seconds since the job was first taken up."""
        return 0.0 if self.began is None else now - self.began

    def step(self, snapshot: ViewSnapshot) -> int:
        """The step the program is at: its own word while it runs, else the newest commit's."""
        attempt = snapshot.state.attempt
        if self.beat and attempt and self.beat.attempt == attempt.number:
            return self.beat.step
        return snapshot.seen.progress.step

    def total(self, snapshot: ViewSnapshot) -> int:
        """How many steps there are; 0 while nobody has said."""
        return snapshot.seen.progress.total or (self.beat.total if self.beat else 0)

    def pace(self, now: Instant) -> float | None:
        """Steps a second lately; None when there is nothing to tell it from."""
        if len(self._beats) < 2 or now - self._beats[-1].at > PACE_WINDOW:
            return None
        first, last = self._beats[0], self._beats[-1]
        return (last.step - first.step) / (last.at - first.at) if last.at > first.at else None


class PlainView:
    """One line for each event, and one of progress now and then. For logs, pipes and CI."""

    def __init__(self, console: Console, history: Iterable[Record] = ()) -> None:
        self._console = console
        self._heard = Heard()
        self._printed_at: Instant | None = None
        self._doing = ""
        for record in history:
            self._heard.hear(record)

    def tell(self, record: Record) -> None:
        """Print the record's sentence, if it has one."""
        told = self._heard.hear(record)
        if told:
            mark = {Tone.BAD: "!", Tone.CAUTION: "~"}.get(told.tone, " ")
            self._print(told.at, f"{mark} {told.text}")

    def update(self, snapshot: ViewSnapshot) -> None:
        """Print what the attempt does when that has changed, and progress when the last line is long enough ago."""
        if snapshot.doing != self._doing:
            self._doing = snapshot.doing
            if snapshot.doing:
                self._print(snapshot.now, f"  {snapshot.doing}")
        if self._printed_at is not None and snapshot.now - self._printed_at < PLAIN_INTERVAL:
            return
        self._printed_at = snapshot.now
        heard, state = self._heard, snapshot.state
        total = heard.total(snapshot)
        spent, on_demand = state.spent_usd, sum(tier.on_demand_cost for tier in state.tiers)
        parts = [
            f"{state.phase} on {state.tier}" if state.tier else f"{state.phase}",
            snapshot.waits or _paused(snapshot),
            f"step {heard.step(snapshot)}" + (f"/{total}" if total else ""),
            rate(heard.pace(snapshot.now)) if state.stage is Stage.RUNNING else "",
            f"loss {measure(heard.loss)}" if heard.loss is not None else "",
            f"failures {state.record(state.tier).failures}" if state.tier else "",
            f"cost {money(spent)}, saved {percent(saved(spent, on_demand))}",
        ]
        self._print(snapshot.now, "  " + ", ".join(part for part in parts if part))

    def _print(self, at: Instant, text: str) -> None:
        line = f"{clock(self._heard.elapsed(at))} {text}".replace("\u202f", " ")
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass


def _paused(snapshot: ViewSnapshot) -> str:
    until = snapshot.state.paused_until
    return "" if until is None else f"next attempt in {span(until - snapshot.now)}"


class LiveView:
    """One picture, kept up to date in place. What the terminal showed before stays above it."""

    def __init__(self, console: Console, history: Iterable[Record] = ()) -> None:
        from rich.live import Live

        self._console = console
        self._heard = Heard()
        self._size = console.size
        self._shown: ViewSnapshot | None = None
        self._live = Live(console=console, auto_refresh=False)
        for record in history:
            self._heard.hear(record)

    def tell(self, record: Record) -> None:
        """Take in one record; the next `update` shows it."""
        self._heard.hear(record)

    def update(self, snapshot: ViewSnapshot) -> None:
        """Draw the picture anew. After a change of the terminal's size, on a cleared screen: lines have wrapped."""
        from spotladder.display.picture import draw

        self._shown = snapshot
        if self._console.size != self._size:
            self._size = self._console.size
            self._live.transient = True  # the old picture does not fit: it is taken away, not left above
            self._live.stop()
            self._live.transient = False
            self._console.clear()
            self._live.start()
        self._live.update(draw(snapshot, self._heard, self._size.width, self._size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown is not None:
            self.update(self._shown)  # with what was told since
        self._live.stop()


class Shielded:
    """Another view until its output is gone (a closed terminal or pipe), then nothing: the job goes on unseen."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._stack = ExitStack()
        self._gone = False

    def tell(self, record: Record) -> None:
        """As the view does."""
        self._try(lambda: self.view.tell(record))

    def update(self, snapshot: ViewSnapshot) -> None:
        """As the view does."""
        self._try(lambda: self.view.update(snapshot))

    def __enter__(self) -> Self:
        self._try(lambda: self._stack.enter_context(self.view))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._try(self._stack.close)

    def _try(self, show: Callable[[], object]) -> None:
        if self._gone:
            return
        try:
            show()
        except (OSError, SystemExit):  # rich makes a closed pipe the end of the program
            self._gone = True


def view_on(console: Console, history: Iterable[Record] = ()) -> Shielded:
    """The view that suits where the output goes. `history`: the records of the runs that this one goes on from."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Shielded(LiveView(console, history))
    return Shielded(PlainView(console, history))


__all__ = ["LiveView", "PlainView", "View", "ViewSnapshot", "view_on"]
