"""A controller as a separate process, with its logs and its endpoints."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp

from tests.kube.apiserver import ApiServer
from tests.kube.world import eventually


class Process:
    """One controller. `lines` are its log lines so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[dict[str, Any]] = []
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, server: ApiServer, config: Path) -> Process:
        """A controller of this API server with these settings."""
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "spotladder.cli.main", "controller", "--config", str(config),
                "--kubeconfig", str(server.kubeconfig),
                stderr=asyncio.subprocess.PIPE,
            )
        )  # fmt: skip

    async def _read(self) -> None:
        assert self._process.stderr
        async for line in self._process.stderr:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.lines.append({"event": line.decode(errors="replace")})

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    async def wait_for(self, event: str, limit: float = 60.0) -> dict[str, Any]:
        async def logged() -> list[dict[str, Any]]:
            assert self._process.returncode is None or self.logged(event), self.lines
            return self.logged(event)

        return dict((await eventually(logged, limit=limit))[0])

    async def get(self, path: str) -> tuple[int, str]:
        port = (await self.wait_for("started"))["port"]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, await answer.text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        return await self._process.wait()

    async def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading
