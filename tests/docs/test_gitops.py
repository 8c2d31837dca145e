"""The health check for Argo CD, run by Lua, and the rules of kstatus, on the statuses that the controller writes."""

from __future__ import annotations

from typing import Any

import lupa
import pytest

from spotladder.api.crds import crds
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
        (crd,) = [each for each in crds() if each["spec"]["names"]["kind"] == "TieredJob"]
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        return {"metadata": metadata, "spec": {}, "status": properties["status"]["default"]}
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


def kstatus(job: dict[str, Any]) -> str:
    """What kstatus makes of a custom resource (cli-utils, pkg/kstatus/status: checkGenericProperties and
    checkReadyCondition; without the condition Reconciling, Ready decides)."""
    status = job.get("status") or {}
    if status.get("observedGeneration", GENERATION) != job["metadata"]["generation"]:
        return "InProgress"
    said = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    if said.get("Reconciling") == "True":
        return "InProgress"
    if said.get("Stalled") == "True":
        return "Failed"
    return "Current" if said.get("Ready", "True") == "True" else "InProgress"


@pytest.mark.parametrize(
    ("found", "argo_cd", "flux"),
    [
        pytest.param(job(None), ("Progressing", "no controller has reconciled the job yet"), "InProgress", id="new"),
        pytest.param(job(state(Stage.STARTING)), ("Progressing", "why"), "InProgress", id="waits"),
        pytest.param(job(state(Stage.RUNNING)), ("Healthy", "why"), "Current", id="trains"),
        pytest.param(job(state(Stage.DRAINING)), ("Progressing", "why"), "InProgress", id="drains"),
        pytest.param(job(state(Stage.SUSPENDED)), ("Suspended", "why"), "InProgress", id="suspended"),
        pytest.param(job(state(Stage.SUCCEEDED)), ("Healthy", "why"), "Current", id="succeeded"),
        pytest.param(job(state(Stage.FAILED)), ("Degraded", "TiersExhausted: why"), "Failed", id="failed"),
        pytest.param(
            job(state(Stage.RUNNING), INVALID),
            ("Degraded", "InvalidSpec: spec.tiers: is empty"),
            "Failed",
            id="invalid",
        ),
        pytest.param(
            job(state(Stage.RUNNING), generation=GENERATION + 1),
            ("Progressing", "the controller has not seen the newest spec yet"),
            "InProgress",
            id="changed",
        ),
    ],
)
def test_argo_cd_and_flux_show_the_health_of_a_job(found: dict[str, Any], argo_cd: tuple[str, str], flux: str) -> None:
    assert health(found) == argo_cd
    assert kstatus(found) == flux
