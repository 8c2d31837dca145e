"""The operator with JobSets: the rig takes the roles of JobSet, the Job controller, the scheduler and the programs."""

from __future__ import annotations

from typing import Any

from spotladder.core.contract import ExitCode
from spotladder.resources import NODES, PODS
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, REPLICATED_JOB, RESTART_ATTEMPT
from tests.conformance.kubernetes import JOB, NAMESPACE, READY, KubernetesRig, annotations_of, asks_to_stop
from tests.kube.world import WORKERS
from tests.workloads.builders import jobset_template


class JobSetRig(KubernetesRig):
    """Without a head. A pod's identity is its place in the set, and a lost pod restarts the whole set."""

    main = JOBSETS

    def workload(self) -> dict[str, Any]:
        return {"workload": {"jobSet": {"template": jobset_template()}}}

    async def _play(self) -> None:
        """Act as JobSet, as the garbage collector, and as programs that stop after a notice."""
        jobsets = {
            found["metadata"]["name"]: found
            async for page in self._here.client.pages(JOBSETS, NAMESPACE)
            for found in page.items
            if "deletionTimestamp" not in found["metadata"]
        }
        for name in sorted(jobsets.keys() - self._started):
            await self._restarted(name, 0)
            await self._create_pods(jobsets[name], 0)
        for name in self._started - jobsets.keys():
            await self._here.collect(int(name[-3:]))
        self._started = set(jobsets)
        for name in jobsets:
            pods = await self._here.pods(int(name[-3:]))
            noticed = [pod for pod in pods if asks_to_stop(annotations_of(pod).get(names.NOTICE, ""))]
            if len(noticed) == len(pods) and all(pod["status"].get("phase") == "Running" for pod in noticed):
                await self._exit(int(name[-3:]), ExitCode.INTERRUPTED)

    async def _restarted(self, name: str, restarts: int) -> None:
        body = {"status": {"restarts": restarts}}
        await self._here.client.merge(JOBSETS, name, NAMESPACE, body=body, subresource="status")

    async def _create_pods(self, jobset: dict[str, Any], restart: int, *, run: bool = False) -> None:
        name = jobset["metadata"]["name"]
        template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        own, gates = template["metadata"]["labels"], template["spec"].get("schedulingGates")
        for index in range(WORKERS):
            labels = {
                **own,
                REPLICATED_JOB: "workers",
                JOB_INDEX: "0",
                COMPLETION_INDEX: str(index),
                RESTART_ATTEMPT: str(restart),
            }
            pod = f"{name}-workers-0-{index}-{restart}"
            spec: dict[str, Any] = {"containers": [{"name": "train", "image": "train"}]}
            if gates:
                spec["schedulingGates"] = gates
            if run:
                spec["nodeName"] = await self._here.node(f"{pod}-node")
            metadata = {"name": pod, "namespace": NAMESPACE, "labels": labels}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await self._here.client.create(PODS, body)
            if run:
                await self._here.set_pod(pod, phase="Running", conditions=READY)

    async def _exit(self, number: int, code: int) -> None:
        state = {"terminated": {"exitCode": int(code), "reason": "Error" if code else "Completed"}}
        container = {"name": "train", "image": "train", "imageID": "", "ready": False, "restartCount": 0}
        for pod in await self._here.pods(number):
            await self._here.set_pod(
                pod["metadata"]["name"],
                phase="Failed" if code else "Succeeded",
                containerStatuses=[{**container, "state": state}],
            )
        condition = {"type": "Failed" if code else "Completed", "status": "True"}
        name = names.attempt_name(JOB, number)
        body = {"status": {"conditions": [condition]}}
        await self._here.client.merge(JOBSETS, name, NAMESPACE, body=body, subresource="status")

    def kill_worker(self, uid: str) -> None:
        """Delete the node of the pod at this place. JobSet deletes the other pods and creates the set again."""

        async def gone() -> None:
            for name in self._started:
                pods = await self._here.pods(int(name[-3:]))
                lost = next(
                    pod
                    for pod in pods
                    if f"{names.attempt_name(JOB, int(name[-3:]))}-{uid}-0" == pod["metadata"]["name"]
                )
                await self._here.client.delete(NODES, lost["spec"]["nodeName"])
                for pod in pods:
                    if pod is not lost:
                        await self._here.client.delete(PODS, pod["metadata"]["name"], NAMESPACE, grace=0)
                await self._restarted(name, 1)
                await self._create_pods(await self._here.client.get(JOBSETS, name, NAMESPACE), 1, run=True)

        self._run(gone())

    def let_program_end(self, number: int) -> None:
        self._run(self._exit(number, 0))
