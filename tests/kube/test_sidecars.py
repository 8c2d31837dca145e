"""Sidecars on a real API server: it accepts the Jobs of their JobSets, whose CRD does not check the rules for failed
pods, and one that fails does not end the attempt."""

from __future__ import annotations

import pytest

from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import eventually, ray_spec, world
from tests.workloads.batch_job.kind import JOBS
from tests.workloads.builders import job, jobset_template, status, worker_spec
from tests.workloads.rendering import rendered


@pytest.mark.parametrize("pods", [1, 2])
async def test_the_job_of_a_set_with_sidecars_is_valid(api_server: ApiServer, pods: int) -> None:
    template = jobset_template()
    inner = template["spec"]["replicatedJobs"][0]["template"]["spec"]
    inner["parallelism"] = pods
    spec = inner["template"]["spec"]
    spec["containers"].append({"name": "shipper", "image": "example.org/shipper:1"})
    spec["initContainers"] = [
        {"name": "download", "image": "example.org/get:1"},
        {"name": "istio", "image": "example.org/istio:1", "restartPolicy": "Always"},
    ]
    (entry,) = rendered(job(template))["spec"]["replicatedJobs"]
    async with world(api_server) as kube:
        metadata = {"name": "digits", "namespace": kube.namespace}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": entry["template"]["spec"]}
        made = await kube.client.create(JOBS, body)
        assert len(made["spec"]["podFailurePolicy"]["rules"]) == 5


async def test_the_second_container_of_a_ray_worker_fails_and_training_goes_on(api_server: ApiServer) -> None:
    spec = ray_spec()
    worker_spec({"spec": spec})["containers"].append({"name": "shipper", "image": "example.org/shipper:1"})
    async with world(api_server) as kube, kube.operator():
        await kube.submit(workload={"ray": {"template": {"spec": spec}}})
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        pod = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        program = pod["spec"]["containers"][0]["name"]
        containers = [
            {"image": "x", "imageID": "", "restartCount": 0, **entry}
            for entry in (status(program), status("shipper", 1))
        ]
        unready = [
            {"type": kind, "status": "False" if kind != "PodScheduled" else "True"}
            for kind in ("PodScheduled", "Ready", "ContainersReady")
        ]
        await kube.set_pod(pod["metadata"]["name"], conditions=unready, containerStatuses=containers)
        message = await message_of(kube, "Degraded", "True", "SidecarFailed")
        assert pod["metadata"]["name"] in message
        await kube.pass_time(300)
        found = await kube.status()
        assert (found["phase"], found["attempt"], found.get("failures", 0)) == ("Running", 1, 0)
