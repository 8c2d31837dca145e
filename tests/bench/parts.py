"""Benchmarks whose parts take minutes each: a part that fails loses no other, and the result is written after each.

A pass measures every part once; further passes turn each figure into the median of all. The rows of parts that are not
selected, or not reached, stay as the result file has them.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.rows import Row, table, write

Part = Callable[[Any], Iterable[Row]]
"""Measures rows on a site. A row counts as soon as it is yielded: what fails after that does not lose it."""


@dataclass(frozen=True)
class Group:
    """Parts by their names, and the site that they share, which is set up once a pass."""

    site: Callable[[], AbstractContextManager[Any]]
    parts: Mapping[str, Part]


@dataclass
class Passes:
    """The rows of each part in each of its passes. `kept` has the rows of an earlier result."""

    names: Sequence[str]
    kept: Sequence[Row] = ()
    rows: dict[str, list[list[Row]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def measure(self, name: str, found: Callable[[], Iterable[Row]], written: Callable[[], None]) -> None:
        """Measure a part once more. Its failure is printed and recorded."""
        began = time.monotonic()
        mine: list[Row] = []
        self.rows.setdefault(name, []).append(mine)
        try:
            for row in found():
                mine.append(replace(row, part=name))
                print(f"{name}: {mine[-1]}", flush=True)
                written()
        except Exception:  # noqa: BLE001 – whatever fails, the other parts are measured
            traceback.print_exc()
            self.failed.append(name)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)

    def medians(self) -> Iterator[Row]:
        """The rows of all parts in the order of their names."""
        for name in self.names:
            together: dict[str, list[Row]] = {}
            for row in (row for once in self.rows.get(name, ()) for row in once):
                together.setdefault(row.name, []).append(row)
            if together or name in self.failed:
                yield from map(median, together.values())
            else:
                yield from (row for row in self.kept if row.part == name)


def median(same: Sequence[Row]) -> Row:
    """One row of the same measurement in several passes: the medians of its figures, and `met` if it was in each pass.
    A figure that is missing in a pass has no median."""

    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if len(known) == len(values) else None

    worst = next((row for row in same if row.reference is None), same[0])
    columns = dict.fromkeys(column for row in same for column in row.also)
    also = {column: middle([row.also.get(column) for row in same]) for column in columns}
    passes: dict[str, float | None] = {"passes": float(len(same))} if len(same) > 1 else {}
    return replace(
        worst,
        measured=statistics.median(row.measured for row in same),
        reference=middle([row.reference for row in same]),
        met=None if worst.met is None else all(row.met for row in same),
        also={**also, **passes},
    )


def selected(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The names that match one of the patterns; all without patterns. Every pattern must match one."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"no part matches {pattern!r} (expected one of: {'; '.join(names)})")
    return [name for name in names if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def earlier(file: Path | None) -> list[Row]:
    """The rows of a result file; none without one."""
    return [Row(**row) for row in json.loads(file.read_text())["rows"]] if file is not None and file.exists() else []


def main(groups: Sequence[Group], title: str, *, skipped: str = "", note: str = "") -> None:
    """The command line of a benchmark with parts. It ends with 1 if a part failed or if it was interrupted; SIGTERM
    interrupts like Ctrl-C, and the sites are removed first."""
    names = [name for group in groups for name in group.parts]
    parser = argparse.ArgumentParser(description=f"{title}. Parts: {'; '.join(names)}.")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="only these parts (* matches all)")
    parser.add_argument("--passes", type=int, default=1, help="number of passes; figures are medians (default: 1)")
    arguments = parser.parse_args()
    if skipped:
        print(f"skipped: {skipped}")
        return
    try:
        wanted = selected(names, arguments.only)
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    passes = Passes(names, earlier(arguments.json))

    def written() -> None:
        if arguments.json:
            write(arguments.json, title, note, list(passes.medians()))

    interrupted = False
    try:
        for _ in range(arguments.passes):
            _one_pass(groups, wanted, passes, written)
    except KeyboardInterrupt:
        interrupted = True
    written()
    print("\n\n".join(filter(None, (f"## {title}", note, table(list(passes.medians()))))))
    if passes.failed or interrupted:
        print(f"failed: {', '.join(passes.failed)}" if passes.failed else "interrupted")
        sys.exit(1)


def _one_pass(groups: Sequence[Group], wanted: Sequence[str], passes: Passes, written: Callable[[], None]) -> None:
    for group in groups:
        mine = {name: part for name, part in group.parts.items() if name in wanted}
        if not mine:
            continue
        try:
            with group.site() as site:
                for name, part in mine.items():
                    passes.measure(name, partial(part, site), written)
        except Exception:  # noqa: BLE001 – as for a part
            traceback.print_exc()
            passes.failed.append(f"the site of {', '.join(mine)}")
