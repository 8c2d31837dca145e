"""Failures of cleanup work do not block the job."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.errors import Forbidden
from spotladder.core.model import Action, Attempt, Decision, Delete, Drain, Finish, JobState, Progress, Stage
from spotladder.core.reasons import Reason
from spotladder.errors import LogCorrupt, StoreUnavailable
from spotladder.operator.condition_types import ConditionType
from spotladder.operator.reconcile.execute import ExecutionResult, Executor
from spotladder.operator.storage.commit_logs import EndOfLog

REFUSED = Forbidden(403, "Forbidden", "rayjobs is forbidden")
LIVE = 2


class RefusingApplier:
    """A fake of every collaborator of the executor: the named calls are refused, all others succeed."""

    def __init__(self, *refused: str) -> None:
        self._refused = refused
        self.done: list[str] = []
        self.has_synced, self.problem = True, ""

    def within(self, _namespace: str) -> RefusingApplier:
        return self

    def read_now(self, _key: object) -> None:
        return

    async def before_delete(self, *_: object) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        async def do(*_: object) -> None:
            if name in self._refused:
                raise REFUSED
            self.done.append(name)

        return do


async def executed(refused: str, *actions: Action) -> tuple[ExecutionResult, RefusingApplier]:
    world = cast("Any", RefusingApplier(refused))
    state = replace(JobState(), stage=Stage.RUNNING, attempt=Attempt(LIVE, "spot-a", created_at=0.0))
    loaded = cast(
        "Any", type("Loaded", (), {"record": type("Record", (), {"key": ("ns", "a"), "uid": "u", "deleting": True})})
    )
    executor = Executor(world, world, preflight=world, jobs=world, logs=world, outputs=world)
    found = await executor.execute(loaded, Decision(state, actions=actions), address=cast("Any", lambda: None))
    return found, world


DRAIN = Drain(LIVE, 30.0, Reason.EVICTION_NOTICE)


@pytest.mark.parametrize(
    ("refused", "action", "fails"),
    [
        ("sweep", DRAIN, False),
        ("delete_strays", DRAIN, False),
        ("remove_silent_pods", DRAIN, False),
        ("delete", Delete(LIVE - 1, Reason.LEFT_BEHIND), False),
        ("change", DRAIN, True),
        ("delete", Delete(LIVE, Reason.MAX_FAILURES_EXCEEDED), True),
    ],
)
async def test_a_failed_action_fails_the_reconcile_if_it_is_of_the_live_attempt(
    refused: str, action: Action, fails: bool
) -> None:
    found, world = await executed(refused, action)
    assert (found.failed, found.cleanup_error) == ((REFUSED, None) if fails else (None, REFUSED))
    assert {"delete_strays", "remove_silent_pods", "sweep"} - {refused} <= set(world.done)


NOT_READ = "step 30 is the newest that was read, and there may be a later one"


class EndLog(RefusingApplier):
    """A log whose `end` returns why old checkpoints are kept, or raises an error."""

    def __init__(self, answer: str | Exception) -> None:
        super().__init__()
        self._answer = answer
        self.keep = 0

    async def end(self, _address: object, _outcome: str, _attempt: int, _message: str, *, keep: int) -> EndOfLog:
        self.keep = keep
        if isinstance(self._answer, Exception):
            raise self._answer
        return EndOfLog(self._answer, Progress(40, 40, committed_at=1.0, attempt=3))


@pytest.mark.parametrize(
    ("answer", "status", "reason", "message"),
    [
        ("", "False", "Ended", "step 40 is the last commit"),
        ("no right", "False", "Ended", "step 40 is the last commit; older checkpoints are not deleted: no right"),
        (StoreRefused("read-only"), "False", "EndRefused", f"read-only; {NOT_READ}"),
        (LogCorrupt("entry 3"), "False", "EndRefused", f"entry 3; {NOT_READ}"),
        (
            StoreUnavailable("503"),
            "Unknown",
            "CheckpointsUnreadable",
            f"the outcome is not in the commit log yet: 503; {NOT_READ}",
        ),
    ],
)
async def test_at_the_end_of_a_job_the_log_records_the_outcome_and_keeps_spec_keep_checkpoints(
    answer: str | Exception, status: str, reason: str, message: str
) -> None:
    world: Any = EndLog(answer)
    spec = SimpleNamespace(checkpoints=SimpleNamespace(keep=2))
    loaded: Any = SimpleNamespace(
        record=SimpleNamespace(key=("ns", "a"), uid="u"),
        status=SimpleNamespace(conditions=()),
        state=JobState(stage=Stage.SUCCEEDED, last_number=3, progress=Progress(30, 40)),
        job=SimpleNamespace(spec=spec),
    )
    executor = Executor(world, world, preflight=world, jobs=world, logs=world, outputs=world)
    found = await executor.execute(
        loaded,
        Decision(loaded.state, actions=(Finish(True, Reason.COMPLETED),)),
        address=world.address,
    )
    update = found.updates[ConditionType.CHECKPOINTING]
    assert (update.status, update.reason, update.message) == (status, reason, message)
    assert found.at_end == (Progress(40, 40, committed_at=1.0, attempt=3) if reason == "Ended" else None)
    assert world.keep == 2
    assert "remove_guards" in world.done
