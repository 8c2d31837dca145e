"""What goes wrong in a random world: lost capacity, nodes, clusters and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.core.model import (
    Exit,
    PodPhase,
    PodRole,
)
from spotladder.core.reasons import Cause
from tests.core import world_queue

if TYPE_CHECKING:
    from tests.core.world_attempts import Pod, TrueAttempt
    from tests.core.worlds import RandomWorld


def trouble(world: RandomWorld) -> None:
    """Take away capacity, nodes, clusters, quota and attempts at random, and give them back."""
    dice = world.random
    for program in world.programs.values():
        world_queue.trouble(world, program)
        _hang(world, program)
    if world.notices_only:
        return _notices(world)
    for tier in world.spec.tiers:
        _disturb(world, tier.name)
    for program in list(world.programs.values()):
        for pod in program.pods:
            _maintain(world, pod)
            fate = dice.random()
            if pod.phase is PodPhase.RUNNING and fate < 0.06:
                pod.phase, pod.cause = PodPhase.LOST, dice.choice(list(Cause))
            elif pod.phase is PodPhase.RUNNING and pod.dies_at is None and fate < 0.12:
                pod.dies_at = world.now + dice.choice([1.0, 30.0])
        if dice.random() < 0.02 and program.tier not in world.cut_off:
            del world.programs[program.number]  # a user deletes it
        elif dice.random() < 0.02 and program.runs:
            program.exit = Exit.LOST


def _disturb(world: RandomWorld, tier: str) -> None:
    """Take away the tier's capacity, cluster or quota, or let its starts crash or take long, or undo this."""
    troubles = (
        (world.dry, 0.15),
        (world.cut_off, 0.05),
        (world.crashing, 0.05),
        (world.slow, 0.05),
        (world.without_quota, world.queue),
    )
    for tiers, probability in troubles:
        if probability and world.random.random() < probability:
            (tiers.discard if tier in tiers else tiers.add)(tier)


def _hang(world: RandomWorld, program: TrueAttempt) -> None:
    """Let a program that trains hang. The backend observes that it makes no step, or that its heartbeats have stopped.
    Some programs go on later."""
    dice = world.random
    if not world.hangs or not program.started or program.exit is not None or not program.all_ready:
        return
    if program.hung_since is not None:
        program.hung_since = None if dice.random() < 0.05 else program.hung_since
    elif dice.random() < world.hangs:
        program.hung_since, program.hang_reported = world.now, dice.random() < 0.5
        world.hung += 1


def _notices(world: RandomWorld) -> None:
    """Give notices to nodes, or suspect them."""
    dice = world.random
    for program in world.programs.values():
        for pod in program.pods:
            worker = pod.role is PodRole.WORKER and pod.phase is PodPhase.RUNNING
            if worker and pod.dies_at is None and dice.random() < world.notices:
                pod.dies_at = world.now + dice.choice([8.0, 30.0, 60.0])
            elif worker and pod.marked_at is None and dice.random() < world.suspicions:
                pod.marked_at, pod.dead = world.now + dice.choice([5.0, 20.0]), dice.random() < 0.7
            _maintain(world, pod)


def _maintain(world: RandomWorld, pod: Pod) -> None:
    """An administrator cordons the pod's node, uncordons it, or evicts the pod by force."""
    fate = world.random.random()
    if pod.phase is not PodPhase.RUNNING or fate >= world.maintenance:
        return
    if pod.drained and fate < 0.3 * world.maintenance:
        pod.phase, pod.cause = PodPhase.LOST, Cause.MAINTENANCE
    pod.drained = not pod.drained
