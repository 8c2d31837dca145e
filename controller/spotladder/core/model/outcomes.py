"""What all jobs together have observed of the availability of a tier, in a bounded form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgeCounts:
    """Availability spells of one kind, counted by age. The entries are those of the age classes `ages.AGES`, youngest
    first; () counts nothing.

    `survived`: ticks of `ages.TICK` seconds after which a spell of this age continued. `ended`: spells that ended at
    this age.
    """

    survived: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The availability spells of a tier, over all jobs. `capacity` counts the spells in which the tier had capacity for
    a job, `outages` those in which it had none."""

    capacity: AgeCounts = AgeCounts()
    outages: AgeCounts = AgeCounts()


NO_OUTCOMES = Outcomes()
