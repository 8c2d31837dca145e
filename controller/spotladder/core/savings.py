"""What a job saves: its cost beside that of an uninterrupted run of the same steps on on-demand nodes.

Steps that were repeated after a loss, and nodes that waited, are a cost of spot capacity. The same node-hours at the
on-demand price (`JobState.on_demand_usd`) contain both, so they are no measure of savings.
"""

from __future__ import annotations

from spotladder.core.model import JobSpec, JobState


def uninterrupted_usd(spec: JobSpec, state: JobState) -> float | None:
    """Estimated USD of the committed steps on on-demand nodes without an interruption.

    The time of a step is the mean between commits of one attempt; the start of a run is left out, so the estimate is
    low rather than high. None until two commits of one attempt, and the price of every node, are known.
    """
    node_seconds = sum(tier.node_seconds for tier in state.tiers)
    if not state.timed_steps or node_seconds <= 0 or state.on_demand_usd <= 0 or any(t.unpriced for t in state.tiers):
        return None
    seconds = state.progress.step * state.timed_seconds / state.timed_steps
    return seconds * spec.workers * state.on_demand_usd / node_seconds


def savings(spec: JobSpec, state: JobState) -> float | None:
    """The share of `uninterrupted_usd` that the job saves; negative when it pays more. None where that is not known."""
    uninterrupted = uninterrupted_usd(spec, state)
    return 1 - state.spent_usd / uninterrupted if uninterrupted else None
