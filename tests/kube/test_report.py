"""`spotladder report` for a job of a cluster. It writes the same files as for a local run."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.display import report
from spotladder.resources import CAPACITYTIERS
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.world import KubeWorld, eventually, world

SCHEMA = json.loads((Path(report.__file__).parent / "schema.json").read_text(encoding="utf-8"))


async def walk(kube: KubeWorld, checkpoints: Path) -> None:
    """Run a job that commits on spot-a, loses two workers, and commits again on spot-b."""
    await kube.submit(checkpoints={"uri": checkpoints.as_uri(), "interval": "30s"})
    await kube.begin(1, "spot-a")
    await commit(kube, checkpoints, attempt=1, tier="spot-a", step=40, loss=2.0)
    await kube.pass_time(300)
    await kube.fall_back()
    await commit(kube, checkpoints, attempt=2, tier="spot-b", step=100, loss=0.5)


async def commit(kube: KubeWorld, checkpoints: Path, *, attempt: int, tier: str, step: int, loss: float) -> None:
    await kube.pass_time(300)
    uid = (await kube.job())["metadata"]["uid"]
    store = open_store(checkpoints.as_uri())
    log = CommitLog(store, "digits", namespace=kube.namespace, uid=uid, clock=kube.clock.now)
    log.start(attempt, tier).commit(step, [], total=100, metrics={"loss": loss})
    kube.bucket.commit(kube.namespace, "digits", attempt=attempt, step=step)
    await kube.pass_time(60)

    async def seen() -> bool:
        return ((await kube.status()).get("progress") or {}).get("step") == step

    await eventually(seen)


async def has_ended(kube: KubeWorld) -> bool:
    """Whether the Event of the end, which is written in the background, exists."""
    return "Completed" in await kube.events()


async def test_the_report_of_a_job_on_two_tiers(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    folder, checkpoints = tmp_path / "report", tmp_path / "checkpoints"
    async with world(api_server) as kube, kube.operator():
        await walk(kube, checkpoints)
        midway = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path / "midway", "-o", "json")
        assert (midway.code, midway.err) == (0, f"report: {tmp_path / 'midway' / 'report.html'}\n")
        assert json.loads(midway.out)["phase"] == "Running"
        assert '<span class="badge caution">Running</span>' in (tmp_path / "midway" / "report.html").read_text()

        await kube.succeed(2)
        await eventually(lambda: has_ended(kube))
        answer = await cli("report", "digits", "-n", kube.namespace, "--to", folder)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.splitlines()[-1] == f"report: {folder / 'report.html'}"
        status = await kube.status()

    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    found = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA)
    assert (found["job"], found["namespace"], found["phase"]) == ("digits", kube.namespace, "Succeeded")
    assert [(each["tier"], each["reason"], each["failures"]) for each in found["attempts"]] == [
        ("spot-a", "MaxFailuresExceeded", 2),
        ("spot-b", "Completed", 0),
    ]
    assert [(each["attempt"], each["step"]) for each in found["commits"]] == [(1, 40), (2, 100)]
    assert [point["loss"] for curve in found["loss"] for point in curve["points"]] == [2.0, 0.5]
    assert found["steps"] == {"reached": 100, "total": 100, "committed": 100, "recomputed": None}
    assert f"{found['cost']['paid']:.2f}" == status["cost"]["spent"]
    assert sum(each["cost"] for each in found["attempts"]) == pytest.approx(found["cost"]["paid"])
    assert [(each["tier"], each["attempt"]) for each in found["evictions"]] == [("spot-a", 1)] * 2
    assert found["time"]["total"] > 900


async def test_a_report_needs_no_access_to_the_log(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube, kube.operator():
        await walk(kube, tmp_path / "checkpoints")
        (tmp_path / "checkpoints").rename(tmp_path / "in-the-pods-only")
        answer = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path / "report")
    assert answer.code == 0
    uri = (tmp_path / "checkpoints").as_uri()
    assert answer.err.splitlines() == [
        f"warning: commits are missing: {uri}: no commits found from this machine",
    ]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["report.html", "report.json"]
    found = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (found["commits"], found["steps"]["reached"]) == ([], 100)
    assert found["gaps"][0].startswith("Without the commit log")


async def test_the_report_of_a_job_that_was_never_reconciled(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube:
        await kube.submit()
        answer = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path)
        assert (answer.code, answer.err) == (0, "")
        assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["attempts"] == []
        await kube.client.delete(CAPACITYTIERS, f"{kube.namespace}-spot-b")
        unseen = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path)
        missing = "he CapacityTiers of spot-b cannot be read: the tiers are shown as on-demand"
        assert unseen.err == f"warning: t{missing}\n"
        assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["gaps"] == [f"T{missing}."]
        (tmp_path / "file").touch()
        refused = await cli("report", "digits", "-n", kube.namespace, "--to", tmp_path / "file")
        assert refused.code == 5
        assert refused.err.splitlines()[-1] == (
            f"error: {tmp_path / 'file'}: cannot write the report: File exists; use another folder"
        )
