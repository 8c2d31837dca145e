"""A whole run: a scripted world, decisions by the real core, and records as the runner writes them.

`PlayedRun` steps a clock second by second. Its timeline and its state belong together, because both come from `decide`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spotladder.core.accounting.held_nodes import left_costs
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    CapacityType,
    CommitSize,
    Decision,
    Delete,
    Drain,
    Exit,
    JobSpec,
    Launch,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Price,
    Stage,
    Tier,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.display.view_state import ViewSnapshot
from spotladder.records.model import (
    Beat,
    Began,
    Billed,
    Committed,
    Decided,
    DriverExited,
    DriverStarted,
    Ended,
    Launched,
    LeftBill,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    PoolChanged,
    Record,
)
from tests.core.builders import START, SteppedJob

SPEC = JobSpec(
    tiers=(
        Tier("spot-a", 1, 30.0, CapacityType.SPOT, Price(0.42, 1.41)),
        Tier("spot-b", 0, 12.0, CapacityType.SPOT, Price(0.38, 1.41)),
        Tier("on-demand", 0, 60.0, CapacityType.ON_DEMAND, Price(1.41, 1.41)),
    ),
    workers=2,
    submitted_at=START,
    recovery_timeout=15.0,
    grace=10.0,
)

TOTAL = 400
PACE = 5
COMMIT_INTERVAL = 50

LIVE = Attempt(1, "spot-a", START)


@dataclass
class CloudEvents:
    """The events of the cloud; times are seconds since the start."""

    notices: dict[int, float] = field(default_factory=lambda: {31: 5.0})  # time → seconds until the node is reclaimed
    kills: frozenset[int] = frozenset({58})
    dry: frozenset[str] = frozenset({"spot-b"})
    provision: int = 3
    start: int = 4  # seconds from all workers ready to the first step
    total: int = TOTAL
    suspended: frozenset[int] = frozenset()  # seconds in which the job is suspended
    commit_size: CommitSize = field(default_factory=CommitSize)


class PlayedRun:
    """One job in one world. `play` runs it until it ends or `until` seconds have passed."""

    def __init__(self, spec: JobSpec = SPEC, world: CloudEvents | None = None, name: str = "digits") -> None:
        self.job = SteppedJob(spec)
        self.spec = spec
        self.world = world or CloudEvents()
        self.records: list[Record] = [Began(START, name, "team-a", spec)]
        self.shots: list[ViewSnapshot] = []
        self.pods: dict[str, PodSeen] = {}
        self.live = 0
        self.launched_at = 0.0
        self.moving_at: float | None = None
        self.step = 0
        self.committed = 0
        self.draining = False
        self.exit: Exit | None = None

    def play(self, until: int = 10_000) -> PlayedRun:
        second = 0
        while self.job.state.stage not in (Stage.SUCCEEDED, Stage.FAILED) and second < until:
            self._world(second)
            self.job.edit(suspend=second in self.world.suspended)
            self._look()
            second += 1
            self.job.now = START + second
        state = self.job.state
        if state.stage in (Stage.SUCCEEDED, Stage.FAILED):
            code = 0 if state.stage is Stage.SUCCEEDED else 3 if state.reason is Reason.TIERS_EXHAUSTED else 1
            self.records.append(Ended(self.now, code, state.reason, state.message))
        return self

    @property
    def now(self) -> float:
        return self.job.now

    @property
    def state(self) -> Any:
        return self.job.state

    @property
    def tier(self) -> str:
        return self.job.state.tier

    # --- the world ---

    def _world(self, second: int) -> None:
        if not self.live:
            return
        self._provision()
        tier = self.spec.tier(self.tier)
        spot = tier is not None and tier.capacity_type is CapacityType.SPOT
        first = next((uid for uid, pod in self.pods.items() if pod.phase is PodPhase.RUNNING), None)
        if spot and first and second in self.world.notices:
            ends = self.now + self.world.notices[second]
            self._pod(first, PodPhase.RUNNING, noticed=True, notice_ends_at=ends, cause=Cause.INTERRUPTION)
            self._node(first, NodeChange.NOTICED, Cause.INTERRUPTION, ends)
        if spot and first and second in self.world.kills:
            self._pod(first, PodPhase.LOST, ready=False, cause=Cause.NODE_LOST)
            self._node(first, NodeChange.GONE, Cause.NODE_LOST)
            self.moving_at = None
        self._train()

    def _provision(self) -> None:
        if self.tier in self.world.dry:
            return
        for uid, pod in self.pods.items():
            if pod.phase is PodPhase.PENDING and self.now - self.launched_at >= self.world.provision:
                self._pod(uid, PodPhase.RUNNING)
                self._node(uid, NodeChange.UP)
        all_running = all(pod.phase is PodPhase.RUNNING for pod in self.pods.values())
        if all_running and self.moving_at is None and self.exit is None:
            self.records.append(DriverStarted(self.now, self.live))
            self.moving_at = self.now + self.world.start
            self.step = self.committed

    def _train(self) -> None:
        if self.moving_at is None or self.now < self.moving_at or self.exit is not None:
            return
        if self.draining:
            self._commit()
            self.exit = Exit.INTERRUPTED
            self.records.append(DriverExited(self.now, self.live, 75))
            return
        self.step = min(self.world.total, self.step + PACE)
        loss = 2.3 * 0.992**self.step + 0.05
        self.records.append(Beat(self.now, self.live, self.step, self.world.total, {"loss": loss}))
        if self.step - self.committed >= COMMIT_INTERVAL or self.step == self.world.total:
            self._commit()
        if self.step == self.world.total:
            self.exit = Exit.SUCCEEDED
            self.records.append(DriverExited(self.now, self.live, 0))

    def _commit(self) -> None:
        self.committed = self.step
        self.job.commit(self.step, self.world.total, size=self.world.commit_size)
        loss = 2.3 * 0.992**self.step + 0.05
        self.records.append(Committed(self.now, self.live, self.tier, self.step, self.world.total, {"loss": loss}))

    # --- the runner ---

    def _look(self) -> None:
        losses = len(self.job.losses)
        moves, before = len(self.job.moves), self.job.state
        seen = [AttemptSeen(self.live, (*self._head(), *self.pods.values()), self.exit)] if self.live else []
        decision = self.job.see(*seen)
        observation = Observation(self.job.revision, tuple(seen), self.job.progress)
        changed = len(self.job.moves) > moves or len(self.job.losses) > losses
        after = self.job.state
        self.records.append(Decided(self.now, observation, *((before, after) if changed else (after,))))
        for loss in self.job.losses[losses:]:
            self.records.append(Lost(self.now, loss, self.job.state.record(loss.tier).failures))
        self.records.extend(Moved(self.now, move) for move in self.job.moves[moves:])
        self._apply(decision)
        state = self.job.state
        on_demand = sum(tier.on_demand_cost for tier in state.tiers)
        left = [LeftBill(one.number, one.tier, *costs) for one, *costs in left_costs(before, self.job.spec, self.now)]
        self.records.append(Billed(self.now, state.spent_usd, on_demand, state.nodes, tuple(left)))
        self.shots.append(ViewSnapshot(self.now, self.spec, state, observation, "Ctrl-C drains and commits"))

    def _apply(self, decision: Decision) -> None:
        for action in decision.actions:
            match action:
                case Launch(attempt=number) if number != self.live:
                    self._launch(number)
                case Drain():
                    self.draining = True
                case Delete():
                    for uid, pod in self.pods.items():
                        if pod.phase is not PodPhase.LOST:
                            self._node(uid, NodeChange.GONE)
                    self.live, self.pods, self.draining = 0, {}, False

    def _launch(self, number: int) -> None:
        self.live, self.launched_at, self.moving_at, self.exit = number, self.now, None, None
        self.records.append(Launched(self.now, number, self.tier))
        if self.tier in self.world.dry:
            self.records.append(PoolChanged(self.now, self.tier, available=False))
        for index in range(self.spec.workers):
            uid = f"{self.tier}-{number}-{index + 1}"
            self._pod(uid, PodPhase.PENDING, ready=False, unschedulable=self.tier in self.world.dry)
            self._node(uid, NodeChange.ASKED)

    def _head(self) -> tuple[PodSeen, ...]:
        return (PodSeen(f"head-{self.live}", PodRole.HEAD),)

    def _pod(self, uid: str, phase: PodPhase, **more: object) -> None:
        self.pods[uid] = PodSeen(uid, phase=phase, node=uid, **more)  # type: ignore[arg-type]

    def _node(self, uid: str, change: NodeChange, cause: Cause | None = None, until: float | None = None) -> None:
        self.records.append(NodeChanged(self.now, uid, self.live, self.tier, change, cause, until))
