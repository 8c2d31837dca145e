"""Nodes that an attempt avoids: those on which pods of the job fail repeatedly although the node lives, and those
that are suspected.

A node that is reclaimed, drained or silent counts as lost, not as bad. The list of bad nodes is bounded, so a program
that fails everywhere does not rule out a whole cluster. An attempt that no other node can take is followed by one that
avoids none: `Situation.avoidance_deadline`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from spotladder.core.model import JobState, NodeFailures, PodSeen
from spotladder.core.reasons import Cause, Reason

BAD_NODE_FAILURES = 2
"""A node is bad after this many failed pods of the job."""

AVOIDED_NODES_LIMIT = 8
"""Maximum number of bad nodes that an attempt avoids, those that failed last."""

KEPT_NODES = 32

_OF_THE_NODE = frozenset({Cause.APP_ERROR, Cause.OOM_KILLED, Cause.UNKNOWN})
"""Causes of lost pods that leave the node intact: a container ended, or the kubelet rejected the pod."""


def with_node_failures(state: JobState, pods: Iterable[PodSeen]) -> JobState:
    """The state with one more failure for the node of each pod that failed there."""
    known = {entry.node: entry.failures for entry in state.node_failures}
    for pod in pods:
        if _of_the_node(pod):
            known[pod.node] = known.pop(pod.node, 0) + 1  # the newest is last
    entries = tuple(NodeFailures(node, failures) for node, failures in known.items())[-KEPT_NODES:]
    return replace(state, node_failures=entries)


def _of_the_node(pod: PodSeen) -> bool:
    return bool(pod.node) and not pod.silent and not pod.noticed and pod.cause in _OF_THE_NODE


def fails_again(state: JobState, lost: Sequence[PodSeen]) -> str:
    """The node that was already bad when these lost pods, which are counted, failed on it. If no node was, the result
    is ""."""
    failed = Counter(pod.node for pod in lost if _of_the_node(pod))
    nodes = (entry.node for entry in state.node_failures if entry.failures - failed[entry.node] >= BAD_NODE_FAILURES)
    return next((node for node in nodes if failed[node]), "")


def bad_nodes(state: JobState) -> tuple[str, ...]:
    """The nodes on which pods of the job fail repeatedly, by name."""
    bad = [entry.node for entry in state.node_failures if entry.failures >= BAD_NODE_FAILURES]
    return tuple(sorted(bad[-AVOIDED_NODES_LIMIT:]))


def avoided_nodes(state: JobState, tier: str, suspects: frozenset[str]) -> tuple[str, ...]:
    """The nodes that the next attempt avoids if it runs on this tier, by name: none after an attempt that found no
    capacity there."""
    last = state.history[-1] if state.history else None
    if last is not None and (last.tier, last.reason) == (tier, Reason.INSUFFICIENT_CAPACITY):
        suspects = frozenset()
    return tuple(sorted(suspects.union(bad_nodes(state))))


def named(avoids: tuple[str, ...], state: JobState) -> str:
    """The avoided nodes, each with the reason, for a message."""
    failures = {entry.node: f"{entry.failures} failed pods" for entry in state.node_failures}
    return ", ".join(f"{node} ({failures.get(node, 'silent')})" for node in avoids)
