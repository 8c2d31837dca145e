"""Output of commands: tables (drawn on a terminal, plain text otherwise), JSON and YAML."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from spotladder.api.yaml_text import as_yaml
from spotladder.cli import terminal


class Format(StrEnum):
    """Output format of a command."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


_NUMBER = re.compile(r"[-−+$]{0,2}[0-9][0-9,]*(\.[0-9]+)?( ?[%×h])?")

OutputOption = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def print_data(data: Any, output: Format) -> None:
    """Print dicts, lists, text and numbers as JSON or YAML."""
    if output is Format.YAML:
        typer.echo(as_yaml(data), nl=False)
        return
    import json

    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print rows with column headings. Columns of numbers are right-aligned."""
    rows, title = [[_one_line(cell) for cell in row] for row in rows], _one_line(title)
    numeric = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    if on_terminal():
        _draw(columns, rows, title, numeric)
    else:
        _write(columns, rows, title, numeric)


def print_result(
    output: Format, data: Any, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = ""
) -> None:
    """Print the rows as a table, or the data as JSON or YAML."""
    if output is Format.TABLE:
        print_table(columns, rows, title)
    else:
        print_data(data, output)


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numeric: Sequence[bool]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    for heading, right in zip(columns, numeric, strict=True):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    terminal.console().print(table)


def _write(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numeric: Sequence[bool]) -> None:
    if title:
        typer.echo(title)
    lines = [[heading.upper() for heading in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = zip(line, widths, numeric, strict=True)
        text = "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells)
        typer.echo(text.rstrip())


def _one_line(cell: str) -> str:
    """The cell as it is shown, which gives its width; a line break could make it look like several rows."""
    return terminal.cleaned(cell).replace("\n", "\\n")


def _is_number(cell: str) -> bool:
    return cell in ("", "–") or _NUMBER.fullmatch(cell) is not None
