"""The simulator takes the same path as a job on the in-memory backend with a decision every second.

Both have the same capacity and the same program. The simulator jumps from event to event and calls `decide` only at
`wake_at`; here `decide` runs every second, on a backend that the conformance suite compares with the real ones. So
every transition has the same time, reason, attempt and tier in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    AskToCommit,
    Delete,
    Drain,
    Exit,
    Finish,
    JobSpec,
    JobState,
    Launch,
    Overlap,
    PodPhase,
    PodRole,
    PodSeen,
    Progress,
    Replace,
    Resize,
    TakeOver,
)
from spotladder.core.reasons import Cause
from spotladder.policies import registry
from spotladder.sim.world.market import START
from spotladder.sim.world.program import ProgramPlan, SimulatedProgram
from spotladder.sim.world.run import SimulationRun, run
from tests.core.fake_backend import FakeBackend
from tests.sim.builders import HOUR, market, runner, zone

WORKERS = 2
LIMIT = 3 * HOUR

ROUNDING = 2.0
"""Seconds by which the paths may differ: a deadline-aware policy may choose within a second, and a part of the workers
makes half a step a second, where the simulator acts and the other does not."""

Steps = tuple[tuple[int, int], ...]
Transition = tuple[float, str, str, str, int, str]


@dataclass
class EverySecond:
    """A job on a `FakeBackend` in a world of zones: second by second, with `decide` in every second."""

    spec: JobSpec
    policy: Any
    plan: ProgramPlan
    zones: dict[str, Steps]
    reports_shortage: bool = True
    backend: FakeBackend = field(default_factory=lambda: FakeBackend(WORKERS))
    state: JobState = field(default_factory=JobState)
    path: list[Transition] = field(default_factory=list)
    tiers: dict[int, str] = field(default_factory=dict)
    programs: dict[int, SimulatedProgram] = field(default_factory=dict)
    gone_at: dict[str, int] = field(default_factory=dict)
    standby: set[int] = field(default_factory=set)
    stood_by: set[int] = field(default_factory=set)
    held_at: dict[int, int] = field(default_factory=dict)
    committed: float = 0.0
    began_smaller: int = 0

    def run(self) -> list[Transition]:
        for now in range(LIMIT):
            self._commit(now)
            self._reclaim(now)
            self._place(now)
            self._decide(now)
            if self.state.stage in TERMINAL:
                break
        return self.path

    # --- the world ---

    def _commit(self, now: int) -> None:
        for number, program in list(self.programs.items()):
            step = program.advance(now)
            if step is None:
                continue
            self.committed = step
            self.backend.progress = replace(
                self.backend.progress, step=int(step), total=self.plan.work, committed_at=START + now
            )
            if program.stopping and step != self.plan.work and number not in self.backend.drained:
                self.programs.pop(number)  # It restarts with more workers.
            elif step == self.plan.work or program.stopping:
                self._end(number, Exit.SUCCEEDED if step == self.plan.work else Exit.INTERRUPTED)

    def _reclaim(self, now: int) -> None:
        for number, tier in self.tiers.items():
            staying = [pod.uid for pod in self._running(number) if pod.uid not in self.gone_at]
            for uid in staying[self._nodes(tier, now) :]:
                notice = next(entry.notice for entry in self.spec.tiers if entry.name == tier)
                self.gone_at[uid] = now + int(notice)
                if notice:
                    self.backend.notice(uid, START + self.gone_at[uid])
            for pod in self._running(number):
                if self.gone_at.get(pod.uid, now + 1) <= now:
                    self.backend.lose(pod.uid, Cause.INTERRUPTION)
                    self._forget_notice(number)
                    self._unhold(number)
                    if self.programs.pop(number, None) and number in self.backend.drained:
                        self._end(number, Exit.LOST)

    def _unhold(self, number: int) -> None:
        """Without a worker the program is no longer held."""
        if number in self.standby:
            self.backend._attempts[number] = replace(self.backend._attempts[number], held=False)
        self.held_at.pop(number, None)

    def _forget_notice(self, number: int) -> None:
        """Real backends show no notice of a lost pod."""
        seen = self.backend._attempts[number]
        pods = tuple(replace(pod, noticed=False) if pod.phase is PodPhase.LOST else pod for pod in seen.pods)
        self.backend._attempts[number] = replace(seen, pods=pods)

    def _place(self, now: int) -> None:
        for number, tier in self.tiers.items():
            seen = self.backend._attempts.get(number)
            if seen is None or seen.exit is not None or number in self.backend.drained:
                continue
            running = [pod for other, name in self.tiers.items() if name == tier for pod in self._running(other)]
            staying = [pod for pod in running if pod.uid not in self.gone_at]
            free = max(0, self._nodes(tier, now) - len(staying))
            waiting = [pod for pod in seen.pods if pod.role is PodRole.WORKER and pod.phase is PodPhase.PENDING]
            pending = [pod.uid for pod in waiting]
            started = {pod.uid for pod in seen.pods if pod.role is PodRole.HEAD} | set(pending[:free])
            pods = tuple(
                replace(pod, phase=PodPhase.RUNNING, ready=True, unschedulable=False) if pod.uid in started else pod
                for pod in seen.pods
            )
            refused = set(pending[free:]) if self.reports_shortage else set()
            pods = tuple(replace(pod, refused=pod.uid in refused) for pod in pods)
            self.backend._attempts[number] = replace(seen, pods=pods)
            size = self._size(number, complete=free >= len(waiting) == len(pending))
            if size and number not in self.programs:
                self._begin(number, now, size)
            program = self.programs.get(number)
            if program is not None and program.grows_at <= now and size > program.rate * WORKERS:
                program.stop(now)

    def _size(self, number: int, *, complete: bool) -> int:
        """The number of workers with which the program can start now; 0: it waits."""
        if not self.plan.sizes:
            return WORKERS if complete else 0
        if not complete and self.backend._attempts[number].waits_for_all_workers:
            return 0
        return max((size for size in self.plan.sizes if size <= len(self._running(number))), default=0)

    def _begin(self, number: int, now: int, size: int) -> None:
        """Enough workers are ready: start the program, or bring that of a standby attempt to the point where it is
        held."""
        held_at = self.held_at.get(number)
        if number in self.standby:
            self.held_at[number] = held_at or now + int(self.plan.restart - self.plan.resume)
            if self.held_at[number] <= now:
                self.backend.hold(number)
            return
        restart = self.plan.restart if held_at is None else max(0, held_at - now) + self.plan.resume
        self.backend.progress = replace(self.backend.progress, total=self.plan.work, attempt=number)
        self.programs[number] = SimulatedProgram(self.plan, now, self.committed, restart, size / WORKERS)
        self.began_smaller += size < WORKERS
        if self.plan.sizes:
            self.backend._attempts[number] = replace(
                self.backend._attempts[number], size=size, waits_for_all_workers=False
            )
        self.held_at.pop(number, None)

    def _nodes(self, tier: str, now: int) -> int:
        return next((nodes for at, nodes in reversed(self.zones[tier]) if at <= now), WORKERS)

    def _running(self, number: int) -> list[PodSeen]:
        seen = self.backend._attempts.get(number)
        pods = seen.pods if seen else ()
        return [pod for pod in pods if pod.role is PodRole.WORKER and pod.phase is PodPhase.RUNNING]

    def _end(self, number: int, how: Exit) -> None:
        self.programs.pop(number, None)
        self.backend.end_program(number, how)

    # --- the decisions ---

    def _decide(self, now: int) -> None:
        before: tuple[Any, ...] = ()
        while True:
            decision = decide(self.spec, self.state, self.backend.observe(), START + now, self.policy)
            self.state = decision.state
            for move in decision.moves:
                self.path.append((now, move.source, move.target, move.reason, move.attempt, move.tier))
            for action in decision.actions:
                self._apply(action, now)
            if not decision.moves and not decision.standby_changes and decision.actions == before:
                return
            before = decision.actions

    def _apply(self, action: Any, now: int) -> None:
        match action:
            case Launch():
                self.backend.launch(action)
                if action.standby and action.attempt not in self.tiers:
                    self.standby.add(action.attempt)
                    self.stood_by.add(action.attempt)
                    self._unhold(action.attempt)
                self.tiers[action.attempt] = action.tier
                self._place(now)
                self._place(now)
            case Drain():
                first = action.attempt not in self.backend.drained
                self.backend.drain(action)
                if first and action.attempt in self.programs:
                    self.programs[action.attempt].stop(now)
                elif first:
                    self._end(action.attempt, Exit.INTERRUPTED)
            case Delete():
                self.backend.delete(action)
                self.programs.pop(action.attempt, None)
            case TakeOver():
                self.standby.discard(action.attempt)
                self._place(now)
            case Finish():
                self.backend.finish(action)
            case Resize():
                self.backend.resize(action)
                self._place(now)
            case AskToCommit():
                if action.attempt in self.programs:
                    self.programs[action.attempt].ask(action.asked_at, now)
            case Replace():
                raise AssertionError("the program does not hand over")


def changes(dice: Random) -> Steps:
    """Capacity that is complete, short of one node or absent, for random times; complete at the end."""
    times = sorted(dice.sample(range(60, 2400), 6))
    counts = [dice.choice([WORKERS, WORKERS - 1, 0]) for _ in times]
    return ((0, dice.choice([WORKERS, WORKERS, 0])), *zip(times, counts, strict=True), (2700, WORKERS))


def simulated(job: SimulationRun) -> list[Transition]:
    (found,) = run(job.backend.market, [job], LIMIT)
    return [
        (one.at, one.move.source, one.move.target, one.move.reason, one.move.attempt, one.move.tier)
        for one in found.path
    ]


def job_of(
    policy: str,
    seed: int,
    notices: list[float],
    spec: dict[str, Any],
    *,
    reports_shortage: bool = True,
    **program: Any,
) -> SimulationRun:
    """A job on random capacity of two spot tiers."""
    dice = Random(seed)
    zones = {"spot-a": changes(dice), "spot-b": changes(dice)}
    notice = dice.choice(notices)
    here = market(
        *(
            zone(name, *steps, notice=notice, price=1.0, reports_shortage=reports_shortage)
            for name, steps in zones.items()
        ),
        zone("on-demand", (0, WORKERS), price=3.0),
        seed=seed,
    )
    limits = {"max_duration": 1.5 * HOUR, "work": 900.0, "overhead": 30.0} if policy != "ordered" else {}
    return runner(
        here,
        workers=WORKERS,
        max_failures=dice.choice([0, 1, -1]),
        policy=registry.by_name(policy),
        spec={"recovery_timeout": 90.0, **limits, **spec},
        work=900,
        restart=20.0,
        commit_interval=200.0,
        **program,
    )


def compare(policy: str, job: SimulationRun) -> EverySecond:
    """Both runs take the same path. Returns the one that decides every second."""
    zones = {
        name: tuple(zip(map(int, found.times), found.counts, strict=True))
        for name, found in job.backend.market.zones.items()
    }
    reports = all(found.plan.reports_shortage for found in job.backend.market.zones.values())
    expected = EverySecond(job.spec, registry.by_name(policy), job.backend.program, zones, reports)
    plan = job.backend.program
    expected.backend.begins_with_all_workers = bool(plan.sizes)
    expected.backend.progress = Progress(0, 900, stands_by=plan.stands_by, hands_over=plan.hands_over)
    found = simulated(job)
    assert [entry[1:] for entry in found] == [entry[1:] for entry in expected.run()]
    differences = [abs(one[0] - other[0]) for one, other in zip(found, expected.path, strict=True)]
    assert max(differences) <= (0 if policy == "ordered" and not plan.sizes else ROUNDING)
    assert found[-1][2] == "Succeeded"
    return expected


@pytest.mark.parametrize("policy", ["ordered", "greedy", "uniform-progress"])
@pytest.mark.parametrize("seed", range(4))
def test_the_simulator_takes_the_path_of_a_job_that_is_decided_every_second(policy: str, seed: int) -> None:
    compare(policy, job_of(policy, seed, [0.0, 5.0, 30.0], {}))


def test_a_job_without_capacity_on_two_tiers_waits_for_provision_timeout() -> None:
    """Regression: the policy moved between the two tiers at every decision."""
    compare("uniform-progress", job_of("uniform-progress", 6, [30.0, 60.0], {}))


@pytest.mark.parametrize("policy", ["ordered", "uniform-progress"])
@pytest.mark.parametrize("seed", range(4))
def test_both_take_the_same_path_where_only_provision_timeout_shows_a_shortage(policy: str, seed: int) -> None:
    compare(policy, job_of(policy, seed, [5.0, 30.0], {}, reports_shortage=False))


@pytest.mark.parametrize(
    ("policy", "seed"), [("ordered", 1), ("ordered", 2), ("uniform-progress", 0), ("uniform-progress", 3)]
)
def test_both_take_the_same_path_with_standby_attempts(policy: str, seed: int) -> None:
    job = job_of(policy, seed, [30.0, 60.0], {"overlap": Overlap()}, stands_by=True, resume=5.0)
    expected = compare(policy, job)
    assert expected.stood_by, "no attempt stood by"


ELASTIC: dict[str, Any] = {"sizes": (1, 2), "grow_after": 100.0, "hands_over": True}


@pytest.mark.parametrize("policy", ["ordered", "uniform-progress"])
@pytest.mark.parametrize("seed", range(3))
def test_both_take_the_same_path_with_an_elastic_job(policy: str, seed: int) -> None:
    job = job_of(policy, seed, [0.0], {"min_workers": 1}, **ELASTIC)
    expected = compare(policy, job)
    assert expected.began_smaller, "the program never trained with fewer workers"
