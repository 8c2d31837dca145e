"""Containers beside the program: one that fails does not touch training, one that never ends does not keep a job."""

from __future__ import annotations

from spotladder.workloads.program_container import DEFAULT_CONTAINER
from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

FAILS = "example.org/fails"
"""The annotation of a pod at which its log shipper fails."""

STEPS = 300


def sidecar(e2e: E2eCluster, script: str, **more: object) -> Object:
    return {
        "name": "shipper",
        "image": e2e.image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        **more,
    }


def pod_annotations() -> Object:
    """A volume with a file of the pod's annotations."""
    item = {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}
    return {"name": "pod", "downwardAPI": {"items": [item]}}


def test_the_second_container_of_a_ray_worker_fails_and_training_goes_on(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    spec = e2e.ray(f"chain.py --steps {STEPS}")
    pod = spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]
    script = f"until grep -q {FAILS} /pod/annotations; do sleep 1; done; exit 1"
    pod["containers"].append(sidecar(e2e, script, volumeMounts=[{"name": "pod", "mountPath": "/pod"}]))
    pod["volumes"].append(pod_annotations())
    e2e.submit({"name": "spot", "maxFailures": 0}, workload={"ray": {"template": {"spec": spec}}})
    e2e.runs("spot")
    failing = e2e.pods("worker")[0]["metadata"]["name"]
    e2e.kube.run("annotate", "pod", failing, f"{FAILS}=true")
    e2e.until(
        "the sidecar has failed, and the job says so",
        lambda: e2e.condition("Degraded").get("reason") == "SidecarFailed",
    )
    assert f"{failing}: container shipper ended with exit code 1" in e2e.condition("Degraded")["message"]
    status = e2e.succeeds()
    assert (status["attempt"], status.get("failures", 0)) == (1, 0)
    e2e.is_the_uninterrupted_result(steps=STEPS)


def test_a_sidecar_that_never_ends_does_not_keep_a_finished_jobset(e2e: E2eCluster) -> None:
    e2e.pool("spot", 1)
    pod = e2e.pod("256Mi", command=["python", "/programs/plain.py", "--steps", str(STEPS)])
    pod["containers"].insert(0, sidecar(e2e, "sleep infinity"))
    template = {"metadata": {"annotations": {DEFAULT_CONTAINER: "program"}}, "spec": pod}
    job = {"name": "workers", "template": {"spec": {"parallelism": 1, "template": template}}}
    e2e.submit(
        {"name": "spot", "maxFailures": 0}, workload={"jobSet": {"template": {"spec": {"replicatedJobs": [job]}}}}
    )
    status = e2e.succeeds()
    assert (status["attempt"], status.get("failures", 0)) == (1, 0)
    assert e2e.path() == [("spot", "Completed")]
    e2e.until("its pods are gone", lambda: not e2e.kube.list("pods", "spotladder.io/job=job"))
    e2e.is_the_uninterrupted_result(steps=STEPS)
    e2e.until("the output of its program is kept", lambda: e2e.printed(1))
    assert e2e.printed(1)["workers-0-0"].splitlines()[-1].endswith(f" of {STEPS} steps")
