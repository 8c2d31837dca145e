"""The last third of a pass, action by action. What cannot be done in one cluster keeps nothing from being done in
another: an old attempt that cannot be removed here must not keep the next one from being launched there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.errors import ClusterUnreachable, Conflict, NotFound
from spotladder.core.model import Action, Decision, Delete, Drain, Finish, Launch
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.operator import conditions
from spotladder.operator.access import AccessDenied
from spotladder.operator.apply import Applier
from spotladder.operator.cache import Scoped
from spotladder.operator.conditions import Claim, ConditionType, Problem, Trouble
from spotladder.operator.credentials import CredentialsMissing
from spotladder.operator.election import NotLeading
from spotladder.operator.failpoints import Point, reach
from spotladder.operator.inventory import JobKey
from spotladder.operator.limits import Limits
from spotladder.operator.load import Loaded
from spotladder.operator.logs import LogAddress, Logs
from spotladder.operator.outputs import Outputs
from spotladder.operator.records import JobRecord


@dataclass(slots=True)
class Acted:
    """What came of it. `tried`: a launch was, and `blocked` is why it was refused.

    `failed` is the first error of what the job waits for, `untidy` that of removing what is left of it elsewhere: who
    tries that again must not keep the job waiting.
    """

    claims: dict[ConditionType, Claim] = field(default_factory=dict)
    tried: bool = False
    blocked: Problem | None = None
    failed: SpotladderError | None = None
    untidy: SpotladderError | None = None


class Actor:
    """Does what was decided for one job."""

    def __init__(
        self, applier: Applier, *, jobs: Scoped[JobRecord], logs: Logs, outputs: Outputs, limits: Limits
    ) -> None:
        self._applier = applier
        self._jobs = jobs
        self._logs = logs
        self._outputs = outputs
        self._limits = limits

    async def act(
        self,
        loaded: Loaded,
        decision: Decision,
        *,
        room: Callable[[str], bool],
        address: Callable[[], Awaitable[LogAddress]],
    ) -> Acted:
        """Do it all. `room`: whether a tier has room now; `address`: where the job's log lies.

        Raises Conflict, NotFound, NotLeading: nothing more is to be done in this pass.
        """
        acted = Acted()
        live = decision.state.attempt.number if decision.state.attempt else None
        chores: list[tuple[bool, Callable[[], Coroutine[Any, Any, object]]]] = [
            (
                not isinstance(action, Delete) or action.attempt == live,
                partial(self._do, loaded, action, acted, room, address),
            )
            for action in decision.actions
        ]
        chores += [
            (False, partial(self._applier.delete_strays, loaded)),
            (False, partial(self._applier.let_go, loaded, decision.state)),
            (False, partial(self.sweep, loaded.record.key, loaded.record.uid)),
        ]
        for waited_for, chore in chores:
            try:
                await chore()
            except (Conflict, NotFound, NotLeading):
                raise
            except SpotladderError as error:
                if waited_for:
                    acted.failed = acted.failed or error
                else:
                    acted.untidy = acted.untidy or error
        return acted

    async def sweep(self, key: JobKey, uid: str) -> bool:
        """Remove what deleted jobs of this name have left elsewhere; whether there was anything. `uid` is that of the
        job that has the name now. Who cannot see all jobs removes nothing."""
        jobs = self._jobs.within(key[0])
        return jobs is not None and jobs.synced and not jobs.problem and await self._applier.sweep(key, uid)

    async def _do(
        self,
        loaded: Loaded,
        action: Action,
        acted: Acted,
        room: Callable[[str], bool],
        address: Callable[[], Awaitable[LogAddress]],
    ) -> None:
        match action:
            case Launch():
                if room(action.tier):  # another job may have been launched in the meantime
                    with self._limits.launching(loaded.record):
                        acted.blocked = await self._applier.launch(loaded, action)
                        acted.tried = True
            case Drain():
                await self._applier.drain(loaded, action)
                self._logs.look(loaded.record.key)
            case Delete():
                if await self._outputs.before_delete(loaded, action.attempt, address):
                    await self._applier.delete(loaded, action)
            case Finish():
                if claim := await self._finish(loaded, action, address):
                    acted.claims[ConditionType.CHECKPOINTING] = claim

    async def _finish(
        self, loaded: Loaded, action: Finish, address: Callable[[], Awaitable[LogAddress]]
    ) -> Claim | None:
        """Note the outcome in the log and delete old checkpoints, once. None: it is done already."""
        if conditions.is_ended(loaded.status.conditions):
            return None
        reach(Point.BEFORE_FINISH)
        outcome = "Succeeded" if action.succeeded else "Failed"
        number, keep = loaded.state.last_number, loaded.job.spec.checkpoints.keep
        try:
            left = await self._logs.end(await address(), outcome, number, str(action.reason), keep=keep)
        except (StoreRefused, AccessDenied) as error:
            return Claim("False", conditions.END_REFUSED, str(error))
        except (StoreUnavailable, CredentialsMissing, ClusterUnreachable, TimeoutError) as error:
            return Claim("Unknown", Trouble.CHECKPOINTS_UNREADABLE, f"the end is not noted in the log yet: {error}")
        except SpotladderError as error:
            return Claim("False", conditions.END_REFUSED, str(error))
        reach(Point.AFTER_FINISH)
        last = f"step {loaded.state.progress.step} is the last commit"
        kept = f"; older checkpoints are not deleted: {left}" if left else ""
        return Claim("False", conditions.ENDED, f"{last}{kept}")
