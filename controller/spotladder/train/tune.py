"""Ray Tune: `train.tune_restore(trainable, …)` where a script says `tune.Tuner(trainable, …)`.

A sweep's folder changes all the time, and a driver that is cut off may go on changing it. So every start has a folder
of its own, and what the next one goes on from is in the commit log: a commit holds the sweep's state, which names the
trials, their results and their checkpoints. The next start takes over the files of the trials from the folder that
the state belongs to, puts the committed state beside them, and lets Ray restore from that. Trials that had finished
are not run again; the others go on from their own last checkpoint.
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
"""Seconds between two states that Ray writes, unless TUNE_GLOBAL_CHECKPOINT_S says otherwise: its own choice, 10 or
more, is too long for a notice."""

SLOW_STATE = "3600"
"""Seconds after which Ray warns, every few seconds, that its copy of the state in the bucket is late. What is restored
is the committed state, so while the bucket is away the warning would be wrong."""

TRIAL_FAILURES = 3
"""How often a trial may fail in one attempt, lost machines included, unless the program says otherwise."""


def tune_restore(
    trainable: Any,
    *,
    param_space: dict[str, Any] | None = None,
    tune_config: Any = None,
    run_config: Any = None,
    resume_errored: bool = True,
) -> Any:
    """`Tuner.restore` when an earlier attempt has left a sweep, else a new `Tuner`. To be called in the driver, once.

    `run_config` is a `ray.tune.RunConfig` without `name` and `storage_path`, which the attempt decides; as with Ray
    itself, a restored sweep keeps the one it began with, and `tune_config`. `resume_errored`: trials that had failed
    are tried again.
    """
    from ray import tune

    from spotladder.train import raytune

    here = environment.read()
    exit_with_what_happened()
    member = join(here, ProcessRank(), leave=leave_at_once)
    name = f"tune-{secrets.token_hex(4)}"
    below = f"attempts/{here.attempt:04d}"
    path, filesystem = storage_of(here, below)
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
                resume_errored=resume_errored,
                param_space=param_space,
                storage_filesystem=filesystem,
            )
    given = run_config or tune.RunConfig(failure_config=tune.FailureConfig(max_failures=TRIAL_FAILURES))
    if given.name:
        raise InvalidSpec("name: decided by the attempt: leave it out of the RunConfig", where="tune_restore")
    config = replace(
        given,
        name=name,
        storage_path=path,
        storage_filesystem=filesystem,
        callbacks=[*(given.callbacks or []), raytune.StateCommits()],
    )
    return tune.Tuner(trainable, param_space=param_space, tune_config=tune_config, run_config=config)
