"""Program output is stored beside the commit log, and `spotladder logs` prints it after the pods are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.outputs import Output, kept, read
from spotladder.checkpoints.store import folder_of
from spotladder.core.diagnosis.verdict import SILENT_STALLS
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.kubelet import dashboard
from tests.kube.world import KubeWorld, eventually, world

FAILED = """\
Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):
step 40
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIxK7MDENG
Traceback (most recent call last):
  File "/app/train.py", line 31, in <module>
    raise ValueError("no data")
ValueError: no data
"""


def stored(kube: KubeWorld) -> dict[Output, str]:
    """The stored output of all jobs with this name."""
    texts: dict[Output, str] = {}
    everything = folder_of(kube.bucket.store, "digits/outputs")
    for uid in sorted({meta.key.partition("/")[0] for meta in everything.list("")}):
        folder = folder_of(everything, uid)
        found = kept(folder)
        texts |= dict(zip(found, read(folder, found), strict=True))
    return texts


async def running(kube: KubeWorld, folder: Path) -> None:
    kube.bucket.store = DiskStore(folder)  # type: ignore[assignment]
    await kube.submit(checkpoints={"uri": f"file://{folder}"})
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))


async def no_pods(kube: KubeWorld) -> bool:
    return not [pod for pod in await kube.pods(1) if "deletionTimestamp" not in pod["metadata"]]


async def test_the_error_and_the_output_of_a_failed_program_are_kept(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube, tmp_path)
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=FAILED)
        await kube.idle()
        await kube.pass_time(11)
        await eventually(lambda: kube.has_phase("Failed"))
        message = "Job entrypoint command failed with exit code 1: ValueError: no data (train.py:31)"
        assert (await kube.condition("Completed"))["message"] == f"{message}; nothing was committed"

        async def done() -> bool:
            return bool(stored(kube)) and await no_pods(kube)

        await eventually(done)
        (text,) = stored(kube).values()
        assert text == FAILED.partition("\n")[2].replace("wJalrXUtnFEMIxK7MDENG", "[redacted]")
        await kube.collect(1)

        answer = await cli("logs", "digits", "--tail", 1, "-n", kube.namespace)
        assert (answer.code, answer.out) == (0, "ValueError: no data\n")
        uid = (await kube.job())["metadata"]["uid"]
        assert answer.err.splitlines()[1:] == [
            "the pods of the attempt are gone", f"stored output from file://{tmp_path}/digits/outputs/{uid}",
        ]  # fmt: skip
        ended = await cli("watch", "digits", "-n", kube.namespace)
        assert ended.out.splitlines()[-1] == f"tieredjob digits is Failed: {message}"


async def test_a_program_without_commits_lives_while_its_output_grows(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(api_server) as kube, dashboard() as (ray, address, port), kube.operator():
        monkeypatch.setattr("spotladder.operator.storage.program_output.DASHBOARD", port)
        await running(kube, tmp_path)
        for pod in await kube.pods(1):
            await kube.set_pod(pod["metadata"]["name"], podIP=address, podIPs=[{"ip": address}])
        await kube.report(1, jobDeploymentStatus="Running", jobStatus="PENDING")
        limit = SILENT_STALLS * 600.0

        async def unused() -> bool:
            return str((await kube.condition("Checkpointing"))["reason"]) == "NoStartEntry"

        for epoch in range(8):
            ray.printed += f"epoch {epoch}\n"
            await kube.pass_time(limit / 3)
        await eventually(unused)
        assert await kube.has_phase("Running")

        async def ended() -> bool:
            if await kube.has_phase("Running"):
                await kube.pass_time(limit / 3)
            return "shows no sign of life" in str((await kube.job())["status"].get("message"))

        await eventually(ended, 300)
