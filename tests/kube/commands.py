"""Runs `spotladder` commands in a thread, so that the test's event loop continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from spotladder.cli.main import main
from spotladder.resources import TIEREDJOBS
from tests.cli.terminal import Answer
from tests.kube.world import KubeWorld

Cli = Callable[..., Coroutine[Any, Any, Answer]]


def commands(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command and returns its output."""

    async def run(*arguments: object) -> Answer:
        code = await asyncio.to_thread(main, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


async def set_status(kube: KubeWorld, **status: Any) -> None:
    """Write the status of a TieredJob, as a controller would."""
    await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body={"status": status}, subresource="status")
