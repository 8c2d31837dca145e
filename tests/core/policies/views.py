"""A builder for the views of the deadline-aware policies: two spot tiers and two on-demand tiers."""

from __future__ import annotations

from typing import Any

from spotladder.core.model import Price, Progress, Spell, TierOutlook, TierRecord, TierView
from tests.core.builders import START, priced, tier

HOUR = 3600.0
TIERS = (
    priced("spot-dear", 2.0, 4.0),
    priced("spot-cheap", 1.0, 4.0),
    priced("on-demand-dear", 6.0, 6.0),
    priced("on-demand-cheap", 4.0, 4.0),
    tier("on-demand-unpriced", price=Price(known=False)),
)
NAMES = tuple(one.name for one in TIERS)


def view(
    current: str = "",
    *,
    capacity: dict[str, bool] | None = None,
    overhead: float = 180.0,
    failed_at: dict[str, float] | None = None,
    tiers: tuple[str, ...] = NAMES,
    **more: Any,
) -> TierView:
    """Of a job with 10 hours of work that is due in 20 hours, by default. `current` is the tier of the live attempt.
    `failed_at` is how many seconds ago a tier was last without capacity, `capacity` what is known of it now."""
    chosen = tuple(one for one in TIERS if one.name in tiers)
    spells = {name: (Spell(False, START - 7200.0, START - ago),) for name, ago in (failed_at or {}).items()}
    given = {
        "now": START,
        "current": current,
        "tiers": chosen,
        "records": tuple(TierRecord(one.name, spells=spells.get(one.name, ())) for one in chosen),
        "open": frozenset(tiers),
        "available": frozenset(tiers),
        "live": bool(current),
        "progress": Progress(),
        "deadline": START + 20 * HOUR,
        "spent_usd": 0.0,
        "outlooks": tuple(
            TierOutlook(one.name, (capacity or {}).get(one.name), overhead if one.name != "spot-dear" else 60.0)
            for one in chosen
        ),
        "work": 10 * HOUR,
        "remaining": 10 * HOUR,
        "submitted_at": START,
    }
    return TierView(**{**given, **more})
