"""Rows of a benchmark: each figure beside the peer or the limit it is measured against, in the same run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """`measured` and `peer` are in `unit`; `ratio` is measured / peer; `goal` says what would be good, in words."""

    what: str
    measured: float
    unit: str
    beside: str
    peer: float | None = None
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        return None if not self.peer else self.measured / self.peer


COLUMNS = ("what", "measured", "beside", "peer", "ratio", "goal", "met")


def cells(row: Row) -> list[str]:
    def figure(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g} {row.unit}"

    ratio = "–" if row.ratio is None else f"{row.ratio:.3f}"
    met = {None: "–", True: "yes", False: "**no**"}[row.met]
    return [row.what, figure(row.measured), row.beside, figure(row.peer), ratio, row.goal or "–", met]


def table(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells(row)) + " |" for row in rows]) + "\n"


def main(measure: Callable[..., Sequence[Row]], title: str, **numbers: int) -> None:
    """The command line of every `bench_*.py`: prints the table, and writes it as JSON with `--json OUT`. `numbers` are
    arguments of `measure` that may be given as flags, with what they are otherwise."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    arguments = parser.parse_args()
    rows = measure(**{name: getattr(arguments, name) for name in numbers})
    print(f"## {title}\n\n{table(rows)}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"title": title, "rows": [asdict(row) for row in rows]}, indent=1))
