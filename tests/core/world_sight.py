"""What the decider sees of the attempts in a random world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spotladder.core.model import AttemptSeen, PodPhase, PodSeen
from spotladder.core.reasons import Cause

if TYPE_CHECKING:
    from tests.core.world_attempts import TrueAttempt
    from tests.core.worlds import RandomWorld


def observed(world: RandomWorld, program: TrueAttempt) -> AttemptSeen:
    """The attempt as its backend observes it now."""
    if world.now < program.unheard_until:
        return _unheard(program)
    program.heard = True
    placed = program.tier in world.slow and program.tier not in world.dry
    pods = tuple(
        PodSeen(
            pod.uid,
            pod.role,
            pod.phase,
            ready=pod.phase is PodPhase.RUNNING,
            suspect=pod.marked_at is not None and pod.phase is PodPhase.RUNNING,
            noticed=pod.leaves and pod.phase is PodPhase.RUNNING,
            notice_ends_at=pod.dies_at,
            unschedulable=(
                pod.phase is PodPhase.PENDING and (program.tier in world.dry or not world.nodes_for(program))
            ),
            cause=Cause.MAINTENANCE if pod.drained and pod.dies_at is None else pod.cause,
            node=pod.node,
            scheduled=placed,
            image_pulled=placed,
            exit_code=1 if pod.cause is Cause.APP_ERROR else None,
        )
        for pod in program.pods
    )
    surplus = program.wanted - program.workers if program.hands_over else None
    held = program.all_ready if program.held else None
    size = program.size if program.elastic and program.size else None
    whole = program.begins_with_all_workers and not program.begun
    hangs = program.hung_since is not None and world.now - program.hung_since >= world.hang_timeout
    return AttemptSeen(
        program.number,
        pods,
        program.exit,
        surplus=surplus,
        held=held,
        size=size,
        waits_for_all_workers=whole,
        queue=program.queue,
        hung="no step" if hangs and program.hang_reported else "",
        heartbeat_stopped=program.hung_since is not None and not program.hang_reported,
    )


def _unheard(program: TrueAttempt) -> AttemptSeen:
    """All nodes of the attempt are silent; their pods keep running."""
    silent: dict[str, Any] = (
        {"suspect": True}
        if program.suspected
        else {"phase": PodPhase.LOST, "ready": False, "cause": Cause.NODE_LOST, "silent": True}
    )
    pods = tuple(
        PodSeen(pod.uid, pod.role, **silent)
        if pod.phase is PodPhase.RUNNING
        else PodSeen(pod.uid, pod.role, pod.phase, ready=False, cause=pod.cause)
        for pod in program.pods
    )
    count = sum(1 for pod in pods if pod.silent)
    return AttemptSeen(
        program.number,
        pods,
        queue=program.queue,
        nodes=count,
        silent_nodes=count,
        heartbeat_stopped=program.stopped,
    )
