"""A resource of a stack that exists in the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource of the plan that exists. `tags` is None for a resource without tags of its own: it belongs to a
    resource with tags."""

    address: str
    identifier: str
    tags: Mapping[str, str] | None
