"""The rank and world size that each launcher gives a process."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train.ranks import ProcessRank, discover
from spotladder.train.rayprocess import in_tune_trial

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def tf_config(kind: str, index: int, cluster: dict[str, Any] | None = None) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster or CLUSTER, "task": {"type": kind, "index": index}})}


def ray_worker(rank: int, size: int) -> dict[str, Any]:
    context = SimpleNamespace(get_world_rank=lambda: rank, get_world_size=lambda: size)
    return {"ray.train": SimpleNamespace(UserCallback=object, get_context=lambda: context)}


def no_worker(error: type[Exception] = RuntimeError) -> dict[str, Any]:
    def refuse() -> None:
        raise error("not initialized")

    return {"ray.train": SimpleNamespace(UserCallback=object, get_context=refuse)}


def jax(initialized: bool) -> dict[str, Any]:
    distributed = SimpleNamespace(is_initialized=lambda: initialized)
    return {"jax": SimpleNamespace(distributed=distributed, process_index=lambda: 2, process_count=lambda: 4)}


def torch(initialized: bool) -> dict[str, Any]:
    state = {"is_available": lambda: True, "is_initialized": lambda: initialized}
    distributed = SimpleNamespace(**state, get_rank=lambda: 1, get_world_size=lambda: 2)
    return {"torch": SimpleNamespace(distributed=distributed)}


@pytest.mark.parametrize(
    ("name", "variables", "modules", "launcher", "rank", "size"),
    [
        ("alone", {}, {}, "alone", 0, 1),
        ("ours", {"SPOTLADDER_RANK": "1", "SPOTLADDER_WORLD_SIZE": "2"}, {}, "spotladder", 1, 2),
        ("torchrun", {"RANK": "1", "WORLD_SIZE": "2"}, {}, "torchrun", 1, 2),
        ("half of torchrun", {"RANK": "1"}, {}, "alone", 0, 1),
        ("mpi", {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, {}, "mpi", 3, 4),
        ("srun", {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, {}, "slurm", 1, 2),
        ("an sbatch script itself", {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, {}, "alone", 0, 1),
        ("chief", tf_config("chief", 0), {}, "tensorflow", 0, 3),
        ("second worker", tf_config("worker", 1), {}, "tensorflow", 2, 3),
        ("workers only", tf_config("worker", 1, {"worker": ["a:1", "b:1"]}), {}, "tensorflow", 1, 2),
        ("ray worker", {}, ray_worker(1, 2), "ray", 1, 2),
        ("ray worker with torch variables", {"RANK": "0", "WORLD_SIZE": "9"}, ray_worker(1, 2), "ray", 1, 2),
        (
            "spotladder variables win",
            {"SPOTLADDER_RANK": "0", "SPOTLADDER_WORLD_SIZE": "1"},
            ray_worker(1, 2),
            "spotladder",
            0,
            1,
        ),
        ("driver of ray", {}, no_worker(), "alone", 0, 1),
        ("trial of ray tune", {}, no_worker(DeprecationWarning), "alone", 0, 1),
        ("ray train v1", {}, {"ray.train": SimpleNamespace()}, "alone", 0, 1),
        ("a process of Lightning's launcher", {"WORLD_SIZE": "2", "LOCAL_RANK": "1"}, torch(True), "torch", 1, 2),
        ("torch without a process group", {}, torch(False), "alone", 0, 1),
        ("torch that is being imported", {}, {"torch": SimpleNamespace()}, "alone", 0, 1),
        ("jax", {}, jax(True), "jax", 2, 4),
        ("jax without its cluster", {}, jax(False), "alone", 0, 1),
        ("an old jax", {}, {"jax": SimpleNamespace()}, "alone", 0, 1),
    ],
)
def test_rank_and_world_size(  # noqa: PLR0917 – a row of the table
    name: str, variables: dict[str, str], modules: dict[str, Any], launcher: str, rank: int, size: int
) -> None:
    world = discover(variables, modules)
    assert (world.launcher, world.rank, world.size) == (launcher, rank, size)


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "2", "WORLD_SIZE": "2"},
        {"RANK": "-1", "WORLD_SIZE": "2"},
        {"RANK": "one", "WORLD_SIZE": "2"},
        {"TF_CONFIG": "not json"},
        {"TF_CONFIG": "[]"},
        tf_config("ps", 0),
        tf_config("worker", 7),
    ],
)
def test_invalid_variables_are_rejected(variables: dict[str, str]) -> None:
    with pytest.raises(InvalidSpec):
        discover(variables, {})


def test_an_empty_tf_config_is_one_process() -> None:
    assert discover({"TF_CONFIG": "{}"}, {}) == ProcessRank()


def test_a_tune_trial_is_detected() -> None:
    session = {"ray.train._internal.session": SimpleNamespace(get_session=lambda: "a trial's")}
    assert in_tune_trial(session)
    assert not in_tune_trial({"ray.train._internal.session": SimpleNamespace(get_session=lambda: None)})
    assert not in_tune_trial({})
