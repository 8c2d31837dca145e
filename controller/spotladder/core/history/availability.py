"""Records the availability of a job's tiers.

It is kept in `JobState`, with a bounded size, so that a policy makes the same choice after a restart of the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spotladder.core.history.losses import with_record
from spotladder.core.model import Instant, JobState, Spell

SPELLS = 32
"""Maximum number of availability spells that are kept for each tier; the oldest are dropped."""


def with_sightings(state: JobState, found: Mapping[str, bool], now: Instant, last: Instant | None = None) -> JobState:
    """The state with these observations of availability at `now`. An observation like the last one extends the newest
    spell of its tier. A different one ends it now if it was observed at the `last` decision: so the length of a spell
    does not depend on the number of decisions."""
    for name, available in found.items():
        record = state.record(name)
        newest = record.spells[-1] if record.spells else None
        if newest is not None and newest.available is available:
            spells = (*record.spells[:-1], replace(newest, until=max(newest.until, now)))
        else:
            ended = record.spells
            if newest is not None and newest.until == last:
                ended = (*ended[:-1], replace(newest, until=max(newest.until, now)))
            spells = (*ended, Spell(available, now, now))[-SPELLS:]
        state = with_record(state, replace(record, spells=spells))
    return state
