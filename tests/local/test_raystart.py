"""The changed command of Ray's dashboard agent, and the commands that are not changed."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spotladder.local import idle_agent
from spotladder.local.raystart import AGENT_COMMAND, with_idle_agent
from tests.waiting import eventually


def started(command: list[str]) -> list[str]:
    """The command that Ray starts."""
    (seen,) = [with_idle_agent(lambda given, *_, **__: given)(command, "raylet", fate_share=False)]
    return list(seen)


def test_the_raylet_starts_the_idle_agent() -> None:
    agent = "python -u /ray/dashboard/agent.py --node-id=ab12 --session-dir=/s --listen-port=0 --head"
    raylet, first, last = started(["raylet", f"{AGENT_COMMAND}{agent}", "--labels={}"])
    assert (raylet, last) == ("raylet", "--labels={}")
    assert shlex.split(first.removeprefix(AGENT_COMMAND))[1:] == ["-I", "-S", idle_agent.__file__, "/s", "ab12"]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["gcs_server", "--log_dir=/tmp"], id="another process"),
        pytest.param(["raylet", f"{AGENT_COMMAND}python agent.py --node=ab12"], id="an agent with other arguments"),
    ],
)
def test_other_commands_are_not_changed(command: list[str]) -> None:
    assert started(command) == command


def test_the_idle_agent_opens_no_ports_and_ends_with_its_raylet(tmp_path: Path) -> None:
    agent = shlex.join([sys.executable, "-I", "-S", idle_agent.__file__, str(tmp_path), "ab12"])
    raylet = subprocess.Popen(["sh", "-c", f"{agent} & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert raylet.stdout is not None
    pid = int(raylet.stdout.readline())
    ports = {f"{port}_ab12" for port in idle_agent.PORTS}
    assert eventually(lambda: {file.name for file in tmp_path.iterdir()} == ports, 10)
    assert {file.read_text() for file in tmp_path.iterdir()} == {"-1"}
    os.kill(pid, 0)
    raylet.kill()
    raylet.wait()
    assert eventually(lambda: not running(pid), 10)


def running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


def parameters(call: Any) -> list[str]:
    return list(inspect.signature(call).parameters)


def test_ray_has_the_functions_that_are_replaced() -> None:
    from ray._private import node, services
    from ray.scripts import scripts

    assert parameters(scripts.get_ray_client_dependency_error) == []
    assert parameters(services.start_ray_process)[0] == "command"
    assert parameters(node.Node.start_log_monitor) == ["self"]
    assert parameters(node.Node.start_api_server)[0] == "self"
    assert AGENT_COMMAND in inspect.getsource(services.start_raylet)


def test_the_log_monitor_of_ray_can_run_in_a_thread() -> None:
    from ray._private import node
    from ray._private.log_monitor import LogMonitor, is_proc_alive

    required = ["self", "node_ip_address", "logs_dir", "gcs_client", "is_proc_alive_fn"]
    assert parameters(LogMonitor)[:4] == required[1:]
    assert "gcs_address" in parameters(LogMonitor)
    assert parameters(is_proc_alive) == ["pid"]
    assert {"node_ip_address", "get_logs_dir_path", "get_gcs_client", "gcs_address"} <= set(dir(node.Node))
    assert parameters(LogMonitor.run) == ["self"]
