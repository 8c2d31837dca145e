"""A remaining resource of a deleted cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """One resource. `detail` is a name, a description or a location that helps to identify it; "" without one."""

    kind: str
    identifier: str
    detail: str = ""
