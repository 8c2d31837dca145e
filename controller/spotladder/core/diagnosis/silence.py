"""The two independent signs that a program no longer runs, before its cluster marks the nodes: nodes that are silent,
and heartbeats in the checkpoint store that have stopped.

Neither is enough alone. Nodes that the cluster cannot reach may run a program that commits, and a process may hang
while its node is healthy. A suspicion that is wrong costs what lost nodes cost: the pods count as failures, once, and
the next attempt, on other nodes, resumes from the newest commit. The commit log fences the program that still runs.
"""

from __future__ import annotations

from spotladder.core.history.losses import all_suspect, suspect_pods
from spotladder.core.model import Handover, PodRole, PodSeen, Stage
from spotladder.core.situation import READY, Situation


def has_stopped(situation: Situation) -> bool:
    """Whether a program that trained has stopped its heartbeats, although the checkpoint store answers."""
    seen = situation.attempt_seen
    return situation.state.stage in READY and seen is not None and seen.heartbeat_stopped and not situation.finished


def silenced(situation: Situation) -> list[PodSeen]:
    """The suspect pods of an attempt, as lost pods, if its head or all of its pods are on silent nodes while its
    program has stopped its heartbeats: it cannot continue. Empty for every other attempt."""
    seen, stage = situation.attempt_seen, situation.state.stage
    if seen is None or not seen.reachable or not seen.heartbeat_stopped or situation.finished:
        return []
    if stage not in READY | {Stage.RECOVERING} or situation.spec.handover is not Handover.FENCED:
        return []
    head = any(pod.suspect for pod in seen.pods if pod.role is PodRole.HEAD)
    return suspect_pods(situation.attempt, seen) if head or all_suspect(seen) else []
