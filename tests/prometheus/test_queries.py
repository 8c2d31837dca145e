"""A real Prometheus scrapes a real controller, evaluates the rules of the chart, and answers each query of the
dashboards."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from tests.charts.dashboards import DASHBOARDS
from tests.kube.apiserver import ApiServer
from tests.kube.test_processes import checkpoints_in, controllers
from tests.kube.world import KubeWorld, eventually, world
from tests.prometheus.rules import rule_groups
from tests.prometheus.server import Prometheus, program, prometheus, promtool


def queries(namespace: str, job: str) -> dict[str, str]:
    """The expressions of all panels, as Grafana sends them."""
    found = {}
    for board in DASHBOARDS:
        for panel in board.panels:
            for legend, query in panel.queries.items():
                values = {"namespace": namespace, "job": job, "__rate_interval": "1m"}
                found[f"{board.name}: {panel.title}: {legend}"] = Template(query).substitute(values)
    return found


async def without_result(server: Prometheus, namespace: str) -> list[str]:
    """The panels that query metrics which Prometheus has, and have no result. Fails if a query is refused."""
    known = set(await server.get("label/__name__/values"))
    empty = []
    for panel, query in queries(namespace, "digits").items():
        result = await server.query(query)
        asked = set(re.findall(r"spotladder_[a-z_]+", query))
        if asked <= known and not result:
            empty.append(panel)
    return empty


async def fallen_back(kube: KubeWorld, folder: Path) -> None:
    """A job with a budget, which has lost its nodes and runs on the second tier."""
    await kube.submit(checkpoints=checkpoints_in(folder), budget="100")
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    CommitLog(open_store(checkpoints_in(folder)["uri"]), "digits", namespace=kube.namespace).start(1, "")
    await kube.fall_back()


async def test_every_panel_and_every_rule_works_with_the_metrics_of_a_controller(
    api_server: ApiServer, tmp_path: Path
) -> None:
    program("prometheus")
    async with world(api_server) as kube, controllers(kube, 1, tmp_path) as (process,):
        await fallen_back(kube, tmp_path)
        linted = promtool("check", "metrics", text=(await process.get("/metrics"))[1])
        assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")
        port = (await process.wait_for("started"))["port"]
        async with prometheus(tmp_path, f"127.0.0.1:{port}", rule_groups(tmp_path)) as server:

            async def all_answered() -> bool:
                return bool(await server.query("spotladder_leading")) and not await without_result(
                    server, kube.namespace
                )

            try:
                await eventually(all_answered)
            except AssertionError:
                raise AssertionError(await without_result(server, kube.namespace)) from None
            known = set(await server.get("label/__name__/values"))
            for name in ("job_attempts", "job_budget_ratio", "fallbacks_total", "failures_total", "cost_usd_total"):
                assert f"spotladder_{name}" in known

            async def evaluated() -> bool:
                groups = (await server.get("rules"))["groups"]
                return all(rule["health"] == "ok" for group in groups for rule in group["rules"])

            await eventually(evaluated)
            for group in (await server.get("rules"))["groups"]:
                assert [rule.get("lastError", "") for rule in group["rules"]] == [""] * len(group["rules"])
