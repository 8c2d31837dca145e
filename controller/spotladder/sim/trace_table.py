"""Descriptions of traces as rows of text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import Seconds
from spotladder.display.figures import NONE, count, percent, span
from spotladder.sim.description import AGES, Description, Prices, Spells
from spotladder.sim.readers.any_format import PRICE_HISTORY


def _age(seconds: Seconds) -> str:
    return f"{seconds / 60:g} min" if seconds < HOUR else f"{seconds / HOUR:g} h"


COLUMNS = ("Zone", "Format", "Files", "Samples", "Duration", "Tick", "Nodes", "Price")

SPELL_COLUMNS = ("Zone", "Share", "Spells", "Mean", "Median", "Longest", *(f">{_age(age)}" for age in AGES))
"""`Mean` is the time of all spells divided by the number of their ends; `>1 h` the share that lasts longer."""


def rows(found: Sequence[Description]) -> list[tuple[str, ...]]:
    """One row for each zone, in the order of COLUMNS."""
    return [
        (
            one.zone,
            " and ".join(one.formats),
            count(one.files),
            count(one.samples),
            span(one.duration),
            format_duration(one.gap) if one.gap is not None else NONE,
            NONE if one.nodes is None else f"{one.nodes[0]}–{one.nodes[1]}",
            _price(one.prices),
        )
        for one in found
    ]


def spell_rows(found: Sequence[Description], *, available: bool) -> list[tuple[str, ...]]:
    """One row for each zone, in the order of SPELL_COLUMNS, about its time with capacity or without it."""
    kinds = [
        (one.zone, one.share, one.available) if available else (one.zone, 1 - one.share, one.unavailable)
        for one in found
    ]
    return [
        (
            zone,
            percent(share, 1),
            count(spells.count),
            span(spells.mean),
            span(spells.median),
            span(spells.longest if spells.count else None),
            *(percent(left) if spells.count else NONE for left in spells.survival),
        )
        for zone, share, spells in kinds
    ]


def title(workers: int, *, available: bool) -> str:
    """The title of the rows of spells."""
    nodes = "1 node" if workers == 1 else f"{workers} nodes at once"
    return f"Time {'with' if available else 'without'} capacity for {nodes}"


def notes(found: Sequence[Description]) -> list[str]:
    """What the reader of the figures must know, one sentence each."""
    sentences = []
    for one in found:
        if one.silence is not None:
            sentences.append(f"{one.zone}: the longest time between two samples is {span(one.silence)}")
        if PRICE_HISTORY in one.formats:
            sentences.append(f"{one.zone}: a price history has no data about capacity; the zone always has capacity")
    return sentences


def _price(prices: Prices | None) -> str:
    if prices is None:
        return NONE
    if prices.lowest == prices.highest:
        return f"${prices.mean:.4g}"
    return f"${prices.lowest:.4g}–${prices.highest:.4g}"


def plain(one: Description) -> dict[str, Any]:
    """A description as data for JSON and YAML."""
    return {
        "zone": one.zone,
        "formats": list(one.formats),
        "files": one.files,
        "samples": one.samples,
        "durationSeconds": round(one.duration, 3),
        "tickSeconds": one.gap,
        "longestBetweenSamplesSeconds": _rounded(one.silence),
        "nodes": None if one.nodes is None else {"fewest": one.nodes[0], "most": one.nodes[1]},
        "priceUsd": None
        if one.prices is None
        else {
            "lowest": round(one.prices.lowest, 6),
            "mean": round(one.prices.mean, 6),
            "highest": round(one.prices.highest, 6),
        },
        "availableShare": round(one.share, 6),
        "available": _plain(one.available),
        "unavailable": _plain(one.unavailable),
    }


def _plain(spells: Spells) -> dict[str, Any]:
    return {
        "spells": spells.count,
        "ended": spells.ended,
        "meanSeconds": _rounded(spells.mean),
        "medianSeconds": _rounded(spells.median),
        "longestSeconds": _rounded(spells.longest),
        "survival": [
            {"ageSeconds": round(age, 3), "share": round(left, 6)}
            for age, left in zip(AGES, spells.survival, strict=True)
        ],
    }


def _rounded(seconds: Seconds | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
