"""The executor: executes the actions of one decision.

A failure in one cluster does not stop the actions for another cluster: an old attempt that cannot be deleted in one
must not delay the launch of the next attempt elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from spotladder.api.stored import JobRecord
from spotladder.checkpoints.progress import went_back
from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.cache import Scoped
from spotladder.clusters.election import NotLeading
from spotladder.clusters.errors import ClusterUnreachable, Conflict, NotFound
from spotladder.core.model import (
    Action,
    Decision,
    Delete,
    Finish,
    JobState,
    Launch,
    Progress,
    Replace,
    Resize,
)
from spotladder.core.reasons import Reason
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.operator.condition_types import ConditionReason, ConditionType, ConditionUpdate, Diagnosis
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile import conditions
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.guard_keeper import keep_guards
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.operator.storage.allowed_addresses import AccessDenied
from spotladder.operator.storage.commit_logs import LogAddress, Logs
from spotladder.operator.storage.credentials import CredentialsMissing
from spotladder.operator.storage.outputs import Outputs


@dataclass(slots=True)
class ExecutionResult:
    """The result of a decision's actions.

    `tried`: a launch was attempted; `blocked` is why the API server refused it, or did not answer. `failed` is the
    first error of an action that the job waits for. `cleanup_error` is the first error of a cleanup, whose retry must
    not delay the job. `at_end` is the progress that the log has after the end of the job.
    """

    updates: dict[ConditionType, ConditionUpdate] = field(default_factory=dict)
    tried: bool = False
    blocked: Diagnosis | None = None
    failed: SpotladderError | None = None
    cleanup_error: SpotladderError | None = None
    at_end: Progress | None = None


@dataclass(slots=True)
class Executor:
    """Executes the decisions for jobs."""

    applier: Applier
    remover: AttemptRemover
    preflight: Preflight
    jobs: Scoped[JobRecord]
    logs: Logs
    outputs: Outputs

    async def execute(
        self,
        loaded: Loaded,
        decision: Decision,
        *,
        address: Callable[[], Awaitable[LogAddress]],
    ) -> ExecutionResult:
        """Execute all actions of this decision, then clean up. A launch is the first: the next attempt does not wait
        for the calls that remove the ended one, which is fenced.

        Args:
            address: The address of the job's commit log.

        Raises:
            Conflict, NotFound, NotLeading: The job must be reconciled again; the remaining actions are skipped.
        """
        result = ExecutionResult()
        for action in sorted(decision.actions, key=lambda action: not isinstance(action, Launch)):
            error = await _failure(self._do(loaded, action, result, address))
            if _is_cleanup(action, decision.state):
                result.cleanup_error = result.cleanup_error or error
            else:
                result.failed = result.failed or error
        for cleanup in (
            partial(self.remover.delete_strays, loaded),
            partial(self.remover.remove_silent_pods, loaded, decision.state),
            partial(self.remover.remove_outlived_pods, loaded),
            partial(keep_guards, loaded, decision.state, self.preflight),
            partial(self.sweep, loaded.record.key, loaded.record.uid),
        ):
            error = await _failure(cleanup())
            result.cleanup_error = result.cleanup_error or error
        return result

    async def sweep(self, key: JobKey, uid: str) -> bool:
        """Remove the objects of deleted jobs with this name in member clusters. Returns whether there were any. `uid`
        is that of the current job with the name. Without access to all jobs, removes nothing."""
        jobs = self.jobs.within(key[0])
        return jobs is not None and jobs.has_synced and not jobs.problem and await self.remover.sweep(key, uid)

    async def _do(
        self,
        loaded: Loaded,
        action: Action,
        result: ExecutionResult,
        address: Callable[[], Awaitable[LogAddress]],
    ) -> None:
        match action:
            case Launch():
                await self._launch(loaded, action, result)
            case Delete():
                if await self.outputs.before_delete(loaded, action.attempt, address):
                    await self.remover.delete(loaded, action)
            case Finish():
                if update := await self._finish(loaded, action, result, address):
                    result.updates[ConditionType.CHECKPOINTING] = update
            case _:
                await self.applier.change(loaded, action)
                if not isinstance(action, Resize):
                    self.logs.read_now(loaded.record.key)

    async def _launch(self, loaded: Loaded, action: Launch, result: ExecutionResult) -> None:
        """An API server or webhook that does not answer is not a lack of capacity: the launch is retried."""
        result.tried = True
        try:
            result.blocked = await self.applier.launch(loaded, action)
        except ClusterUnreachable as error:
            result.blocked = Diagnosis(Reason.OPERATOR_SILENT, str(error))
            raise

    async def _finish(
        self,
        loaded: Loaded,
        action: Finish,
        result: ExecutionResult,
        address: Callable[[], Awaitable[LogAddress]],
    ) -> ConditionUpdate | None:
        """Record the outcome in the log and read its last commit, delete old checkpoints and the guards, once. None if
        this is done already."""
        if conditions.is_ended(loaded.status.conditions):
            return None
        await self.remover.remove_guards(loaded)
        outcome = "Succeeded" if action.succeeded else "Failed"
        number, keep = loaded.state.last_number, loaded.job.spec.checkpoints.keep
        try:
            end = await self.logs.end(await address(), outcome, number, str(action.reason), keep=keep)
        except (StoreRefused, AccessDenied) as error:
            return ConditionUpdate("False", conditions.END_REFUSED, f"{error}; {conditions.not_read(loaded.state)}")
        except (StoreUnavailable, CredentialsMissing, ClusterUnreachable, TimeoutError) as error:
            return ConditionUpdate(
                "Unknown",
                ConditionReason.CHECKPOINTS_UNREADABLE,
                f"the outcome is not in the commit log yet: {error}; {conditions.not_read(loaded.state)}",
            )
        except SpotladderError as error:
            return ConditionUpdate("False", conditions.END_REFUSED, f"{error}; {conditions.not_read(loaded.state)}")
        if not went_back(loaded.state.progress, end.progress):
            result.at_end = end.progress
        last = f"step {(result.at_end or loaded.state.progress).step} is the last commit"
        kept = f"; older checkpoints are not deleted: {end.left}" if end.left else ""
        return ConditionUpdate("False", conditions.ENDED, f"{last}{kept}")


async def _failure(work: Awaitable[object]) -> SpotladderError | None:
    """Do the work. Returns its error if the other actions must be carried out. Raises Conflict, NotFound,
    NotLeading."""
    try:
        await work
    except (Conflict, NotFound, NotLeading):
        raise
    except SpotladderError as error:
        return error
    return None


def _is_cleanup(action: Action, state: JobState) -> bool:
    """Whether the job does not wait for this action: the removal of an earlier attempt, and changes of the number of
    workers."""
    if isinstance(action, Delete):
        return state.attempt is None or action.attempt != state.attempt.number
    return isinstance(action, Replace | Resize)
