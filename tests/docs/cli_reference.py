"""Generates docs/cli.md, a table of all commands with their arguments and options, from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spotladder.cli.main import GROUPS, group

HEAD = """# Commands

Look up the commands of `spotladder` and their options; `spotladder COMMAND --help` explains each of them. `kubectl
spotladder COMMAND` is the same. Commands that connect to a cluster also have `--namespace`, `--context` and
`--kubeconfig`, those that use runs of this machine `--state-dir`, those of a fleet `--fleet`, `--cluster`, `--cloud`
and `--state`, and those that print a table `--output`. This page is generated from the commands (`make reference`).
"""

COMMON = frozenset({"namespace", "context", "kubeconfig", "state-dir", "fleet", "cluster", "cloud", "state", "output"})
"""Options that the introduction names, without their dashes. The tables leave them out."""


def page() -> str:
    """The page as Markdown."""
    root = group()
    tables = []
    for title, commands in GROUPS.items():
        rows = ["| command | what it does | options |", "| --- | --- | --- |"]
        for name, entry in commands.items():
            deferred: Any = root.commands[name]
            rows += [] if entry.hidden else _rows(name, deferred.load(), entry.summary)
        tables.append(f"\n## {title}\n\n" + "\n".join(rows) + "\n")
    return HEAD + "".join(tables)


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
    options = [_names(one) for one in shown if one.param_type_name == "option" and one.name != "help"]
    words = " ".join([path, *arguments]).replace("|", "\\|")
    named = ", ".join(f"`{option}`" for option in options if option.removeprefix("--") not in COMMON)
    yield f"| `{words}` | {summary} | {named} |"


def _names(option: Any) -> str:
    """The long names of an option, such as `--wait/--no-wait`."""
    return "/".join(max(names, key=len) for names in (option.opts, option.secondary_opts) if names)


if __name__ == "__main__":
    print(page(), end="")
