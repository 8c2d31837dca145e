"""How the user called spotladder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer


def refuse_without_command(context: typer.Context) -> None:
    """Print the help of a group, and exit with 2, if no command of it was named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def program_name() -> str:
    """The program name for messages: kubectl runs `kubectl-spotladder` as `kubectl spotladder`."""
    return "kubectl spotladder" if Path(sys.argv[0]).stem == "kubectl-spotladder" else "spotladder"


def command_words() -> list[str]:
    """The words that call spotladder again. If the shell does not find this program by its name, as in a virtual
    environment that is not active, that is its path as the user wrote it."""
    name, program = program_name(), Path(sys.argv[0])
    if program.name != name or not program.is_file():
        return name.split()
    found = shutil.which(name)
    return [name] if found is not None and Path(found).samefile(program) else [sys.argv[0]]
