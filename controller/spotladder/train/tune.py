"""Ray Tune: `train.tune_restore(trainable, …)` in place of `tune.Tuner(trainable, …)`.

A sweep's folder changes all the time, and a driver that lost its network may still write to it. So every start has its
own folder, and a commit in the log has the sweep's state: the trials, their results and their checkpoints. The next
start copies the files of the trials from the folder that the state belongs to, adds the committed state, and lets Ray
restore the sweep. Finished trials do not run again; the others continue from their last checkpoint.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.train import environment
from spotladder.train.ending import exit_with_what_happened
from spotladder.train.membership import join, leave_at_once
from spotladder.train.ranks import ProcessRank
from spotladder.train.raytrain import storage_of
from spotladder.train.sweep_state import PLACE, committed_state, take_over

STATE_PERIOD = "5"
"""Seconds between two writes of Ray's state, unless TUNE_GLOBAL_CHECKPOINT_S is set. Ray's default of 10 or more is
too long for a notice."""

SLOW_STATE = "3600"
"""Seconds after which Ray warns repeatedly that its copy of the state in the bucket is late. A start restores the
committed state instead, so during a bucket outage the warning would be wrong."""

TRIAL_FAILURES = 3
"""Number of failures of a trial that one attempt allows, lost machines included, unless the program sets its own
limit."""


def tune_restore(
    trainable: Any,
    *,
    param_space: dict[str, Any] | None = None,
    tune_config: Any = None,
    run_config: Any = None,
) -> Any:
    """`Tuner.restore` if an earlier attempt has committed a sweep, else a new `Tuner`. Call it in the driver, once.

    `run_config` is a `ray.tune.RunConfig` without `name` and `storage_path`, which the attempt sets. As in Ray itself,
    a restored sweep keeps its original `run_config` and `tune_config`. Trials that failed run again.
    """
    from ray import tune

    from spotladder.train import raytune

    env = environment.read()
    exit_with_what_happened()
    member = join(env, ProcessRank(), leave=leave_at_once)
    member.begin()
    name = f"tune-{secrets.token_hex(4)}"
    below = f"attempts/{env.attempt:04d}"
    path, filesystem = storage_of(env, below)
    os.environ.setdefault("TUNE_GLOBAL_CHECKPOINT_S", STATE_PERIOD)
    os.environ.setdefault("TUNE_WARN_SLOW_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S", SLOW_STATE)
    raytune.watch(member, f"{below}/{name}")
    with committed_state(member.log, member.retry) as state:
        if state is not None:
            old = json.loads((state / PLACE).read_text(encoding="utf-8"))["folder"]
            member.retry.until_answered(lambda: take_over(member.log.store, old, f"{below}/{name}", state))
            return tune.Tuner.restore(
                f"{path}/{name}",
                trainable,
                resume_errored=True,
                param_space=param_space,
                storage_filesystem=filesystem,
            )
    given = run_config or tune.RunConfig(failure_config=tune.FailureConfig(max_failures=TRIAL_FAILURES))
    if given.name:
        raise InvalidSpec("name: set by the attempt: remove it from the RunConfig", where="tune_restore")
    config = replace(
        given,
        name=name,
        storage_path=path,
        storage_filesystem=filesystem,
        callbacks=[*(given.callbacks or []), raytune.StateCommits()],
    )
    return tune.Tuner(trainable, param_space=param_space, tune_config=tune_config, run_config=config)
