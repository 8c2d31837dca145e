"""The definitions are upgraded and rolled back on a real API server while a job trains."""

from __future__ import annotations

from typing import Any

from spotladder.api.crds import crds
from spotladder.resources import TIEREDJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.world import CRDS, KubeWorld, eventually, world

VALUE = {"seconds": 1.5}


async def define(kube: KubeWorld, *, later: bool) -> None:
    """Apply this version's definition of TieredJobs, or that of a later version: spec and status have a field more."""
    crd: dict[str, Any] = next(crd for crd in crds() if crd["spec"]["names"]["kind"] == TIEREDJOBS.kind)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    field = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    if later:
        schema["spec"]["properties"] |= {"laterField": field, "laterDefault": {**field, "default": VALUE}}
        schema["status"]["properties"]["laterField"] = field
    await kube.client.apply(CRDS, crd, force=True)

    async def served() -> bool:
        return ("laterDefault" in (await kube.job())["spec"]) is later

    await eventually(served)


async def test_a_job_trains_while_the_definition_gets_fields_and_loses_them_again(api_server: ApiServer) -> None:
    """A stored object of the later definition is read with the older one, too."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        try:
            await define(kube, later=True)
            await kube.patch(laterField=VALUE)
            stored = {"status": {"laterField": VALUE}}
            await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body=stored, subresource="status")
            kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
            await kube.fall_back()
            kube.bucket.commit(kube.namespace, "digits", attempt=2, step=80)
            job = await kube.job()
            assert (job["spec"]["laterField"], job["status"]["laterField"]) == (VALUE, VALUE), "the controller keeps it"
        finally:
            await define(kube, later=False)
        job = await kube.job()
        assert "laterField" not in job["spec"] | job["status"], "pruned, as the older definition lacks it"
        await kube.kill_worker(2)
        await kube.kill_worker(2)
        await eventually(lambda: kube.is_on("on-demand", 3))
        await kube.collect(2)
        await kube.begin(3, "on-demand")
        await kube.succeed(3)
        ended = [attempt["reason"] for attempt in (await kube.status())["attempts"]]
        assert ended == ["MaxFailuresExceeded", "MaxFailuresExceeded", "Completed"]
