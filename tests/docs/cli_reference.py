"""Generates docs/cli.md, a list of all commands with their arguments, from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spotladder.cli.main import GROUPS, group

HEAD = """# Commands

`kubectl spotladder` is the same as `spotladder`. `--help` after a command explains its options and shows examples. This
page is generated from the commands (`make reference`).

For scripts, `get --output json` prints TieredJobs with the fields of the [API](reference.md), several in a Kubernetes
List, `watch --output json` one in a line after each change, and `watch` ends with an exit code for the outcome: later
versions may add fields, but keep these and the codes.
"""


def page() -> str:
    """The page as Markdown."""
    root = group()
    lists = []
    for title, commands in GROUPS.items():
        rows: list[str] = []
        for name, entry in commands.items():
            deferred: Any = root.commands[name]
            rows += [] if entry.hidden else _rows(name, deferred.load(), entry.summary)
        lists.append(f"\n## {title}\n\n" + "\n".join(rows) + "\n")
    return HEAD + "".join(lists)


def _rows(path: str, command: Any, summary: str) -> Iterator[str]:
    """The row of a command, or the rows of the subcommands of a group."""
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        for name, one in subcommands.items():
            if not one.hidden:
                yield from _rows(f"{path} {name}", one, one.get_short_help_str(limit=200))
        return
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [piece for one in shown if one.param_type_name == "argument" for piece in one.get_usage_pieces(None)]
    yield f"- `{' '.join([path, *arguments])}`: {summary}"


if __name__ == "__main__":
    print(page(), end="")
