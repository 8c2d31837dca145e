"""`spotladder watch`: the view of a job's status."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from aiohttp import web
from rich.console import Console
from ruamel.yaml import YAML

from spotladder.cli.cluster import watch
from spotladder.cli.cluster.watch import snapshot_of
from spotladder.cli.main import main
from spotladder.cli.output import Format
from spotladder.cli.target import ClusterTarget
from spotladder.core.model import Attempt, AttemptRecord, JobSpec, JobState, Price, Stage, Tier, TierRecord
from spotladder.core.reasons import FAILED_EXIT_CODES, Reason
from spotladder.display import job_text
from spotladder.display.picture import draw
from spotladder.display.view_state import RunSummary
from spotladder.errors import EnvironmentFailure, Refused
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.workloads.records import EventRecord
from tests.clusters.test_client import api, refused

NOW = 1_800_000_000.0
SPEC = JobSpec(tiers=(Tier("spot", max_failures=0, price=Price(0.4, 1.2)),), workers=3, submitted_at=NOW - 900)
RUNNING = JobState(
    stage=Stage.RUNNING,
    attempt=Attempt(2, "spot", NOW - 600, seen=True, running_at=NOW - 500, workers=3),
    tier="spot",
    tiers=(TierRecord("spot", attempts=2, cost=1.0, on_demand_cost=3.0),),
    clock=NOW,
    nodes=2,
)


def picture(state: JobState, now: float, width: int = 80, spec: JobSpec = SPEC) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, height=24, color_system=None)
    console.print(draw(snapshot_of(spec, state, now, ""), RunSummary(), width, 24))
    return out.getvalue()


def test_the_cost_grows_between_two_writes_of_the_status() -> None:
    assert "$1.0000 spent" in picture(RUNNING, NOW)
    assert "$1.1000 spent" in picture(RUNNING, NOW + 450), "two nodes for an eighth of an hour at $0.40"


def test_a_price_that_the_user_may_not_read_is_not_unknown() -> None:
    spec = replace(SPEC, tiers=(replace(SPEC.tiers[0], price=Price(known=False)),))
    assert "  $1.0000 spent" in picture(RUNNING, NOW + 450, spec=spec)


@pytest.mark.parametrize(
    ("state", "nodes"),
    [
        (RUNNING, "nodes   ● 2 up  ○ 1 wanted"),
        (replace(RUNNING, nodes=3), "nodes   ● 3 up"),
        (replace(RUNNING, attempt=None, nodes=0), "nodes   none"),
    ],
)
def test_the_view_counts_nodes(state: JobState, nodes: str) -> None:
    assert nodes in picture(state, NOW)


def test_failures_of_earlier_rounds_are_not_forgotten() -> None:
    assert "0/0 " in picture(RUNNING, NOW)
    assert "before" not in picture(RUNNING, NOW)
    before = AttemptRecord(1, "spot", NOW - 900, NOW - 800, NOW - 600, Reason.MAX_FAILURES_EXCEEDED, 2, 0, 0)
    assert "0/0 (2 before)" in picture(replace(RUNNING, history=(before,)), NOW)


@pytest.mark.parametrize(("kind", "normal"), [("Normal", True), ("Warning", False), (None, False)])
def test_an_event_of_type_normal_is_not_a_warning(kind: str | None, normal: bool) -> None:
    thing = {"metadata": {"name": "e"}, "involvedObject": {}, "type": kind, "reason": "Started", "message": "x"}
    assert EventRecord.of(thing).normal is normal


@pytest.mark.parametrize(
    ("phase", "deleting", "displayed"),
    [("Suspended", True, "Deleting"), ("Suspended", False, "Suspended"), ("Succeeded", True, "Succeeded")],
)
def test_a_job_that_is_being_deleted_is_not_called_suspended(phase: str, deleting: bool, displayed: str) -> None:
    metadata = {"name": "digits", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})}
    assert job_text.row({"metadata": metadata, "status": {"phase": phase}}, NOW)[1] == displayed


SINCE = {"lastTransitionTime": "2027-01-15T08:00:00Z"}  # NOW
AWAY = {**SINCE, "type": "Degraded", "status": "True", "reason": "StoreUnavailable", "message": "no answer"}
REMOVED = [{"number": 3, "tier": "spot-a", "since": SINCE["lastTransitionTime"], "nodes": 2}]
WAITING = {"reason": "WaitingForCapacity", "message": "pods wait for nodes", "since": SINCE["lastTransitionTime"]}
GOING = "attempt 3 on spot-a is being removed (1m 30s, 2 nodes)"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": "Running", "conditions": [AWAY]}, "StoreUnavailable: no answer (for 1m 30s)"),
        ({"phase": "Pending", "conditions": [AWAY], "waiting": WAITING}, "pods wait for nodes (for 1m 30s)"),
        ({"phase": "Running", "conditions": [{**AWAY, "status": "False"}]}, ""),
        ({"phase": "Failed", "conditions": [AWAY]}, ""),
        ({"phase": "Succeeded", "removing": REMOVED}, GOING),
        ({"phase": "Running", "removing": REMOVED}, GOING),
        (
            {"phase": "Pending", "waiting": WAITING, "removing": REMOVED},
            f"pods wait for nodes (for 1m 30s); {GOING}",
        ),
        (
            {"phase": "Running", "conditions": [AWAY], "removing": REMOVED},
            f"StoreUnavailable: no answer (for 1m 30s); {GOING}",
        ),
        ({"phase": "Running", "elastic": {"workers": 2, "wanted": 3}}, "continues with 2 of 3 workers"),
        ({"phase": "Running", "elastic": {"workers": 3, "wanted": 3}}, ""),
        ({}, ""),
    ],
)
def test_a_job_shows_why_it_waits_and_what_is_being_removed(status: dict[str, object], message: str) -> None:
    assert job_text.message(status, NOW + 90) == message


@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_scripts_get_the_job_once_for_each_change_through_an_outage(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(version: int, phase: str) -> dict[str, Any]:
        about = {"apiVersion": "spotladder.io/v1alpha1", "kind": "TieredJob"}
        versions = {"resourceVersion": str(version), "managedFields": []}
        metadata = {"name": "digits", "namespace": "team-a", "uid": "u", **versions}
        completed = {"type": "Completed", "status": "True", "reason": "TiersExhausted"}
        return {**about, "metadata": metadata, "status": {"phase": phase, "conditions": [completed]}}

    answers = [job(1, "Running"), job(1, "Running"), refused(503), job(2, "Running"), job(3, "Failed")]
    monkeypatch.setattr(watch, "DRAW_INTERVAL", 0.01)

    def answer(request: web.Request) -> object:
        assert request.path == "/apis/spotladder.io/v1alpha1/namespaces/team-a/tieredjobs/digits"
        return answers.pop(0)

    async with api(answer) as client:
        config = {
            "clusters": [{"name": "west", "cluster": {"server": client.connection.server}}],
            "contexts": [{"name": "west", "context": {"cluster": "west", "namespace": "team-a"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "west", **config}))
        code = await asyncio.to_thread(main, ["watch", "digits", "--kubeconfig", str(file), "--output", output])
    printed = capsys.readouterr().out
    found = (
        list(map(json.loads, printed.splitlines())) if output == "json" else list(YAML(typ="safe").load_all(printed))
    )
    assert [(each["metadata"]["resourceVersion"], each["status"]["phase"]) for each in found] == [
        ("1", "Running"), ("2", "Running"), ("3", "Failed"),
    ]  # fmt: skip
    assert code == FAILED_EXIT_CODES[Reason.TIERS_EXHAUSTED]


def test_a_new_job_with_the_name_of_a_deleted_one_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def job(uid: str, phase: str) -> dict[str, Any]:
        metadata = {"name": "digits", "uid": uid, "resourceVersion": uid}
        return {"apiVersion": "v1", "kind": "TieredJob", "metadata": metadata, "status": {"phase": phase}}

    cluster = SimpleNamespace(job=AsyncMock(side_effect=[job("1", "Running"), job("2", "Succeeded")]))
    monkeypatch.setattr(watch, "on_cluster", lambda _target, work: asyncio.run(work(cluster)))
    monkeypatch.setattr(watch, "DRAW_INTERVAL", 0.0)
    with pytest.raises(Refused, match="tieredjob digits was deleted"):
        watch._print_changes(ClusterTarget(), "digits", Format.JSON)
    assert '"phase": "Running"' in capsys.readouterr().out


@pytest.mark.parametrize("status", [403, 429, 503])
async def test_a_job_that_cannot_be_listed_is_not_called_deleted(status: int) -> None:
    async with api(lambda _request: refused(status, **{"Retry-After": "60"})) as client:
        observer = watch._JobObserver(ConnectedCluster(client, "team-a"), "digits", Mock())
        with pytest.raises(
            EnvironmentFailure, match=f"tieredjob digits cannot be followed: list tieredjobs: .*{status}"
        ):
            await observer.run()
