"""The records of a job of a cluster: a controller writes them, and `report` and `sim replay` read nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from spotladder.checkpoints.open_store import open_store
from spotladder.display import report
from spotladder.resources import CAPACITYTIERS
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.world import KubeWorld, eventually, world

SCHEMA = json.loads((Path(report.__file__).parent / "schema.json").read_text(encoding="utf-8"))


async def walk(kube: KubeWorld, checkpoints: Path) -> None:
    """Run a job that commits on spot-a, loses two workers, and commits again on spot-b."""
    kube.bucket.store = open_store(checkpoints.as_uri())  # type: ignore[assignment]
    await kube.submit(checkpoints={"uri": checkpoints.as_uri(), "interval": "30s"})
    await kube.begin(1, "spot-a")
    await commit(kube, attempt=1, step=40, loss=2.0)
    await kube.pass_time(300)
    await kube.fall_back()
    await commit(kube, attempt=2, step=100, loss=0.5)


async def commit(kube: KubeWorld, *, attempt: int, step: int, loss: float) -> None:
    await kube.pass_time(300)
    kube.bucket.commit(kube.namespace, "digits", attempt=attempt, step=step, metrics={"loss": loss})
    await kube.pass_time(60)

    async def seen() -> bool:
        return ((await kube.status()).get("progress") or {}).get("step") == step

    await eventually(seen)


async def test_the_report_of_a_job_on_two_tiers(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    folder, checkpoints = tmp_path / "report", tmp_path / "checkpoints"

    async def reported() -> bool:
        answer = await cli("report", "digits", "-n", kube.namespace, "-o", "json")
        return answer.code == 0 and json.loads(answer.out)["outcome"]["exitCode"] == 0

    async with world(api_server) as kube, kube.operator():
        await walk(kube, checkpoints)
        midway = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path / "midway", "-o", "json")
        assert (midway.code, midway.err) == (0, f"report: {tmp_path / 'midway' / 'report.html'}\n")
        assert json.loads(midway.out)["phase"] == "Running"
        assert '<span class="badge caution">Running</span>' in (tmp_path / "midway" / "report.html").read_text()

        await kube.succeed(2)
        await eventually(reported)
        status = await kube.status()
        for tier in ("spot-a", "spot-b"):
            await kube.client.delete(CAPACITYTIERS, f"{kube.namespace}-{tier}")
        answer = await cli("report", "digits", "-n", kube.namespace, "--to", folder)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.splitlines()[-1] == f"report: {folder / 'report.html'}"

    found = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA)
    assert (found["job"], found["namespace"], found["phase"]) == ("digits", kube.namespace, "Succeeded")
    assert [(each["tier"], each["reason"], each["failures"]) for each in found["attempts"]] == [
        ("spot-a", "MaxFailuresExceeded", 2),
        ("spot-b", "Completed", 0),
    ]
    assert [(each["attempt"], each["step"]) for each in found["commits"]] == [(1, 40), (2, 100)]
    assert [point["loss"] for curve in found["loss"] for point in curve["points"]] == [2.0, 0.5]
    assert (found["steps"]["reached"], found["steps"]["total"], found["steps"]["committed"]) == (100, 100, 100)
    assert f"{found['cost']['paid']:.2f}" == status["cost"]["spent"]
    assert sum(each["cost"] for each in found["attempts"]) == pytest.approx(found["cost"]["paid"])
    assert [(each["tier"], each["attempt"]) for each in found["evictions"]] == [("spot-a", 1)] * 2
    assert found["time"]["total"] > 900


async def test_records_outlive_the_job_and_its_policy_decides_again_as_recorded(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    checkpoints = tmp_path / "checkpoints"

    async with world(api_server) as kube:
        async with kube.operator():
            await walk(kube, checkpoints)
        async with kube.operator():  # another controller continues the records
            await kube.succeed(2)
            await eventually(lambda: kube.has_phase("Succeeded"))
            await kube.delete()
            for number in (1, 2):
                await kube.collect(number)
            await eventually(kube.is_gone)
        folder = checkpoints / "digits"
        again = await cli("sim", "replay", folder)
        assert (again.code, again.err) == (0, "")
        dear = json.loads((await cli("sim", "replay", folder, "--policy", "on-demand", "-o", "json")).out)
        assert dear["policies"][0]["decisions"] > 10
        found = json.loads((await cli("report", folder, "-o", "json")).out)
    assert (found["phase"], found["sessions"], found["gaps"]) == ("Succeeded", 1, [])
