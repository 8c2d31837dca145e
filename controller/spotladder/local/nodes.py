"""Real Ray nodes on this machine, each a process tree in its own session.

1. The system chooses every port when it is bound, and every node has its own temporary folder, so nodes do not
   conflict with each other, another run or another Ray on the machine. Two nodes that start in one folder at the same
   moment choose the same socket, and one of them dies.
2. Socket names must be shorter than 104 bytes (macOS), and Ray needs 63 of them below its folder: so the folder has a
   short name under /tmp, whatever TMPDIR is.
3. A notice is SIGTERM to `ray start` alone, as Kubernetes does it: Ray then drains the node with reason PREEMPTION
   until the notice ends. SIGTERM to the whole group would end the raylet at once. A loss is SIGKILL of the session.
4. The dashboard is off: its nine processes need 1 GiB and most of the start time. Jobs are submitted to the agent of
   the head node instead. `raystart` leaves out other unused processes.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spotladder.atomic import write_text
from spotladder.core.contract import PREFIX, Notice, Variable
from spotladder.core.model import Instant
from spotladder.errors import EnvironmentFailure
from spotladder.local import raystart
from spotladder.local.gpus import GPUS_VARIABLE, GpuShares
from spotladder.local.reaper import MARK, TEMPORARY, Reaper, end_session
from spotladder.output.stacks import WITH_ALL_STACKS
from spotladder.workloads import names

STARTED = b"Ray runtime started."
"""The last message of `ray start` once the node has joined its cluster."""

START_LIMIT = 60.0
"""Timeout in seconds of a node's start. Ray's own timeout is 30 s for most of the steps."""

_ADDRESS = re.compile(r"--address='?([^'\s]+:\d+)(?='|\s)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings that all nodes of a run share.

    `mark` identifies the run for the reaper, `scratch` is the folder of Ray's session, `folder` that of the run's
    state, `cwd` the working directory of programs and Ray's workers. `cache_size` is the size in bytes of each node's
    cache for checkpoints; None for no cache. Ray requires `token` of every request: its ports are open to the network.
    `gpus` are the GPUs of this machine.
    """

    mark: str
    scratch: Path
    folder: Path
    cwd: Path
    reaper: Reaper
    object_store: int
    cache_size: int | None = None
    gpus: GpuShares = field(default_factory=GpuShares)
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    def temporary(self, attempt: int) -> Path:
        """The TMPDIR of that attempt's program."""
        return self.scratch / TEMPORARY / f"a{attempt}"

    def environ(self) -> dict[str, str]:
        """The environment of a node: this process's, with this interpreter first on PATH and without variables of
        another Ray or another job."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        return {**WITH_ALL_STACKS, **own, **_RAY, **token, "PATH": path, MARK: self.mark}


_FOREIGN = ("RAY_ADDRESS", "RAY_JOB_", "RAY_RUNTIME_ENV_HOOK", "PYTHONSTARTUP", PREFIX)
_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",  # Several nodes on macOS: Ray's warning does not apply here.
    "DASHBOARD_METRIC_PORT": "0",
    "REPORTER_UPDATE_INTERVAL_MS": "3600000",  # The head's agent measures the machine for the dashboard, which is off.
    # A killed node refuses connections at once: stop trying after 2 s instead of 15 s. A slow node keeps the default of
    # 10 s for each response.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
    # Disable processes that only slow the start: spare workers without the program's environment, and Ray Train's
    # preemption watcher, which would repeat the notice file later.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",  # how soon Ray Train notices that a run has ended
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # Ray Train: keep the program's working directory, that of its job.yaml.
}


class RayNode:
    """One `ray start --block` and all of its child processes."""

    def __init__(
        self,
        name: str,
        machine: NodeSettings,
        arguments: list[str],
        drain: float = 0.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.folder = machine.scratch / name
        self.log = machine.folder / "nodes" / f"{name}.log"
        self._cache = self.folder / "checkpoint-cache"
        self.began = time.monotonic()
        self._up = self._ended = False
        self._reaper = machine.reaper
        self._notice = machine.folder / "nodes" / f"{name}.notice.json"
        environ = machine.environ() | {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": f"{drain:.0f}"}
        environ |= {Variable.NODE_NOTICE: str(self._notice), **(environment or {})}
        if machine.cache_size is not None:
            environ |= {Variable.CACHE: str(self._cache), Variable.CACHE_SIZE: str(machine.cache_size)}
        own = [f"--temp-dir={self.folder}", f"--object-store-memory={machine.object_store}"]
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    [*_ray(), "start", "--block", *_COMMON, *arguments, *own],
                    env=environ,
                    cwd=machine.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise EnvironmentFailure(f"{self.log}: cannot start a Ray node: {error.strerror}") from error
        machine.reaper.adopt(self._process.pid)

    @property
    def session(self) -> int:
        """The session of its processes."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether its first process runs; without that process the others end."""
        return self._process.poll() is None

    @property
    def up(self) -> bool:
        """Whether it has joined the cluster."""
        if not self._up:
            self._up = self._joined()
        return self._up

    def _joined(self) -> bool:
        return STARTED in self.log.read_bytes()

    def notice(self) -> None:
        """Notify Ray that the node will be reclaimed."""
        if self.alive:
            self._process.send_signal(signal.SIGTERM)

    def hand_over(self, deadline: Instant) -> None:
        """Ask the program's ranks on this node to commit, so that the program continues without them. Idempotent."""
        if not self._notice.exists():
            write_text(self._notice, Notice.of_handover(deadline).encode())

    def kill(self) -> None:
        """Kill all of its processes and remove its cache, as the loss of a machine would. Idempotent."""
        if not self._ended and end_session(self.session):
            self._ended = True
            self._reaper.forget(self.session)
        self._process.wait()
        shutil.rmtree(self._cache, ignore_errors=True)

    def failed(self) -> str | None:
        """Why the node did not start, in one line; None while it may still start."""
        if self.up or (self.alive and time.monotonic() - self.began < START_LIMIT):
            return None
        lines = [line for line in _plain(self.log).splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line or "rror:" in line]
        reason = (errors or lines or ["no output"])[-1].strip()
        return f"`ray start` did not start {self.name}: {reason} (full log: {self.log})"


class Head(RayNode):
    """The node with the cluster's state and the drivers. It offers no CPU or GPU, so Ray schedules no work on it."""

    def __init__(self, name: str, machine: NodeSettings) -> None:
        # A rank of Ray Train with a GPU requests no CPU: Ray would place it here if it detected the machine's GPUs.
        idle = ["--num-cpus=0", "--num-gpus=0"]
        options = ["--head", "--port=0", *idle, "--include-dashboard=false", "--dashboard-port=0"]
        super().__init__(name, machine, [*options, "--no-monitor"])

    def _joined(self) -> bool:
        # Ray writes line by line: first that it runs, then the address.
        return super()._joined() and _ADDRESS.search(_plain(self.log)) is not None

    @property
    def address(self) -> str:
        """The cluster's address for other nodes."""
        found = _ADDRESS.search(_plain(self.log))
        if not found:
            raise EnvironmentFailure(f"{self.log}: Ray has not printed the address of its head")
        return found.group(1)

    @property
    def used(self) -> bool:
        """Whether a program has connected to Ray here: Ray opens a log for each driver, named by its process.

        The agent to which jobs are submitted is a driver too, in the head's own session.
        """
        for log in self.folder.glob("session_2*/logs/python-core-driver-*_*.log"):
            try:
                if os.getsid(int(log.stem.rpartition("_")[2])) != self.session:
                    return True
            except (ProcessLookupError, PermissionError):
                return True  # The driver has ended, or its pid belongs to another user's process now.
            except ValueError:
                continue
        return False

    @property
    def agent(self) -> str | None:
        """The address for job submissions; None until the agent has bound its port."""
        noted = next(iter(self.folder.glob("session_2*/dashboard_agent_listen_port_*")), None)
        port = noted.read_text().strip() if noted else ""
        return f"http://{self.address.rpartition(':')[0]}:{port}" if port else None


class Worker(RayNode):
    """A node that a pool has provided. `gpus` is the number of the machine's GPUs that it offers; None: all."""

    def __init__(
        self,
        name: str,
        machine: NodeSettings,
        address: str,
        *,
        cpus: int,
        labels: Mapping[str, str],
        drain: float,
        gpus: int | None = None,
    ) -> None:
        joined = ",".join(f"{key}={value}" for key, value in labels.items())
        resources = json.dumps({f"tier:{labels[names.TIER]}": cpus})
        options = [f"--address={address}", f"--num-cpus={cpus}", f"--labels={joined}", f"--resources={resources}"]
        self._shares = machine.gpus
        self._gpus = self._shares.take(gpus or 0)
        visible = {}
        if gpus is not None:
            options.append(f"--num-gpus={gpus}")
            visible = {GPUS_VARIABLE: ",".join(self._gpus)}
        super().__init__(name, machine, options, drain, visible)

    def kill(self) -> None:
        """Kill all of its processes, remove its cache and return its GPUs. Idempotent."""
        super().kill()
        self._shares.give_back(self._gpus)
        self._gpus = ()


_COMMON = [
    "--disable-usage-stats",
    "--dashboard-agent-listen-port=0",
    "--dashboard-agent-grpc-port=0",
    "--min-worker-port=0",
    "--max-worker-port=0",
]


def _ray() -> list[str]:
    """Ray's command in this interpreter, whatever PATH is."""
    return [sys.executable, raystart.__file__]


def _plain(log: Path) -> str:
    return _COLOURS.sub("", log.read_text(errors="replace"))
