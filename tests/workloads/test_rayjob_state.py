"""Observation of a RayJob's status."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.history.crashes import crash_of, crashed_pods
from spotladder.core.history.losses import lost_pods
from spotladder.core.model import Attempt, AttemptSeen, Exit, PodPhase, QueueSeen
from spotladder.core.reasons import Cause
from spotladder.workloads.rayjob.records import RayClusterRecord, RayJobRecord
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import QUEUE
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import NODES, event, metadata, pod, raycluster, rayjob, status

LOGS = """\
, last available logs (truncated to 20,000 chars):
step 1
Traceback (most recent call last):
  File "/app/train.py", line 31, in <module>
    raise ValueError("no data")
ValueError: no data
"""

SIDECAR = "Ray head pod container ray-job-submitter terminated with exit code 1: Error"


def seen(
    job: RayJobRecord | None,
    *pods: object,
    clusters: tuple[RayClusterRecord, ...] = (raycluster(),),
    events: tuple[object, ...] = (),
) -> AttemptSeen:
    objects = AttemptObjects(top=job, derived=clusters, pods=pods)  # type: ignore[arg-type]
    return RAYJOB.read(1, objects, NODES, events)  # type: ignore[arg-type]


@pytest.mark.parametrize("clusters", [(), (raycluster(deleting=True),)], ids=["deleted", "being deleted"])
def test_a_deleted_raycluster_is_one_loss_and_not_one_per_pod(
    clusters: tuple[RayClusterRecord, ...],
) -> None:
    running = rayjob("Running", "RUNNING")
    pods = [pod("head", role="head", deleted=True), pod("w-0", deleted=True), pod("w-1", deleted=True)]
    found = seen(running, *pods, clusters=clusters)
    assert (found.exit, found.message) == (Exit.LOST, "its RayCluster digits-a001-xk2lp was deleted")
    assert lost_pods(Attempt(1, "spot-a", 0.0), found) == []
    assert seen(rayjob("Initializing", ""), clusters=clusters).exit is None


@pytest.mark.parametrize(("status", "expected"), [("RUNNING", True), ("PENDING", False), ("", False)])
def test_rays_job_status_shows_that_the_program_runs(status: str, expected: bool) -> None:
    assert seen(rayjob("Running", status)).reported_running is expected


SETTING_UP = rayjob("Initializing", "")
SHIPPER_FAILED = pod("w-0", others=[status("shipper", 1)])


def test_a_container_that_ends_before_kuberay_submits_the_program_is_a_crash_of_its_pod() -> None:
    (found,) = seen(SETTING_UP, SHIPPER_FAILED).pods
    assert (found.phase, found.cause, found.exit_code, found.container) == (
        PodPhase.LOST, Cause.APP_ERROR, 1, "shipper",
    )  # fmt: skip
    assert "KubeRay submits the program when all containers of every pod are ready" in found.exit_message
    (crashed,) = crashed_pods(Attempt(1, "spot-a", 0.0), seen(SETTING_UP, SHIPPER_FAILED))
    assert crash_of(crashed) == "container shipper of the worker ended with exit code 1 (AppError)"


@pytest.mark.parametrize(
    ("more", "container"),
    [
        ({"others": [status("shipper", ready=False)]}, "shipper"),
        ({"native": [status("istio", 1)]}, ""),
        ({"others": [status("ray-job-submitter", 0)]}, ""),
    ],
    ids=["not ready yet", "the kubelet starts a native sidecar again", "KubeRay's own container"],
)
def test_before_that_a_pod_is_ready_when_all_of_its_containers_are(more: dict[str, Any], container: str) -> None:
    (found,) = seen(SETTING_UP, pod("w-0", **more)).pods
    assert (found.phase, found.ready, found.container) == (PodPhase.RUNNING, False, container)


@pytest.mark.parametrize(("code", "expected"), [(1, Exit.FAILED), (0, Exit.SUCCEEDED), (143, Exit.LOST)])
def test_a_submitter_that_ends_before_all_pods_are_ready_ends_the_attempt(code: int, expected: Exit) -> None:
    early = pod("head", role="head", others=[status("ray-job-submitter", code)])
    found = seen(SETTING_UP, early, pod("w-0", phase="Pending", unschedulable="0/1"))
    assert found.exit is expected
    assert f"ray-job-submitter ended with exit code {code} before all pods were ready" in found.message


@pytest.mark.parametrize(("job", "blocked"), [(SETTING_UP, True), (rayjob("Running"), False)])
def test_a_missing_image_of_a_sidecar_blocks_only_until_the_program_is_submitted(
    job: RayJobRecord, blocked: bool
) -> None:
    waits = pod("w-0", phase="Pending", container=status("ray"), others=[status("shipper", waiting="ErrImagePull")])
    assert bool(seen(job, waits).blocked) is blocked


def failed(code: int) -> str:
    return f"Job entrypoint command failed with exit code {code}{LOGS}"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (rayjob("", ""), None),
        (rayjob("Initializing", ""), None),
        (rayjob("Initializing", "PENDING"), None),
        (rayjob("Running", "RUNNING"), None),
        (rayjob("Running", "Failure"), None),
        (rayjob("Running", "FAILED"), None),
        (rayjob("Retrying", "FAILED"), None),
        (rayjob("SomethingNew", "RUNNING"), None),
        (rayjob("Complete", "SUCCEEDED"), Exit.SUCCEEDED),
        (rayjob("Complete", "SUCCEEDED", deletionTimestamp="2026-11-21T12:00:00Z"), Exit.SUCCEEDED),
        (rayjob("Complete", "STOPPED"), Exit.LOST),
        (rayjob("Running", "RUNNING", deletionTimestamp="2026-11-21T12:00:00Z"), Exit.LOST),
        (rayjob("Suspended", ""), Exit.LOST),
        (rayjob("Suspending", "RUNNING"), Exit.LOST),
        (rayjob("Failed", "FAILED", "AppFailed", failed(1)), Exit.FAILED),
        (rayjob("Failed", "FAILED", "AppFailed", failed(75)), Exit.INTERRUPTED),
        (rayjob("Failed", "FAILED", "AppFailed", failed(76)), Exit.FENCED),
        (rayjob("Failed", "FAILED", "AppFailed", failed(77)), Exit.REFUSED),
        (rayjob("Failed", "FAILED", "AppFailed", failed(-9)), Exit.LOST),
        (rayjob("Failed", "FAILED", "AppFailed", failed(-15)), Exit.LOST),
        (rayjob("Failed", "FAILED", "AppFailed", failed(137)), Exit.LOST),
        (rayjob("Failed", "FAILED", "AppFailed", failed(143)), Exit.LOST),
        (rayjob("Failed", "FAILED", "AppFailed", failed(-11)), Exit.FAILED),
        (rayjob("Complete", "FAILED", "", failed(1)), Exit.FAILED),
        (rayjob("Failed", "FAILED", "AppFailed", "runtime_env setup failed: no such package"), Exit.FAILED),
        (rayjob("Failed", "FAILED", "AppFailed", "Job supervisor actor failed to start within 900 s"), Exit.FAILED),
        (rayjob("Failed", "FAILED", "AppFailed", "Job supervisor actor died: The actor is dead"), Exit.LOST),
        (
            rayjob("Failed", "FAILED", "AppFailed", "Unexpected error occurred: failed to get job supervisor."),
            Exit.LOST,
        ),
        (rayjob("Failed", "RUNNING", "AppFailed", "Ray head pod not found."), Exit.LOST),
        (rayjob("Failed", "", "SubmissionFailed", "the submitter failed"), Exit.LOST),
        (rayjob("Failed", "RUNNING", "SubmissionFailed", SIDECAR), Exit.FAILED),
        (rayjob("Failed", "RUNNING", "DeadlineExceeded", "too long"), Exit.FAILED),
        (rayjob("Failed", "", "PreRunningDeadlineExceeded", "not running"), Exit.LOST),
        (rayjob("Failed", "RUNNING", "JobStatusCheckTimeoutExceeded", "no answer"), Exit.LOST),
        (rayjob("Failed", "RUNNING", "JobDeploymentStatusTransitionGracePeriodExceeded", "stuck"), Exit.LOST),
        (rayjob("Failed", "SUCCEEDED", "AppFailed", ""), Exit.LOST),
        (rayjob("Failed", "", "SomethingNew", "unknown"), Exit.LOST),
        (rayjob("ValidationFailed", "", "ValidationFailed", "no name"), None),
    ],
    ids=lambda value: (
        f"{value.deployment_status}-{value.job_status}-{value.reason}-{value.message[:45]}"
        if isinstance(value, RayJobRecord)
        else None
    ),
)
def test_the_exit_is_read_from_the_status_of_the_rayjob(record: RayJobRecord, expected: Exit | None) -> None:
    assert seen(record).exit is expected


def test_the_exception_is_read_from_the_end_of_a_long_log() -> None:
    text = failed(1).replace("step 1\n", "step 1\n" * 2500)
    assert seen(rayjob("Failed", "FAILED", "AppFailed", text)).message.endswith("ValueError: no data (train.py:31)")


def test_a_rayjob_that_is_gone_before_its_pods() -> None:
    found = seen(None, pod())
    assert (found.exit, found.message, len(found.pods)) == (Exit.LOST, "its RayJob is gone", 1)


def test_a_pod_that_cannot_be_created_blocks() -> None:
    failure = 'pods "digits-a001-w" is forbidden: exceeded quota: gpu'
    assert seen(rayjob("Initializing", ""), clusters=(raycluster(failure),)).blocked == failure
    assert seen(rayjob("Initializing", ""), clusters=(raycluster(),)).blocked == ""


def test_an_ended_attempt_is_not_blocked() -> None:
    ended = rayjob("Failed", "FAILED", "AppFailed", failed(1))
    assert seen(ended, clusters=(raycluster("exceeded quota"),)).blocked == ""


@pytest.mark.parametrize(
    ("reason", "message", "refused"),
    [
        ("FailedScheduling", "no instance type had enough resources or had a required offering", True),
        ("Nominated", "Pod should schedule on: nodeclaim/spot-nnjb2", False),
    ],
)
def test_what_a_provisioner_says_is_reported(reason: str, message: str, refused: bool) -> None:
    waiting = pod("w-0", phase="Pending", unschedulable="0/3 nodes")
    found = seen(rayjob("Initializing", ""), waiting, events=(event(reason, message),))
    assert (found.refused, found.provisioning) == (refused, not refused)


def queued(deployment: str, *, suspend: bool) -> RayJobRecord:
    body = {
        "metadata": metadata("digits-a001", labels={QUEUE: "team"}),
        "spec": {"suspend": suspend},
        "status": {"jobDeploymentStatus": deployment},
    }
    return RayJobRecord.of(body)


@pytest.mark.parametrize("deployment", ["", "Initializing", "Suspending", "Suspended"])
def test_an_attempt_that_kueue_has_not_admitted_is_held_and_not_lost(deployment: str) -> None:
    found = seen(queued(deployment, suspend=True))
    assert (found.exit, found.blocked) == (None, "")
    assert found.queue == QueueSeen("team", held=True, message="Kueue holds the attempt in queue team")
