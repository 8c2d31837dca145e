"""Field ownership of `spotladder submit` in `metadata.managedFields`, as server-side apply records it.

An apply removes fields that its manager applied before and now omits. Earlier versions of spotladder created objects
with POST, which records the fields as an Update by the same manager, and an apply never removes such fields. Before an
apply, this module therefore converts these entries into Apply entries, as client-go's csaupgrade does.

`spec.suspend` remains an Update: `spotladder suspend` writes it, and a file without the field must not resume
the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = dict[str, Any]
Fields = dict[str, Any]

_SPEC, _SUSPEND = "f:spec", "f:suspend"


def migrated(entries: Sequence[Entry], manager: str) -> list[Entry] | None:
    """`metadata.managedFields` with the manager's Update entries converted to Apply; None if nothing changes."""
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
    """The fields to convert to Apply, and the fields that remain an Update."""
    spec = fields.get(_SPEC) or {}
    left = {_SPEC: {_SUSPEND: spec[_SUSPEND]}} if _SUSPEND in spec else {}
    inner = {name: below for name, below in spec.items() if name != _SUSPEND}
    moved = {name: below for name, below in fields.items() if name != _SPEC}
    return ({**moved, _SPEC: inner} if inner.keys() - {"."} else moved), left


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> Fields:
    both = {name: _union(one[name], other[name]) for name in one.keys() & other.keys()}
    return {**one, **other, **both}
