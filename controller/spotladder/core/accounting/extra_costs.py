"""What a job costs beside its workers' nodes: heads, stored commits, and egress.

Rules
 1. A head's node costs from the observation of the running head to that of its end.
 2. The bucket holds `keep` commits of the size of the newest one.
 3. A program that starts reads the newest commit: each worker the shared files, and one worker each other file.
    Egress is due for these bytes, at the price of the attempt's tier.

The sizes come from the commit log. A commit that no observation has seen as the newest is not counted.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting.held_nodes import GIB
from spotladder.core.model import CommitSize, JobSpec, JobState, Observation, PodPhase, PodRole, Progress, Tier
from spotladder.core.model.gang import launched_workers


def with_egress(state: JobState, spec: JobSpec, progress: Progress) -> JobState:
    """Charge the egress of the start of a program that `progress` shows and `state` does not."""
    tier = spec.tier(_tier(state, progress.attempt))
    if progress.start == state.progress.start or tier is None:
        return state
    workers = progress.workers or _workers(state, spec, progress.attempt)
    egress = egress_usd(state.progress.size, workers, tier)
    return replace(state, extra=replace(state.extra, egress=state.extra.egress + egress)) if egress else state


def egress_usd(size: CommitSize, workers: int, tier: Tier) -> float:
    """USD for the egress when a program with this number of workers starts on this tier from a commit of this size."""
    return (size.bytes + (workers - 1) * size.shared_bytes) / GIB * tier.egress_per_gib


def with_heads(state: JobState, spec: JobSpec, seen: Observation) -> JobState:
    """Record the price of the heads and of the auxiliary pods with a known price that run now."""
    rate = 0.0
    for attempt in (state.attempt, state.standby.attempt, *state.left):
        tier = spec.tier(attempt.tier) if attempt is not None else None
        found = seen.attempt(attempt.number) if attempt is not None else None
        if tier is not None and found is not None and (tier.head_per_hour or tier.auxiliary):
            prices = dict(tier.auxiliary)
            running = [pod for pod in found.pods if pod.phase is PodPhase.RUNNING]
            rate += tier.head_per_hour * sum(pod.role is PodRole.HEAD for pod in running)
            rate += sum(prices.get(pod.group) or 0.0 for pod in running if pod.role is PodRole.AUXILIARY)
    return state if rate == state.heads_per_hour else replace(state, heads_per_hour=rate)


def _tier(state: JobState, number: int) -> str:
    """The tier of this attempt; "" if it is unknown."""
    for attempt in (state.attempt, state.standby.attempt, *reversed(state.history)):
        if attempt is not None and attempt.number == number:
            return attempt.tier
    return ""


def _workers(state: JobState, spec: JobSpec, number: int) -> int:
    attempts = (state.attempt, state.standby.attempt)
    return launched_workers(next((one for one in attempts if one is not None and one.number == number), None), spec)
