"""Sidecars on a real API server: it accepts the Jobs of their JobSets, whose CRD does not check the rules for failed
pods, and one that fails does not end the attempt."""

from __future__ import annotations

import pytest

from tests.kube.apiserver import ApiServer
from tests.kube.world import world
from tests.workloads.batch_job.kind import JOBS
from tests.workloads.builders import job, jobset_template
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
