"""An object of a user's file as a cluster takes it."""

from __future__ import annotations

from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob


def manifest(thing: TieredJob | CapacityTier) -> dict[str, Any]:
    """What the user wrote, in the notation of the CRD: it has no floats, no nulls and one way to write `50steps`.

    Without defaults, which are the cluster's to fill in, and without what Kubernetes and the controller set.
    """
    return thing.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude={"status"})
