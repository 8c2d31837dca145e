"""Whether a commit fits into the notice of a spot tier, and what would make it fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import CapacityType, JobSpec, JobState, Seconds, Tier


@dataclass(frozen=True, slots=True)
class NoticeMisfit:
    """A commit that takes longer than the notice of a tier, so that each eviction there loses the work since the last
    commit. `index` is the tier's place in the spec. `ranks` is the factor of ranks over which the checkpoint must be
    sharded to fit; `interval` is the interval in seconds between commits that loses the least time, None where the rate
    of evictions is unknown."""

    index: int
    tier: str
    commit: Seconds
    notice: Seconds
    ranks: int
    interval: Seconds | None

    @property
    def message(self) -> str:
        """The misfit and its remedies, in one sentence for users."""
        remedy = f"write each checkpoint with {self.ranks} times as many ranks"
        if self.interval is not None:
            remedy += f", or commit every {format_duration(self.interval)}"
        return (
            f"a commit takes {format_duration(self.commit)}, tier {self.tier} gives {format_duration(self.notice)} "
            f"notice, so each eviction loses work: {remedy}"
        )


def notice_misfits(
    tiers: Sequence[Tier], commit: Seconds, workers: int = 1, rates: Mapping[str, float] | None = None
) -> tuple[NoticeMisfit, ...]:
    """The spot tiers whose notice is known and shorter than a commit.

    `commit` is the duration of a commit in seconds; it is rounded up to whole seconds. `rates` are evictions per
    node-hour by tier. The interval is that of J. W. Young (1974), √(2·Tf·Ts), for the gang's mean time between
    evictions Tf, as the nearest usual interval.
    """
    takes = float(math.ceil(commit))
    found = []
    for index, tier in enumerate(tiers):
        if tier.capacity_type is not CapacityType.SPOT or not 0 < tier.notice < takes:
            continue
        rate = (rates or {}).get(tier.name, 0.0) * workers / HOUR
        best = _usual(math.sqrt(2.0 * takes / rate)) if rate > 0 else None
        found.append(NoticeMisfit(index, tier.name, takes, tier.notice, math.ceil(takes / tier.notice), best))
    return tuple(found)


def _usual(seconds: Seconds) -> Seconds:
    """The nearest usual interval, so that the message of a condition does not change with every node-hour."""
    return min(_INTERVALS, key=lambda usual: abs(math.log(usual / seconds)))


_INTERVALS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, *(60.0 * m for m in (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 120, 240, 480)))


def misfits_of(spec: JobSpec, state: JobState) -> tuple[NoticeMisfit, ...]:
    """The misfits of a job that has measured its commits, with the evictions that it has had, except on tiers that are
    exhausted."""
    if not state.measured.commit_seconds:
        return ()
    records = [record for record in state.tiers if record.failures and record.node_seconds]
    rates = {record.name: record.failures * HOUR / record.node_seconds for record in records}
    found = notice_misfits(spec.tiers, state.measured.commit_seconds, spec.workers, rates)
    return tuple(one for one in found if state.record(one.tier).exhausted_by is None)
