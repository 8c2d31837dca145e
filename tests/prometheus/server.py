"""A real Prometheus, and promtool."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.absent import absent
from tests.kube.apiserver import find
from tests.kube.world import eventually
from tests.ports import free_port


def program(name: str) -> str:
    """The path of prometheus or promtool. Without it the test is skipped."""
    found = find(name)
    if found is None:
        absent(f"not found: {name} (`make prometheus` builds it)", "prometheus")
    return found


def promtool(*arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [program("promtool"), *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)


class Prometheus:
    """The HTTP API of one Prometheus."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def ready(self) -> bool:
        try:
            async with self._session.get(f"{self._url}/-/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False

    async def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the API. Fails with the error of a query that is refused."""
        async with self._session.get(f"{self._url}/api/v1/{path}", params=parameters) as answer:
            found = await answer.json()
        assert found["status"] == "success", (parameters, found)
        return found["data"]

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of the result."""
        found: list[dict[str, Any]] = (await self.get("query", query=expression))["result"]
        return found


@asynccontextmanager
async def prometheus(folder: Path, target: str, rules: Sequence[dict[str, Any]]) -> AsyncIterator[Prometheus]:
    """A Prometheus that scrapes the target (host:port) and evaluates the groups of rules, both each second."""
    rule_file, config = folder / "rules.yaml", folder / "prometheus.yaml"
    rule_file.write_text(json.dumps({"groups": list(rules)}), encoding="utf-8")
    scrape = {"job_name": "spotladder", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    each = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    said = {"global": each, "rule_files": [str(rule_file)], "scrape_configs": [scrape]}
    config.write_text(json.dumps(said), encoding="utf-8")
    listen = f"127.0.0.1:{free_port()}"
    log = (folder / "prometheus.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}", stdout=log, stderr=log,
    )  # fmt: skip
    log.close()
    try:
        async with aiohttp.ClientSession() as session:
            server = Prometheus(session, f"http://{listen}")

            async def ready() -> bool:
                assert process.returncode is None, (folder / "prometheus.log").read_text(encoding="utf-8")
                return await server.ready()

            await eventually(ready)
            yield server
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
