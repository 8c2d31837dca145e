"""The cluster commands, as far as they run without a cluster."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.api.stored import FINALIZER
from spotladder.cli.cluster import events
from spotladder.core.model import Attempt, JobState, Stage, codec
from spotladder.display import job_text
from spotladder.display.unattended import unattended
from spotladder.jobs.deletion import waits_for
from tests.cli.terminal import call

Capture = pytest.CaptureFixture[str]
JOB = ("get", "watch", "logs", "events", "report", "suspend", "resume", "delete")


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / "kubeconfig"
    file.write_text(
        f"""
clusters: [{{name: east, cluster: {{server: "{server}"}}}}]
contexts: [{{name: east, context: {{cluster: east}}}}]
current-context: east
"""
    )
    return file


@pytest.mark.parametrize("command", JOB)
def test_a_missing_kubeconfig_is_an_error(command: str, capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, command, "digits", "--kubeconfig", tmp_path / "none")
    assert (answer.code, answer.out) == (5, "")
    expected = f"{tmp_path / 'none'}: No such file or directory: set a cluster with --kubeconfig or KUBECONFIG"
    assert answer.err == f"error: {expected}\n"


def test_a_cluster_that_does_not_answer(capsys: Capture, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{free.getsockname()[1]}"
    answer = call(capsys, "get", "--kubeconfig", kubeconfig(tmp_path, server))
    assert (answer.code, answer.out) == (5, "")
    assert answer.err.startswith(
        f"error: context east: the API server at {server} cannot be reached (list tieredjobs: "
    )
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("watch", "digits"), ("web", "--port", "0")])
def test_a_missing_package_is_named_with_its_extra(
    arguments: tuple[str, ...], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for module in ("clusters.client", "clusters.transport", "web.server"):
        monkeypatch.delitem(sys.modules, f"spotladder.{module}", raising=False)
    answer = call(capsys, *arguments)
    assert answer.code == 5
    assert answer.err == f"error: aiohttp is not installed in {sys.prefix}: pip install 'spotladder[operator]'\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "digits", "-A"), "NAME and --all-namespaces exclude each other"),
        (("suspend", "digits", "--wait", "--timeout", "soon"), "--timeout: 'soon' is not a duration"),
        (("suspend", "digits", "--timeout", "5m"), "--timeout is only allowed with --wait"),
        (("submit", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
        (("logs", "digits", "--context-for", "east"), "--context-for east: expected CLUSTER=CONTEXT"),
        (
            ("events", "digits", "--context-for", "=east"),
            "--context-for =east: expected CLUSTER=CONTEXT",
        ),
        (("logs", "digits", "--attempt", "0"), "Invalid value for '--attempt'"),
    ],
)
def test_wrong_arguments_are_rejected(arguments: tuple[str, ...], said: str, capsys: Capture) -> None:
    answer = call(capsys, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


@pytest.mark.parametrize(
    ("command", "name"),
    [*((each, "a/b") for each in JOB), *(("get", bad) for bad in ("", "..", "Digits", "-a", "a" * 254))],
)
def test_invalid_names_are_rejected_before_any_request(command: str, name: str, capsys: Capture) -> None:
    answer = call(capsys, command, "--kubeconfig", "none", "--", name)
    assert (answer.code, answer.out) == (2, "")
    said = "the name is empty: is a shell variable unset?" if not name else f"{name!r} is not a valid Kubernetes name: "
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "namespace"), [*((each, "team.a") for each in (*JOB, "controller")), ("get", ""), ("get", "..")]
)
def test_invalid_namespaces_are_rejected(command: str, namespace: str, capsys: Capture) -> None:
    name = () if command == "controller" else ("digits",)
    answer = call(capsys, command, *name, "--kubeconfig", "none", "-n", namespace)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: Invalid value for '--namespace' / '-n': ")
    assert len(answer.err.splitlines()) == 1


def test_an_invalid_namespace_of_a_context_can_be_replaced(capsys: Capture, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1")
    file.write_text(file.read_text().replace("{cluster: east}", "{cluster: east, namespace: ..}"))
    answer = call(capsys, "get", "digits", "--kubeconfig", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: context east: invalid namespace: '..' is not a valid Kubernetes name: ")
    assert answer.err.endswith("; specify another with --namespace\n")
    assert call(capsys, "get", "digits", "--kubeconfig", file, "-n", "team-a").code == 5


def deleted(*finalizers: str, observed: int = 3, degraded: str = "", **status: Any) -> dict[str, Any]:
    """A TieredJob at generation 3, with a deletionTimestamp."""
    conditions = [{"type": "Degraded", "status": "True" if degraded else "False", "message": degraded}]
    return {
        "metadata": {"generation": 3, "finalizers": list(finalizers)},
        "status": {"observedGeneration": observed, "conditions": conditions, **status},
    }


@pytest.mark.parametrize(
    ("job", "said"),
    [
        pytest.param(deleted(), "", id="deleted at once"),
        pytest.param(deleted("team/backup"), "waiting for the finalizers team/backup", id="a foreign finalizer"),
        pytest.param(deleted(FINALIZER, observed=2), "no controller has seen", id="no controller"),
        pytest.param(
            deleted(FINALIZER, degraded="attempt 1 (east) is not gone: its cluster cannot be reached"),
            "attempt 1 (east) is not gone: its cluster cannot be reached",
            id="the controller's reason",
        ),
        pytest.param(
            deleted(FINALIZER, phase="Draining", attempt=2, tier="spot-b"),
            "attempt 2 on spot-b commits and stops",
            id="draining",
        ),
        pytest.param(
            deleted(FINALIZER, phase="Suspended", attempt=2, tier="spot-b"),
            "the controller removes attempt 2 on spot-b",
            id="stopped",
        ),
    ],
)
def test_delete_prints_the_reason_of_the_wait(job: dict[str, Any], said: str) -> None:
    assert waits_for(job).startswith(said)
    assert bool(waits_for(job)) is bool(said)


def waiting(**more: Any) -> dict[str, Any]:
    since = {"reason": "WaitingForCapacity", "message": "0/5 nodes are available", "since": "2026-11-22T12:00:00Z"}
    return {"metadata": {"name": "digits", "namespace": "team-a"}, "status": {"waiting": {**since, **more}}}


RUNNING = JobState(stage=Stage.RUNNING, attempt=Attempt(1, "spot", 100.0), nodes=3, clock=10_000.0)


@pytest.mark.parametrize(
    ("state", "now", "said"),
    [
        pytest.param(None, 100.0 + 59, "", id="just created"),
        pytest.param(None, 100.0 + 120, "no controller answers: last reconcile never, created 2m 00s ago", id="new"),
        pytest.param(JobState(), 100_000.0, "", id="held"),
        pytest.param(RUNNING, 10_899.0, "", id="running"),
        pytest.param(RUNNING, 10_000.0 + 7200, "no controller answers: last reconcile 2h 00m ago", id="unattended"),
        pytest.param(replace(RUNNING, nodes=0), 100_000.0, "", id="without nodes: not written at intervals"),
        pytest.param(replace(RUNNING, stage=Stage.SUCCEEDED), 100_000.0, "", id="ended"),
    ],
)
def test_a_job_without_a_controller_does_not_look_healthy(state: JobState | None, now: float, said: str) -> None:
    assert unattended(state, 100.0, now) == said


def test_get_shows_that_no_controller_answers() -> None:
    job = {
        "metadata": {"name": "digits", "creationTimestamp": "2026-11-22T12:00:00Z"},
        "status": {"phase": "Running", "state": codec.pack(RUNNING)},
    }
    new = {"metadata": job["metadata"], "status": {"observedGeneration": -1}}
    columns, rows = job_text.rows([job, new], namespaces=False)
    assert columns[-1] == "Message"
    assert [row[-1].partition(":")[0] for row in rows] == ["no controller answers"] * 2


def test_the_waits_for_column_appears_when_a_job_waits() -> None:
    limit = {"timer": "provisionTimeout", "until": "2026-11-22T12:10:00Z", "then": "the job leaves the tier"}
    now = datetime(2026, 11, 22, 12, 5, 50, tzinfo=UTC).timestamp()
    assert job_text.waits(waiting(**limit)["status"]["waiting"], now) == (
        "0/5 nodes are available (for 5m 50s; provisionTimeout in 4m 10s: the job leaves the tier)"
    )
    assert (
        job_text.waits(waiting(timer="", then="")["status"]["waiting"], now) == "0/5 nodes are available (for 5m 50s)"
    )
    assert job_text.waits(None, now) == ""
    runs = {"metadata": {"name": "b", "namespace": "team-a"}, "status": {"phase": "Running"}}
    columns, rows = job_text.rows([waiting(), runs], namespaces=True)
    assert (columns[0], columns[-1]) == ("Namespace", "Message")
    assert [(row[0], row[1], row[-1].startswith("0/5")) for row in rows] == [
        ("team-a", "digits", True), ("team-a", "b", False),
    ]  # fmt: skip
    assert job_text.rows([runs], namespaces=False)[0] == job_text.COLUMNS


def ended(phase: str, **checkpointing: str) -> dict[str, Any]:
    completed = {
        "type": "Completed",
        "status": "True",
        "reason": "ApplicationFailed",
        "message": "exit code 1: KeyError",
    }
    log = {"type": "Checkpointing", "status": "False", "reason": "Ended", **checkpointing}
    return {"phase": phase, "conditions": [completed, log]}


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (ended("Failed"), "ApplicationFailed: exit code 1: KeyError"),
        (ended("Succeeded"), ""),
        (ended("Succeeded", status="Unknown", message="step 30 is the newest that was read"), "step 30 is the newest"),
        (ended("Running", reason="NoStartEntry", message="it does not use spotladder.train"), "it does not use"),
    ],
    ids=["failed", "succeeded", "its end was not read", "without the library"],
)
def test_the_message_says_why_a_job_has_failed_and_what_is_not_known_of_it(status: dict[str, Any], says: str) -> None:
    found = job_text.message(status, 0.0)
    assert found.startswith(says)
    assert bool(found) is bool(says)


def test_a_job_with_an_invalid_spec_says_so_before_what_was_wrong_earlier() -> None:
    invalid, degraded = (
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": text,
            "lastTransitionTime": "2026-11-22T12:00:00Z",
        }
        for kind, status, reason, text in (
            ("Valid", "False", "InvalidSpec", "spec.tiers: is empty"),
            ("Degraded", "True", "Blocked", "quota"),
        )
    )
    status = {"phase": "Pending", "conditions": [degraded, invalid], "message": "spec.tiers: is empty"}
    now, said = datetime(2026, 11, 22, 12, 5, tzinfo=UTC).timestamp(), "InvalidSpec: spec.tiers: is empty (for 5m 00s)"
    assert job_text.message(status, now) == said
    assert job_text.details({"metadata": {"name": "digits"}, "status": status}, now) == [("problem", said)]


async def test_events_of_the_attempts_of_a_deleted_job_are_not_those_of_a_new_one() -> None:
    def event(name: str, time: str) -> dict[str, Any]:
        about = {"kind": "RayJob", "name": name}
        return {"metadata": {"name": f"{name}.{time}"}, "involvedObject": about, "lastTimestamp": f"2026-11-22T{time}Z"}

    async def pages(*_: object, **__: object) -> AsyncIterator[Any]:
        found = [("digits-a001", "11:59:00"), ("digits-a001", "12:00:01"), ("other-a001", "12:00:02")]
        yield SimpleNamespace(items=[event(*each) for each in found])

    cluster: Any = SimpleNamespace(client=SimpleNamespace(pages=pages), namespace="team-a")
    job = {
        "metadata": {"name": "digits", "creationTimestamp": "2026-11-22T12:00:00Z"},
        "spec": {"workload": {"ray": {"template": {}}}},
        "status": {"attempt": 1},
    }
    assert [found["metadata"]["name"] for found in await events._of_attempts(cluster, job)] == ["digits-a001.12:00:01"]
