"""The names of Ray without a public API that spotladder uses: each must exist, with the parameters of its calls.

`make test-ray RAY=…` runs this with other versions of Ray.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from ray.exceptions import RayActorError  # noqa: E402
from ray.train import ScalingConfig  # noqa: E402
from ray.train._internal import storage as tune_storage  # noqa: E402
from ray.train.v2._internal.execution.checkpoint.checkpoint_manager import CheckpointManager  # noqa: E402
from ray.train.v2._internal.execution.context import TrainContext  # noqa: E402
from ray.train.v2._internal.execution.preemption import PreemptionContext  # noqa: E402
from ray.train.v2._internal.execution.storage import StorageContext  # noqa: E402
from ray.train.v2._internal.execution.worker_group import WorkerGroup, WorkerGroupPollStatus, WorkerGroupState  # noqa: E402
from ray.train.v2._internal.execution.worker_group.poll import WorkerStatus  # noqa: E402
from ray.train.v2._internal.execution.worker_group.worker import ActorMetadata, Worker  # noqa: E402
from ray.train.v2.api import data_parallel_trainer  # noqa: E402
from ray.train.v2.api.preemption import PreemptionInfo  # noqa: E402
from ray.tune.execution.tune_controller import TuneController  # noqa: E402
from ray.tune.experiment import Trial  # noqa: E402

from spotladder.clusters import ray_token  # noqa: E402
from spotladder.train import rayinternals, rayprocess  # noqa: E402
from spotladder.train.rayelastic import AllowedSizes  # noqa: E402
from spotladder.train.raynodes import HEAD  # noqa: E402
from spotladder.train.rayreports import Routed  # noqa: E402
from spotladder.train.rayworkers import Routing  # noqa: E402


def parameters(call: Any) -> list[str]:
    return [name for name in inspect.signature(call).parameters if name != "self"]


def fields(kind: type) -> set[str]:
    """The attributes of a class, of its dataclass fields and of the instances that its constructors make."""
    constructors = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    made = {name for constructor in constructors for name in inspect.unwrap(constructor).__code__.co_names}
    return {*dir(kind), *getattr(kind, "__dataclass_fields__", {}), *made}


@pytest.mark.parametrize(
    ("ours", "theirs", "name"),
    [
        (Routing, rayinternals.WorkerGroupCallback, "after_worker_group_start"),
        (Routing, rayinternals.WorkerGroupCallback, "after_worker_group_poll_status"),
        (Routing, rayinternals.WorkerCallback, "after_init_train_context"),
        (Routed, rayinternals.DistributedTrainFnUtils, "report"),
        (Routed, rayinternals.DistributedTrainFnUtils, "get_checkpoint"),
        (AllowedSizes, rayinternals.ElasticScalingPolicy, "make_decision_for_non_running_worker_group"),
        (AllowedSizes, rayinternals.ElasticScalingPolicy, "make_decision_for_running_worker_group"),
        (AllowedSizes, rayinternals.ElasticScalingPolicy, "on_controller_start_worker_group"),
        (Routing, rayinternals.WorkerGroupCallback, "before_worker_group_shutdown"),
    ],
)
def test_a_method_that_replaces_rays_has_its_parameters(ours: type, theirs: type, name: str) -> None:
    assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (rayinternals.set_train_fn_utils, ["train_fn_utils"]),
        (rayinternals.get_train_context, []),
        (rayinternals.NoopDecision, []),
        (rayinternals.ElasticScalingPolicy, ["scaling_config"]),
        (rayinternals.ElasticScalingPolicy._get_resize_decision, ["num_workers"]),
        (CheckpointManager._write_state_to_storage, []),
        (data_parallel_trainer.create_scaling_policy, ["scaling_config"]),
    ],
)
def test_a_function_has_the_parameters_of_its_calls(call: Callable[..., Any], expected: list[str]) -> None:
    assert parameters(call) == expected


def test_a_function_runs_on_one_rank_of_a_worker_group() -> None:
    assert parameters(WorkerGroup.execute_single_async)[:2] == ["rank", "fn"]
    assert parameters(WorkerGroup.execute)[:1] == ["fn"]
    assert parameters(WorkerGroup.get_workers) == []
    assert parameters(WorkerGroup.__len__) == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (TrainContext, {"checkpoint_upload_threadpool", "preemption_context", "get_storage", "get_world_rank"}),
        (StorageContext, {"experiment_fs_path", "storage_filesystem"}),
        (WorkerGroupState, {"start_time", "num_workers"}),
        (WorkerGroup, {"_world_rank_to_ongoing_poll"}),
        (rayinternals.ElasticScalingPolicy, {"scaling_config"}),
        (ScalingConfig, {"elasticity_enabled", "label_selector", "max_workers", "min_workers", "num_workers"}),
        (PreemptionContext, {"preemption_info"}),
        (PreemptionInfo, {"deadline_ms", "preempted_node_to_ranks"}),
        (Trial, {"status", "storage", "TERMINATED"}),
        (tune_storage.StorageContext, {"experiment_driver_staging_path"}),
        (WorkerGroupPollStatus, {"errors", "worker_statuses"}),
        (WorkerStatus, {"error"}),
        (Worker, {"actor", "metadata"}),
        (ActorMetadata, {"node_id"}),
    ],
)
def test_an_object_of_ray_has_the_attributes_that_are_read(kind: type, names: set[str]) -> None:
    assert names <= fields(kind)


def test_an_error_that_is_set_on_a_rank_is_one_of_the_groups_errors() -> None:
    status = WorkerGroupPollStatus({0: WorkerStatus(running=True), 1: WorkerStatus(running=True)})
    error = status.worker_statuses[1].error = RuntimeError("lost")
    assert status.errors == {1: error}


def test_the_names_that_ray_gives_to_states_of_a_sweep_and_to_the_head() -> None:
    """`raytune` finds the newest state of a sweep, and the number of trials that have ended, by these."""
    from ray._common.constants import HEAD_NODE_RESOURCE_NAME

    assert TuneController.CKPT_FILE_TMPL.format("2026") == "experiment_state-2026.json"
    assert Trial.TERMINATED == "TERMINATED"
    assert HEAD == HEAD_NODE_RESOURCE_NAME


@pytest.mark.parametrize("name", ["PlacementGroupCleanerCallback", "create_scaling_policy"])
def test_the_trainer_looks_a_replaced_name_up_in_its_module(name: str) -> None:
    functions = vars(data_parallel_trainer.DataParallelTrainer).values()
    assert hasattr(data_parallel_trainer, name)
    assert any(name in function.__code__.co_names for function in functions if inspect.isfunction(function))


def test_the_callback_that_is_replaced_is_created_without_arguments() -> None:
    create = data_parallel_trainer.DataParallelTrainer._create_default_callbacks
    assert "PlacementGroupCleanerCallback()" in inspect.getsource(create)


def test_the_start_of_a_group_is_by_the_monotonic_clock() -> None:
    """AllowedSizes compares it with `time.monotonic`."""
    util = importlib.import_module("ray.train.v2._internal.util")
    assert "monotonic" in util.time_monotonic.__code__.co_names


@pytest.mark.parametrize("name", [rayinternals.FAILURES_LOG, rayinternals.WORKER_LOG])
def test_a_filtered_logger_is_one_of_rays(name: str) -> None:
    assert importlib.import_module(name).logger.name == name


def test_the_resources_of_a_rank() -> None:
    assert rayinternals.resources_per_worker(ScalingConfig(num_workers=2, resources_per_worker={"CPU": 3})) == {
        "CPU": 3
    }


@pytest.mark.parametrize("preempted", [True, False])
def test_a_reclaimed_node_is_distinguished_from_a_crash(preempted: bool) -> None:
    error = RayActorError(preempted=preempted)
    assert rayinternals.is_preempted(error) == preempted
    assert rayinternals.is_preempted(rayinternals.WorkerHealthCheckFailedError("died", error)) == preempted
    assert not rayinternals.is_preempted(RuntimeError("a bug"))


def test_ray_has_the_calls_that_drain_a_node() -> None:
    from ray._private.state import GlobalState
    from ray._private.worker import connect
    from ray._raylet import InnerGcsClient  # type: ignore[attr-defined]
    from ray.core.generated.autoscaler_pb2 import DrainNodeReason

    assert DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    assert hasattr(InnerGcsClient, "drain_node")
    assert "gcs_client" in inspect.unwrap(connect).__code__.co_names, "an attribute of the process's worker"
    assert parameters(GlobalState.get_draining_nodes) == []


def test_ray_reads_the_token_from_the_header_and_the_variables_that_are_set() -> None:
    from ray._private.authentication import authentication_constants as constants

    assert constants.RAY_AUTHORIZATION_HEADER_NAME.lower() == ray_token.HEADER.lower()
    assert constants.AUTHORIZATION_BEARER_PREFIX == "Bearer "
    raylet = Path(inspect.getfile(importlib.import_module("ray"))).parent / "core/src/ray/raylet/raylet"
    assert {name for name in (b"RAY_AUTH_MODE", b"RAY_AUTH_TOKEN") if name not in raylet.read_bytes()} == set()


def test_a_probe_needs_no_token() -> None:
    agent = importlib.import_module("ray.dashboard.http_server_agent")
    assert "/api/local_raylet_healthz" in agent.PUBLIC_EXACT_PATHS
    head = inspect.getsource(importlib.import_module("ray.dashboard.http_server_head"))
    assert re.search(r'public_exact_paths = \{[^}]*"/api/gcs_healthz"', head)


def test_nodes_are_excluded_by_the_label_with_their_id() -> None:
    from ray._private.label_utils import validate_label_selector
    from ray._raylet import RAY_NODE_ID_KEY  # type: ignore[attr-defined]

    assert rayinternals.NODE_LABEL == RAY_NODE_ID_KEY
    excluded = ",".join(character * 56 for character in "ab")
    assert not validate_label_selector({rayinternals.NODE_LABEL: f"!in({excluded})"})


def test_a_process_outside_of_ray_train_has_no_context() -> None:
    for name in (rayprocess.TUNE_SESSION, rayprocess.TRAIN_CONTEXT):
        importlib.import_module(name)
    assert not rayprocess.in_tune_trial()
    assert rayprocess.train_context() is None
    assert importlib.import_module(rayprocess.TRAIN_CONTEXT).TrainContext is TrainContext


def test_v2_is_distinguished_from_v1_by_a_public_name() -> None:
    assert hasattr(ray.train, "UserCallback")
    script = "from ray import train; print(hasattr(train, 'UserCallback'))"
    v1 = {"RAY_TRAIN_V2_ENABLED": "0"}
    process = subprocess.run([sys.executable, "-c", script], env=v1, capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["False"]
