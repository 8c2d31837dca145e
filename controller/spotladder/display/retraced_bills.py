"""The cost of a job on a cluster over time, from the totals that its state has for each tier.

1. The total of a tier is exact: the controller has charged each node for as long as it was held.
2. It is divided among the attempts of the tier by the time that they ran times their numbers of workers.
3. Within an attempt it is divided by the number of workers over time: of an elastic job as its program reported it, of
   another job all workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from spotladder.core.model import AttemptRecord, Instant, JobState, Seconds
from spotladder.display.records import Billed, Resized


def bills(
    attempts: Sequence[AttemptRecord], sizes: Sequence[Resized], state: JobState, workers: int
) -> Iterator[Billed]:
    """The cost at the time when each attempt began to hold nodes, at each change of its size, and at its end."""
    parts = {attempt.number: _parts(attempt, sizes, workers) for attempt in attempts}
    paid = on_demand = 0.0
    for attempt in attempts:
        tier = state.record(attempt.tier)
        on_tier = [other for other in attempts if other.tier == attempt.tier]
        total = sum(_gang_seconds(part, workers) for other in on_tier for part in parts[other.number])
        # Other attempts ran on this tier, for which only the node-seconds are known.
        if tier.attempts > len(on_tier) and workers:
            total = max(total, tier.node_seconds / workers)
        for part in parts[attempt.number]:
            since, _, size = part
            yield Billed(since, paid, on_demand, size)
            share = _gang_seconds(part, workers) / total if total else 0.0
            paid, on_demand = paid + share * tier.cost, on_demand + share * tier.on_demand_cost
        yield Billed(attempt.ended_at, paid, on_demand)


def _parts(attempt: AttemptRecord, sizes: Sequence[Resized], workers: int) -> list[tuple[Instant, Instant, int]]:
    """The intervals in which the attempt held nodes, with its number of workers. Before its program reported a size, it
    had those with which it began."""
    began = attempt.ended_at - _ran(attempt)
    own = [(change.at, change.workers) for change in sizes if change.attempt == attempt.number]
    first = own[0][1] if own else workers
    changes = [(began, first), *((max(at, began), size) for at, size in own[1:]), (attempt.ended_at, 0)]
    return [(since, until, size) for (since, size), (until, _) in pairwise(changes)]


def _gang_seconds(part: tuple[Instant, Instant, int], workers: int) -> Seconds:
    """The node-seconds of the interval as seconds of all workers."""
    since, until, size = part
    return (until - since) * (size / workers if workers else 1.0)


def _ran(attempt: AttemptRecord) -> Seconds:
    """Seconds for which the attempt held nodes; its whole duration if its gang was never ready."""
    since = attempt.started_at if attempt.running_at is None else attempt.running_at
    return max(0.0, attempt.ended_at - since)
