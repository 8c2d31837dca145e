"""The state of a view: a snapshot of the job, and a summary of its timeline so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from spotladder.core.model import Instant, JobSpec, JobState, Observation
from spotladder.display.narrate import Narrator, Sentence
from spotladder.records.model import Beat, Began, Committed, Record

PACE_WINDOW = 20.0
"""Seconds of heartbeats from which the displayed rate is computed; slower steps have that of the last two."""

EVENTS = 50
"""Number of latest events that are kept."""


@dataclass(frozen=True, slots=True)
class ViewSnapshot:
    """The job at one moment. `hint` is a message of the runner, such as the effect of another Ctrl-C. `doing` is what
    an attempt waits for before its first step. `waits` is what the job waits for and until when."""

    now: Instant
    spec: JobSpec
    state: JobState
    seen: Observation
    hint: str = ""
    doing: str = ""
    waits: str = ""


class RunSummary:
    """A summary of a view's records so far: the name of the job, its progress and pace, its latest events."""

    def __init__(self, history: Iterable[Record] = ()) -> None:
        self.job = ""
        self.began: Instant | None = None
        self.beat: Beat | None = None
        self.loss: float | None = None
        self.events: deque[Sentence] = deque(maxlen=EVENTS)
        self._beats: deque[Beat] = deque()
        self._narrator = Narrator()
        for record in history:
            self.add(record)

    def add(self, record: Record) -> Sentence | None:
        """Add the record. Returns its sentence, or None if it has none."""
        match record:
            case Began():
                self.job = f"{record.namespace}/{record.job}"
                self.began = record.at if self.began is None else self.began
            case Beat():
                self._add_beat(record)
            case Committed():
                self.loss = record.metrics.get("loss", self.loss)
        sentence = self._narrator.describe(record)
        if sentence:
            self.events.append(sentence)
        return sentence

    def _add_beat(self, beat: Beat) -> None:
        if self._beats and (beat.attempt != self._beats[-1].attempt or beat.step < self._beats[-1].step):
            self._beats.clear()
        self._beats.append(beat)
        while len(self._beats) > 2 and beat.at - self._beats[0].at > PACE_WINDOW:
            self._beats.popleft()
        self.beat = beat
        self.loss = beat.metrics.get("loss", self.loss)

    def elapsed(self, now: Instant) -> float:
        """Seconds since the job was first started."""
        return 0.0 if self.began is None else now - self.began

    def step(self, snapshot: ViewSnapshot) -> int:
        """The current step: that of the program's heartbeat while it runs, else that of the newest commit."""
        attempt = snapshot.state.attempt
        if self.beat and attempt and self.beat.attempt == attempt.number:
            return self.beat.step
        return snapshot.seen.progress.step

    def total(self, snapshot: ViewSnapshot) -> int:
        """The total number of steps; 0 while it is unknown."""
        return snapshot.seen.progress.total or (self.beat.total if self.beat else 0)

    def pace(self, now: Instant) -> float | None:
        """Steps per second within `PACE_WINDOW`; None without enough heartbeats."""
        if len(self._beats) < 2:
            return None
        first, last = self._beats[0], self._beats[-1]
        if now - last.at > max(PACE_WINDOW, 2 * (last.at - first.at)):
            return None
        return (last.step - first.step) / (last.at - first.at) if last.at > first.at else None
