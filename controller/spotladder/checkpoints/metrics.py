"""The metrics of a program as an entry of the log stores them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from spotladder.checkpoints.entries import LARGEST_INTEGER, LONGEST_TEXT, Metric


def metrics_of(values: Mapping[str, Any] | None) -> dict[str, Metric]:
    """The metrics of a program that can be stored: finite numbers (of any library), text, booleans. Never fails."""
    return {str(name): _metric(value) for name, value in (values or {}).items()}


def _metric(value: Any) -> Metric:
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < LARGEST_INTEGER):
        return value
    try:
        if isinstance(value, str):
            return value[:LONGEST_TEXT]
        number = float(value)
    except OverflowError:
        return None
    except Exception:  # noqa: BLE001 – libraries raise errors of their own, for example for a tensor of several elements
        return _text_of(value)
    return number if math.isfinite(number) else None


def _text_of(value: Any) -> str:
    try:
        return str(value)[:LONGEST_TEXT]
    except Exception:  # noqa: BLE001 – the program's own type
        return f"<{type(value).__name__}>"
