"""A volume that the nodes of a tier cannot have: the job names the claim, and leaves the tier."""

from __future__ import annotations

from typing import Any

from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

STEPS = 200


def claim(e2e: E2eCluster, **volume: Any) -> Object:
    """Create the claim `data` with a volume of its own; returns the pod's volume."""
    name = f"{e2e.namespace}-data"
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    e2e.kube.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {"capacity": size, "claimRef": {"namespace": e2e.namespace, "name": "data"}, **common, **volume},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": e2e.namespace},
            "spec": {"volumeName": name, "resources": {"requests": size}, **common},
        },
    )
    return {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def test_a_volume_of_another_zone_leaves_the_tier(e2e: E2eCluster) -> None:
    e2e.pool("spot", 1)
    pool = e2e.pool("on-demand", 1)
    there = {"key": "pool", "operator": "In", "values": [pool]}
    volume = claim(
        e2e,
        local={"path": "/tmp"},  # noqa: S108 - a folder that every node has
        nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
    )
    alone = {"requests": {"cpu": "1200m", "memory": "256Mi"}}  # of two CPUs: a machine to itself
    pod = e2e.pod("256Mi", command=["python", "/programs/plain.py", "--steps", str(STEPS)], resources=alone)
    pod["volumes"].append(volume)
    pod["containers"][0]["volumeMounts"].append({"name": volume["name"], "mountPath": "/data"})
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    replicated = [{"name": "workers", "template": {"spec": job}}]
    workload = {"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}}
    e2e.submit({"name": "spot", "provisionTimeout": "15s"}, "on-demand", workload=workload)
    fits = "PodDoesNotFit"
    e2e.until("the job says that its volume is elsewhere", lambda: e2e.condition("Degraded").get("reason") == fits)
    message = e2e.condition("Degraded").get("message", "")
    print(message)
    assert "claim data" in message
    status = e2e.succeeds()
    assert e2e.path() == [("spot", fits), ("on-demand", "Completed")]
    assert status.get("failures", 0) == 0
    e2e.is_the_uninterrupted_result(steps=STEPS)
