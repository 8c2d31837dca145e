"""Ray Train V2: add `run_config=train.ray_run_config()` to the driver; the rest of the script stays as it is.

The effects: Ray recovers lost workers in place while the attempt lives, and lost machines never fail the run in Ray
(the tier's `maxFailures` counts them); `ray.train.report(…, checkpoint=…)` becomes a fenced, verified commit;
`ray.train.get_checkpoint()` returns the newest commit when an attempt starts; and the driver's exit code gives the
outcome (75: committed and interrupted, 76: replaced by a newer attempt).
"""

from __future__ import annotations

import secrets
from copy import copy
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.train import environment
from spotladder.train.ending import exit_with_what_happened


def ray_run_config(*, total: int = 0, **fields: Any) -> Any:
    """A `ray.train.RunConfig` for this attempt. Call it in the driver, once per trainer.

    `total` is the number of steps of the whole job, for progress (the number of reports, or the final value of the
    reported metric "step"); 0 if unknown. `fields` are those of `ray.train.RunConfig`, except those that the
    attempt sets: `name`, `storage_path`, `storage_filesystem`, `failure_config`. `num_to_keep` of `checkpoint_config`
    is ignored: `spec.checkpoints.keep` sets the number of kept commits.

    Raises InvalidSpec for these fields, and if Ray Train V1 is enabled.
    """
    _require_v2()
    from ray.train import CheckpointConfig, RunConfig

    from spotladder.train.rayinternals import clean_nothing
    from spotladder.train.rayworkers import RecoverInPlace, Routing

    taken = {"name", "storage_path", "storage_filesystem", "failure_config"} & fields.keys()
    if taken:
        raise InvalidSpec(
            f"{', '.join(sorted(taken))}: set by the attempt: remove it from ray_run_config", where="ray_run_config"
        )
    env = environment.read()
    exit_with_what_happened()
    wait_for_store(env)
    name = f"ray-{secrets.token_hex(4)}"  # Ray would resume a run of the same name from its own snapshot.
    below = f"attempts/{env.attempt:04d}"
    path, filesystem = storage_of(env, below)
    runtime_env = dict(fields.pop("worker_runtime_env", None) or {})
    runtime_env["env_vars"] = {**env.exported(), **runtime_env.get("env_vars", {})}
    config = copy(fields.pop("checkpoint_config", None) or CheckpointConfig())
    # SPOTLADDER_KEEP sets how many to keep: Ray must not delete commits that the log still counts.
    config.num_to_keep = None
    clean_nothing()
    if env.sizes:
        _allowed_sizes(env)
    return RunConfig(
        name=name,
        storage_path=path,
        storage_filesystem=filesystem,
        failure_config=RecoverInPlace(),
        checkpoint_config=config,
        worker_runtime_env=runtime_env,
        callbacks=[
            Routing(f"{below}/{name}", total, elastic=bool(env.sizes)),
            *(fields.pop("callbacks", None) or []),
        ],
        **fields,
    )


def _require_v2() -> None:
    from ray import train

    if not hasattr(train, "UserCallback"):
        raise InvalidSpec(
            "Ray Train V1 is enabled by RAY_TRAIN_V2_ENABLED=0, but ray_run_config needs V2: "
            "set RAY_TRAIN_V2_ENABLED=1, before ray is imported",
            where="ray_run_config",
        )


def ray_scaling_config(num_workers: int = 1, **fields: Any) -> Any:
    """A `ray.train.ScalingConfig` for this attempt: `num_workers` workers, or those of `spec.elastic`.

    In an elastic job `num_workers` is ignored: the trainer runs one rank on each worker node, as many as there are
    nodes, within the allowed sizes. `fields` are those of `ray.train.ScalingConfig`.
    """
    from ray.train import ScalingConfig

    sizes = environment.read().sizes
    if sizes:
        fields = {"placement_strategy": "SPREAD", **fields}
    return ScalingConfig(num_workers=(sizes[0], sizes[-1]) if sizes else num_workers, **fields)


def _allowed_sizes(env: environment.Environment) -> None:
    """Let the trainers of an elastic job choose among its allowed sizes."""
    from spotladder.train.rayelastic import AllowedSizes
    from spotladder.train.rayinternals import set_scaling_policy

    sizes, grow_after = env.sizes, env.grow_after

    def policy(scaling: Any) -> AllowedSizes:
        if (scaling.min_workers, scaling.max_workers) != (sizes[0], sizes[-1]) or not scaling.elasticity_enabled:
            raise InvalidSpec(
                f"the job trains with {sizes[0]} to {sizes[-1]} workers, but the trainer's scaling_config has "
                f"num_workers={scaling.num_workers}: use scaling_config=train.ray_scaling_config()",
                where="spec.elastic",
            )
        return AllowedSizes(scaling, sizes, grow_after)

    if not set_scaling_policy(policy):
        raise InvalidSpec("is not supported with this version of Ray: remove elastic", where="spec.elastic")


def wait_for_store(env: environment.Environment) -> None:
    """Wait until the commit log can be read: Ray writes to the store at its start and fails at once if it is
    unavailable.

    Raises ForeignLog if the log belongs to another job, StoreRefused, LogCorrupt.
    """
    from spotladder.checkpoints.log import CommitLog
    from spotladder.checkpoints.open_store import open_store
    from spotladder.train.heartbeat import Heartbeat
    from spotladder.train.store_retry import StoreRetry

    log = CommitLog(open_store(env.uri), env.job, namespace=env.namespace, uid=env.uid)
    retry = StoreRetry(log.store, on_change=Heartbeat(env.heartbeat_file).report_outage)
    retry.until_answered(log.read, starting=True)


def storage_of(env: environment.Environment, below: str) -> tuple[str, Any]:
    """A folder of the job for Ray: its path and its filesystem (None for the local one)."""
    from spotladder.checkpoints.open_store import open_store

    store = open_store(env.uri)
    if store.folder is not None:
        return str(store.folder / env.job / below), None
    from spotladder.train.rayfiles import filesystem

    scheme, _, rest = store.uri.partition("://")
    return f"{rest.rstrip('/')}/{env.job}/{below}", filesystem(scheme)
