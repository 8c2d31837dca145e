"""Observation of a JobSet: a restart counts once, replaced pods do not count, exit codes are read at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.api.groups import MAX_PODS
from spotladder.core.history.losses import count, lost_pods, noticed_pods, remember_alive
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Exit,
    FailureUnit,
    JobState,
    Loss,
    PodPhase,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.jobset.state import KEPT_RESTARTS
from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.records import NodeRecord, PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.core.builders import SteppedJob, spec, tier
from tests.workloads.builders import jobset, member, metadata, node, status

NOTICED = {"node-1": node(), "node-2": node("node-2", taints=("karpenter.sh/disrupted",))}


BOTH = {"node-1": node(), "node-2": node("node-2")}


def seen(record: JobSetRecord | None, *pods: PodRecord, nodes: dict[str, NodeRecord] | None = None) -> AttemptSeen:
    return JOBSET.read(1, AttemptObjects(top=record, pods=pods), BOTH if nodes is None else nodes)


def places(found: AttemptSeen) -> dict[str, PodPhase]:
    return {entry.uid: entry.phase for entry in found.pods if entry.phase is not PodPhase.LOST}


def losses(found: AttemptSeen) -> list[tuple[str, Cause]]:
    return [(entry.uid, entry.cause) for entry in found.pods if entry.phase is PodPhase.LOST]


def losses_over(*snapshots: AttemptSeen) -> list[Loss]:
    """The losses that the core counts over these snapshots."""
    return _over(*snapshots)[1]


def _over(*snapshots: AttemptSeen) -> tuple[JobState, list[Loss]]:
    state, counted = JobState(attempt=Attempt(1, "spot-a", 0.0)), list[Loss]()
    for found in snapshots:
        for fresh in (lost_pods, noticed_pods):
            assert state.attempt is not None
            state, losses = count(state, fresh(state.attempt, found), FailureUnit.POD)
            counted += losses
        assert state.attempt is not None
        state = replace(state, attempt=remember_alive(state.attempt, found))
    return state, counted


def counted(*snapshots: AttemptSeen) -> int:
    """The number of failures that the core counts over these snapshots."""
    return _over(*snapshots)[0].failures


def test_one_lost_pod_is_one_failure_although_all_pods_are_recreated() -> None:
    went = member(1, phase="Failed", disruption="DeletionByTaintManager")
    history = [
        seen(jobset(), member(0), member(1)),
        seen(jobset(), member(0), went),
        seen(jobset(restarts=1), member(0, deleted=True), went),
        seen(jobset(restarts=1), member(0, restart=1, phase="Pending"), member(1, restart=1, phase="Pending")),
        seen(jobset(restarts=1), member(0, restart=1), member(1, restart=1)),
    ]
    assert counted(*history) == 1
    assert losses(history[1]) == [("uid-digits-a001/restart-0/uid-workers-0-1-0", Cause.NODE_LOST)]
    assert places(history[4]) == {"workers-0-0": PodPhase.RUNNING, "workers-0-1": PodPhase.RUNNING}


def test_two_lost_pods_are_two_failures_in_any_order_of_observation() -> None:
    first, second = lost(0), lost(1)
    ready = seen(jobset(), member(0), member(1))
    assert counted(ready, seen(jobset(), first, second)) == 2
    assert counted(ready, seen(jobset(), member(0), second), seen(jobset(), first, second)) == 2
    assert counted(ready, seen(jobset(), first, member(1)), seen(jobset(), first, second)) == 2


def lost(index: int, cause: str = "DeletionByTaintManager") -> PodRecord:
    """A pod that was lost with its own node."""
    return member(index, phase="Failed", disruption=cause, node=f"node-{index + 1}")


LOST_IN_TURN = {
    "one after the other": (
        seen(jobset(), member(0), lost(1)),
        seen(jobset(), lost(0), lost(1)),
        seen(jobset(restarts=1), lost(0), lost(1)),
        seen(jobset(restarts=1), lost(0)),
        seen(jobset(restarts=1), member(0, restart=1), member(1, restart=1)),
    ),
    "the cause of the first is known later": (
        seen(jobset(), member(0), lost(1, "")),
        seen(jobset(), lost(0), lost(1, "")),
        seen(jobset(restarts=1), lost(0), lost(1)),
    ),
    "the second remains longer": (
        seen(jobset(), lost(0), member(1)),
        seen(jobset(), lost(0), lost(1)),
        seen(jobset(restarts=1), lost(1)),
        seen(jobset(restarts=1), member(0, restart=1), member(1, restart=1)),
    ),
    "a notice first": (
        seen(jobset(), member(0), member(1, node="node-2"), nodes=NOTICED),
        seen(jobset(), lost(0), member(1, node="node-2"), nodes=NOTICED),
        seen(jobset(), lost(0), lost(1)),
        seen(jobset(restarts=1), lost(0), lost(1)),
    ),
}


@pytest.mark.parametrize("history", LOST_IN_TURN.values(), ids=list(LOST_IN_TURN))
def test_each_of_two_lost_pods_is_named_once(history: tuple[AttemptSeen, ...]) -> None:
    state = losses_over(seen(jobset(), member(0), member(1)), *history)
    assert sorted(loss.pod for loss in state) == ["workers-0-0-0", "workers-0-1-0"]


def test_a_restart_that_is_observed_before_its_lost_pods_is_counted_with_them() -> None:
    ready = seen(jobset(), member(0), member(1))
    restarted = seen(jobset(restarts=1), member(0), member(1))
    late = [seen(jobset(restarts=1), *pods) for pods in ((lost(0), member(1)), (lost(0), lost(1)), (lost(1),))]
    one = [loss.pod for loss in losses_over(ready, restarted, late[0])]
    assert one == ["a pod of digits-a001, restart 1"], "the loss is counted without the pod's name"
    for order in (late, late[1:], late[::-1]):
        two = [loss.pod for loss in losses_over(ready, restarted, *order, *order)]
        assert len(two) == 2
        assert two[0] == "a pod of digits-a001, restart 1"


def test_two_pods_that_are_lost_with_their_node_are_one_failure() -> None:
    ready = seen(jobset(), member(0), member(1))
    together = [member(index, phase="Failed", disruption="DeletionByTaintManager") for index in (0, 1)]
    assert counted(ready, seen(jobset(), *together), seen(jobset(restarts=1), *together)) == 1


def test_the_number_of_reported_restarts_is_bounded() -> None:
    found = seen(jobset(restarts=5000), member(0, restart=5000), member(1, restart=5000))
    assert len(losses(found)) == KEPT_RESTARTS
    assert losses(found)[-1][0] == "uid-digits-a001/restart-4999"


def test_a_noticed_pod_keeps_its_rank() -> None:
    found = seen(jobset(), member(0), member(1), nodes={"node-1": node(taints=("karpenter.sh/disrupted",))})
    assert places(found).keys() >= {"workers-0-0", "workers-0-1"}
    noticed = [entry for entry in found.pods if entry.noticed]
    first = "uid-digits-a001/restart-0"
    assert [entry.uid for entry in noticed] == [f"{first}/uid-workers-0-0-0", f"{first}/uid-workers-0-1-0"]
    assert all(entry.cause is Cause.INTERRUPTION for entry in noticed)


def test_a_notice_and_the_loss_that_follows_are_one_failure() -> None:
    history = [
        seen(jobset(), member(0), member(1, node="node-2"), nodes=NOTICED),
        seen(jobset(), member(0), member(1, node="node-2", phase="Failed", exit_code=137), nodes=NOTICED),
        seen(jobset(restarts=1), member(0, restart=1, phase="Pending"), nodes=NOTICED),
    ]
    assert counted(*history) == 1


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])  # The kubelet reports ended containers before the phase.
def test_a_succeeded_rank_is_not_lost(phase: str) -> None:
    found = seen(jobset(), member(0, phase=phase, exit_code=0, ready=False), member(1))
    assert places(found) == {"workers-0-0": PodPhase.RUNNING, "workers-0-1": PodPhase.RUNNING}
    assert all(entry.ready for entry in found.pods)
    assert losses(found) == []


def test_the_set_has_ended_when_all_programs_have_whatever_their_sidecars_do() -> None:
    still = [status("sidecar"), status("shipper", 1)]
    first, second = (member(index, exit_code=0, ready=False, others=still) for index in range(2))
    assert seen(jobset(), first, member(1)).exit is None
    assert seen(jobset(), first, second).exit is Exit.SUCCEEDED
    assert seen(jobset(restarts=1), first, second).exit is None, "they ended before the restart"
    failed = member(1, phase="Failed", exit_code=0, others=[status("shipper", 1)])
    assert seen(jobset("Failed"), first, failed).exit is Exit.SUCCEEDED
    gone = member(1, exit_code=0, deleted=True, others=still)
    assert seen(jobset(), first, gone).exit is None


def test_the_pods_of_the_success_policy_end_the_set() -> None:
    record = replace(jobset(), ends_with=(("driver", 1, 1), ("workers", 1, 2)), ends_with_any=True)
    assert seen(record, member(0, exit_code=0, ready=False), member(1)).exit is None
    assert seen(record, *(member(index, exit_code=0, ready=False) for index in range(2))).exit is Exit.SUCCEEDED
    assert seen(replace(record, ends_with_any=False), member(0, exit_code=0), member(1, exit_code=0)).exit is None


def test_a_killed_program_is_lost_although_its_sidecar_runs_on() -> None:
    killed = member(0, exit_code=137, ready=False, others=[status("sidecar")])
    found = seen(jobset(), killed, member(1))
    assert (places(found)["workers-0-0"], len(losses(found))) == (PodPhase.PENDING, 1)


@pytest.mark.parametrize(
    ("record", "pods", "expected"),
    [
        (jobset("Completed"), (), Exit.SUCCEEDED),
        (jobset("Completed"), (member(0, phase="Failed", exit_code=1),), Exit.SUCCEEDED),
        (jobset(), (member(0, phase="Failed", exit_code=1), member(1)), Exit.FAILED),
        (jobset(), (member(0, phase="Failed", exit_code=75), member(1)), Exit.INTERRUPTED),
        (jobset(), (member(0, phase="Failed", exit_code=75), member(1, phase="Failed", exit_code=1)), Exit.INTERRUPTED),
        (jobset(), (member(0, phase="Failed", exit_code=77), member(1, phase="Failed", exit_code=1)), Exit.REFUSED),
        (jobset(), (member(0, phase="Failed", exit_code=76), member(1, phase="Failed", exit_code=75)), Exit.FENCED),
        (jobset(), (member(0, phase="Failed", exit_code=137), member(1)), None),
        (jobset(), (member(0, phase="Failed", exit_code=143), member(1)), None),
        (jobset(restarts=1), (member(0, phase="Failed", exit_code=1), member(0, restart=1)), None),
        (jobset("Failed", message="jobset failed"), (), Exit.LOST),
        (jobset("Failed"), (member(0, phase="Failed", exit_code=1),), Exit.FAILED),
        (jobset(deletionTimestamp="2026-11-21T12:00:00Z"), (member(0),), Exit.LOST),
        (None, (member(0),), Exit.LOST),
    ],
    ids=[
        "completed", "completed wins over an exit code", "program failed", "interrupted",
        "interrupted wins over other exit codes", "refused credentials win over other exit codes",
        "fenced wins", "killed: JobSet restarts", "terminated: JobSet restarts", "a failure before the last restart",
        "failed without an exit code", "failed", "deleted by a user", "gone",
    ],
)  # fmt: skip
def test_the_exit_is_read_from_the_set_and_its_pods(
    record: JobSetRecord | None, pods: tuple[PodRecord, ...], expected: Exit | None
) -> None:
    assert seen(record, *pods).exit is expected


def test_ranks_that_are_interrupted_are_not_lost() -> None:
    ready = seen(jobset(), member(0), member(1))
    stopped = seen(jobset(), member(0, phase="Failed", exit_code=75), member(1, phase="Failed", exit_code=75))
    assert counted(ready, stopped) == 0
    assert stopped.exit is Exit.INTERRUPTED


@pytest.mark.parametrize("code", [1, 5], ids=["the error of a collective", "RankLost of spotladder.train"])
def test_ranks_that_fail_because_a_peer_is_lost_are_one_failure(code: int) -> None:
    """JobSet does not restart then: the survivor's exit code is observed before the loss and ends the set."""
    job = SteppedJob(spec(tier("spot-a", 1), attribution_window=60.0))
    job.see()
    job.see(seen(jobset(), member(0), member(1)), after=1)
    assert job.state.stage is Stage.RUNNING
    survivor = member(1, phase="Failed", exit_code=code)
    job.see(seen(jobset("Failed"), member(0), survivor), after=1)
    assert job.state.stage is Stage.RUNNING, "the failure attribution window has not ended"
    lost = member(0, phase="Running", node="node-2")
    dead = {"node-1": node(), "node-2": node("node-2", ready="Unknown")}
    job.see(seen(jobset("Failed"), lost, survivor, nodes=dead), after=40)
    assert (job.state.stage, job.state.reason) == (Stage.ENDING, Reason.INTERRUPTED)
    assert (job.state.failures, job.state.application_failures) == (1, 0)
    job.see(after=1)
    assert (job.state.tier, job.state.stage) == ("spot-a", Stage.STARTING)


@pytest.mark.parametrize(
    "counts",
    [
        [(1, MAX_PODS + 1)],
        [(2_000_000_000, 0)],
        [(2_000_000_000, 1), (-2_000_000_000, 1)],
    ],
)
def test_a_set_with_more_pods_than_an_attempt_may_have_takes_no_memory(counts: list[tuple[int, int]]) -> None:
    jobs = [
        {"name": f"workers-{index}", "replicas": jobs, "template": {"spec": {"parallelism": pods}}}
        for index, (jobs, pods) in enumerate(counts)
    ]
    made = JobSetRecord.of({"metadata": metadata("digits-a001"), "spec": {"replicatedJobs": jobs}})
    assert (made.places, made.ends_with) == ((), ()), "each of their places would be a record"


@pytest.mark.parametrize(
    ("spec", "order"),
    [
        ({}, {"dependsOn": [{"name": "load", "status": "Complete"}]}),
        ({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}),
    ],
    ids=["dependsOn", "startupPolicy"],
)
def test_pods_that_jobset_creates_after_others_lack_no_capacity(
    spec: dict[str, object], order: dict[str, object]
) -> None:
    """While the data is loaded, provisionTimeout would exhaust the tier."""
    pods = {"template": {"spec": {"parallelism": 2}}}
    jobs = [{"name": "load", **pods}, {"name": "workers", **pods, **order}]
    ordered = JobSetRecord.of({"metadata": metadata("digits-a001"), "spec": {**spec, "replicatedJobs": jobs}})
    waiting = {entry.uid: entry.placed for entry in seen(ordered).pods}
    assert waiting == {"load-0-0": False, "load-0-1": False, "workers-0-0": True, "workers-0-1": True}
    begun = {entry.uid: entry.placed for entry in seen(ordered, member(0)).pods}
    assert (begun["workers-0-0"], begun["workers-0-1"]) == (True, False)
