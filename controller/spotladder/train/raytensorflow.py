"""Connects the TensorFlow processes of Ray Train's workers without loading TensorFlow in other processes.

Ray ships no types, hence the `type: ignore` of its base classes.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

from spotladder.train.free_address import free_address


@dataclass
class ClusterConfig(BackendConfig):  # type: ignore[misc]
    """Each worker gets a TF_CONFIG that lists all workers by rank."""

    @property
    def backend_cls(self) -> type[Backend]:
        return _Cluster


class _Cluster(Backend):  # type: ignore[misc]
    def on_start(self, worker_group: Any, backend_config: ClusterConfig) -> None:  # noqa: ARG002 – Ray's protocol
        workers = worker_group.execute(free_address)
        ray.get(
            [worker_group.execute_single_async(rank, _announce, workers, rank) for rank in range(len(worker_group))]
        )


def _announce(workers: list[str], rank: int) -> None:
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
