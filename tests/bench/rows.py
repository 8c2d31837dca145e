"""Rows of a benchmark: each figure with its reference or limit, measured in the same run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """`measured` and `reference` are in `unit`; `ratio` is measured / reference. `compared_with` names the reference,
    and `goal` is the condition for `met` in words. `also` has further figures by the titles of their columns, with
    their units; None where there is no figure. `part` is the part of the benchmark that measured the row."""

    name: str
    measured: float
    unit: str
    compared_with: str
    reference: float | None = None
    goal: str = ""
    met: bool | None = None
    also: Mapping[str, float | None] = field(default_factory=dict)
    part: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.reference else self.measured / self.reference

    @property
    def is_judged(self) -> bool:
        """Whether the figure has a goal, or a reference."""
        return bool(self.goal) or self.reference is not None


def limited(name: str, measured: float, unit: str, limit: float, compared_with: str = "limit") -> Row:
    """A row whose goal is the limit, which `compared_with` describes."""
    return Row(name, measured, unit, compared_with, limit, f"≤ {limit:g} {unit}", measured <= limit)


FIRST = ("measurement", "result")
LAST = ("reference", "ratio", "goal")
"""The columns of every table, before and after the further figures of its rows."""


def cells(row: Row, further: Sequence[str] = ()) -> list[str]:
    """The cells of a row in a table with these further columns."""

    def figure(value: float | None, unit: str) -> str:
        return "–" if value is None else f"{value:.3g} {unit}".rstrip()

    named = row.compared_with if row.compared_with not in ("-", "–") else ""
    reference = ": ".join(part for part in (named, figure(row.reference, row.unit)) if part not in ("", "–"))
    met = {None: "", True: ": met", False: ": **missed**"}[row.met]
    return [
        row.name,
        figure(row.measured, row.unit),
        *(figure(row.also.get(column), "") for column in further),
        reference or "–",
        "–" if row.ratio is None else f"{row.ratio:.3g}",
        f"{row.goal}{met}" if row.goal else "–",
    ]


def table(rows: Sequence[Row]) -> str:
    """A Markdown table. A further column that has the same figure in all rows is left out."""
    named = dict.fromkeys(column for row in rows for column in row.also)
    further = [column for column in named if len(rows) == 1 or len({row.also.get(column) for row in rows}) > 1]
    columns = (*FIRST, *further, *LAST)
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells(row, further)) + " |" for row in rows]) + "\n"


def write(file: Path, title: str, note: str, rows: Sequence[Row]) -> None:
    """Write a benchmark's result as JSON."""
    file.write_text(json.dumps({"title": title, "note": note, "rows": [asdict(row) for row in rows]}, indent=1))


Draw = Callable[[Sequence[Row], Path], None]
"""Draws rows into an .svg file."""


def main(
    measure: Callable[..., Sequence[Row]],
    title: str,
    *,
    skipped: str = "",
    note: str = "",
    draw: Draw | None = None,
    **numbers: int,
) -> None:
    """The command line of every `bench_*.py`: prints the table, and writes it as JSON with `--json OUT`, and the
    picture of `draw` beside it. `numbers` are the arguments of `measure` that have a flag, with their defaults.
    `skipped` is why nothing can be measured here; "" if it can. `note` describes the conditions."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    if skipped:
        print(f"skipped: {skipped}")
        return
    rows = measure(**{name: getattr(arguments, name) for name in numbers})
    print("\n\n".join(filter(None, (f"## {title}", note, table(rows)))))
    if arguments.json:
        if draw is not None:
            draw(rows, arguments.json.with_suffix(".svg"))
        write(arguments.json, title, note, rows)
