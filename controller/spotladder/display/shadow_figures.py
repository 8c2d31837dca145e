"""What a shadow policy would have done and saved, for programs."""

from __future__ import annotations

from typing import Any

from spotladder.core.model import Shadow
from spotladder.core.shadowing import summary


def shadow_data(shadow: Shadow) -> dict[str, Any]:
    """The figures as plain data. `savedUSD` is null if nothing can be estimated."""
    return {
        "policy": shadow.policy,
        "summary": summary(shadow),
        "agreedSeconds": round(shadow.agreed, 1),
        "tiers": [
            {
                "name": tier.name,
                "seconds": round(tier.seconds, 1),
                "assumedSeconds": round(tier.assumed, 1),
                "uncountedSeconds": round(tier.uncounted, 1),
                "actualUSD": round(tier.actual_usd, 6),
                "estimatedUSD": round(tier.estimated_usd, 6),
            }
            for tier in shadow.tiers
        ],
        "moves": shadow.moves,
        "movesUSD": round(shadow.moves_usd, 6),
        "savedUSD": None if shadow.saved_usd is None else round(shadow.saved_usd, 6),
    }
