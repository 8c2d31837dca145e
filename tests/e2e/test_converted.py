"""Jobs that `spotladder convert` has made of other systems' manifests train on real nodes.

The manifests are those of tests/conversion. Only what belongs to the place is replaced: images, resources, the program,
tiers and the bucket. The program is not Ray's, except where the job needs two Ray workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversion.sources import draft
from tests.e2e.image import pinned
from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

STEPS = 40
PLAIN = f"python /programs/plain.py --steps {STEPS} --pace 0.1"
RAY_TRAIN = f"python /programs/chain.py --steps {STEPS} --pace 0.1"

TOGETHER = {
    "Jobs": ("batch-plain", "batch-indexed", "batch-live", "batch-script"),
    "Kubeflow": ("pytorch-master-differs", "pytorch-elastic", "trainjob-runtime-elsewhere"),
    "others": ("jobset-failure-policy", "sky-cpu", "aichor-jax"),
    "Ray": ("ray-plain", "ray-head-only"),
}
"""Manifests whose jobs run at the same time."""


@pytest.mark.parametrize("names", TOGETHER.values(), ids=TOGETHER)
def test_converted_jobs_train_to_their_end(e2e: E2eCluster, names: tuple[str, ...]) -> None:
    e2e.pool("spot", 3)
    jobs = {name: placed(e2e, draft(name).job, name) for name in names}
    for job in jobs.values():
        e2e.kube.apply(job)
    for name in jobs:
        e2e.succeeds(name)
        e2e.is_the_uninterrupted_result(name, STEPS)
        assert e2e.path(name)[-1] == ("spot", "Completed")


def placed(e2e: E2eCluster, job: Object, name: str) -> Object:
    """The job with the images, programs, tiers and bucket of this cluster."""
    job["metadata"] = {"name": name, "namespace": e2e.namespace}
    spec = job["spec"]
    spec |= {"tiers": [e2e.tier("spot")], "checkpoints": e2e.checkpoints, "grace": "20s", "suspend": False}
    for pod in pods(spec["workload"]):
        given = e2e.pod("256Mi")
        pod.pop("serviceAccountName", None)
        pod["volumes"] = given["volumes"]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            env = container.get("env", [])
            container.update({**given["containers"][0], "name": container["name"]})
            container["env"] = [*env, *container["env"]]
        for container in pod.get("initContainers", ()):
            container["command"] = ["true"]
        for container in pod["containers"] if "jobSet" in spec["workload"] else ():
            run(container)
    if "ray" in spec["workload"]:
        ray(spec["workload"]["ray"]["template"]["spec"])
    return job


def run(container: Object) -> None:
    """The program instead of that of the manifest: by a shell if the manifest's is."""
    shell = container.get("command", [""])[0] in ("sh", "bash")
    container.pop("args", None)
    container["command"] = ["sh", "-c", PLAIN] if shell else PLAIN.split()


def ray(spec: Object) -> None:
    """A head without CPUs and workers with one each."""
    cluster, workers = spec["rayClusterSpec"], 0
    cluster["rayVersion"] = pinned("ray")
    head = cluster["headGroupSpec"]
    head["rayStartParams"] = {**head.get("rayStartParams", {}), "num-cpus": "0"}
    head["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
    for group in cluster.get("workerGroupSpecs", ()):
        group["rayStartParams"] = {"num-cpus": "1"}
        group["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "512Mi"}}
        workers += group["replicas"]
    spec["entrypoint"] = RAY_TRAIN if workers == 2 else PLAIN


def pods(value: Any) -> Iterator[Object]:
    """The specs of all pods in a workload."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)
