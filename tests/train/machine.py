"""A local Ray cluster of several nodes, for tests that remove nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.train.builders import variables

PROGRAMS = Path(__file__).parent / "programs"


QUICK = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.25"}
"""Interval at which Ray Train polls its workers. A report waits for the next poll."""


FAST_HEALTH_CHECKS = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}
"""The setting of the local runner: Ray declares a node that refuses connections dead after 2 s instead of 15 s."""


class RayMachines:
    """A Ray cluster whose nodes can be killed, and its drivers."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": FAST_HEALTH_CHECKS}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = [self._cluster.add_node(num_cpus=1) for _ in range(2)]
        self._drivers: list[subprocess.Popen[bytes]] = []

    def driver(self, program: str, folder: Path, /, config: dict[str, Any], **more: object) -> subprocess.Popen[bytes]:
        """Start a program of `programs/`. `more` sets the variables of its attempt."""
        started = subprocess.Popen(
            [sys.executable, str(PROGRAMS / f"{program}.py"), json.dumps({"out": str(folder), **config})],
            env={**os.environ, **QUICK, **_settings(folder, more), "RAY_ADDRESS": self._cluster.address},
        )
        self._drivers.append(started)
        return started

    def lose_a_node(self, *, replaced: bool = True) -> None:
        """Kill a node with SIGKILL and add another one."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)
        if replaced:
            self.add_a_node()

    def add_a_node(self) -> None:
        """Add a node."""
        self._nodes.append(self._cluster.add_node(num_cpus=1))

    def reclaim_a_node(self, notice: int) -> None:
        """Drain a node in Ray as preempted in `notice` seconds. The node itself is not removed."""
        order = ["drain-node", "--address", self._cluster.address, "--node-id", self._nodes[-1].node_id]
        reason = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "spot"]
        ray = [sys.executable, "-m", "ray.scripts.scripts"]
        subprocess.run([*ray, *order, *reason, "--deadline-remaining-seconds", str(notice)], check=True, timeout=60)

    def stop_drivers(self) -> None:
        for driver in self._drivers:
            driver.kill()
            driver.wait()
        self._drivers.clear()

    def close(self) -> None:
        self.stop_drivers()
        self._cluster.shutdown()


def _settings(folder: Path, more: dict[str, object]) -> dict[str, str]:
    """Names in capitals are environment variables; the others set variables of the attempt."""
    plain = {name: str(value) for name, value in more.items() if name.isupper()}
    return {**variables(folder, **{name: value for name, value in more.items() if not name.isupper()}), **plain}
