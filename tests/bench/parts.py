"""Benchmarks whose parts take minutes each: a part that fails loses no other, and the result is written after each.

The rows of parts that are not selected, or not reached, stay as the result file has them.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """Parts by their names, and the site that they share."""

    site: Callable[[], AbstractContextManager[Any]]
    parts: Mapping[str, Part]


@dataclass
class Measured:
    """The rows of each part. `kept` has the rows of an earlier result."""

    names: Sequence[str]
    kept: Sequence[Row] = ()
    rows: dict[str, list[Row]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def measure(self, name: str, found: Callable[[], Iterable[Row]], written: Callable[[], None]) -> None:
        """Measure a part. Its failure is printed and recorded."""
        began, mine = time.monotonic(), self.rows.setdefault(name, [])
        try:
            for row in found():
                mine.append(replace(row, part=name))
                print(f"{name}: {mine[-1]}", flush=True)
                written()
        except Exception:  # noqa: BLE001 – whatever fails, the other parts are measured
            traceback.print_exc()
            self.failed.append(name)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)

    def all(self) -> list[Row]:
        """The rows of all parts in the order of their names."""
        kept = {name: [row for row in self.kept if row.part == name] for name in self.names}
        return [
            row for name in self.names for row in self.rows.get(name) or ([] if name in self.failed else kept[name])
        ]


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
    arguments = parser.parse_args()
    if skipped:
        print(f"skipped: {skipped}")
        return
    try:
        wanted = selected(names, arguments.only)
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    measured = Measured(names, earlier(arguments.json))

    def written() -> None:
        if arguments.json:
            write(arguments.json, title, note, measured.all())

    interrupted = False
    try:
        for group in groups:
            _measure(group, wanted, measured, written)
    except KeyboardInterrupt:
        interrupted = True
    written()
    print("\n\n".join(filter(None, (f"## {title}", note, table(measured.all())))))
    if measured.failed or interrupted:
        print(f"failed: {', '.join(measured.failed)}" if measured.failed else "interrupted")
        sys.exit(1)


def _measure(group: Group, wanted: Sequence[str], measured: Measured, written: Callable[[], None]) -> None:
    mine = {name: part for name, part in group.parts.items() if name in wanted}
    if not mine:
        return
    try:
        with group.site() as site:
            for name, part in mine.items():
                measured.measure(name, partial(part, site), written)
    except Exception:  # noqa: BLE001 – as for a part
        traceback.print_exc()
        measured.failed.append(f"the site of {', '.join(mine)}")
