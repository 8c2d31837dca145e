"""Everything that spotladder uses of Ray Train and Ray Core without a public API. No other module of this package
imports such names, except `rayprocess`, which imports nothing.

`tests/train/test_rayinternals.py` fails when one of them moves or changes its signature; `make test-ray` runs it with
the oldest and the newest supported version of Ray.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError, WorkerHealthCheckTimeoutError
from ray.train.v2._internal.execution.callback import ControllerCallback, WorkerCallback, WorkerGroupCallback
from ray.train.v2._internal.execution.checkpoint.checkpoint_manager import CheckpointManager
from ray.train.v2._internal.execution.context import get_train_context
from ray.train.v2._internal.execution.scaling_policy import ElasticScalingPolicy, NoopDecision
from ray.train.v2._internal.execution.train_fn_utils import DistributedTrainFnUtils, set_train_fn_utils
from ray.train.v2.api import data_parallel_trainer

__all__ = [
    "ControllerCallback",
    "DistributedTrainFnUtils",
    "ElasticScalingPolicy",
    "NoopDecision",
    "WorkerCallback",
    "WorkerGroupCallback",
    "WorkerHealthCheckFailedError",
    "WorkerHealthCheckTimeoutError",
    "get_train_context",
    "set_train_fn_utils",
]

NODE_LABEL = "ray.io/node-id"
"""The label of every Ray node with its id."""

FAILURES_LOG = "ray.train.v2._internal.execution.failure_handling.default"
"""The logger of Ray Train's controller for errors of the worker group."""

WORKER_LOG = "ray.train.v2._internal.util"
"""The logger of a worker for errors of the training function."""


class _NothingToClean(ControllerCallback):  # type: ignore[misc]
    """Replaces Ray's PlacementGroupCleanerCallback."""


def clean_nothing() -> None:
    """Disable the actor that removes the placement groups of a dead controller: the attempt's cluster ends with the
    controller.

    Without a dashboard, that actor would delay the end of a run by 12 s, also after a notice.
    """
    if hasattr(data_parallel_trainer, "PlacementGroupCleanerCallback"):
        data_parallel_trainer.PlacementGroupCleanerCallback = _NothingToClean


def set_scaling_policy(create: Callable[[Any], Any]) -> bool:
    """Let trainers create their scaling policy from a ScalingConfig with this function. False if this version of Ray
    does not support it."""
    if not hasattr(data_parallel_trainer, "create_scaling_policy"):
        return False
    data_parallel_trainer.create_scaling_policy = create
    return True


def resources_per_worker(scaling_config: Any) -> dict[str, float]:
    """The resources that Ray Train requests for each rank."""
    needs: dict[str, float] = scaling_config._resources_per_worker_not_none  # noqa: SLF001 – Ray's own policy uses it too
    return needs


def write_no_snapshots() -> None:
    """Disable the copy of its state that Ray Train's controller writes to the bucket after every report: if the bucket
    is unavailable then, the run ends. The commit log has this information."""
    if hasattr(CheckpointManager, "_write_state_to_storage"):
        CheckpointManager._write_state_to_storage = lambda _: None  # noqa: SLF001 – has no public switch


def filter_logs(logger: str, keep: Callable[[logging.LogRecord], bool]) -> None:
    """Suppress the records of one of Ray's loggers for which `keep` is false."""
    logging.getLogger(logger).addFilter(keep)


def is_preempted(error: BaseException | None) -> bool:
    """Whether Ray says that a worker died because its node was reclaimed."""
    if isinstance(error, WorkerHealthCheckFailedError):
        error = error.health_check_failure
    return isinstance(error, RayActorError) and bool(error.preempted)


def hanging_ranks(worker_group: Any) -> set[int]:
    """The ranks that have not answered the newest call of Ray Train's controller yet."""
    return set(worker_group._world_rank_to_ongoing_poll)  # noqa: SLF001 – the status does not tell


def draining_nodes() -> dict[str, int]:
    """The ids of the nodes that Ray drains, each with its deadline in milliseconds (0: none)."""
    return dict(ray._private.state.state.get_draining_nodes() or {})  # noqa: SLF001 – `ray.nodes()` does not tell


def drain_node(node: str, reason_message: str, deadline_ms: int) -> None:
    """Prevent Ray from scheduling on the node, and let Ray end it at the deadline."""
    from ray._private.worker import global_worker
    from ray.core.generated.autoscaler_pb2 import DrainNodeReason

    reason = DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    global_worker.gcs_client.drain_node(node, reason, reason_message, deadline_ms)
