"""Builders for the core's tests: a job with a stepped clock and constructed observations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from spotladder.core.explanation import Explanation, explain
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    CapacityType,
    Decision,
    Impeded,
    JobSpec,
    JobState,
    Loss,
    Move,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Price,
    Progress,
    Stage,
    Tier,
    codec,
)
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import Situation

START = 1_800_000_000.0


def tier(name: str, max_failures: int = 0, provision_timeout: float = 600.0, **more: Any) -> Tier:
    kind = CapacityType.ON_DEMAND if name.startswith("on-demand") else CapacityType.SPOT
    return Tier(name, max_failures, provision_timeout, kind, **more)


def spec(*tiers: Tier, **more: Any) -> JobSpec:
    chosen = tiers or (tier("spot-a", 1), tier("spot-b", 0), tier("on-demand", -1))
    return JobSpec(tiers=chosen, **{"workers": 2, "submitted_at": START, **more})


def head(phase: PodPhase = PodPhase.RUNNING) -> PodSeen:
    return PodSeen("head", PodRole.HEAD, phase)


def worker(uid: str, *, ready: bool = True, **more: Any) -> PodSeen:
    return PodSeen(uid, ready=ready, **more)


def pending(uid: str, *, unschedulable: bool = True, **more: Any) -> PodSeen:
    return PodSeen(uid, phase=PodPhase.PENDING, ready=False, unschedulable=unschedulable, **more)


def refused(uid: str) -> PodSeen:
    """A pod for which the provisioner has no capacity."""
    return pending(uid, refused=True)


def lost(uid: str, cause: Cause = Cause.INTERRUPTION, **more: Any) -> PodSeen:
    return PodSeen(uid, phase=PodPhase.LOST, ready=False, cause=cause, **more)


def silent(uid: str, role: PodRole = PodRole.WORKER) -> PodSeen:
    """A pod on a node that its cluster has marked as silent."""
    return PodSeen(uid, role, PodPhase.LOST, ready=False, cause=Cause.NODE_LOST, silent=True)


def placed(uid: str, **more: Any) -> PodSeen:
    """A pending pod that has a node with its image."""
    return PodSeen(uid, phase=PodPhase.PENDING, ready=False, scheduled=True, image_pulled=True, **more)


def noticed(uid: str, ends_at: float | None = None) -> PodSeen:
    return PodSeen(uid, noticed=True, notice_ends_at=ends_at)


def attempt(number: int, *pods: PodSeen, **more: Any) -> AttemptSeen:
    return AttemptSeen(number, pods, **more)


def all_ready(number: int, workers: int = 2, **more: Any) -> AttemptSeen:
    """An attempt with its head and all of its workers ready."""
    return attempt(number, head(), *(worker(f"w{number}-{index}") for index in range(workers)), **more)


class SteppedJob:
    """One job: `see` reconciles until a decision makes no transition, as a controller does, and records the results.

    The state is serialized to JSON between decisions, so that nothing outside of it is kept.
    """

    def __init__(self, job: JobSpec | None = None, policy: Any = None) -> None:
        self.spec = job or spec()
        self.state = JobState()
        self.policy: Any = policy or Ordered()
        self.now = START
        self.revision = 0
        self.progress = Progress()
        self.moves: list[Move] = []
        self.losses: list[Loss] = []
        self.last = Decision(self.state)
        self.last_seen = Observation(0)

    def see(self, *attempts: AttemptSeen, after: float = 0.0, **more: Any) -> Decision:
        self.now += after
        self.revision += 1
        seen = self.last_seen = Observation(self.revision, attempts, self.progress, **more)
        for _ in range(10):
            decision = decide(self.spec, self.state, seen, self.now, self.policy)
            self.state = codec.load_state(codec.dump(decision.state))
            assert self.state == decision.state
            self.moves.extend(decision.moves)
            self.losses.extend(decision.losses)
            self.last = decision
            if not decision.moves:
                return decision
            assert decision.actions == (), "a decision with a transition has actions"
        raise AssertionError(f"the decisions do not converge: {[move.reason for move in self.moves]}")

    def planned(self) -> SteppedJob:
        """Bring the job to a first attempt that is planned but not launched."""
        self.see()
        return self

    def see_again(self, after: float) -> Decision:
        """The same facts, later."""
        seen = self.last_seen
        more = {"unavailable": seen.unavailable, "blocked": seen.blocked}
        return self.see(*seen.attempts, after=after, **more)

    def running(self, number: int | None = None, workers: int = 2) -> Self:
        """Bring an idle job to an attempt with all workers ready, or as many as an elastic one begins with. Its program
        uses the library: the log has its start."""
        self.see()
        number = number or self.state.last_number
        self.see(attempt(number))
        self.progress = replace(self.progress, attempt=max(number, self.progress.attempt))
        self.see(all_ready(number, workers), after=10)
        assert self.state.stage is Stage.RUNNING, self.state
        return self

    def lose_attempt(self, *pods: PodSeen) -> SteppedJob:
        """The observation of the live attempt has only these pods; once it ends, its objects are gone."""
        live = self.number
        self.see(attempt(live, head(), *pods), after=1)
        if self.state.stage is Stage.ENDING:
            self.see(after=1)
        return self

    def commit(self, step: int, total: int = 100, **more: Any) -> SteppedJob:
        number = self.state.attempt.number if self.state.attempt else self.state.last_number
        self.progress = Progress(step, total, self.now, number, **{"committed_by": number, **more})
        return self

    def edit(self, **changes: Any) -> SteppedJob:
        self.spec = replace(self.spec, **changes)
        return self

    @property
    def number(self) -> int:
        return self.attempt.number

    @property
    def attempt(self) -> Attempt:
        assert self.state.attempt is not None
        return self.state.attempt

    @property
    def standby(self) -> Attempt:
        assert self.state.standby.attempt is not None
        return self.state.standby.attempt

    @property
    def impeded(self) -> Impeded:
        assert self.state.impeded is not None
        return self.state.impeded

    @property
    def situation(self) -> Situation:
        return Situation(self.spec, self.state, self.last_seen, self.now)

    @property
    def explanation(self) -> Explanation:
        """The explanation of a job that waits."""
        found = explain(self.situation)
        assert found is not None
        return found

    @property
    def end_reason(self) -> Reason | None:
        """Why the newest attempt that is being ended, or has ended, does."""
        attempt, history = self.state.attempt, self.state.history
        if attempt is not None and attempt.ending.reason is not None:
            return attempt.ending.reason
        return history[-1].reason if history else None

    @property
    def reasons(self) -> list[Reason]:
        return [move.reason for move in self.moves]


def priced(name: str, per_hour: float, on_demand: float, **more: Any) -> Tier:
    return tier(name, price=Price(per_hour, on_demand), **more)
