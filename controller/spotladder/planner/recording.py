"""Records simulated runs like those of a cluster: each as a job of its own in a folder of checkpoints, without any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from spotladder.checkpoints.store import Store, folder_of
from spotladder.core.model import Decision, KnownCapacity, Observation, Seconds
from spotladder.records import stored
from spotladder.records.model import Beat, Began, Committed, Decided, Record, encode
from spotladder.records.recorder import Recorder
from spotladder.records.sampling import Sampler
from spotladder.sim.world.market import START
from spotladder.sim.world.run import SimulationRun

AT_ONCE = 2_000
"""Number of records of an object."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Where the runs of a job are recorded: its name and namespace, and the store that gets a folder for each run."""

    store: Store
    job: str
    namespace: str

    def of(self, policy: str, seed: int, known: tuple[KnownCapacity, ...]) -> RunRecorder:
        """The recorder of one run. `known` is what a plan knows about the tiers of the job, in their order."""
        name = f"{self.job}-{policy}-{seed}"
        return RunRecorder(stored.of_job(folder_of(self.store, name), name), name, self.namespace, policy, known)


@dataclass
class RunRecorder:
    """Records one run: called as its `Watch`, then closed. A step is a second of work."""

    store: Store
    job: str
    namespace: str
    policy: str
    known: tuple[KnownCapacity, ...]
    _recorder: Recorder = field(init=False)
    _sampler: Sampler = field(init=False)
    _records: list[Record] = field(default_factory=list)
    _trained: dict[int, tuple[Seconds, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._recorder, self._sampler = Recorder(self.job, self.namespace), Sampler(START)

    def __call__(self, run: SimulationRun, decision: Decision, seen: Observation) -> None:
        """Record a decision of the run, and what happened since the last one."""
        if not self._records:
            self._records.append(Began(START, self.job, self.namespace, run.spec, policy=self.policy, known=self.known))
            list(self._recorder.specified(run.spec, self.policy, START))
        self._recorder.charge(run.spec, run.state, decision.state.clock)
        for record in (*self._beats(run), *self._decided(run, decision, seen)):
            self._records += self._sampler.due(record)

    def close(self) -> None:
        """Write the records. Raises StoreUnavailable."""
        lines = [encode(record) for record in (*self._records, *self._sampler.take())]
        number = 0
        for first in range(0, len(lines), AT_ONCE):
            number = stored.append(self.store, lines[first : first + AT_ONCE], number)

    def _beats(self, run: SimulationRun) -> Iterator[Record]:
        """The first and the newest step of each program, if they are new since the last decision."""
        for number, trained in run.backend.trained().items():
            since, last = self._trained.get(number, (-1.0, 0.0))
            if since != trained.since:
                yield Beat(START + trained.since, number, int(trained.first), run.backend.program.work)
            if (since, last) != (trained.since, trained.last):
                yield Beat(START + run.backend.market.now, number, int(trained.last), run.backend.program.work)
            self._trained[number] = (trained.since, trained.last)

    def _decided(self, run: SimulationRun, decision: Decision, seen: Observation) -> Iterator[Record]:
        before, after, recorder = run.state, decision.state, self._recorder
        now, newest = after.clock, after.progress
        if newest.committed_at is not None and newest.commit != before.progress.commit:
            yield Committed(newest.committed_at, newest.writer, after.tier, newest.step, newest.total)
        yield from recorder.specified(run.spec, self.policy, now)
        yield from recorder.observed(before, after, seen)
        yield from recorder.decided(before, decision, seen, now)
        yield recorder.billed(after, now)
        yield from recorder.waits(run.spec, after, seen, now)
        if ended := list(recorder.ended(before, after, now)):
            yield Decided(now, seen, after)
            yield from ended
