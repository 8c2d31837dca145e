"""A runner on the fake backend with a stepped clock, and the events of its scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from spotladder.core.contract import Milestone
from spotladder.core.model import Exit, JobSpec, JobState, Price, Tier
from spotladder.core.policies.ordered import Ordered
from spotladder.display.view_state import ViewSnapshot
from spotladder.local.runner import Runner
from spotladder.records.model import Beat, Committed, Record
from tests.core.fake_backend import FakeBackend

BEGAN = 1_000_000.0
Kind = TypeVar("Kind", bound=Record)
PRICE = Price(3600.0, 7200.0)  # one dollar per node and second
SPEC = JobSpec(
    tiers=(
        Tier("spot-a", max_failures=0, provision_timeout=30.0, price=PRICE),
        Tier("on-demand", max_failures=1, provision_timeout=30.0, price=PRICE),
    ),
    workers=2,
    submitted_at=BEGAN,
)


class LiveFake(FakeBackend):
    """The fake backend with heartbeats."""

    last_exit: int | None = None

    def beats(self) -> list[Beat]:
        return [Beat(BEGAN, number, 7) for number in self._attempts]

    def reached(self, number: int) -> Mapping[Milestone, float]:
        return {Milestone.PROGRAM: BEGAN, Milestone.STEPPED: BEGAN + 1e9} if number in self._attempts else {}

    def doing(self) -> str:
        return "" if self._attempts else "Ray starts"


@dataclass
class RunnerRig:
    """A runner with a script of events: each entry has its time in seconds after the start and a function."""

    spec: JobSpec = SPEC
    script: list[tuple[float, Callable[[RunnerRig], None]]] = field(default_factory=list)
    backend: LiveFake = field(default_factory=LiveFake)
    saved: list[JobState] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    snapshots: list[ViewSnapshot] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    new_commits: list[Committed] = field(default_factory=list)
    error: str | None = None
    now: float = BEGAN
    slept: float = 0.0

    def __post_init__(self) -> None:
        self.runner = Runner(
            self.spec,
            Ordered(),
            self.backend,  # type: ignore[arg-type]
            commits=self,  # type: ignore[arg-type]
            keep=self,  # type: ignore[arg-type]
            emit=self.records.append,
            view=self,  # type: ignore[arg-type]
            clock=lambda: self.now,
            ticks=lambda: self.now - self.slept,
            wait=self.wait,
        )

    def run(self, state: JobState | None = None) -> int:
        state = state or JobState()
        self.backend.revision = state.revision + 1
        return self.runner.run(state)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < BEGAN + 7200, "the runner does not end"
        while self.script and self.now >= BEGAN + self.script[0][0]:
            self.script.pop(0)[1](self)

    def save(self, state: JobState) -> None:
        self.saved.append(state)

    def take_new(self) -> list[Committed]:
        new, self.new_commits = self.new_commits, []
        return new

    def take_error(self) -> str | None:
        error, self.error = self.error, None
        return error

    def emit(self, record: Record) -> None:
        raise AssertionError(f"the runner emits its records through one function only: {record}")

    def update(self, snapshot: ViewSnapshot) -> None:
        self.snapshots.append(snapshot)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [record for record in self.records if isinstance(record, kind)]


def comes_up(number: int) -> Callable[[RunnerRig], None]:
    return lambda rig: rig.backend.bring_up(number)


def ends(number: int, how: Exit) -> Callable[[RunnerRig], None]:
    return lambda rig: rig.backend.end_program(number, how, "exit code 1: KeyError")


def sleeps(seconds: float) -> Callable[[RunnerRig], None]:
    """The machine sleeps, with all processes of the job."""

    def sleep(rig: RunnerRig) -> None:
        rig.now, rig.slept = rig.now + seconds, rig.slept + seconds

    return sleep


def stop(rig: RunnerRig) -> None:
    rig.runner.ask_to_stop()
