"""User errors: each has its condition and its Event, no attempt is launched, and the job starts once it is
corrected."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.errors import StoreUnavailable
from spotladder.operator.storage.access import AccessDenied, Grant
from spotladder.resources import CAPACITYTIERS, SECRETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.kube.apiserver import ApiServer, tools
from tests.kube.world import CRDS, World, crd_files, eventually, install_kinds, ray_spec, world
from tests.workloads.builders import jobset_template

QUOTAS = APIResource("", "v1", "resourcequotas", "ResourceQuota")
ROLES = APIResource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = APIResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


async def message_of(here: World, kind: str, status: str, reason: str, name: str = "digits") -> str:
    """Wait until the condition has this status and reason, and its Event exists. Returns the condition's message."""

    async def condition() -> Any:
        found = await here.condition(kind, name)
        return (found.get("status"), found.get("reason")) == (status, reason) and found

    found = await eventually(condition)
    if reason not in ("Valid", "AsExpected"):

        async def reported() -> bool:
            return reason in await here.events(name)

        await eventually(reported)
    return str(found["message"])


async def test_an_unknown_capacity_tier_holds_the_job_until_it_exists(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("spot-a", "spot-b")) as here, here.operator():
        await here.submit()
        message = await message_of(here, "Valid", "False", "UnknownCapacityTier")
        assert "spec.tiers[2].capacityTier" in message
        assert await here.rayjobs() == []
        await here.capacity("on-demand", capacityType="on-demand")
        await eventually(lambda: here.rayjob(1))
        await message_of(here, "Valid", "True", "Valid")


async def test_the_message_of_an_invalid_spec_names_the_field(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(workload={"ray": {"template": {"spec": ray_spec(backoffLimit=3)}}})
        message = await message_of(here, "Valid", "False", "InvalidSpec")
        assert "spec.workload.ray.template.spec.backoffLimit" in message
        assert await here.rayjobs() == []
        await here.patch(workload={"ray": {"template": {"spec": {**ray_spec(), "backoffLimit": None}}}})
        await eventually(lambda: here.rayjob(1))


async def test_an_unknown_policy(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(policy={"name": "no-such"})
        assert "no-such" in await message_of(here, "Valid", "False", "InvalidSpec")


async def test_a_local_path_as_checkpoints_uri(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(checkpoints={"uri": "checkpoints"})
        message = await message_of(here, "Valid", "False", "InvalidSpec")
        assert "spec.checkpoints.uri" in message
        assert "file:///" in message
        assert await here.rayjobs() == []


async def test_an_unknown_cluster(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        name = await here.capacity("far", cluster="east")
        await here.submit(tiers=[{"name": "far", "capacityTier": name}])
        message = await message_of(here, "Valid", "False", "UnknownCluster")
        assert '"east"' in message
        assert "home" in message


async def test_of_two_jobs_with_one_checkpoint_folder_the_younger_waits(api_server: ApiServer) -> None:
    async with world(api_server) as here, world(api_server) as there:
        there.bucket = here.bucket
        tiers = [{"name": "spot-a", "capacityTier": f"{here.namespace}-spot-a"}]
        async with here.operator(), there.operator():
            await here.submit(tiers=tiers)
            await eventually(lambda: here.rayjob(1))
            here.bucket.commit(here.namespace, "digits", attempt=1, step=3)
            await there.submit(tiers=tiers)
            message = await message_of(there, "Valid", "False", "CheckpointsInUse")
            assert "belong to a job of another namespace" in message
            assert f"{here.namespace}/digits" not in message
            assert await there.rayjobs() == []


async def test_of_two_new_jobs_with_one_checkpoint_folder_only_one_starts(api_server: ApiServer) -> None:
    """Creation times have a resolution of one second: of two equal ones, the smaller uid counts as older."""
    async with world(api_server) as one, world(api_server) as two:
        await one.submit()
        await two.submit(tiers=[{"name": "a", "capacityTier": f"{one.namespace}-spot-a"}])
        async with one.operator(namespaces_=(one.namespace, two.namespace)):

            async def started() -> list[World]:
                return [here for here in (one, two) if await here.rayjobs()]

            (first,) = await eventually(started)
            second = two if first is one else one
            message = await message_of(second, "Valid", "False", "CheckpointsInUse")
            assert "is used by a TieredJob of another namespace" in message
            assert f"{first.namespace}/digits" not in message
            assert await second.rayjobs() == []
            await first.delete()
            await eventually(lambda: second.rayjob(1))


async def test_a_job_starts_once_kuberay_is_installed(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        for kind in ("rayjobs", "rayclusters"):
            await here.client.delete(CRDS, f"{kind}.ray.io")

        async def gone() -> bool:
            return not await here.client.exists(RAYJOBS)

        await eventually(gone)
        try:
            async with here.operator():
                await here.submit()
                message = await message_of(here, "Degraded", "True", "NotInstalled")
                assert "KubeRay is not installed" in message
                await here.pass_time(3600)  # Longer than any provisionTimeout: no tier is exhausted.
                assert await here.is_on("spot-a", 1)
                await install_kinds(api_server, crd_files()[-2:])
                await here.pass_time(60)

                async def launched() -> Any:
                    await here.clock.advance(5)
                    return await here.rayjob(1)

                await eventually(launched)
                await here.run(1)
                await message_of(here, "Degraded", "False", "AsExpected")
        finally:
            await install_kinds(api_server)


async def test_a_quota_that_forbids_the_rayjob_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        quota = {"count/rayjobs.ray.io": "0"}
        body = {"metadata": {"name": "none", "namespace": here.namespace}, "spec": {"hard": quota}}
        await here.client.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", **body})
        await here.client.merge(
            QUOTAS, "none", here.namespace, body={"status": {"hard": quota, "used": quota}}, subresource="status"
        )
        async with here.operator():
            await here.submit()
            message = await message_of(here, "Degraded", "True", "LaunchRefused")
            assert "exceeded quota" in message
            for _ in range(4):
                await here.pass_time(900)
            assert await here.is_on("spot-a", 1)
            await here.client.delete(QUOTAS, "none", here.namespace)

            async def launched() -> Any:
                await here.clock.advance(10)
                return await here.rayjob(1)

            await eventually(launched)
            await here.idle()
            assert await here.is_on("spot-a", 1)


async def test_a_foreign_rayjob_with_the_attempts_name(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        theirs = {"apiVersion": RAYJOBS.api_version, "kind": "RayJob", "spec": ray_spec(entrypoint="python other.py")}
        theirs["metadata"] = {"name": names.attempt_name("digits", 1), "namespace": here.namespace}
        await here.client.create(RAYJOBS, theirs)
        await here.submit()
        message = await message_of(here, "Degraded", "True", "NameTaken")
        assert "digits-a001" in message
        assert (await here.rayjob(1))["spec"]["entrypoint"] == "python other.py"


async def test_a_rayjob_that_kuberay_rejects_blocks_the_attempt(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await eventually(lambda: here.rayjob(1))
        await here.report(1, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no such field")
        message = await message_of(here, "Degraded", "True", "Blocked")
        assert "no such field" in message
        await here.pass_time(3600)
        assert await here.is_on("spot-a", 1)


async def test_a_rejected_rayjob_is_recreated_with_its_number_once_the_job_is_corrected(
    api_server: ApiServer,
) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        first = await eventually(lambda: here.rayjob(1))
        await here.report(1, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no such field")
        await message_of(here, "Degraded", "True", "Blocked")
        await here.pass_time(60)  # The invalid object is not created again repeatedly.
        assert (await here.rayjob(1))["metadata"]["uid"] == first["metadata"]["uid"]
        await here.patch(workload={"ray": {"template": {"spec": ray_spec(entrypoint="python right.py")}}})

        async def recreated() -> bool:
            return (await here.rayjob(1))["spec"]["entrypoint"] == "python right.py"

        await eventually(recreated)
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        status = await here.status()
        assert (status["attempt"], status["failures"]) == (1, 0)
        await message_of(here, "Degraded", "False", "AsExpected")


async def test_a_rejected_rayjob_is_deleted_when_its_job_is_suspended(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await eventually(lambda: here.rayjob(1))
        await here.report(1, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no such field")
        await message_of(here, "Degraded", "True", "Blocked")
        await here.patch(suspend=True)
        await eventually(lambda: here.has_phase("Suspended"))

        async def gone() -> bool:
            return await here.rayjobs() == []

        await eventually(gone)


async def test_an_image_that_cannot_be_pulled_exhausts_no_tier_and_stops_the_timer(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await eventually(lambda: here.rayjob(1))
        await here.pod(1, "head", 0)
        pods = [await here.pod(1, "worker", index, run=False) for index in range(2)]
        await here.report(1, jobDeploymentStatus="Initializing")
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "typo"'}
        status = {"name": "ray", "image": "ray", "imageID": "", "ready": False, "restartCount": 0}
        for pod in pods:
            await here.set_pod(pod, containerStatuses=[{**status, "state": {"waiting": waiting}}])
        message = await message_of(here, "Degraded", "True", "ImageUnavailable")
        assert "ImagePullBackOff" in message
        assert "typo" in message
        for _ in range(4):
            await here.pass_time(900)
        assert await here.is_on("spot-a", 1)
        for pod in pods:
            await here.set_pod(pod, containerStatuses=[{**status, "state": {"waiting": {"reason": "Starting"}}}])
        await message_of(here, "Degraded", "False", "AsExpected")
        await here.pass_time(500)  # The provisionTimeout is 600 s. The hour without the image does not count.
        assert await here.is_on("spot-a", 1)
        await here.pass_time(150)
        await eventually(lambda: here.is_on("spot-b", 2))


async def test_pods_that_a_quota_forbids_exhaust_no_tier(api_server: ApiServer) -> None:
    """KubeRay reports this on the RayCluster."""
    async with world(api_server) as here, here.operator():
        await here.submit()
        labels = (await eventually(lambda: here.rayjob(1)))["metadata"]["labels"]
        body = {"apiVersion": RAYCLUSTERS.api_version, "kind": "RayCluster", "spec": ray_spec()["rayClusterSpec"]}
        body["metadata"] = {"name": "digits-a001-x", "namespace": here.namespace, "labels": labels}
        await here.client.create(RAYCLUSTERS, body)
        try:
            await here.report(1, jobDeploymentStatus="Initializing")
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
            failure |= {"message": "pods is forbidden: exceeded quota", "lastTransitionTime": "2026-11-21T12:00:00Z"}
            await here.client.merge(
                RAYCLUSTERS, "digits-a001-x", here.namespace, body={"status": {"conditions": [failure]}},
                subresource="status",
            )  # fmt: skip
            assert "exceeded quota" in await message_of(here, "Degraded", "True", "QuotaExceeded")
            for _ in range(4):
                await here.pass_time(900)
            assert await here.is_on("spot-a", 1)
        finally:
            await here.client.delete(RAYCLUSTERS, "digits-a001-x", here.namespace)


async def test_pods_of_a_jobset_that_a_quota_forbids_exhaust_no_tier(api_server: ApiServer) -> None:
    """Kubernetes' job controller reports this in an Event about the Job, which has none of spotladder's labels."""
    (crd,) = (tools() / "crds" / "jobset").glob("*jobsets*.yaml")
    await install_kinds(api_server, [crd])
    try:
        async with world(api_server) as here, here.operator():
            await here.submit(workload={"jobSet": {"template": jobset_template()}})
            await eventually(lambda: here.client.get(JOBSETS, "digits-a001", here.namespace))
            acted = {"status": {"restarts": 0}}  # JobSet's controller has created the Job
            await here.client.merge(JOBSETS, "digits-a001", here.namespace, body=acted, subresource="status")
            job = {"name": "digits-a001-workers-0", "namespace": here.namespace, "uid": "of-the-job"}
            said = 'Error creating: pods "digits-a001-workers-0-0-x" is forbidden: exceeded quota: gpu'
            await here.record_event(
                "FailedCreate", said, about={"kind": "Job", "metadata": job}, source="job-controller"
            )
            assert "exceeded quota: gpu" in await message_of(here, "Degraded", "True", "QuotaExceeded")
            for _ in range(4):
                await here.pass_time(900)
            assert await here.is_on("spot-a", 1)
    finally:
        async with Client(connect(str(api_server.kubeconfig))) as client:
            await client.delete(CRDS, "jobsets.jobset.x-k8s.io")

            async def gone() -> bool:
                return not await client.exists(JOBSETS)

            await eventually(gone)


async def test_a_contradiction_with_a_later_tier_is_reported_early(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        zones = {"spec": {"extraSelectors": {"pool": "b"}}}
        await here.client.merge(CAPACITYTIERS, f"{here.namespace}-on-demand", body=zones)
        group = ray_spec()["rayClusterSpec"]["workerGroupSpecs"][0]
        group["template"] = {"spec": {**group["template"]["spec"], "nodeSelector": {"pool": "a"}}}
        spec = ray_spec()
        spec["rayClusterSpec"]["workerGroupSpecs"] = [group]
        await here.patch(workload={"ray": {"template": {"spec": spec}}}, updateStrategy="AtNextAttempt")
        message = await message_of(here, "Degraded", "True", "InvalidSpec")
        assert "tier on-demand" in message
        assert await here.has_phase("Running")  # It does not affect a running attempt.
        await here.client.merge(CAPACITYTIERS, f"{here.namespace}-on-demand", body={"spec": {"extraSelectors": None}})
        await message_of(here, "Degraded", "False", "AsExpected")


async def test_the_first_attempt_waits_until_the_owner_of_the_log_is_known(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        here.bucket.broken = StoreUnavailable("s3://bucket/prefix: no route")
        await here.submit()
        message = await message_of(here, "Degraded", "True", "StoreUnavailable")
        assert "no route; the first attempt waits until the owner of the log is known" in message
        assert await here.rayjobs() == []
        here.bucket.broken = None
        await here.clock.advance(120)
        await eventually(lambda: here.rayjob(1))
        await here.run(1)
        await message_of(here, "Degraded", "False", "AsExpected")


async def test_an_unreadable_bucket_is_reported_and_the_job_continues(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        here.bucket.broken = StoreUnavailable("s3://bucket/prefix: no route")
        await here.clock.advance(120)
        assert "no route" in await message_of(here, "Degraded", "True", "StoreUnavailable")
        # stallTimeout is 10 minutes: without the log the controller cannot tell whether the job makes progress.
        await here.pass_time(3600)
        assert await here.is_on("spot-a", 1)
        here.bucket.broken = None
        await here.clock.advance(120)
        await message_of(here, "Degraded", "False", "AsExpected")
        await here.pass_time(400)
        assert await here.is_on("spot-a", 1), "stallTimeout does not start again after the outage"


async def test_with_a_damaged_log_no_attempt_starts(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        CommitLog(here.bucket.store, "digits").store.put_if_absent("log/notes.txt", b"x")
        async with here.operator():
            await here.submit()
            assert "foreign object" in await message_of(here, "Valid", "False", "CheckpointsCorrupt")
            assert await here.rayjobs() == []


async def test_a_capacity_tier_deleted_while_in_use(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        await here.client.delete(CAPACITYTIERS, f"{here.namespace}-spot-a")
        assert "spot-a" in await message_of(here, "Degraded", "True", "CapacityTierGone")
        assert await here.has_phase("Running")
        await here.kill_worker(1)
        await here.kill_worker(1)
        await eventually(lambda: here.has_phase("Draining"))
        await here.collect(1)
        await eventually(lambda: here.is_on("spot-b", 2))


async def test_a_controller_without_permission_to_create_rayjobs(api_server: ApiServer) -> None:
    """The controller may read and write TieredJobs, and may not create RayJobs."""
    async with world(api_server) as here:
        rules = [
            {"apiGroups": ["spotladder.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": ["", "ray.io", "jobset.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
            {"apiGroups": ["policy"], "resources": ["*"], "verbs": ["*"]},
        ]
        role = {"apiVersion": ROLES.group + "/v1", "metadata": {"name": "limited"}}
        await here.client.apply(ROLES, {**role, "kind": "ClusterRole", "rules": rules}, force=True)
        reference = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": "limited"}
        subjects = [{"apiGroup": ROLES.group, "kind": "User", "name": "limited"}]
        binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
        await here.client.apply(BINDINGS, binding, force=True)
        async with Client(connect(str(api_server.kubeconfig_of("limited", "limited")))) as limited:
            async with here.operator(client=limited):
                await here.submit()
                assert "forbidden" in await message_of(here, "Degraded", "True", "LaunchRefused")
                await here.pass_time(3600)
                assert await here.is_on("spot-a", 1)
            await here.client.merge(ROLES, "limited", body={"rules": rules[:1] + rules[2:]})

            async def may_not_watch() -> bool:
                async with here.operator(client=limited):
                    await here.idle()
                    return (await here.condition("Degraded")).get("reason") == "CannotWatch"

            await eventually(may_not_watch)


@pytest.mark.parametrize("text", ["not json", '{"version": 99}'])
async def test_an_unreadable_state_is_kept(api_server: ApiServer, text: str) -> None:
    async with world(api_server) as here:
        await here.submit()
        body = {"status": {"state": text}}
        await here.client.merge(
            APIResource("spotladder.io", "v1alpha1", "tieredjobs", "TieredJob"), "digits", here.namespace, body=body,
            subresource="status",
        )  # fmt: skip
        async with here.operator():
            await message_of(here, "Valid", "False", "StateUnreadable")
            assert (await here.status())["state"] == text
            assert await here.rayjobs() == []


async def test_a_job_starts_once_the_credentials_secret_exists(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        uri = {"uri": "s3://bucket/prefix", "interval": "30s", "credentials": {"secretName": "bucket"}}
        await here.submit(checkpoints=uri)
        message = await message_of(here, "Degraded", "True", "ReferencesMissing")  # The pods would wait for it.
        assert f"namespace {here.namespace} lacks Secret bucket" in message
        assert f"Secret {here.namespace}/bucket does not exist" in message  # The log cannot be read either.
        assert await here.rayjobs() == []
        keys = {"AWS_ACCESS_KEY_ID": "who", "AWS_SECRET_ACCESS_KEY": "hidden"}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket", "namespace": here.namespace}}
        await here.client.create(SECRETS, {**body, "data": data})
        await here.run(1)
        await here.clock.advance(11)
        await message_of(here, "Degraded", "False", "AsExpected")
        assert here.bucket.opened[-1].grant == Grant(keys, isolated=True, secret=keys)


async def test_the_controllers_identity_is_used_only_for_listed_addresses(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        listed = [{"namespaces": [here.namespace], "uris": ["s3://bucket/team"]}]
        async with here.operator(checkpoint_access=()):
            await here.submit(checkpoints={"uri": "s3://bucket/team/x", "interval": "30s"})
            message = await message_of(here, "Valid", "False", "CheckpointsNotAllowed")
            assert message.startswith("spec.checkpoints.uri: ")
            assert "ask the administrator to add the address to the chart's checkpointAccess" in message
            assert await here.rayjobs() == []
            assert here.bucket.opened == []
        async with here.operator(checkpoint_access=listed):
            await here.run(1)
            assert (await here.condition("Valid"))["status"] == "True"
            await here.submit("other", checkpoints={"uri": "s3://bucket/team-b", "interval": "30s"})
            assert "allowed: s3://bucket/team" in await message_of(
                here, "Valid", "False", "CheckpointsNotAllowed", "other"
            )
            assert {address.job for address in here.bucket.opened} == {"digits"}


async def test_a_running_job_continues_without_access_to_its_bucket(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await here.submit()
            await here.run(1)
            await eventually(lambda: here.has_phase("Running"))
        async with here.operator(checkpoint_access=()):
            message = await message_of(here, "Degraded", "True", "CheckpointsNotAllowed")
            assert "the controller's own identity" in message
            assert (await here.condition("Checkpointing"))["status"] == "Unknown"
            assert await here.has_phase("Running")
            await here.pass_time(3600)
            assert await here.has_phase("Running")
        here.bucket.broken = AccessDenied("spec.checkpoints.credentials: AWS_ENDPOINT_URL leads to 169.254.169.254")
        async with here.operator():

            async def reported() -> bool:
                return "169.254.169.254" in (await here.condition("Degraded")).get("message", "")

            await eventually(reported)
            assert (await here.condition("Degraded"))["reason"] == "CheckpointsNotAllowed"
