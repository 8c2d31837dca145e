"""Output of commands: tables, JSON and YAML."""

from __future__ import annotations

import re
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


def print_data(data: Any, output: Format) -> None:
    """Print dicts, lists, text and numbers as JSON or YAML."""
    if output is Format.YAML:
        typer.echo(as_yaml(data), nl=False)
        return
    import json

    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print rows with column headings, each row in one line. Columns of numbers are right-aligned."""
    rows, title = [[_one_line(cell) for cell in row] for row in rows], _one_line(title)
    numeric = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    if title:
        typer.echo(title)
    lines = [[heading.upper() for heading in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = zip(line, widths, numeric, strict=True)
        text = "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells)
        typer.echo(text.rstrip())


def print_result(
    output: Format, data: Any, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = ""
) -> None:
    """Print the rows as a table, or the data as JSON or YAML."""
    if output is Format.TABLE:
        print_table(columns, rows, title)
    else:
        print_data(data, output)


def _one_line(cell: str) -> str:
    """The cell as it is shown, which gives its width; a line break could make it look like several rows."""
    return terminal.cleaned(cell).replace("\n", "\\n")


def _is_number(cell: str) -> bool:
    return cell in ("", "–") or _NUMBER.fullmatch(cell) is not None
