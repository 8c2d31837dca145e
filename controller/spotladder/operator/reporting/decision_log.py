"""Reports persisted decisions to the log, the metrics and the status of CapacityTiers."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from spotladder.api.stored import JobRecord
from spotladder.core.model import Decision, JobSpec, JobState
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.reporting.tier_status import TierStatusWriter


class DecisionObserver:
    """Implements `persist.StatusObserver`."""

    def __init__(self, metrics: Metrics, tier_status: TierStatusWriter) -> None:
        self._metrics = metrics
        self._tier_status = tier_status
        self._log = structlog.get_logger("spotladder")

    def observe(self, key: JobKey, spec: JobSpec, state: JobState, problems: Sequence[Diagnosis]) -> None:
        self._metrics.observe(key, spec, state, [problem.reason for problem in problems])

    def decided(self, loaded: Loaded, before: JobState, decision: Decision) -> None:
        self._metrics.decided(loaded.record.namespace, loaded.spec, before, decision)
        self._tier_status.decided(loaded, before, decision)
        log = self._log.bind(namespace=loaded.record.namespace, job=loaded.record.name)
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

    def degraded(self, job: JobRecord, problem: Diagnosis) -> None:
        self._log.warning(
            "degraded", namespace=job.namespace, job=job.name, reason=problem.reason, message=problem.message
        )

    def forgotten(self, key: JobKey) -> None:
        self._metrics.forgot(key)
