"""Nodes on which pods of a job fail again and again although the node lives: later attempts avoid them.

A node that is reclaimed, drained or silent is not bad, it is gone. The list of bad nodes is bounded, so a program that
fails everywhere does not rule out a whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spotladder.core.model import JobState, NodeFailures, PodSeen
from spotladder.core.reasons import Cause

BAD_NODE_FAILURES = 2
"""A node is bad after this many failed pods of the job."""

AVOIDED_NODES_LIMIT = 8
"""Maximum number of nodes that an attempt avoids, those that failed last."""

KEPT_NODES = 32

_OF_THE_NODE = frozenset({Cause.APP_ERROR, Cause.OOM_KILLED, Cause.UNKNOWN})
"""Causes of lost pods that leave the node intact: a container ended, or the kubelet rejected the pod."""


def with_node_failures(state: JobState, pods: Iterable[PodSeen]) -> JobState:
    """The state with one more failure for the node of each pod that failed there."""
    known = {entry.node: entry.failures for entry in state.node_failures}
    for pod in pods:
        if pod.node and not pod.silent and not pod.noticed and pod.cause in _OF_THE_NODE:
            known[pod.node] = known.pop(pod.node, 0) + 1  # the newest is last
    entries = tuple(NodeFailures(node, failures) for node, failures in known.items())[-KEPT_NODES:]
    return replace(state, node_failures=entries)


def without_node_failures(state: JobState) -> JobState:
    """The state after the nodes that are left had no capacity: a node that may be bad is better than none."""
    return replace(state, node_failures=())


def bad_nodes(state: JobState) -> tuple[str, ...]:
    """The nodes that the next attempt avoids, by name."""
    bad = [entry.node for entry in state.node_failures if entry.failures >= BAD_NODE_FAILURES]
    return tuple(sorted(bad[-AVOIDED_NODES_LIMIT:]))


def avoids(state: JobState) -> str:
    """Which nodes the next attempt avoids and why, for a message; "" when it avoids none."""
    failures = {entry.node: entry.failures for entry in state.node_failures}
    return ", ".join(f"{node} ({failures[node]} failed pods)" for node in bad_nodes(state))
