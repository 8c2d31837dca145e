"""What a job saves: its cost beside that of an uninterrupted run of the same steps on on-demand nodes.

Repeated steps after a loss, waiting nodes and egress are costs of spot capacity. The same node-hours at the on-demand
price (`JobState.on_demand_usd`) include the first two, so they do not measure savings.
"""

from __future__ import annotations

from spotladder.core.model import JobSpec, JobState


def uninterrupted_usd(spec: JobSpec, state: JobState) -> float | None:
    """Estimated USD of the committed steps on on-demand nodes without an interruption.

    Such a run also starts once: its boot is the shortest that the job has measured (`starts.py`); without one the
    estimate has none, so it is low rather than high. The time of a step is the mean between commits of one attempt,
    with all workers. It holds a head for the same
    time, stores the same commits, and reads nothing from another region. None until two commits of one attempt, and the
    price of every node, are known. `JobSpec.step_time` is part of each step.
    """
    node_seconds, measured, extra = state.node_seconds, state.measured, state.extra
    nodes = sum(record.on_demand_cost for record in state.tiers)
    if not measured.timed_steps or node_seconds <= 0 or nodes <= 0 or state.unpriced:
        return None
    boot = min((start.boot for record in state.tiers for start in record.starts), default=0.0)
    step = measured.timed_seconds / measured.timed_steps + spec.step_time
    needed = (boot + state.progress.step * step) * spec.workers
    return needed * (nodes + extra.heads) / node_seconds + extra.storage


def savings(spec: JobSpec, state: JobState) -> float | None:
    """The share of `uninterrupted_usd` that the job saves; negative when it pays more. None if that is unknown."""
    uninterrupted = uninterrupted_usd(spec, state)
    return 1 - state.spent_usd / uninterrupted if uninterrupted else None
