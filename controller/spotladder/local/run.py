"""Runs a job's file on this machine: first the checks, then the handling of a previous run, then the run itself."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from spotladder.api.checkpoint_fields import disk_bytes
from spotladder.api.elastic import elastic_environment
from spotladder.api.local_mode import known_capacity, local_program, local_spec
from spotladder.api.masked_exit import masked_exits
from spotladder.api.problems import dotted
from spotladder.api.program_folder import started_script
from spotladder.api.program_imports import without_library
from spotladder.api.resolve import sizes
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store_check import check_today
from spotladder.core.contract import Variable
from spotladder.core.durations import format_duration
from spotladder.core.model import JobSpec, JobState, Stage
from spotladder.core.policies import Policy
from spotladder.display.view import View
from spotladder.local import gpus, preflight
from spotladder.local.backend import LocalBackend
from spotladder.local.local_job import LocalJob, LocalTier
from spotladder.local.logwatch import LogWatch
from spotladder.local.nodes import NodeSettings
from spotladder.local.pools import PoolClock, PoolPlan, plan_of
from spotladder.local.previous_run import RunStart, StartMode, close_interrupted_attempt, start_from, unrecorded_commits
from spotladder.local.reaper import Reaper, end_run
from spotladder.local.runner import Killed, Runner
from spotladder.local.scratch import new_scratch, sweep
from spotladder.local.state import JobFolder, RunIdentity
from spotladder.local.stopping import Stopping
from spotladder.policies.registry import by_name
from spotladder.records import model as records
from spotladder.records import timeline
from spotladder.state_folder import with_home
from spotladder.train.environment import Environment

HEADS = 2
"""The number of heads at once: the attempt's and the next attempt's."""

ATTRIBUTION_WINDOW = 1.5
"""Seconds after a program's failure in which the loss of a node may still explain it: Ray checks its nodes once a
second."""


@dataclass(frozen=True, slots=True)
class Request:
    """The user's input, parsed and validated. `file` and `world_file` are the paths it was read from."""

    job: TieredJob
    world: World
    file: Path
    world_file: Path
    state_root: Path
    mode: StartMode = StartMode.NEW


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How the run ended, and the folder of its files."""

    exit_code: int
    state: JobState
    folder: Path
    message: str = ""


def run_locally(
    request: Request, view_on: Callable[[tuple[records.Record, ...]], View], stopping: Stopping
) -> RunOutcome:
    """Run the job until it ends or is stopped. `stopping` delivers the user's signals.

    Raises InvalidSpec or EnvironmentFailure before anything is started. Also raises EnvironmentFailure when the
    environment fails during the run, after all processes have ended: no commit is lost, and the run can be resumed.
    """
    plan = _plan(request)
    folder = JobFolder(request.state_root, request.job.metadata.namespace, request.job.metadata.name)
    with folder.owned():
        if before := folder.known_run():
            end_run(before.mark)  # Processes that remain if the watchdog was killed too: they would continue to write.
        log = _log_of(request, plan.run.uri)
        interval = Environment(plan.job.environment).interval.seconds
        start = start_from(request.mode, folder, log, plan.run, interval=interval)
        if start.state.stage is Stage.SUCCEEDED:
            return RunOutcome(0, start.state, folder.path, "the job has already succeeded; --fresh runs it again")
        check_today(log.store)
        start = replace(start, run=replace(start.run, mark=uuid.uuid4().hex))
        log = _log_of(request, plan.run.uri, start.run.uid)
        # By its uid the program refuses the log of another run.
        environment = {**plan.job.environment, Variable.UID: start.run.uid}
        plan = replace(plan, job=replace(plan.job, environment=environment))
        spec = replace(plan.spec, submitted_at=start.run.began)
        folder.save_run(start.run)
        with timeline.Timeline(folder.timeline) as lines:
            history = timeline.read(folder.timeline).records
            start, moves = close_interrupted_attempt(start, spec, log, history)
            with view_on(history) as view:

                def emit(record: records.Record) -> None:
                    lines.append(record)
                    view.add(record)

                watch = LogWatch(log, request.job.spec.checkpoints.keep)
                for commit in unrecorded_commits(watch.take_new(), history):
                    emit(commit)
                for move in moves:
                    emit(move)
                meta = request.job.metadata
                policy = request.job.spec.policy
                known = known_capacity(request.job, request.world)
                emit(records.Began(time.time(), meta.name, meta.namespace, spec, start.resumed, policy, known))
                for text in (*plan.warnings, *_nothing_to_resume(request, start)):
                    emit(records.Noted(time.time(), text))
                return _run(replace(plan, spec=spec), start, folder, watch, (emit, view), stopping=stopping)


def _run(
    plan: _Plan,
    start: RunStart,
    folder: JobFolder,
    watch: LogWatch,
    display: tuple[Callable[[records.Record], None], View],
    *,
    stopping: Stopping,
) -> RunOutcome:
    """The run itself: all of its processes have ended when this returns or raises."""
    emit, view = display
    with ExitStack() as stack:
        scratch = new_scratch(start.run.mark)
        stack.callback(scratch.close)
        sweep(scratch.path)
        reaper = Reaper(start.run.mark, scratch.path, scratch.lock)
        stack.callback(reaper.close)
        stack.callback(watch.close)
        watch.start()
        store = preflight.object_store(_processes(plan.spec))
        machine = NodeSettings(
            start.run.mark,
            scratch.path,
            folder.path,
            plan.job.cwd,
            reaper,
            store,
            cache_size=plan.job.cache_size,
            gpus=gpus.GpuShares(gpus.of_machine()),
        )
        pools = {name: PoolClock(pool, start.run.began, time.time()) for name, pool in plan.pools.items()}
        backend = LocalBackend(
            plan.job,
            machine,
            {name: pools[tier.pool] for name, tier in plan.job.tiers.items()},
            watch,
            clock=time.time,
            emit=emit,
            revision=start.state.revision + 1,
        )
        runner = Runner(
            plan.spec,
            plan.policy,
            backend,
            commits=watch,
            keep=folder,
            emit=emit,
            view=view,
            names=(plan.job.name, plan.job.namespace, plan.policy_name),
        )
        stopping.hand_to(runner.ask_to_stop)
        try:
            code = runner.run(start.state)
            why = "spec.suspend is true: set it to false first" if plan.spec.suspend else ""
            return RunOutcome(code, runner.state, folder.path, why)
        except Killed as killed:
            return RunOutcome(killed.exit_code, runner.state, folder.path, str(killed))


# --- the request ---


@dataclass(frozen=True, slots=True)
class _Plan:
    """The request, checked and resolved."""

    spec: JobSpec
    job: LocalJob
    pools: Mapping[str, PoolPlan]
    policy: Policy
    policy_name: str
    run: RunIdentity
    warnings: tuple[str, ...]


def _plan(request: Request) -> _Plan:
    """The plan of the run, from the files alone: reads no previous run and no bucket."""
    began = time.time()
    world = request.world_file.resolve().parent
    pools = {name: plan_of(name, pool, world) for name, pool in request.world.pools.items()}
    spec = _spec(request, began)
    job = _local_job(request, spec)
    ray = preflight.ray_version()
    preflight.check_memory(_processes(spec))
    gpus.check({name: pool.gpus for name, pool in pools.items()}, gpus.of_machine())
    preflight.check_disk(request.state_root, Path("/tmp"))  # noqa: S108 – Ray's sessions are there
    uri, folder = job.environment[Variable.URI], str(request.file.resolve().parent)
    return _Plan(
        spec,
        job,
        pools,
        by_name(request.job.spec.policy),
        request.job.spec.policy,
        RunIdentity(began, preflight.python_version(), ray, uri, uid=uuid.uuid4().hex, folder=folder),
        tuple(_warnings(request)),
    )


def _processes(spec: JobSpec) -> int:
    """The number of Ray nodes at once. With `overlap`, those of a standby attempt too."""
    return spec.workers * (1 if spec.overlap is None else 2) + HEADS


def _spec(request: Request, began: float) -> JobSpec:
    spec = local_spec(request.job, request.world, submitted_at=began)
    least = min(sizes(request.job), default=None)
    step_time = request.world.step_time
    return replace(spec, attribution_window=ATTRIBUTION_WINDOW, min_workers=least, step_time=step_time)


def _local_job(request: Request, spec: JobSpec) -> LocalJob:
    job, cwd = request.job, request.file.resolve().parent
    tiers = {}
    for tier in job.spec.tiers:
        program = local_program(job, tier.name)
        preflight.check_entrypoint(program.entrypoint, cwd, program.env)
        entrypoint = started_script(program.entrypoint, job.spec.checkpoints.program_folder, sys.executable)
        tiers[tier.name] = LocalTier(tier.capacity_tier, entrypoint, program.env)
    checkpoints = job.spec.checkpoints
    uri = checkpoints.uri if "://" in checkpoints.uri else str((cwd / with_home(checkpoints.uri)).resolve())
    environment = {
        Variable.URI: uri,
        Variable.INTERVAL: str(checkpoints.interval),
        Variable.GRACE: format_duration(spec.grace),
        Variable.KEEP: str(checkpoints.keep),
        Variable.HANG_TIMEOUT: format_duration(job.spec.hang_timeout),
        **elastic_environment(job.spec.elastic, sizes(job)),
    }
    size = disk_bytes(checkpoints.cache) if checkpoints.cache else None
    meta = job.metadata
    return LocalJob(meta.name, meta.namespace, spec.workers, cwd, tiers, environment, size, spec.min_workers)


def _warnings(request: Request) -> Iterator[str]:
    if step_time := request.world.step_time:
        yield f"costs and the report count each step as {format_duration(step_time)} of training (stepTime)"
    unused = without_library(request.job, (request.file.resolve().parent,))
    for path, message in (*masked_exits(request.job), *unused):
        yield f"{dotted(path)}: {message}"
    ignored = local_program(request.job, request.job.spec.tiers[0].name).ignored
    if ignored:
        yield f"the run uses this machine's Python: {', '.join(ignored)} of runtimeEnvYAML is ignored"


def _nothing_to_resume(request: Request, start: RunStart) -> Iterator[str]:
    if request.mode is StartMode.RESUME and not start.resumed:
        yield "there is nothing to resume: no previous run and no commits were found, so the job begins at step 0"


def _log_of(request: Request, uri: str, uid: str = "") -> CommitLog:
    meta = request.job.metadata
    return CommitLog(open_store(uri), job=meta.name, namespace=meta.namespace, uid=uid)
