"""What a move to a tier costs in USD, beside the nodes of the start: those are paid during `TierOutlook.overhead`.

Rules
 1. The program of the new attempt reads the newest commit. Egress is due for it as `extra_costs` charges it.
 2. A live attempt that trains commits before it stops. Its nodes are paid during that commit, as long as the longest
    commit so far took.
 3. If the job has no commit, or a commit takes longer than `grace`, the work since the newest commit is lost.
"""

from __future__ import annotations

from spotladder.core.accounting.extra_costs import egress_usd
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import NO_MOVE_COSTS, MoveCosts, Seconds, Tier
from spotladder.core.situation import READY, Situation


def lost_work_usd(situation: Situation) -> float:
    """USD for the work that the live attempt loses if it is drained now. 0 if it does not train, or its tier has no
    price."""
    spec, tier = situation.spec, situation.tier
    if spec.capacity_lasts or situation.state.stage not in READY or tier is None or not tier.price.known:
        return 0.0
    return _lost_seconds(situation) * situation.workers * tier.price.per_node_hour / HOUR


def _lost_seconds(situation: Situation) -> Seconds:
    state, grace = situation.state, situation.spec.grace
    if situation.seen.progress.committed_at is not None and state.measured.commit_seconds <= grace:
        return state.measured.commit_seconds
    begun, committed = situation.attempt.all_ready_at, state.progress_at
    since = [at for at in (begun, committed) if at is not None]
    return max(0.0, situation.now - max(since, default=situation.now))


def move_costs(situation: Situation, tier: Tier, lost_work: float) -> MoveCosts:
    """The costs of a start on this tier. `lost_work` is that of `lost_work_usd`; a restart on the job's own tier loses
    the same work, but is not a move."""
    egress = 0.0
    if tier.egress_per_gib:
        egress = egress_usd(situation.seen.progress.size, situation.spec.workers, tier)
    lost = 0.0 if tier.name == situation.state.tier else lost_work
    return MoveCosts(egress, lost) if egress or lost else NO_MOVE_COSTS
