"""A resource that a cluster has left behind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Leftover:
    """One resource. `detail` is a name, description or place that helps to recognise it; "" for nothing."""

    kind: str
    identifier: str
    detail: str = ""
