"""Which of an object's fields `spotladder submit` owns, as server-side apply keeps it in `metadata.managedFields`.

An apply removes the fields that its manager applied before and leaves out now. Earlier versions created objects with
POST, which records the fields as an Update of the same manager: an apply leaves those alone for ever. So before an
apply these entries are turned into entries of an apply, as client-go's csaupgrade does.

`spec.suspend` stays an Update: `spotladder suspend` writes it so, and a file that does not mention it must not resume
the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = dict[str, Any]
Fields = dict[str, Any]

_SPEC, _SUSPEND = "f:spec", "f:suspend"


def migrated(entries: Sequence[Entry], manager: str) -> list[Entry] | None:
    """`metadata.managedFields` with the manager's created fields applied; None when there is nothing to change."""
    kept: list[Entry] = []
    created: list[Entry] = []
    applied: Entry | None = None
    for entry in entries:
        ours = entry.get("manager") == manager and not entry.get("subresource")
        if ours and entry.get("operation") == "Apply":
            applied = entry
        elif ours and entry.get("operation") == "Update":
            created.append(entry)
        else:
            kept.append(entry)
    fields: Fields = {}
    for entry in created:
        moved, left = _split(entry.get("fieldsV1") or {})
        fields = _union(fields, moved)
        if left:
            kept.append({**entry, "fieldsV1": left})
    if not fields:
        return None
    base = applied or {key: value for key, value in created[-1].items() if key != "fieldsV1"}
    return [*kept, {**base, "operation": "Apply", "fieldsV1": _union(base.get("fieldsV1") or {}, fields)}]


def _split(fields: Mapping[str, Any]) -> tuple[Fields, Fields]:
    """The fields that are to be applied, and those that stay updated."""
    spec = fields.get(_SPEC) or {}
    left = {_SPEC: {_SUSPEND: spec[_SUSPEND]}} if _SUSPEND in spec else {}
    inner = {name: below for name, below in spec.items() if name != _SUSPEND}
    moved = {name: below for name, below in fields.items() if name != _SPEC}
    return ({**moved, _SPEC: inner} if inner.keys() - {"."} else moved), left


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> Fields:
    both = {name: _union(one[name], other[name]) for name in one.keys() & other.keys()}
    return {**one, **other, **both}
