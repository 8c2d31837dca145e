"""Converts an object of a user's file into a Kubernetes manifest."""

from __future__ import annotations

from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob


def manifest(thing: TieredJob | CapacityTier) -> dict[str, Any]:
    """The user's fields in the notation of the CRD: no floats, no nulls, and normalized values such as `50steps`.

    The manifest has no defaults, which the API server adds, and no fields that Kubernetes or the controller sets.
    """
    return thing.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude={"status"})
