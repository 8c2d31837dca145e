"""An admission queue in a random world: it holds attempts until there is quota, and takes their quota back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spotladder.core.model import Exit, Handover, PodPhase, QueueEviction, QueueSeen
from spotladder.core.reasons import Cause

if TYPE_CHECKING:
    from tests.core.world_attempts import TrueAttempt
    from tests.core.worlds import RandomWorld

HELD = QueueSeen("team", held=True, message="no quota")
DELAY = 5.0
"""Time from the condition of an eviction until the queue suspends the attempt, at most."""


def join(program: TrueAttempt) -> None:
    """A new attempt waits for quota without pods."""
    program.queue, program.pods = HELD, []


def waits(world: RandomWorld, program: TrueAttempt) -> bool:
    """Suspend, hold and admit the attempt. Returns whether the queue holds it."""
    dice, queue = world.random, program.queue
    if queue is None:
        return False
    if program.suspended_at is not None and world.now >= program.suspended_at:
        program.suspended_at, queue = None, replace(queue, held=True)
        for pod in program.pods:
            pod.phase, pod.cause, pod.dies_at, pod.drained = PodPhase.LOST, Cause.DELETED, None, False
        if program.exit is None and dice.random() < 0.2:
            program.exit = Exit.LOST  # its RayCluster is gone
    elif queue.held and dice.random() < 0.5:
        program.pods = []
        paused = program.deactivated or queue.inadmissible or program.tier in world.without_quota
        if not paused and dice.random() < 0.8:
            queue = _admit(world, program, queue)
    program.queue = queue
    return queue.held


def _admit(world: RandomWorld, program: TrueAttempt, queue: QueueSeen) -> QueueSeen:
    """The program of the attempt begins, or begins again, with new pods."""
    if world.spec.handover is Handover.WHEN_GONE:
        assert not any(other.runs for other in world.programs.values()), "two programs without a fence"
    program.pods = world.new_pods(program.workers)
    program.begun = program.started = False
    program.size, program.wanted, program.hung_since = 0, program.workers, None
    program.exit = None if program.exit is Exit.LOST else program.exit
    world.admitted += 1
    return replace(queue, held=False, inadmissible=False)


def trouble(world: RandomWorld, program: TrueAttempt) -> None:
    """Take back the attempt's quota, or deactivate it, or stop its queue, and undo this."""
    dice, queue = world.random, program.queue
    if queue is None or program.suspended_at is not None:
        return
    if queue.held:
        program.deactivated = dice.random() < (0.7 if program.deactivated else world.queue / 2)
        eviction = QueueEviction.DEACTIVATED if program.deactivated else queue.eviction
        program.queue = replace(queue, eviction=eviction, inadmissible=dice.random() < world.queue)
    elif dice.random() < world.queue:
        reasons = [reason for reason in QueueEviction if reason is not QueueEviction.PODS_READY_TIMEOUT]
        eviction = dice.choice(reasons) if program.all_ready else QueueEviction.PODS_READY_TIMEOUT
        program.deactivated = eviction is QueueEviction.DEACTIVATED
        program.suspended_at = world.now + dice.choice([0.0, DELAY])
        # Kueue writes the condition before it suspends the attempt; a client suspends it without one.
        if eviction is not QueueEviction.SUSPENDED:
            program.queue = replace(queue, eviction=eviction, held=program.deactivated)
        world.evicted += 1


def calm_down(world: RandomWorld, lasting: str) -> None:
    """From now on there is quota for one tier, and for every other that no job waits for without a limit."""
    world.without_quota = {tier.name for tier in world.spec.tiers if tier.queue_timeout is not None} - {lasting}
    for program in world.programs.values():
        program.deactivated = False
        if program.queue is not None:
            program.queue = replace(program.queue, inadmissible=False)
