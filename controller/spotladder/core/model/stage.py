"""The stages of a job, and the phases that users see."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Stage(StrEnum):
    """The stage of a job. `lifecycle.TRANSITIONS` defines the allowed transitions."""

    IDLE = "Idle"  # no attempt; the policy chooses a tier
    STARTING = "Starting"  # an attempt is planned or launched; not all of its workers have been ready yet
    RUNNING = "Running"  # all workers are ready
    REPLACING = "Replacing"  # all workers are ready; replacements start for pods whose nodes will be reclaimed
    RECOVERING = "Recovering"  # all workers were ready, some are lost, the attempt may recover by itself
    DRAINING = "Draining"  # asked to commit and stop
    ENDING = "Ending"  # being removed
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Phase(StrEnum):
    """The phase that users see for a stage (`status.phase`)."""

    PENDING = "Pending"
    RUNNING = "Running"
    DRAINING = "Draining"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"


PHASE_OF: Mapping[Stage, Phase] = MappingProxyType(
    {
        Stage.IDLE: Phase.PENDING,
        Stage.STARTING: Phase.PENDING,
        Stage.RUNNING: Phase.RUNNING,
        Stage.REPLACING: Phase.RUNNING,
        Stage.RECOVERING: Phase.RUNNING,
        Stage.DRAINING: Phase.DRAINING,
        Stage.ENDING: Phase.DRAINING,
        Stage.SUSPENDED: Phase.SUSPENDED,
        Stage.SUCCEEDED: Phase.SUCCEEDED,
        Stage.FAILED: Phase.FAILED,
    }
)

TERMINAL = frozenset({Stage.SUCCEEDED, Stage.FAILED})
