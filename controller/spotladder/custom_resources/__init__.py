"""TieredJobs and CapacityTiers as the controller and the commands read them from the API server."""

from __future__ import annotations

from spotladder.custom_resources.records import FINALIZER, FORCE_DELETE, CapacityRecord, JobRecord

__all__ = ["FINALIZER", "FORCE_DELETE", "CapacityRecord", "JobRecord"]
