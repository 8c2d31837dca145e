"""Connects the processes of Ray Train's workers for a framework, before the training function runs.

Ray ships no types, hence the `type: ignore` of its base classes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig
from ray.util import get_node_ip_address


@dataclass
class Connected(BackendConfig):  # type: ignore[misc]
    """Every worker calls `connect` with the addresses of all workers by rank, and its own rank."""

    connect: Callable[[list[str], int], None]

    @property
    def backend_cls(self) -> type[Backend]:
        return _Connect


class _Connect(Backend):  # type: ignore[misc]
    def on_start(self, worker_group: Any, backend_config: Connected) -> None:
        addresses, connect = worker_group.execute(free_address), backend_config.connect
        ray.get(
            [worker_group.execute_single_async(rank, connect, addresses, rank) for rank in range(len(worker_group))]
        )


def free_address() -> str:
    """`host:port` of this worker, with a free port; an IPv6 host is in brackets."""
    host = get_node_ip_address()
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
