"""The figures of a soak, and whether they are good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from tests.e2e.steps import ReportedStep

SLOWER = 1.3
"""How many times as long the 99th percentile of the recoveries may be with attackers."""

BEFORE, AFTER = 60.0, 30.0
"""Seconds before and after an outage in which a loss is left out of that comparison: the recovery takes as long as the
outage. A recovery during which the job loses another machine is left out, too."""

GROWTH = 0.05
"""Share by which the memory of the leader may change during the second half."""


class MachineLost(NamedTuple):
    """A machine of a job was lost or reclaimed. `recovery` is None if no new step followed."""

    at: float
    kind: str
    job: str
    recovery: float | None


@dataclass(frozen=True)
class Figures:
    """What a soak has measured: the recoveries without and with attackers, and those that an outage or another loss may
    have delayed, in seconds, None without a recovery; the memory of the last leader in the second half; and how often
    each kind of attack has acted."""

    alone: list[float | None] = field(default_factory=list)
    attacked: list[float | None] = field(default_factory=list)
    disturbed: list[float | None] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    attacks: Mapping[str, int] = field(default_factory=dict)


def recovery(done: Sequence[ReportedStep], lost_at: float) -> float | None:
    """Seconds from the loss of a program's node until another process makes a step that the lost one had not made; None
    if none did."""
    lost = next((step.process for step in reversed(done) if step.at <= lost_at), "")
    newest = max((step.step for step in done if step.process == lost), default=0)
    later = (step.at for step in done if step.at > lost_at and step.process != lost and step.step > newest)
    return next((at - lost_at for at in later), None)


def disturbed(lost_at: float, outages: Sequence[tuple[float, float]]) -> bool:
    """Whether the recovery from a loss at this time may have waited for the end of an outage."""
    return any(began - BEFORE <= lost_at <= ended + AFTER for began, ended in outages)


def again(loss: MachineLost, losses: Sequence[MachineLost]) -> bool:
    """Whether the job had not recovered from another loss, or lost another machine before it recovered from this."""
    others = (other for other in losses if other.job == loss.job and other is not loss)
    return any(_within(other.at, loss) or _within(loss.at, other) for other in others)


def _within(at: float, loss: MachineLost) -> bool:
    return loss.at <= at <= loss.at + (math.inf if loss.recovery is None else loss.recovery)


def percentile(values: Sequence[float], share: float = 0.99) -> float:
    """The smallest value that this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def growth(samples: Sequence[float]) -> float:
    """The share by which the median of the second half of the samples exceeds that of the first half."""
    middle = len(samples) // 2
    return median(samples[middle:]) / median(samples[:middle]) - 1


def problems(of: Figures) -> list[str]:
    """Why the soak has failed; [] if it has not."""
    found = [f"no attack has acted: {kind}" for kind, times in of.attacks.items() if not times]
    if missing := sum(value is None for value in (*of.alone, *of.attacked, *of.disturbed)):
        found.append(f"{missing} losses were followed by no new step")
    first, second = ([value for value in values if value is not None] for values in (of.alone, of.attacked))
    if not (first and second and len(of.memory) >= 2):
        return [
            *found,
            f"too few figures: {len(first)} and {len(second)} recoveries, {len(of.memory)} samples of memory",
        ]
    before, after = percentile(first), percentile(second)
    if after > SLOWER * before:
        found.append(f"recovery p99 is {after:.1f} s with attackers, {before:.1f} s without: more than {SLOWER} times")
    if abs(change := growth(of.memory)) > GROWTH:
        found.append(f"the leader's memory changes by {change:+.1%} in the second half: more than {GROWTH:.0%}")
    return found
