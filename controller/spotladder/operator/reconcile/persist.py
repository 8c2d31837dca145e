"""The status writer: writes the status of a TieredJob, at most once a reconcile, and its finalizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import FINALIZER, JobRecord
from spotladder.clusters.cache import Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.core.accounting.savings import uninterrupted_usd
from spotladder.core.explanation import explain
from spotladder.core.model import Decision, JobState
from spotladder.core.situation import Situation
from spotladder.operator.condition_types import ConditionType, ConditionUpdates, Diagnosis, merged, one_line
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile import conditions, status
from spotladder.operator.reporting.decision_log import log_decision, log_problem
from spotladder.operator.reporting.events import COMMIT_SKIPPED, Events, Note, note_of, notes_of, resize_notes
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.reporting.tier_status import TierStatusWriter
from spotladder.resources import TIEREDJOBS


@dataclass(slots=True)
class Persistence:
    """Writes with the resourceVersion that was read as a precondition: every method raises Conflict if it is not the
    newest."""

    client: Client
    jobs: Scoped[JobRecord]
    events: Events
    metrics: Metrics
    tier_status: TierStatusWriter
    clock: Clock

    async def decided(
        self, loaded: Loaded, decision: Decision, problems: list[Diagnosis], more: ConditionUpdates
    ) -> TieredJobStatus:
        """Write the status if it changed, then record Events. Returns the status that the job has now."""
        updates = {
            **conditions.of_validity(None),
            **conditions.of_decision(
                loaded.spec,
                decision,
                loaded.seen,
                loaded.reading,
                deleting=loaded.record.deleting,
                held=loaded.status.conditions,
            ),
            **conditions.of_diagnoses(problems),
            **more,
        }
        before, after, generation = loaded.before, decision.state, loaded.record.generation
        entries = merged(loaded.status.conditions, updates, self.clock.now(), generation)
        message = status.refusal(after, problems)
        if not status.worth_writing(
            loaded.status, entries, before, after, generation=generation, message=message, jobs=len(self.jobs)
        ):
            return loaded.status
        wanted = status.of_state(
            after,
            entries,
            generation=generation,
            uri=loaded.record.folder,
            clusters=loaded.clusters,
            tiers=[tier.name for tier in loaded.spec.tiers],
            message=message,
            waits=explain(Situation(loaded.spec, after, loaded.seen, after.clock)),
            uninterrupted=uninterrupted_usd(loaded.spec, after),
        )
        record = await self._write(loaded.record, wanted)
        self.metrics.decided(record.key, loaded.spec, before, decision)
        self.tier_status.decided(loaded, before, decision)
        log_decision(record, decision)
        for note in (*notes_of(decision, deleting=loaded.record.deleting), *resize_notes(before, after)):
            self.events.emit(record, note)
        if after.progress.skipped and after.progress.skipped != before.progress.skipped:
            self.events.emit(record, Note(COMMIT_SKIPPED, "Resume", after.progress.skipped))
        if problems and _reason(loaded.status, ConditionType.DEGRADED) != problems[0].reason:
            self._announce(record, problems[0])
        return wanted

    async def held(self, record: JobRecord, before: TieredJobStatus, problem: Diagnosis, *, valid: bool) -> None:
        """Write why no attempt is started or ended. `valid`: the cause is not the spec."""
        updates = conditions.of_validity(problem)
        if valid:
            updates = {**conditions.of_correction(before.conditions), **conditions.of_diagnoses([problem])}
        entries = merged(before.conditions, updates, self.clock.now(), record.generation)
        wanted = before.model_copy(
            update={
                "conditions": entries,
                "message": one_line(problem.message),
                "phase": before.phase or JobState().phase,
                "observed_generation": record.generation,
                "waiting": None,
            }
        )
        if wanted == before:
            return
        kind = ConditionType.DEGRADED if valid else ConditionType.VALID
        news = _reason(before, kind) != problem.reason or before.message != wanted.message
        record = await self._write(record, wanted)
        if news:
            self._announce(record, problem)

    async def finalize(self, record: JobRecord) -> JobRecord:
        """Add the finalizer, so that the job stays until its attempts are removed."""
        return await self._set_finalizers(record, [*record.finalizers, FINALIZER])

    async def release(self, record: JobRecord) -> None:
        """Remove the finalizer of a deleted job."""
        latest = self.jobs.get(record.name, record.namespace) or record
        await self._set_finalizers(latest, [name for name in latest.finalizers if name != FINALIZER])

    async def _set_finalizers(self, record: JobRecord, finalizers: list[str]) -> JobRecord:
        body = {"metadata": {"resourceVersion": record.resource_version, "finalizers": finalizers}}
        return self._taken(await self.client.merge(TIEREDJOBS, record.name, record.namespace, body=body))

    async def _write(self, record: JobRecord, wanted: TieredJobStatus) -> JobRecord:
        body = {"metadata": {"resourceVersion": record.resource_version}, "status": status.plain(wanted)}
        answer = await self.client.merge(TIEREDJOBS, record.name, record.namespace, body=body, subresource="status")
        return self._taken(answer)

    def _taken(self, answer: Mapping[str, Any]) -> JobRecord:
        record = JobRecord.of(dict(answer))
        if not (record.deleting and not record.finalizers):  # Otherwise this write has removed the object.
            self.jobs.put(dict(answer))
        return record

    def _announce(self, record: JobRecord, problem: Diagnosis) -> None:
        log_problem(record, problem)
        self.events.emit(record, note_of(problem))


def _reason(held: TieredJobStatus, kind: ConditionType) -> str:
    entry = next((entry for entry in held.conditions if entry.type == kind), None)
    return entry.reason if entry is not None else ""
