"""When workloads count as ready, why they are not ready, and when waiting is useless."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import ready
from spotladder_infra.rollout.tools import Tools

WORKLOAD = ready.AppsObject("Deployment", "system", "controller")


def deployment(
    *, replicas: int = 1, updated: int = 1, available: int = 1, total: int | None = None, seen: int = 2
) -> Any:
    status = {"observedGeneration": seen, "updatedReplicas": updated, "availableReplicas": available}
    return {
        "kind": "Deployment",
        "metadata": {"name": "controller", "generation": 2},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "controller"}}},
        "status": {**status, "replicas": updated if total is None else total},
    }


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (deployment(), ""),
        (deployment(replicas=2), "1 of 2 pods are ready"),
        (deployment(available=0), "0 of 1 pods are ready"),
        (deployment(total=2), "1 old pods still exist"),
        (deployment(seen=1), "is not observed yet"),
        (deployment(replicas=0, updated=0, available=0), ""),
    ],
)
def test_readiness_of_a_deployment(found: Any, reason: str) -> None:
    assert (reason in ready.unready(found)) if reason else not ready.unready(found)


def pod(reason: str = "", *, deleted: bool = False, unscheduled: str = "") -> Any:
    metadata: dict[str, Any] = {"name": "controller-1"}
    if deleted:
        metadata["deletionTimestamp"] = "now"
    waiting = {"state": {"waiting": {"reason": reason}}, "image": "r/spotladder:typo"}
    condition = {"type": "PodScheduled", "status": "False", "message": unscheduled}
    return {
        "metadata": metadata,
        "status": {
            "containerStatuses": [waiting] if reason else [],
            "conditions": [condition] if unscheduled else [],
        },
    }


@pytest.mark.parametrize(
    ("pods", "text", "final"),
    [
        ([], "", False),
        ([pod("ContainerCreating")], "", False),
        ([pod("ErrImageNeverPull")], "ErrImageNeverPull: r/spotladder:typo", True),
        ([pod("ImagePullBackOff")], "ImagePullBackOff", False),
        ([pod("ErrImageNeverPull", deleted=True)], "", False),
        ([pod(unscheduled="0/3 nodes are available")], "is not scheduled: 0/3 nodes", False),
    ],
)
def test_why_pods_cannot_start(pods: list[Any], text: str, final: bool) -> None:
    found, useless = ready.blocked(pods)
    assert text in found if text else not found
    assert useless is final


class SleepClock:
    """A clock that only advances by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class DeployingCluster(Tools):
    """A fake cluster with a Deployment that becomes ready at a given time, and with pods."""

    def __init__(self, clock: SleepClock, ready_at: float, pods: list[Any]) -> None:
        super().__init__(KubeContext("", ""))
        object.__setattr__(self, "answer", lambda: deployment(available=int(clock.now >= ready_at)))
        object.__setattr__(self, "pods", pods)

    def get(self, *arguments: str) -> Any:
        return {"items": self.pods} if arguments[0] == "pods" else self.answer()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ready_at", "pods", "ends", "message"),
    [
        (30.0, [], 30.0, ""),
        (30.0, [pod("ImagePullBackOff")], 20.0, "ImagePullBackOff"),
        (10.0, [pod("ImagePullBackOff")], 10.0, ""),
        (30.0, [pod("InvalidImageName")], 0.0, "InvalidImageName"),
        (99.0, [pod(unscheduled="no node")], 60.0, r"not ready after 60 s: .*no node"),
    ],
)
def test_the_wait_for_a_workload_ends_when_it_is_ready_or_cannot_become_ready(
    ready_at: float, pods: list[Any], ends: float, message: str
) -> None:
    clock = SleepClock()
    cluster = DeployingCluster(clock, ready_at, pods)
    if message:
        with pytest.raises(EnvironmentFailure, match=message):
            ready.wait(cluster, [WORKLOAD], 60.0, clock=clock, sleep=clock.sleep)
    else:
        ready.wait(cluster, [WORKLOAD], 60.0, clock=clock, sleep=clock.sleep)
    assert clock.now == ends
