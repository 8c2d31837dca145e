"""Reads and writes the fitted model of the `adaptive` policy, a JSON file of this package.

`zones` has the hazards of each zone. `slack` has one array of integers for each overhead, price ratio, zone and kind
(wait or leave), in this order. The axes must be those of `core.policies.adaptive_tables`, so that a model that was
fitted for other axes is refused. `python -m tests.bench.fit_adaptive --write` generates the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from spotladder.core.ages import AGES, TICK
from spotladder.core.policies.adaptive_tables import OVERHEADS, RATIOS, WORK, Model
from spotladder.errors import EnvironmentFailure

FILE = "adaptive_model.json"

FORMAT = 1
"""Version of the file format."""

AXES = {"tickSeconds": TICK, "ages": AGES, "work": WORK, "overheads": OVERHEADS, "ratios": RATIOS}
"""Axes of the tables, by field of the file. Ages, work and overheads are in ticks."""

_ROW = len(AGES) * len(WORK)


@cache
def shipped() -> Model:
    """The model of this package, fitted to all zones of the published traces. Raises EnvironmentFailure."""
    source = files("spotladder.policies").joinpath(FILE)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise EnvironmentFailure(f"{source}: cannot be read: {error.strerror or error}: reinstall spotladder") from None
    return parsed(text, str(source))


def parsed(text: str, where: str) -> Model:
    """The model in this text. Raises EnvironmentFailure with the field if the text is not such a model."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _invalid(where, "", f"is not JSON: {error}") from None
    fields = {"format", *AXES, "zones", "slack"}
    if not isinstance(document, dict) or set(document) != fields:
        raise _invalid(where, "", f"expected an object with the fields {', '.join(sorted(fields))}")
    if document["format"] != FORMAT:
        raise _invalid(where, "format", f"expected {FORMAT}, got {document['format']!r}")
    for name, axis in AXES.items():
        wanted = list(axis) if isinstance(axis, tuple) else axis
        if document[name] != wanted:
            raise _invalid(where, name, f"expected {wanted}, got {document[name]!r}")
    zones = document["zones"]
    if not isinstance(zones, list) or not zones:
        raise _invalid(where, "zones", "expected a list with at least one zone")
    shares: list[float] = []
    hazards: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    for index, zone in enumerate(zones):
        at = f"zones[{index}]"
        if not isinstance(zone, dict) or set(zone) != {"share", "back", "lost"}:
            raise _invalid(where, at, "expected an object with the fields back, lost, share")
        shares.append(*_numbers(where, f"{at}.share", [zone["share"]], 1, _probability))
        back, lost = (_numbers(where, f"{at}.{name}", zone[name], len(AGES), _probability) for name in ("back", "lost"))
        hazards.append((back, lost))
    rows, count = document["slack"], len(OVERHEADS) * len(RATIOS) * len(zones) * 2
    if not isinstance(rows, list) or len(rows) != count:
        raise _invalid(where, "slack", f"expected a list of {count} lists")
    slack = [
        ticks
        for index, row in enumerate(rows)
        for ticks in _numbers(where, f"slack[{index}]", row, _ROW, lambda value: type(value) is int)
    ]
    return Model(tuple(shares), tuple(hazards), tuple(slack))


def written(model: Model) -> str:
    """The model as the text that `parsed` reads, with one line for each zone and each row of slacks."""
    zones = [
        {"share": share, "back": back, "lost": lost}
        for share, (back, lost) in zip(model.shares, model.hazards, strict=True)
    ]
    rows = [model.slack[first : first + _ROW] for first in range(0, len(model.slack), _ROW)]
    parts = [f'"format": {FORMAT}', *(f'"{name}": {json.dumps(axis)}' for name, axis in AXES.items())]
    for name, lines in (("zones", zones), ("slack", rows)):
        body = ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
        parts.append(f'"{name}": [\n{body}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def _numbers(where: str, path: str, values: Any, count: int, valid: Callable[[Any], bool]) -> tuple[Any, ...]:
    if not isinstance(values, list) or len(values) != count or not all(map(valid, values)):
        kind = "probabilities between 0 and 1" if valid is _probability else "integers"
        raise _invalid(where, path, f"expected {count} {kind}")
    return tuple(values)


def _probability(value: Any) -> bool:
    return type(value) is float and 0.0 < value < 1.0


def _invalid(where: str, path: str, problem: str) -> EnvironmentFailure:
    return EnvironmentFailure(": ".join(part for part in (where, path, problem, "reinstall spotladder") if part))
