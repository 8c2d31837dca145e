"""Parses the lines that Terraform prints with -json: planned changes, errors, and the text of each line. Pure.

The format is Terraform's machine-readable UI, version 1; OpenTofu prints the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """The action on a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    FORGET = "remove"


@dataclass(frozen=True, slots=True)
class Planned:
    """One resource that the plan changes. A `tainted` one is replaced because its creation was not completed."""

    address: str
    action: Action
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A warning or an error. `address` is the resource, "" for none."""

    severity: str
    summary: str
    detail: str
    address: str = ""


Event = Planned | Diagnostic | str
"""A string is the text of a line about something else: progress and results."""

_ACTIONS = {str(action) for action in Action}


def parse(line: str) -> Event:
    """The event of one line. A line that is not JSON is its own text."""
    try:
        data = json.loads(line)
    except ValueError:
        return line.strip()
    if not isinstance(data, dict):
        return line.strip()
    if data.get("type") == "planned_change":
        change = data.get("change") or {}
        action = str(change.get("action", ""))
        if action in _ACTIONS:
            address = str((change.get("resource") or {}).get("addr", ""))
            return Planned(address, Action(action), tainted=change.get("reason") == "tainted")
    if data.get("type") == "diagnostic":
        return _diagnostic(data.get("diagnostic") or {})
    return str(data.get("@message", ""))


def _diagnostic(found: dict[str, Any]) -> Diagnostic:
    return Diagnostic(
        str(found.get("severity", "error")),
        str(found.get("summary", "")),
        str(found.get("detail", "")),
        str(found.get("address", "")),
    )


_ERROR = re.compile(r"^[│|]? ?Error: (.*)$")


def parse_text(text: str) -> list[Diagnostic]:
    """The errors of a command that prints text (init, output, state), with or without the box around them."""
    found: list[Diagnostic] = []
    summary, detail = "", list[str]()
    for line in [*text.splitlines(), "Error: "]:
        if match := _ERROR.match(line):
            if summary:
                found.append(Diagnostic("error", summary, "\n".join(detail).strip()))
            summary, detail = match[1].strip(), []
        elif line.strip() not in ("╷", "╵"):
            detail.append(line.removeprefix("│").strip())
    return found
