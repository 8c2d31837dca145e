"""The option --what-if of `spotladder plan` and `spotladder replay`: one field of a tier with other values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spotladder.core.durations import parse_duration
from spotladder.core.model import JobSpec
from spotladder.errors import InvalidSpec

MOST_VALUES = 50
"""Values of one --what-if."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One field of one tier with other values: text for people, and the value of `Tier`'s field."""

    option: str
    tier: str
    field: str
    values: tuple[tuple[str, float], ...]


FIELDS = {
    "maxFailures": "max_failures",
    "provisionTimeout": "provision_timeout",
    "idleBudget": "idle_budget",
    "probe": "probe",
}
"""Fields of `core.model.Tier` by the names of the job's fields."""


def parsed(text: str, spec: JobSpec) -> WhatIf:
    """Parse `TIER.maxFailures=0..10`, `TIER.provisionTimeout=5m,10m`, `TIER.idleBudget=0.5,2` or `TIER.probe=0,1`, for
    this job. Raises InvalidSpec."""
    target, given, values = text.partition("=")
    tier, _, field = target.rpartition(".")
    if not given or field not in FIELDS:
        raise InvalidSpec(
            "expected TIER.maxFailures=0..10, TIER.provisionTimeout=5m,10m, TIER.idleBudget=0.5,2 or TIER.probe=0,1, "
            f"got {text!r}",
            path="--what-if",
        )
    tiers = [one.name for one in spec.tiers]
    if tier not in tiers:
        raise InvalidSpec(f"the job has no tier {tier!r} (expected one of {', '.join(tiers)})", path="--what-if")
    found = _PARSERS[field](values)
    if not 0 < len(found) <= MOST_VALUES:
        raise InvalidSpec(f"expected 1 to {MOST_VALUES} values, got {len(found)}: {text!r}", path="--what-if")
    if field == "probe" and (most := max(value for _text, value in found)) > spec.workers:
        raise InvalidSpec(f"expected at most the {spec.workers} workers of the job, got {most:g}", path="--what-if")
    return WhatIf(text, tier, field, tuple(found))


def _numbers(text: str) -> list[tuple[str, float]]:
    span = re.fullmatch(r"(\d{1,6})\.\.(\d{1,6})", text)
    if span is not None:
        return [(str(number), number) for number in range(int(span[1]), int(span[2]) + 1)]
    parts = text.split(",")
    if not all(re.fullmatch(r"-1|\d{1,6}", part) for part in parts):
        raise InvalidSpec(f"expected 0..10, or numbers from -1 like 0,3,5, got {text!r}", path="--what-if")
    return [(part, int(part)) for part in parts]


def _counts(text: str) -> list[tuple[str, float]]:
    if "-" in text:
        raise InvalidSpec(f"expected numbers of workers like 0,1, got {text!r}", path="--what-if")
    return _numbers(text)


def _amounts(text: str) -> list[tuple[str, float]]:
    parts = text.split(",")
    if not all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", part) for part in parts):
        raise InvalidSpec(f"expected amounts in USD like 0.5,2, got {text!r}", path="--what-if")
    return [(part, float(part)) for part in parts]


def _durations(text: str) -> list[tuple[str, float]]:
    try:
        found = [(part, parse_duration(part)) for part in text.split(",")]
    except ValueError as error:
        raise InvalidSpec(f"{text!r}: {error}", path="--what-if") from None
    if not all(value > 0 for _part, value in found):
        raise InvalidSpec(f"expected more than 0s, got {text!r}", path="--what-if")
    return found


_PARSERS = {"maxFailures": _numbers, "provisionTimeout": _durations, "idleBudget": _amounts, "probe": _counts}
