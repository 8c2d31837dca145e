"""The log lines about persisted decisions and degraded jobs."""

from __future__ import annotations

import structlog

from spotladder.api.stored import JobRecord
from spotladder.core.model import Decision
from spotladder.operator.condition_types import Diagnosis

_log = structlog.get_logger("spotladder")


def log_decision(job: JobRecord, decision: Decision) -> None:
    """Log the losses, the changes of the standby attempt and the moves of a job."""
    log = _log.bind(namespace=job.namespace, job=job.name)
    for loss in decision.losses:
        log.warning("lost", pod=loss.pod, cause=loss.cause, attempt=loss.attempt, tier=loss.tier)
    for change in decision.standby_changes:
        log.info("standby", reason=change.reason, attempt=change.attempt, tier=change.tier, message=change.message)
    for move in decision.moves:
        log.info(
            "moved",
            source=move.source,
            target=move.target,
            reason=move.reason,
            attempt=move.attempt,
            tier=move.tier,
            message=move.message,
        )


def log_problem(job: JobRecord, problem: Diagnosis) -> None:
    """Log why a job is degraded or held."""
    _log.warning("degraded", namespace=job.namespace, job=job.name, reason=problem.reason, message=problem.message)
