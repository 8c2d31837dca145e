"""What goes wrong in a random world: lost capacity, nodes, clusters and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.core.model import (
    Exit,
    PodPhase,
    PodRole,
)
from spotladder.core.reasons import Cause

if TYPE_CHECKING:
    from tests.core.world_attempts import Pod
    from tests.core.worlds import RandomWorld


def trouble(world: RandomWorld) -> None:
    """Take away capacity, nodes, clusters and attempts at random, and give them back."""
    dice = world.random
    if world.notices_only:
        return _notices(world)
    for tier in world.spec.tiers:
        if dice.random() < 0.15:
            (world.dry.discard if tier.name in world.dry else world.dry.add)(tier.name)
        if dice.random() < 0.05:
            (world.cut_off.discard if tier.name in world.cut_off else world.cut_off.add)(tier.name)
        if dice.random() < 0.05:
            (world.crashing.discard if tier.name in world.crashing else world.crashing.add)(tier.name)
        if dice.random() < 0.05:
            (world.slow.discard if tier.name in world.slow else world.slow.add)(tier.name)
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
