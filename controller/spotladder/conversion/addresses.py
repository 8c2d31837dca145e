"""Names of the source's pods in commands and variables: they change with each attempt.

JobSet gives each pod the name of its coordinator, the first pod of the first replicated job, as a label. So a name of
the first pod becomes a variable, which Kubernetes expands in commands, arguments and later variables.
"""

from __future__ import annotations

import re
from typing import Any

from spotladder.api.fields import LONGEST_LABEL
from spotladder.api.problems import Path
from spotladder.conversion import torch
from spotladder.conversion.draft import Draft, plain

_VARIABLE = "JOBSET_COORDINATOR"
_FIELDS = ("command", "args", "env")


def replace_addresses(draft: Draft, template: Path, name: str, first: str) -> None:
    """Replace names of the pod with rank 0 in a pod template; report those of other pods. `name` is that of the source,
    `first` a pattern of the suffix in the name of the pod with rank 0."""
    if not name:
        return
    place, domain = rf"-[-a-z0-9]{{0,{LONGEST_LABEL}}}[0-9]", rf"\.[-a-z0-9]{{1,{LONGEST_LABEL}}}"
    every = re.compile(rf"(?<![-\w.]){re.escape(name)}({place})(?:{domain}){{0,4}}(?![-\w])")
    for index in range(len(draft.get(*template, "spec", "containers") or ())):
        at = (*template, "spec", "containers", index)
        container = draft.get(*at)
        found: list[str] = []
        for field in _FIELDS:
            if field in container:
                container[field] = _replaced(container[field], every, re.compile(first), found)
        for address in dict.fromkeys(found):
            draft.heading.append(
                f"{plain(address)} names a pod of the source, and names change with each attempt. If it is rank 0, set "
                "spec.coordinator of the JobSet to its job and convert again."
            )
        if f"$({_VARIABLE})" in repr(container):
            container["env"] = [torch.label(_VARIABLE, torch.COORDINATOR), *(container.get("env") or ())]
            draft.note(
                (*at, "env"),
                f"Added {_VARIABLE}: the address of rank 0, in the place of a name that changes with each attempt.",
            )


def _replaced(value: Any, every: re.Pattern[str], first: re.Pattern[str], found: list[str]) -> Any:
    """The value with the variable for the addresses of rank 0; the others are added to `found`."""

    def address(match: re.Match[str]) -> str:
        if first.fullmatch(match[1]):
            return f"$({_VARIABLE})"
        found.append(match[0])
        return match[0]

    if isinstance(value, str):
        return every.sub(address, value)
    if isinstance(value, list):
        return [_replaced(inner, every, first, found) for inner in value]
    if isinstance(value, dict) and "value" in value:
        return {**value, "value": _replaced(value["value"], every, first, found)}
    return value
