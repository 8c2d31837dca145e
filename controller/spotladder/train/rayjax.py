"""Connects the JAX processes of Ray Train's workers on CPUs: Ray's own setup supports only TPUs and GPUs.

Ray ships no types, hence the `type: ignore` of its base classes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

from spotladder.train.free_address import free_address


@dataclass
class CPUConfig(BackendConfig):  # type: ignore[misc]
    """Every worker joins one `jax.distributed` job whose coordinator is rank 0."""

    @property
    def backend_cls(self) -> type[Backend]:
        return _Processes


class _Processes(Backend):  # type: ignore[misc]
    def on_start(self, worker_group: Any, backend_config: CPUConfig) -> None:  # noqa: ARG002 – Ray's protocol
        coordinator, size = worker_group.execute_single(0, free_address), len(worker_group)
        ray.get([worker_group.execute_single_async(rank, _join, coordinator, size, rank) for rank in range(size)])


def _join(coordinator: str, size: int, rank: int) -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, size, rank)
