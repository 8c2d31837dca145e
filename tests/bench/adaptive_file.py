"""Writes the fitted model of the `adaptive` policy to its file."""

from __future__ import annotations

import json
from pathlib import Path

from spotladder.core.history.ages import AGES, TICK
from spotladder.core.policies.adaptive_tables import OVERHEADS, RATIOS, WORK, Model
from spotladder.policies import adaptive_model

FILE = Path(adaptive_model.__file__).with_name(adaptive_model.FILE)

AXES = {"tickSeconds": TICK, "ages": AGES, "work": WORK, "overheads": OVERHEADS, "ratios": RATIOS}
"""Axes of the tables, by field of the file. Ages, work and overheads are in ticks."""

_ROW = len(AGES) * len(WORK)


def written(model: Model) -> str:
    """The model as the text of its file, with one line for each zone and each row of slacks."""
    zones = [
        {"share": share, "back": back, "lost": lost}
        for share, (back, lost) in zip(model.shares, model.hazards, strict=True)
    ]
    rows = [model.slack[first : first + _ROW] for first in range(0, len(model.slack), _ROW)]
    parts = ['"format": 1', *(f'"{name}": {json.dumps(axis)}' for name, axis in AXES.items())]
    for name, lines in (("zones", zones), ("slack", rows)):
        body = ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
        parts.append(f'"{name}": [\n{body}\n]')
    return "{" + ",\n".join(parts) + "}\n"
