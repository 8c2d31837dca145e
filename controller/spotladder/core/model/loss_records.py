"""What the state of a job keeps about lost pods."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model.units import Instant
from spotladder.core.reasons import Cause


@dataclass(frozen=True, slots=True)
class LossRecord:
    """Pods of one attempt that were lost together, for the same cause, for the history that users read.

    `at` is when the loss was counted, in tenths of a second. `failures` is how many failures it was: losses by
    maintenance are none, and under `FailureUnit.INTERRUPTION` several losses are one. `noticed`: the pods still ran,
    but their nodes were to be reclaimed. `ready_at` is when all workers of the attempt were ready again, in tenths of a
    second; None if the attempt has not recovered.
    """

    at: Instant
    attempt: int
    tier: str
    cause: Cause
    pods: int = 1
    failures: int = 1
    noticed: bool = False
    ready_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class NodeFailures:
    """How many pods of the job have failed on a node that lives."""

    node: str
    failures: int
