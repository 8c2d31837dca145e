"""The executor: executes the actions of one decision.

A failure in one cluster does not stop the actions for another cluster: an old attempt that cannot be deleted in one
must not delay the launch of the next attempt elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spotladder.checkpoints.progress import went_back
from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.cache import Scoped
from spotladder.clusters.election import NotLeading
from spotladder.clusters.errors import ClusterUnreachable, Conflict, NotFound
from spotladder.core.model import (
    Action,
    AskToCommit,
    Decision,
    Delete,
    Drain,
    Finish,
    Launch,
    Progress,
    Replace,
    Resize,
    TakeOver,
)
from spotladder.core.reasons import Reason
from spotladder.custom_resources import JobRecord
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.operator.condition_types import ConditionReason, ConditionType, ConditionUpdate, Diagnosis
from spotladder.operator.failpoints import Point, reach
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile import conditions
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.guard_keeper import GuardKeeper
from spotladder.operator.reconcile.node_limits import Limits
from spotladder.operator.storage.allowed_addresses import AccessDenied
from spotladder.operator.storage.commit_logs import LogAddress, Logs
from spotladder.operator.storage.credentials import CredentialsMissing
from spotladder.operator.storage.outputs import Outputs


@dataclass(slots=True)
class ExecutionResult:
    """The result of a decision's actions.

    `tried`: a launch was attempted; `blocked` is why the API server refused it, or did not answer. `failed` is the
    first error of an action that the job waits for. `cleanup_error` is the first error of a cleanup, whose retry must
    not delay the job. `guards` names guards that are deleted more than once. `at_end` is the progress that the log has
    after the end of the job.
    """

    updates: dict[ConditionType, ConditionUpdate] = field(default_factory=dict)
    tried: bool = False
    blocked: Diagnosis | None = None
    failed: SpotladderError | None = None
    cleanup_error: SpotladderError | None = None
    guards: Diagnosis | None = None
    at_end: Progress | None = None


class Executor:
    """Executes the decisions for jobs."""

    def __init__(
        self,
        applier: Applier,
        remover: AttemptRemover,
        guard_keeper: GuardKeeper,
        *,
        jobs: Scoped[JobRecord],
        logs: Logs,
        outputs: Outputs,
        limits: Limits,
    ) -> None:
        self._applier = applier
        self._remover = remover
        self._guard_keeper = guard_keeper
        self._jobs = jobs
        self._logs = logs
        self._outputs = outputs
        self._limits = limits

    async def execute(
        self,
        loaded: Loaded,
        decision: Decision,
        *,
        admits: Callable[[Launch], bool],
        address: Callable[[], Awaitable[LogAddress]],
    ) -> ExecutionResult:
        """Execute all actions of this decision, then clean up. A launch is the first: the next attempt does not wait
        for the calls that remove the ended one, which is fenced.

        Args:
            admits: Whether the limits of its tier admit a launch now.
            address: The address of the job's commit log.

        Raises:
            Conflict, NotFound, NotLeading: The job must be reconciled again; the remaining actions are skipped.
        """
        result = ExecutionResult()
        live = decision.state.attempt.number if decision.state.attempt else None
        chores: list[tuple[bool, Callable[[], Coroutine[Any, Any, object]]]] = [
            (
                not isinstance(action, Replace | Resize) and (not isinstance(action, Delete) or action.attempt == live),
                partial(self._do, loaded, action, result, admits, address),
            )
            for action in sorted(decision.actions, key=lambda action: not isinstance(action, Launch))
        ]
        chores += [
            (False, partial(self._remover.delete_strays, loaded)),
            (False, partial(self._remover.remove_silent_pods, loaded, decision.state)),
            (False, partial(self._remover.remove_outlived_pods, loaded)),
            (False, partial(self._keep_guards, loaded, decision, result)),
            (False, partial(self.sweep, loaded.record.key, loaded.record.uid)),
        ]
        for waited_for, chore in chores:
            try:
                await chore()
            except (Conflict, NotFound, NotLeading):
                raise
            except SpotladderError as error:
                if waited_for:
                    result.failed = result.failed or error
                else:
                    result.cleanup_error = result.cleanup_error or error
        return result

    async def sweep(self, key: JobKey, uid: str) -> bool:
        """Remove the objects of deleted jobs with this name in member clusters. Returns whether there were any. `uid`
        is that of the current job with the name. Without access to all jobs, removes nothing."""
        jobs = self._jobs.within(key[0])
        return jobs is not None and jobs.has_synced and not jobs.problem and await self._remover.sweep(key, uid)

    async def _do(
        self,
        loaded: Loaded,
        action: Action,
        result: ExecutionResult,
        admits: Callable[[Launch], bool],
        address: Callable[[], Awaitable[LogAddress]],
    ) -> None:
        match action:
            case Launch():
                if admits(action):  # Another job may have been launched in the meantime.
                    with self._limits.launching(loaded.record):
                        await self._launch(loaded, action, result)
            case Drain():
                await self._applier.drain(loaded, action)
                self._logs.read_now(loaded.record.key)
            case Delete():
                if await self._outputs.before_delete(loaded, action.attempt, address):
                    await self._remover.delete(loaded, action)
            case Replace():
                await self._applier.replace(loaded, action)
                self._logs.read_now(loaded.record.key)
            case Resize():
                await self._applier.resize(loaded, action)
            case TakeOver():
                await self._applier.take_over(loaded, action)
                self._logs.read_now(loaded.record.key)
            case AskToCommit():
                await self._applier.ask_to_commit(loaded, action)
                self._logs.read_now(loaded.record.key)
            case Finish():
                if update := await self._finish(loaded, action, result, address):
                    result.updates[ConditionType.CHECKPOINTING] = update

    async def _keep_guards(self, loaded: Loaded, decision: Decision, result: ExecutionResult) -> None:
        result.guards = await self._guard_keeper.keep(loaded, decision.state)

    async def _launch(self, loaded: Loaded, action: Launch, result: ExecutionResult) -> None:
        """An API server or webhook that does not answer is not a lack of capacity: the launch is retried."""
        result.tried = True
        try:
            result.blocked = await self._applier.launch(loaded, action)
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
        await self._remover.remove_guards(loaded)
        reach(Point.BEFORE_FINISH)
        outcome = "Succeeded" if action.succeeded else "Failed"
        number, keep = loaded.state.last_number, loaded.job.spec.checkpoints.keep
        try:
            end = await self._logs.end(await address(), outcome, number, str(action.reason), keep=keep)
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
        reach(Point.AFTER_FINISH)
        if not went_back(loaded.state.progress, end.progress):
            result.at_end = end.progress
        last = f"step {(result.at_end or loaded.state.progress).step} is the last commit"
        kept = f"; older checkpoints are not deleted: {end.left}" if end.left else ""
        return ConditionUpdate("False", conditions.ENDED, f"{last}{kept}")
