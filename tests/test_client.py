"""The Python client without a cluster; tests/kube has the rest."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from spotladder.client import Jobs


def test_a_signal_ends_the_call_that_waits(tmp_path: Path) -> None:
    """As Ctrl-C in a notebook, or the signal by which a workflow engine cancels a task."""
    cluster, context = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}, {"cluster": "c", "user": "u"}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"clusters": [cluster], "users": [user], "contexts": [{"name": "c", "context": context}]}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({**config, "current-context": "c"}))
    ended = []

    async def waiting() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("waiting")

    with pytest.raises(KeyboardInterrupt), Jobs(kubeconfig=str(kubeconfig)) as jobs:
        jobs._run(waiting())
    assert ended == ["waiting"]
