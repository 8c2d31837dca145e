"""Availability traces: `{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1, …]}`, where 1 means "taken away"."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from spotladder.api.files import open_regular
from spotladder.api.problems import Problem, dotted, quoted
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.api.document import Document
    from spotladder.api.world import World

_FORMAT = '{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1]} with 1 = taken away'


MAX_GAP: Seconds = 366 * 24 * 3600.0
"""Longest time between two samples."""


@dataclass(frozen=True, slots=True)
class PoolTrace:
    """The recorded availability of a pool: one sample every `gap` seconds. True means that the capacity is taken
    away."""

    gap: Seconds
    taken: tuple[bool, ...]


def read_trace(path: File) -> PoolTrace:
    """The trace in a file. Raises InvalidSpec, located at the file, for a missing, truncated or malformed one."""
    return trace_of(read_document(path), path)


def read_document(path: File) -> Any:
    """The parsed JSON of a trace file. Raises InvalidSpec, located at the file, for one that is missing or torn."""
    try:
        with open_regular(path) as stream:
            content = stream.read()
        if not content.strip():
            raise InvalidSpec(f"is empty: expected {_FORMAT}", where=str(path))
        return json.loads(content)
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"is not valid JSON ({error}): expected {_FORMAT}", where=str(path)) from None


def trace_of(document: Any, path: File) -> PoolTrace:
    """The trace in a parsed file. Raises InvalidSpec, located at the file, for one that is malformed."""
    try:
        return PoolTrace(_gap(document), _samples(document))
    except ValueError as error:
        raise InvalidSpec(f"is not an availability trace: {error}", where=str(path)) from None


def trace_problems(world: World, document: Document, folder: File) -> list[Problem]:
    """One problem for each pool with an invalid trace. Relative paths start at `folder`."""
    problems = []
    for name, pool in world.pools.items():
        if pool.interruptions is None or pool.interruptions.trace is None:
            continue
        try:
            read_trace(folder / pool.interruptions.trace)
        except InvalidSpec as error:
            at = ("pools", name, "interruptions", "trace")
            problems.append(Problem(document.where(at), dotted(at), f"{error.where} {error.message}"))
    return problems


def _gap(document: Any) -> Seconds:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    gap = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    if gap is None:
        raise ValueError(f"metadata.gap_seconds is missing: expected {_FORMAT}")
    if isinstance(gap, bool) or not isinstance(gap, int | float) or not 0 < gap <= MAX_GAP:
        raise ValueError(f"metadata.gap_seconds must be a number of seconds above 0, at most a year, not {quoted(gap)}")
    return float(gap)


def _samples(document: Any) -> tuple[bool, ...]:
    samples = document.get("data")
    if not isinstance(samples, list) or not samples:
        raise ValueError("data must be a list of at least one sample, 0 (available) or 1 (taken away)")
    for index, sample in enumerate(samples):
        if not isinstance(sample, int | float) or sample not in (0, 1):
            raise ValueError(f"data[{index}] must be 0 (available) or 1 (taken away), not {quoted(sample)}")
    return tuple(bool(sample) for sample in samples)
