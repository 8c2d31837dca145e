"""The changed command of Ray's dashboard agent, the commands that are not changed, and what spotladder uses of Ray's
nodes without a public API: functions, files, variables and paths.

`make test-ray RAY=…` runs this with other versions of Ray.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.elastic import NOTICES_BY_RAY, RANK_POLLS
from spotladder.local import idle_agent
from spotladder.local.nodes import _RAY
from spotladder.local.raystart import AGENT_COMMAND, with_idle_agent
from spotladder.output.stacks import WITH_ALL_STACKS
from tests.golden.test_attempts import as_yaml, full_attempt, plain_attempt
from tests.waiting import eventually

READERS = {
    "DASHBOARD_METRIC_PORT": "dashboard/consts.py",
    "RAY_CHDIR_TO_TRIAL_DIR": "train/constants.py",
    "RAY_DEDUP_LOGS_ALLOW_REGEX": "_private/ray_constants.py",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "_private/ray_constants.py",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "_private/ray_constants.py",
    "RAY_NUM_REDIS_GET_RETRIES": "_private/ray_constants.py",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "train/v2/_internal/constants.py",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "train/v2/_internal/constants.py",
    "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "train/v2/_internal/constants.py",
    "RAY_USAGE_STATS_ENABLED": "_common/usage/usage_constants.py",
    "RAY_health_check_failure_threshold": "core/src/ray/gcs/gcs_server",
    "RAY_health_check_period_ms": "core/src/ray/gcs/gcs_server",
    "RAY_health_check_timeout_ms": "core/src/ray/gcs/gcs_server",
    "RAY_prestart_worker_first_driver": "core/src/ray/raylet/raylet",
    "REPORTER_UPDATE_INTERVAL_MS": "dashboard/modules/reporter/reporter_consts.py",
}
"""Each environment variable that spotladder sets for Ray, and the file of Ray that reads it. Ray ignores other
variables without a message."""

SERVERS = {
    "/api/gcs_healthz": "dashboard/modules/reporter/reporter_head.py",
    "/api/job_agent/jobs/": "dashboard/modules/job/job_agent.py",
    "/api/local_raylet_healthz": "dashboard/modules/reporter/healthz_agent.py",
}
"""Each path of the probes and of the local runner's requests, and the file of Ray that answers it."""


def started(command: list[str]) -> list[str]:
    """The command that Ray starts."""
    (seen,) = [with_idle_agent(lambda given, *_, **__: given)(command, "raylet", fate_share=False)]
    return list(seen)


def test_the_raylet_starts_the_idle_agent() -> None:
    agent = "python -u /ray/dashboard/agent.py --node-id=ab12 --session-dir=/s --listen-port=0 --head"
    raylet, first, last = started(["raylet", f"{AGENT_COMMAND}{agent}", "--labels={}"])
    assert (raylet, last) == ("raylet", "--labels={}")
    assert shlex.split(first.removeprefix(AGENT_COMMAND))[1:] == ["-I", "-S", idle_agent.__file__, "/s", "ab12"]


def test_other_commands_are_not_changed() -> None:
    command = ["gcs_server", "--log_dir=/tmp"]
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


def test_ray_looks_replaced_functions_up_where_they_are_replaced() -> None:
    from ray._private import node, services
    from ray.scripts import scripts

    assert "get_ray_client_dependency_error" in inspect.unwrap(scripts.start.callback).__code__.co_names
    assert "start_ray_process" in services.start_raylet.__code__.co_names
    methods = [method for method in vars(node.Node).values() if inspect.isfunction(method)]
    for name in ("start_api_server", "start_log_monitor"):
        assert any(name in method.__code__.co_names for method in methods if method.__name__ != name)


def test_the_idle_agent_writes_the_files_of_rays_own_agent(tmp_path: Path) -> None:
    from ray import _raylet

    node = "ab" * 28
    for name in ("METRICS_AGENT_PORT_NAME", "METRICS_EXPORT_PORT_NAME", "DASHBOARD_AGENT_LISTEN_PORT_NAME"):
        _raylet.persist_port(str(tmp_path), node, getattr(_raylet, name), -1)  # type: ignore[attr-defined]
    files = {f"{port}_{node}": "-1" for port in idle_agent.PORTS}
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == files


def in_rendered_attempts(pattern: str) -> set[str]:
    text = as_yaml(plain_attempt("rayjob") + full_attempt("rayjob"))
    return set(re.findall(pattern, text))


def test_every_variable_for_ray_has_a_reader() -> None:
    rendered = in_rendered_attempts(r"- name: (RAY_\w+)")
    assert {*_RAY, *NOTICES_BY_RAY, *RANK_POLLS, *rendered} == READERS.keys()


def test_every_path_of_a_probe_has_a_server() -> None:
    assert in_rendered_attempts(r"path: (/api/\w+)") == SERVERS.keys() - {"/api/job_agent/jobs/"}


NAMED = {**READERS, **{f'"{path}"': file for path, file in SERVERS.items()}}


@pytest.mark.parametrize("file", sorted(set(NAMED.values())))
def test_ray_has_the_variables_and_paths(file: str) -> None:
    ray = find_spec("ray")
    assert ray is not None
    (folder,) = ray.submodule_search_locations or [""]
    content = (Path(folder) / file).read_bytes()
    names = [name for name, named in NAMED.items() if named == file]
    assert [name for name in names if not re.search(rb"(?<!\w)" + name.encode() + rb"(?!\w)", content)] == []


def test_the_log_monitor_of_ray_can_run_in_a_thread() -> None:
    from ray._private import node
    from ray._private.log_monitor import LogMonitor, is_proc_alive

    required = ["self", "node_ip_address", "logs_dir", "gcs_client", "is_proc_alive_fn"]
    assert parameters(LogMonitor)[:4] == required[1:]
    assert "gcs_address" in parameters(LogMonitor)
    assert parameters(is_proc_alive) == ["pid"]
    assert {"node_ip_address", "get_logs_dir_path", "get_gcs_client", "gcs_address"} <= set(dir(node.Node))
    assert parameters(LogMonitor.run) == ["self"]


def test_ray_prints_the_stacks_of_every_rank() -> None:
    from ray._private.ray_logging import LogDeduplicator

    stack = [
        "rank 1 has made no step for 60 s (a step takes 1 s): the stacks of its threads follow",
        "Current thread 0x00007f4920204b80 (most recent call first):",
        '  File "/app/train.py", line 12 in wait',
        '  File "/app/train.py", line 40 in main',
    ]

    def printed(allowed: str) -> list[str]:
        ray = LogDeduplicator(5, allowed, None)
        batches = [ray.deduplicate({"ip": "10.0.0.1", "pid": pid, "lines": stack}) for pid in (11, 12, 13)]
        return [line for batch in batches for part in batch for line in part["lines"]]

    assert printed("never") == stack, "without the variable, the other ranks' lines are missing"
    assert printed(WITH_ALL_STACKS["RAY_DEDUP_LOGS_ALLOW_REGEX"]) == 3 * stack
