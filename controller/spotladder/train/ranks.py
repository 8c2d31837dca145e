"""The rank of this process, read from its launcher's environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spotladder.core.contract import LaunchVariable
from spotladder.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class ProcessRank:
    """The rank of this process among `size` processes. `group` identifies the processes that were launched together."""

    rank: int = 0
    size: int = 1
    launcher: str = "alone"
    group: str = ""


_LAUNCHERS = (
    ("spotladder", LaunchVariable.RANK, LaunchVariable.WORLD_SIZE),
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("pmi", "PMI_RANK", "PMI_SIZE"),
)
_GROUPS = (LaunchVariable.GROUP, "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")


def discover(variables: Mapping[str, str] | None = None, modules: Mapping[str, Any] | None = None) -> ProcessRank:
    """The rank and world size of this process: from Ray in a Ray Train worker, else from the usual variables."""
    variables = os.environ if variables is None else variables
    modules = sys.modules if modules is None else modules
    if LaunchVariable.RANK not in variables and (world := _ray_train(modules)):
        return world
    group = "/".join(variables[name] for name in _GROUPS if variables.get(name))
    for launcher, rank, size in _LAUNCHERS:
        if variables.get(rank) and variables.get(size):
            return _checked(variables, rank, size, launcher, group)
    if variables.get("SLURM_STEP_ID") and variables.get("SLURM_PROCID") and variables.get("SLURM_NTASKS"):
        step = f"{variables.get('SLURM_JOB_ID', '')}.{variables['SLURM_STEP_ID']}"
        return _checked(variables, "SLURM_PROCID", "SLURM_NTASKS", "slurm", step)
    if variables.get("TF_CONFIG"):
        return _tensorflow(variables["TF_CONFIG"])
    return _torch(modules, group) or _jax(modules) or ProcessRank()


def _ray_train(modules: Mapping[str, Any]) -> ProcessRank | None:
    train = modules.get("ray.train")
    if train is None or not hasattr(train, "UserCallback"):
        return None  # Ray Train is not imported, or V1 is enabled.
    try:
        context = train.get_context()
    except (RuntimeError, DeprecationWarning):
        return None  # Not one of its workers, or a trial of Ray Tune.
    return ProcessRank(context.get_world_rank(), context.get_world_size(), "ray")


def _tensorflow(text: str) -> ProcessRank:
    """Chief and workers, in this order. Parameter servers and evaluators do not commit."""
    try:
        config = json.loads(text)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        members = [(kind, index) for kind in ("chief", "worker") for index in range(len(cluster.get(kind, ())))]
        if not members:
            return ProcessRank()
        me = (str(task["type"]), int(task["index"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidSpec(f"not understood: {error!r}", where="TF_CONFIG") from None
    if me not in members:
        raise InvalidSpec(f"task {me[0]} {me[1]} is not a chief or worker of the cluster", where="TF_CONFIG")
    return ProcessRank(members.index(me), len(members), "tensorflow", json.dumps(cluster, sort_keys=True))


def _torch(modules: Mapping[str, Any], group: str) -> ProcessRank | None:
    """PyTorch's rank in a process without the usual variables, such as one that Lightning has started: only after the
    program has initialized `torch.distributed`."""
    distributed = getattr(modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return ProcessRank(int(distributed.get_rank()), int(distributed.get_world_size()), "torch", group)


def _jax(modules: Mapping[str, Any]) -> ProcessRank | None:
    """JAX's rank, only if `jax.distributed` is initialized: an earlier query would start JAX's backends."""
    jax = modules.get("jax")
    try:
        if jax is None or not jax.distributed.is_initialized():
            return None
    except AttributeError:
        return None
    return ProcessRank(int(jax.process_index()), int(jax.process_count()), "jax")


def _number(variables: Mapping[str, str], name: str) -> int:
    try:
        return int(variables[name])
    except ValueError:
        raise InvalidSpec(f"{variables[name]!r} is not a number", where=name) from None


def _checked(variables: Mapping[str, str], rank: str, size: str, launcher: str, group: str) -> ProcessRank:
    mine, all_ranks = _number(variables, rank), _number(variables, size)
    if not 0 <= mine < all_ranks:
        raise InvalidSpec(f"rank {mine} of {all_ranks} processes does not exist", where=launcher)
    return ProcessRank(mine, all_ranks, launcher, group)
