"""The live view of a job: one picture that is updated in place on a terminal, plain lines anywhere else.

A view gets every timeline record (`add`) and every snapshot (`update`). It reads no clock and no file: the picture
depends only on these and on the size of the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from spotladder.core.accounting.savings import savings
from spotladder.core.model import Instant, JobState
from spotladder.core.situation import READY
from spotladder.display.figures import clock, count_of, measure, paid, percent, rate, span
from spotladder.display.narrate import Tone, removal_text
from spotladder.display.view_state import RunSummary, ViewSnapshot
from spotladder.records.model import Record

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_INTERVAL = 10.0
"""Seconds between two progress lines if the output is not a terminal."""


class View(Protocol):
    """A display of a run. `add` and `update` return at once."""

    def add(self, record: Record) -> None:
        """Add a record of the timeline."""

    def update(self, snapshot: ViewSnapshot) -> None:
        """Show the job as it is now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


class PlainView(View):
    """Prints one line for each event and a progress line every `PLAIN_INTERVAL`, for logs, pipes and CI."""

    def __init__(self, console: Console, history: Iterable[Record] = ()) -> None:
        self._console = console
        self._summary = RunSummary(history)
        self._printed_at: Instant | None = None
        self._doing = ""

    def add(self, record: Record) -> None:
        """Print the record's sentence, if it has one."""
        sentence = self._summary.add(record)
        if sentence:
            mark = {Tone.BAD: "!", Tone.CAUTION: "~"}.get(sentence.tone, " ")
            self._print(sentence.at, f"{mark} {sentence.text}")

    def update(self, snapshot: ViewSnapshot) -> None:
        """Print what the attempt waits for if that has changed, and the progress if the interval is over."""
        if snapshot.doing != self._doing:
            self._doing = snapshot.doing
            if snapshot.doing:
                self._print(snapshot.now, f"  {snapshot.doing}")
        if self._printed_at is not None and snapshot.now - self._printed_at < PLAIN_INTERVAL:
            return
        self._printed_at = snapshot.now
        summary, state = self._summary, snapshot.state
        step, total, pace = summary.step(snapshot), summary.total(snapshot), summary.pace(snapshot.now)
        parts = [
            f"{state.phase} on {state.tier}" if state.tier else f"{state.phase}",
            snapshot.waits or _paused(snapshot),
            removal_text(state.left, snapshot.now),
            f"step {count_of(step, total)}" if step or total else "nothing committed yet",
            rate(pace) if state.stage in READY and pace is not None else "",
            f"loss {measure(summary.loss)}" if summary.loss is not None else "",
            _failures(state),
            f"cost {paid(state.spent_usd, unpriced=bool(state.unpriced))}",
            f"saved {percent(savings(snapshot.spec, state))}",
        ]
        self._print(snapshot.now, "  " + ", ".join(part for part in parts if part))

    def _print(self, at: Instant, text: str) -> None:
        line = f"{clock(self._summary.elapsed(at))} {text}".replace("\u202f", " ")
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _failures(state: JobState) -> str:
    """All failures of the job, as `spotladder get` shows them, and those of its tier if others have some too."""
    on_tier = state.record(state.tier).failures if state.tier else 0
    return f"failures {state.failures}" + (f" ({on_tier} on {state.tier})" if on_tier < state.failures else "")


def _paused(snapshot: ViewSnapshot) -> str:
    until = snapshot.state.timers.paused_until
    return "" if until is None else f"next attempt in {span(until - snapshot.now)}"


class LiveView:
    """One picture that is updated in place. Earlier output of the terminal stays above it."""

    def __init__(self, console: Console, history: Iterable[Record] = ()) -> None:
        from rich.live import Live

        self._console = console
        self._summary = RunSummary(history)
        self._size = console.size
        self._snapshot: ViewSnapshot | None = None
        self._live = Live(console=console, auto_refresh=False)

    def add(self, record: Record) -> None:
        """Add a record; the next `update` shows it."""
        self._summary.add(record)

    def update(self, snapshot: ViewSnapshot) -> None:
        """Redraw the picture. After a resize the screen is cleared first, because the terminal has wrapped lines."""
        from spotladder.display.picture import draw

        self._snapshot = snapshot
        if self._console.size != self._size:
            self._size = self._console.size
            self._live.transient = True  # The old picture no longer fits: remove it instead of leaving it above.
            self._live.stop()
            self._live.transient = False
            self._console.clear()
            self._live.start()
        self._live.update(draw(snapshot, self._summary, self._size.width, self._size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._snapshot is not None:
            self.update(self._snapshot)  # includes the records since the last redraw
        self._live.stop()


class Shielded:
    """Wraps a view and drops all output once the terminal or pipe is closed; the job continues without a view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._stack = ExitStack()
        self._gone = False

    def add(self, record: Record) -> None:
        """Like the wrapped view's `add`."""
        self._try(lambda: self.view.add(record))

    def update(self, snapshot: ViewSnapshot) -> None:
        """Like the wrapped view's `update`."""
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
        except (OSError, SystemExit):  # rich ends the program when the pipe is closed.
            self._gone = True


def view_on(console: Console, history: Iterable[Record] = ()) -> Shielded:
    """The view for this output. `history` has the timeline records of the runs that are resumed."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Shielded(LiveView(console, history))
    return Shielded(PlainView(console, history))
