"""Rows of a benchmark: each figure with its reference or limit, measured in the same run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """`measured` and `reference` are in `unit`; `ratio` is measured / reference. `compared_with` names the reference,
    and
    `goal` is the condition for `met` in words."""

    name: str
    measured: float
    unit: str
    compared_with: str
    reference: float | None = None
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        return None if not self.reference else self.measured / self.reference


COLUMNS = ("measurement", "result", "compared with", "reference", "ratio", "goal", "met")


def cells(row: Row) -> list[str]:
    def figure(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g} {row.unit}"

    ratio = "–" if row.ratio is None else f"{row.ratio:.3f}"
    met = {None: "–", True: "yes", False: "**no**"}[row.met]
    return [row.name, figure(row.measured), row.compared_with, figure(row.reference), ratio, row.goal or "–", met]


def table(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells(row)) + " |" for row in rows]) + "\n"


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
        arguments.json.write_text(
            json.dumps({"title": title, "note": note, "rows": [asdict(row) for row in rows]}, indent=1)
        )
