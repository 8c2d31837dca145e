"""The objects of one attempt in the simulation, and the bill of a job."""

from __future__ import annotations

from dataclasses import dataclass, field

from spotladder.core.model import Exit, Instant, PodPhase, PodSeen, Seconds
from spotladder.core.reasons import Cause
from spotladder.sim.world.market import MarketNode
from spotladder.sim.world.program import SimulatedProgram


@dataclass
class SimPod:
    """One worker pod; without a node while it waits for one."""

    uid: str
    node: MarketNode | None = None

    def seen(self, now: Seconds, start: Instant, *, reports_shortage: bool) -> PodSeen:
        """The pod as a backend observes it. `start` is the start of the run in epoch seconds. `reports_shortage`: its
        zone reports that it has no node for it."""
        node = self.node
        if node is None or now < node.up_at:
            return PodSeen(
                self.uid,
                phase=PodPhase.PENDING,
                ready=False,
                unschedulable=True,
                refused=reports_shortage and node is None,
            )
        if now < node.ready_at:
            return PodSeen(self.uid, phase=PodPhase.PENDING, ready=False, scheduled=True, image_pulled=True)
        if node.noticed_at is None or node.gone_at is None or node.gone_at <= now:
            return PodSeen(self.uid)
        return PodSeen(
            self.uid,
            noticed=True,
            noticed_at=start + node.noticed_at,
            notice_ends_at=start + node.gone_at,
            cause=Cause.INTERRUPTION,
        )


@dataclass(frozen=True, slots=True)
class Trained:
    """What a program has trained: its first step, which was done at `since` in seconds after the start of the run, and
    its last one so far."""

    since: Seconds
    first: float
    last: float


@dataclass
class SimAttempt:
    """One attempt. `lost` are its newest lost pods. `leaving` are the uids of pods that are being replaced;
    `handing_over`: the program commits in order to continue without them. `standby`: its program is held until it may
    take over; `held_at` is when its program is, or was, ready to resume, None before all workers are ready. `wanted`
    is the number of requested workers apart from those beside pods that are being replaced, `size` the number
    with which its program last started; 0: it has not. `trained` is what its last program had trained when it ended."""

    number: int
    zone: str
    pods: list[SimPod]
    wanted: int
    size: int = 0
    lost: list[PodSeen] = field(default_factory=list)
    program: SimulatedProgram | None = None
    draining: bool = False
    exit: Exit | None = None
    message: str = ""
    leaving: frozenset[str] = frozenset()
    handing_over: bool = False
    standby: bool = False
    held_at: Seconds | None = None
    trained: Trained | None = None

    def held(self, now: Seconds) -> bool | None:
        """Whether the program of a standby attempt is ready to resume; None for another attempt."""
        return self.held_at is not None and self.held_at <= now if self.standby else None

    def ready(self, now: Seconds) -> int:
        """The number of ready workers."""
        return sum(1 for pod in self.pods if pod.node is not None and pod.node.ready_at <= now)

    @property
    def going(self) -> list[SimPod]:
        """The pods that are being replaced and still exist."""
        return [pod for pod in self.pods if pod.uid in self.leaving]


@dataclass
class Tally:
    """The cost and the losses of a job so far, in USD and seconds; the mappings are by zone. `evictions` is the
    number of nodes that were reclaimed or failed. `recomputed` is work that was lost before it was committed,
    `overhead` the time between ready workers and the first step. `waiting_usd` is the part of `usd` for nodes of gangs
    that were not complete, so that no program ran on them, without those of standby attempts."""

    usd: dict[str, float] = field(default_factory=dict)
    waiting_usd: float = 0.0
    node_seconds: dict[str, float] = field(default_factory=dict)
    recomputed: dict[str, Seconds] = field(default_factory=dict)
    overhead: Seconds = 0.0
    evictions: dict[str, int] = field(default_factory=dict)

    def pay(self, zone: str, usd: float, held: Seconds) -> None:
        """Charge a node of the zone: `usd` for the `held` seconds for which the job had it."""
        self.usd[zone] = self.usd.get(zone, 0.0) + usd
        self.node_seconds[zone] = self.node_seconds.get(zone, 0.0) + held

    @property
    def nodes_usd(self) -> float:
        """The cost of all nodes that were given back."""
        return sum(self.usd.values())

    def lose_work(self, zone: str, work: Seconds) -> None:
        """Count work that was lost before it was committed."""
        self.recomputed[zone] = self.recomputed.get(zone, 0.0) + work

    def lose_node(self, zone: str) -> None:
        """Count a node that was reclaimed or failed."""
        self.evictions[zone] = self.evictions.get(zone, 0) + 1
