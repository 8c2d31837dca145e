"""Parses the lines that Terraform prints with -json into typed events. Pure.

The format is Terraform's machine-readable UI, version 1; OpenTofu prints the same. Lines of other kinds are ignored.
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
    IMPORT = "import"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Planned:
    """One resource that the plan changes. `imported`: it already exists, is imported, and then changed."""

    address: str
    action: Action
    imported: bool = False

    @property
    def taken_over(self) -> bool:
        """Whether the existing resource is kept. An update is part of the import, a replacement is not."""
        return self.action is Action.IMPORT or (self.imported and self.action is Action.UPDATE)


@dataclass(frozen=True, slots=True)
class Started:
    """Terraform has begun to change a resource."""

    address: str
    action: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Terraform has changed a resource. `seconds` is the duration that Terraform reports."""

    address: str
    action: str
    seconds: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A warning or an error. `address` is the resource, "" for none."""

    severity: str
    summary: str
    detail: str
    address: str = ""


Event = Planned | Started | Finished | Diagnostic

_ACTIONS = {str(action) for action in Action}


def parse(line: str) -> Event | None:
    """The event of one line; None for a line that is about neither a resource nor a diagnostic."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    match data.get("type"):
        case "planned_change":
            return _planned(data.get("change") or {})
        case "apply_start":
            hook = data.get("hook") or {}
            return Started(_address(hook), str(hook.get("action", "")))
        case "apply_complete" | "apply_errored" as kind:
            hook = data.get("hook") or {}
            seconds = int(hook.get("elapsed_seconds") or 0)
            return Finished(_address(hook), str(hook.get("action", "")), seconds, kind == "apply_errored")
        case "diagnostic":
            found = data.get("diagnostic") or {}
            return Diagnostic(
                str(found.get("severity", "error")),
                str(found.get("summary", "")),
                str(found.get("detail", "")),
                str(found.get("address", "")),
            )
    return None


def _planned(change: dict[str, Any]) -> Planned | None:
    action = str(change.get("action", ""))
    imported = bool(change.get("importing"))
    if imported and action == "noop":
        action = str(Action.IMPORT)
    if action == "remove":  # Terraform's word for a resource that only leaves the state
        action = str(Action.FORGET)
    return Planned(_address(change), Action(action), imported) if action in _ACTIONS else None


def _address(holder: dict[str, Any]) -> str:
    return str((holder.get("resource") or {}).get("addr", ""))


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
