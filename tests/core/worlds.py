"""A random world around the decider: changing capacity, lost nodes, unreachable clusters, and a log that fences.

The world has the true state; the decider gets only observations. Everything random comes from one seeded generator.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from spotladder.core.model import (
    AskToCommit,
    Delete,
    Drain,
    Exit,
    Finish,
    Handover,
    JobSpec,
    Launch,
    Observation,
    PodPhase,
    PodRole,
    Progress,
    Replace,
    Resize,
    TakeOver,
    UpdateStrategy,
)
from spotladder.core.reasons import Cause
from tests.core import world_queue
from tests.core.builders import START
from tests.core.world_attempts import Pod, TrueAttempt
from tests.core.world_sight import observed
from tests.core.world_troubles import trouble

STEPS_PER_SECOND = 1
TOTAL = 120
COMMIT_EVERY = 10


@dataclass
class RandomWorld:
    spec: JobSpec
    random: Random
    calm: bool = False
    notices_only: bool = False
    notices: float = 0.1  # the probability that a worker's node is reclaimed with notice, then
    silences: float = 0.0
    misleading: float = 0.0  # the probability that heartbeats stop during a silence, although the program trains
    begins_with_all_workers: bool = False  # programs begin only when all of their workers are ready
    suspicions: float = 0.0  # the probability that a worker's node is suspected, where nodes are only reclaimed
    maintenance: float = 0.0  # the probability that a node is cordoned, or uncordoned
    pool: int = 0  # the number of nodes of each tier, each with room for any number of pods; 0: added as needed
    lingers: float = 0.0  # how long an attempt that is being removed may run at most
    queue: float = 0.0  # the probability that an admission queue takes quota back; 0: there is no queue
    hangs: float = 0.0  # the probability that a program hangs
    hang_timeout: float = 30.0
    masked: float = 0.0  # the probability that a program that stops for a notice or a drain ends with exit code 0
    without_quota: set[str] = field(default_factory=set)
    crashing: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    now: float = START
    revision: int = 0
    programs: dict[int, TrueAttempt] = field(default_factory=dict)
    dry: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)
    committed: int = 0
    committed_at: float | None = None
    newest_start: int = 0
    launched: dict[int, str] = field(default_factory=dict)
    let_go: int = 0  # the newest attempt that was launched without a hold, or has taken over
    pods_made: int = 0
    handovers: int = 0
    takeovers: int = 0
    shrinks: int = 0
    begun_smaller: int = 0
    held_smaller: int = 0
    admitted: int = 0
    evicted: int = 0
    hung: int = 0
    asked: int = 0

    # --- the backend ---

    def launch(self, action: Launch) -> None:
        assert self.launched.setdefault(action.attempt, action.tier) == action.tier, "one number, one tier"
        if action.attempt in self.programs or action.tier in self.cut_off:
            return
        assert action.attempt >= self.let_go, "attempts that may write only ever grow"
        self.let_go = self.let_go if action.standby else action.attempt
        if self.spec.handover is Handover.WHEN_GONE:
            assert not any(program.runs for program in self.programs.values()), "two programs without a fence"
        assert action.hangs <= self.hung, "a hang is counted once"
        program = self.programs[action.attempt] = TrueAttempt(
            action.attempt,
            action.tier,
            self.new_pods(self.spec.workers),
            step=self.committed,
            workers=self.spec.workers,
            wanted=self.spec.workers,
            least=self.spec.min_workers or self.spec.workers,
            begins_with_all_workers=self.begins_with_all_workers,
            hands_over=self.random.random() < 0.8,
            stands_by=self.spec.overlap is not None and self.random.random() < 0.8,
            held=action.standby,
            avoids=action.avoids,
        )
        if self.queue:
            world_queue.join(program)

    def drain(self, action: Drain) -> None:
        program = self.programs.get(action.attempt)
        if program and program.drained_at is None and program.tier not in self.cut_off:
            program.drained_at = self.now

    def delete(self, action: Delete) -> None:
        program = self.programs.get(action.attempt)
        if not program or program.tier in self.cut_off:
            return
        if not self.lingers:
            del self.programs[action.attempt]
        elif program.removed_at is None:
            program.removed_at = self.now + self.random.uniform(0.0, self.lingers)

    def replace(self, action: Replace) -> None:
        program = self.programs.get(action.attempt)
        if program is None or program.tier in self.cut_off:
            return
        assert program.hands_over, "only a program that can continue without pods is asked to"
        assert self.spec.handover is Handover.FENCED, "a replacement needs the fence"
        if action.hand_over and self.random.random() < 0.8:  # otherwise the notice has not arrived yet
            program.leaving |= set(action.pods)
        going = {pod.uid for pod in program.pods if pod.uid in action.pods and pod.phase is PodPhase.RUNNING}
        program.wanted = program.workers + (0 if action.remove else len(going))

    def resize(self, action: Resize) -> None:
        program = self.programs.get(action.attempt)
        if program is None or program.tier in self.cut_off:
            return
        assert program.hands_over, "only where the number of workers can be changed"
        if action.workers == program.workers:
            program.wanted = program.workers
            return
        assert program.least <= action.workers, "enough workers are left"
        placed = program.tier in self.slow - self.dry
        out = {pod.uid for pod in program.pods if not placed and pod.phase is PodPhase.PENDING}
        staying = [pod for pod in program.pods if pod.uid not in out]
        workers = sum(pod.role is PodRole.WORKER and pod.phase is not PodPhase.LOST for pod in staying)
        if workers >= action.workers and not program.begun:
            self.begun_smaller += program.wanted == program.workers
            self.held_smaller += program.held
            program.pods, program.wanted = staying, workers

    def take_over(self, action: TakeOver) -> None:
        assert self.spec.handover is Handover.FENCED, "a takeover needs the fence"
        program = self.programs.get(action.attempt)
        if program is not None and program.tier not in self.cut_off and program.held:
            program.held = False
            self.let_go = max(self.let_go, action.attempt)
            self.takeovers += 1

    def ask_to_commit(self, action: AskToCommit) -> None:
        program = self.programs.get(action.attempt)
        if program is not None and program.tier not in self.cut_off and program.drained_at is None:
            program.asked = not program.held
            self.asked += program.asked

    def finish(self, action: Finish) -> None:
        return

    def observe(self) -> Observation:
        self.revision += 1
        return Observation(
            self.revision,
            tuple(observed(self, program) for program in self.programs.values() if program.tier not in self.cut_off),
            Progress(
                self.committed,
                TOTAL,
                self.committed_at,
                self.newest_start,
                hands_over=self._hands_over,
                stands_by=self._stands_by,
            ),
            dict.fromkeys(self.cut_off, "cut off"),
        )

    @property
    def _hands_over(self) -> bool:
        newest = self.programs.get(self.newest_start)
        return newest is not None and newest.hands_over

    @property
    def _stands_by(self) -> bool:
        newest = self.programs.get(self.newest_start)
        return newest is not None and newest.stands_by

    def nodes_for(self, program: TrueAttempt) -> list[str]:
        """The nodes that can take a pod of the attempt; "" is one that is added for it."""
        pool = [f"{program.tier}-{index}" for index in range(self.pool)]
        return [node for node in pool or [""] if node not in program.avoids]

    def new_pods(self, count: int) -> list[Pod]:
        return [self._pod(PodRole.HEAD), *(self._pod(PodRole.WORKER) for _ in range(count))]

    def _pod(self, role: PodRole) -> Pod:
        self.pods_made += 1
        scarce = self.begins_with_all_workers and role is PodRole.WORKER and self.random.random() < 0.5
        return Pod(f"pod-{self.pods_made}", role, scarce=scarce)

    # --- time ---

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for program in list(self.programs.values()):
            if program.removed_at is not None and self.now >= program.removed_at:
                del self.programs[program.number]
                continue
            if world_queue.waits(self, program):
                continue
            self._live(program, seconds)
            if self.silences and program.heard and program.runs and self.random.random() < 0.1:
                program.heard = False
                program.unheard_until = self.now + self.random.uniform(0.0, self.silences)
                program.stopped = self.random.random() < self.misleading
                program.suspected = program.stopped and self.random.random() < 0.5
        if not self.calm:
            trouble(self)

    def _live(self, program: TrueAttempt, seconds: float) -> None:
        for pod in program.pods:
            scarce = pod.scarce and self.random.random() < 0.95
            placeable = program.tier not in self.dry | self.slow and not scarce
            if pod.phase is PodPhase.PENDING and placeable and (nodes := self.nodes_for(program)):
                pod.phase = PodPhase.RUNNING
                pod.node = self.random.choice(nodes) if self.pool else ""
                if program.tier in self.crashing and not program.started and pod.role is PodRole.HEAD:
                    pod.phase, pod.cause = PodPhase.LOST, Cause.APP_ERROR
            if pod.dies_at is not None and self.now >= pod.dies_at:
                pod.phase, pod.cause, pod.dies_at, pod.drained = PodPhase.LOST, Cause.INTERRUPTION, None, False
            if pod.marked_at is not None and self.now >= pod.marked_at:
                self._mark(pod)
        if program.exit is not None:
            return
        program.begun = program.begun or program.all_ready
        if not program.all_ready:
            program.hung_since = None  # Its ranks begin again.
        elif program.hung_since is None and self._resized(program):
            self._train(program, seconds)
        for pod in [pod for pod in program.pods if pod.phase is PodPhase.LOST and pod.role is PodRole.WORKER]:
            if self.random.random() < 0.5:  # KubeRay removes it eventually
                program.pods.remove(pod)
        while self._workers(program) < program.wanted:
            program.pods.append(self._pod(PodRole.WORKER))

    @staticmethod
    def _mark(pod: Pod) -> None:
        """The cluster marks the pod's node as silent, or hears of it again."""
        if pod.dead and pod.phase is PodPhase.RUNNING:
            pod.phase, pod.cause = PodPhase.LOST, Cause.NODE_LOST
        pod.marked_at, pod.dead = None, False

    @staticmethod
    def _workers(program: TrueAttempt) -> int:
        return sum(pod.role is PodRole.WORKER for pod in program.pods)

    def _resized(self, program: TrueAttempt) -> bool:
        """Restart an elastic program whose workers are leaving or gone, or for which there are more. Returns whether it
        trains."""
        if not program.elastic or program.staying < program.least:
            return True
        if program.size > program.staying and self.random.random() < 0.5:
            return False  # its ranks have not noticed it, or import their modules
        if program.size > program.staying:
            self.shrinks += 1
        if program.size > program.staying or self.random.random() < 0.3:
            program.size = min(program.workers, program.staying)
        program.size = program.size or min(program.workers, program.staying)
        return True

    def _hand_over(self, program: TrueAttempt) -> None:
        """The program commits and continues without the leaving pods, which are removed."""
        program.pods = [pod for pod in program.pods if pod.uid not in program.leaving]
        program.leaving.clear()
        self.handovers += 1

    def _train(self, program: TrueAttempt, seconds: float) -> None:
        if program.held and program.drained_at is None:
            return  # It writes nothing before it takes over; only the live attempt is drained.
        if not program.started:
            program.started, program.step = True, self.committed
            self.newest_start = max(self.newest_start, program.number)
        program.step = min(TOTAL, program.step + int(seconds * STEPS_PER_SECOND) + 1)
        going = any(pod.uid in program.leaving for pod in program.pods)
        draining = program.drained_at is not None
        if not program.hands_over:  # the program sees the notice of its nodes itself, and stops
            leaves = any(pod.dies_at for pod in program.pods)
            draining = draining or (leaves and not (program.elastic and program.staying >= program.least))
        due = program.step - self.committed >= COMMIT_EVERY or program.step == TOTAL
        if due or draining or going or program.asked:
            if program.number < self.newest_start:
                program.exit = Exit.FENCED
                return
            program.asked = False
            if program.step > self.committed:
                self.committed, self.committed_at = program.step, self.now
        if program.step == TOTAL:
            program.exit = Exit.SUCCEEDED
        elif draining:
            program.exit = Exit.SUCCEEDED if self.random.random() < self.masked else Exit.INTERRUPTED
        elif going:
            self._hand_over(program)

    def calm_down(self, lasting: str) -> None:
        """From now on one tier works permanently, and every cluster is reachable."""
        self.calm, self.lingers = True, 0.0
        world_queue.calm_down(self, lasting)
        self.dry = {tier.name for tier in self.spec.tiers} - {lasting}
        self.cut_off, self.crashing, self.slow, self.silences = set(), set(), set(), 0.0
        for program in self.programs.values():
            program.unheard_until = 0.0
            for pod in program.pods:
                pod.dies_at, pod.drained = None, False
                self._mark(pod)


def suspend(world: RandomWorld, suspended: bool) -> None:
    world.spec = replace(world.spec, suspend=suspended)


def edit(world: RandomWorld) -> None:
    """The user changes the pods of the job or its update strategy."""
    dice = world.random
    template = str(dice.randint(1, 3))
    world.spec = replace(
        world.spec,
        workers=max(int(template), world.spec.min_workers or 0),
        tiers=tuple(replace(tier, template=template) for tier in world.spec.tiers),
        update_strategy=dice.choice(list(UpdateStrategy)),
    )
