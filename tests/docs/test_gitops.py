"""The health check for Argo CD, run by Lua on the statuses that the controller writes."""

from __future__ import annotations

from typing import Any

import lupa
import pytest

from spotladder.core.model import Attempt, Decision, JobState, Observation, Stage
from spotladder.core.reasons import Reason
from spotladder.operator.condition_types import ConditionReason, Diagnosis, merged
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import conditions, status
from tests.core.builders import START, spec
from tests.docs.markdown import blocks

GENERATION = 4


def health(job: dict[str, Any]) -> tuple[str, str]:
    """The status and the message that the script of the page returns."""
    (script,) = [block.text for block in blocks("lua") if block.page.name == "gitops-jobs.md"]
    lua = lupa.LuaRuntime()
    check = lua.eval(f"function(obj) {script} end")
    found = check(lua.table_from(job, recursive=True))
    return found["status"], found["message"]


def job(state: JobState | None, problem: Diagnosis | None = None, generation: int = GENERATION) -> dict[str, Any]:
    """The TieredJob with the status of this state; without one if no controller has seen it."""
    metadata = {"name": "digits", "namespace": "team-a", "generation": generation}
    if state is None:
        return {"metadata": metadata, "spec": {}}
    updates = {
        **conditions.of_decision(spec(), Decision(state), Observation(1), Reading(True)),
        **conditions.of_validity(problem),
    }
    entries = merged([], updates, START, GENERATION)
    found = status.of_state(state, entries, generation=GENERATION, uri="s3://b/digits", clusters={}, tiers=["spot-a"])
    return {"metadata": metadata, "spec": {}, "status": status.plain(found)}


def state(stage: Stage, message: str = "why") -> JobState:
    live = Attempt(1, "spot-a", START, seen=True)
    return JobState(stage=stage, attempt=live, tier="spot-a", reason=Reason.TIERS_EXHAUSTED, message=message)


INVALID = Diagnosis(ConditionReason.INVALID_SPEC, "spec.tiers: is empty")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(job(None), ("Progressing", "no controller has reconciled the job yet"), id="new"),
        pytest.param(job(state(Stage.STARTING)), ("Progressing", "why"), id="waits"),
        pytest.param(job(state(Stage.RUNNING)), ("Healthy", "why"), id="trains"),
        pytest.param(job(state(Stage.DRAINING)), ("Progressing", "why"), id="drains"),
        pytest.param(job(state(Stage.SUSPENDED)), ("Suspended", "why"), id="suspended"),
        pytest.param(job(state(Stage.SUCCEEDED)), ("Healthy", "why"), id="succeeded"),
        pytest.param(job(state(Stage.FAILED)), ("Degraded", "TiersExhausted: why"), id="failed"),
        pytest.param(
            job(state(Stage.RUNNING), INVALID), ("Degraded", "InvalidSpec: spec.tiers: is empty"), id="invalid"
        ),
        pytest.param(
            job(state(Stage.RUNNING), generation=GENERATION + 1),
            ("Progressing", "the controller has not seen the newest spec yet"),
            id="changed",
        ),
    ],
)
def test_argo_cd_shows_the_health_of_a_job(found: dict[str, Any], expected: tuple[str, str]) -> None:
    assert health(found) == expected
