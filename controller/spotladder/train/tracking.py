"""One run of an experiment tracker for all attempts of a job.

    from spotladder import train

    train.tracking.wandb()                                    # before wandb.init
    train.tracking.mlflow()                                   # before mlflow.start_run or mlflow.autolog
    aim.Run(run_hash=train.tracking.aim(), force_resume=True)
    SummaryWriter("logs", purge_step=start + 1)               # TensorBoard: `start` is the step of the commit

Only rank 0 tracks. The first two set the variables that the tracker itself reads, so loggers of trainers need nothing
else. They work in a program that does not call `train.current()`, too.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.errors import InvalidSpec
from spotladder.train import environment, ranks
from spotladder.train.store_retry import StoreRetry

RUN_ID_KEY, AIM_KEY = "run-id", "aim-run"
"""The objects in the job's folder with the identifier, and with that of Aim's run. They are removed with the
checkpoints."""

LONGEST_ID = 64
"""Maximum bytes of the object."""

TAG = "spotladder.io/run"
"""The tag of a run of MLflow: the identifier of the job's run."""


def run_id() -> str:
    """The identifier of this job's run: 32 hex digits, the same in all attempts and on all ranks, until the job's
    checkpoints are removed.

    For trackers that accept an identifier. Waits while the store is unavailable; raises StoreRefused, InvalidSpec.
    """
    return _kept(RUN_ID_KEY, lambda: uuid.uuid4().hex)


def _kept(key: str, create: Callable[[], str]) -> str:
    """The identifier in this object of the job's folder; a created one if the object does not exist."""
    env = environment.read()
    store = CommitLog(open_store(env.uri), env.job, namespace=env.namespace).store

    def read_or_create() -> str:
        if store.head(key) is None:
            new = create()
            if store.put_if_absent(key, new.encode()):
                return new
        return store.get(key, LONGEST_ID).decode(errors="replace").strip()

    found = StoreRetry(store).until_answered(read_or_create, starting=True)
    if not (found.isascii() and found.isalnum()):
        raise InvalidSpec(f"{found!r} is no identifier: remove this object", where=f"{env.uri}/{env.job}/{key}")
    return found


def wandb() -> str | None:
    """Let `wandb.init` of this process continue the job's run. Returns the run's ID; None on ranks other than 0.

    Sets WANDB_RUN_ID and WANDB_RESUME. W&B keeps the first value of each step, so steps that an attempt repeats add
    nothing. Offline, each attempt has its own folder; `wandb sync` joins them.
    """
    if ranks.discover().rank:
        return None
    os.environ["WANDB_RUN_ID"] = found = run_id()
    os.environ["WANDB_RESUME"] = "allow"
    return found


def mlflow(start: int = 0) -> str | None:
    """Let the next `mlflow.start_run` of this process continue the job's run. Returns the run's ID; None on ranks other
    than 0.

    Sets MLFLOW_RUN_ID. The first attempt creates the run, in the active experiment; later attempts find it by its tag
    `spotladder.io/run`. `start` is the step from which this attempt continues: MLflow keeps all values of a step that
    is repeated, so the tag `spotladder.io/attempt-N` says where attempt N began. Raises InvalidSpec if a run is active
    already, MlflowException.
    """
    if ranks.discover().rank:
        return None
    import mlflow as tracker

    if tracker.active_run() is not None:
        raise InvalidSpec("call it before mlflow.start_run", where="train.tracking.mlflow")
    env, wanted = environment.read(), run_id()
    existing = tracker.search_runs(
        filter_string=f"tags.`{TAG}` = '{wanted}'",
        order_by=["attributes.start_time ASC"],
        max_results=1,
        search_all_experiments=True,
        output_format="list",
    )
    if existing:
        found = str(existing[0].info.run_id)
    else:
        with tracker.start_run(run_name=env.job, tags={TAG: wanted}) as created:
            found = str(created.info.run_id)
    began = f"from step {start} on {env.tier}"
    tracker.MlflowClient().set_tag(found, f"spotladder.io/attempt-{env.attempt}", began)
    os.environ["MLFLOW_RUN_ID"] = found
    return found


def aim(repo: str | None = None) -> str | None:
    """The hash of the job's run, for `aim.Run(run_hash=…, repo=repo, force_resume=True)`; None on ranks other than 0.

    Aim accepts only hashes of its own, so the first attempt creates the run, by default in Aim's default repository.
    `force_resume` takes the run over from an attempt whose machine was lost. Aim keeps the newest value of each step.
    Waits while the store is unavailable; raises StoreRefused, InvalidSpec and Aim's errors.
    """
    if ranks.discover().rank:
        return None
    from aim import Run

    def create() -> str:
        run = Run(repo=repo, system_tracking_interval=None)
        run.close()
        return str(run.hash)

    return _kept(AIM_KEY, create)
