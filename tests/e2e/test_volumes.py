"""Volumes that the nodes of a tier cannot have: the job names the claim, and only a misfit is a fault of the tier."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.e2e.kube import Kube, Object
from tests.e2e.world import E2eCluster

DRIVER = "disks.example.org"
"""A CSI driver whose volumes are attached to one node. The test itself is its attacher."""

STEPS = 200
PROVISION_TIMEOUT = 15.0
"""provisionTimeout of the tier whose pods wait for a volume, in seconds."""


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


def workload(e2e: E2eCluster, workers: int, volume: Object | None) -> Object:
    """A JobSet with this number of workers, each with a node of its own, which mount the volume."""
    alone = {"requests": {"cpu": "1200m", "memory": "256Mi"}}
    pod = e2e.pod("256Mi", command=["python", "/programs/plain.py", "--steps", str(STEPS)], resources=alone)
    if volume is not None:
        pod["volumes"].append(volume)
        pod["containers"][0]["volumeMounts"].append({"name": volume["name"], "mountPath": "/data"})
    job = {"parallelism": workers, "completions": workers, "template": {"spec": pod}}
    return {"jobSet": {"template": {"spec": {"replicatedJobs": [{"name": "workers", "template": {"spec": job}}]}}}}


def attach_to_the_first_node(kube: Kube, volume: str) -> bool:
    """What the driver's attacher does with a disk that one node may have."""
    found = [one for one in kube.list("volumeattachments") if one["spec"]["attacher"] == DRIVER]
    mine = [one for one in found if one["spec"]["source"].get("persistentVolumeName") == volume]
    if not mine:
        return False
    body = json.dumps({"status": {"attached": True}})
    kube.run(
        "patch", "volumeattachment", mine[0]["metadata"]["name"], "--subresource=status", "--type=merge", "-p", body
    )
    return True


def test_a_volume_that_another_node_has_is_no_lack_of_capacity(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    driver = {"attachRequired": True, "podInfoOnMount": False}
    e2e.kube.apply(
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": driver}
    )
    volume = claim(e2e, csi={"driver": DRIVER, "volumeHandle": f"{e2e.namespace}-1"})
    tiers = ({"name": "spot", "provisionTimeout": f"{PROVISION_TIMEOUT:g}s"}, "on-demand")
    e2e.submit(*tiers, workload=workload(e2e, 2, volume))
    e2e.until("the disk is attached to a node", lambda: attach_to_the_first_node(e2e.kube, f"{e2e.namespace}-data"))

    def said() -> list[str]:
        """The claim's problems that the job has named. The first pod has another one than the second: no node has the
        driver."""
        found = e2e.kube.list("events")
        return [str(event.get("message")) for event in found if event["reason"] == "VolumeUnavailable"]

    multi_attach = "claim data: Multi-Attach error"
    message = e2e.until("the second node cannot have the disk", lambda: [m for m in said() if multi_attach in m])[0]
    assert "ReadWriteMany" in message
    time.sleep(PROVISION_TIMEOUT + 5)
    assert (e2e.status()["tier"], e2e.status()["attempt"]) == ("spot", 1)
    assert e2e.condition("Degraded").get("reason") == "VolumeUnavailable"

    e2e.submit(*tiers, workload=workload(e2e, 2, None))  # The remedy: data that all pods need is not on this disk.
    status = e2e.succeeds()
    assert (e2e.path()[-1], status.get("failures", 0)) == (("spot", "Completed"), 0)
    e2e.is_the_uninterrupted_result(steps=STEPS)


def test_a_volume_of_another_zone_leaves_the_tier(e2e: E2eCluster) -> None:
    e2e.pool("spot", 1)
    pool = e2e.pool("on-demand", 1)
    there = {"key": "pool", "operator": "In", "values": [pool]}
    volume = claim(
        e2e,
        local={"path": "/tmp"},  # noqa: S108 - a folder that every node has
        nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
    )
    tiers = ({"name": "spot", "provisionTimeout": f"{PROVISION_TIMEOUT:g}s"}, "on-demand")
    e2e.submit(*tiers, workload=workload(e2e, 1, volume))
    fits = "PodDoesNotFit"
    e2e.until("the job says that its volume is elsewhere", lambda: e2e.condition("Degraded").get("reason") == fits)
    message = e2e.condition("Degraded").get("message", "")
    print(message)
    assert "claim data" in message
    status = e2e.succeeds()
    assert e2e.path() == [("spot", fits), ("on-demand", "Completed")]
    assert status.get("failures", 0) == 0
    e2e.is_the_uninterrupted_result(steps=STEPS)
