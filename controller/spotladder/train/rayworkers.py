"""Code that runs inside Ray Train's processes: the callback in its controller and its workers, and the failure
budgets.

The extension points, as Ray documents them: callbacks in `RunConfig.callbacks` that are not `UserCallback` "allow
custom workarounds built on top of internal callbacks"; `TrainFnUtils` "can be patched if new user APIs behaviors is
wanted".
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.train import Checkpoint, CheckpointUploadMode, FailureConfig

from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, StoreUnavailable
from spotladder.train import environment, pending, ranks, session
from spotladder.train.found import Found, find_as_of
from spotladder.train.interruption import RESIZED, HandedOver, Interrupted, RankLost, interrupted
from spotladder.train.membership import Member, join, leaving_of
from spotladder.train.rayinternals import (
    FAILURES_LOG,
    WORKER_LOG,
    DistributedTrainFnUtils,
    WorkerCallback,
    WorkerGroupCallback,
    WorkerHealthCheckFailedError,
    WorkerHealthCheckTimeoutError,
    drain_node,
    filter_logs,
    get_train_context,
    hanging_ranks,
    is_preempted,
    set_train_fn_utils,
    write_no_snapshots,
)
from spotladder.train.raynodes import SILENT_NODES

_log = logging.getLogger("spotladder.train")

NODE_LOSS_WINDOW = 5.0
"""Seconds after an error in which a lost node explains it: ranks that lost a peer often fail with their own error
before Ray knows about the node."""

UNEXPLAINED_LIMIT = 3
"""How many worker groups may end because a process died on a live node (out of memory, a crash) before the error
counts as the program's."""

DRAIN_LIMIT = 60.0
"""Seconds after which Ray ends a drained node although something still runs on it."""

_MAY_PASS = (RayActorError, WorkerHealthCheckFailedError, WorkerHealthCheckTimeoutError, RankLost)


class _Process:
    """The state of this process: in the controller the newest worker group, in a worker its rank."""

    group: Any = None
    member: Member | None = None


def ask_to_resize() -> None:
    """In the controller: ask the program to commit, and to end so that the worker group restarts at another size."""
    if _Process.group is not None:
        _Process.group.execute_single_async(0, _resize)


def _resize() -> None:
    if _Process.member is not None:
        _Process.member.resizing = True


class _Verdict:
    """Whether the newest errors of the worker group end the run. One for each controller process."""

    final = False


class RecoverInPlace(FailureConfig):  # type: ignore[misc]
    """Failure budgets that the verdict decides: unlimited for lost machines, zero for the program's own errors.

    Ray counts both against `max_failures`, and reads this limit only after the callback has received the errors.
    """

    def __init__(self) -> None:
        super().__init__()

    @property
    def max_failures(self) -> int:
        return 0 if _Verdict.final else -1

    @max_failures.setter
    def max_failures(self, value: int) -> None:
        """Ignore the base class's assignment: the verdict decides the limit."""

    @property
    def max_preemption_failures(self) -> int:
        return 0 if _Verdict.final else -1

    @max_preemption_failures.setter
    def max_preemption_failures(self, value: int) -> None:
        """Ignore the base class's assignment: the verdict decides the limit."""


class Routing(WorkerGroupCallback, WorkerCallback):  # type: ignore[misc]
    """In the controller, decides about errors; in every worker, connects Ray's checkpoint calls to the commit log.

    `elastic`: the ranks on a node that accepts no connection are lost at once, because the next group needs no new
    node. Ranks that wait for a lost peer, for example in an all-reduce, do not fail by themselves.
    """

    def __init__(self, below: str, total: int, *, elastic: bool = False) -> None:
        self._below = below
        self._total = total
        self._elastic = elastic
        self._nodes: list[str] = []  # by rank
        self._drained: set[str] = set()
        self._unexplained = 0
        self._counted = False

    def after_worker_group_start(self, worker_group: Any) -> None:
        self._nodes = [worker.metadata.node_id for worker in worker_group.get_workers()]
        self._counted = False
        _Process.group = worker_group
        write_no_snapshots()
        filter_logs(FAILURES_LOG, _no_error)

    def after_worker_group_poll_status(self, worker_group_status: Any) -> None:
        if self._elastic and (hanging := hanging_ranks(_Process.group)):
            silent = self._silent({self._nodes[rank] for rank in hanging})
            for rank in hanging:
                if self._nodes[rank] in silent:
                    message = f"rank {rank} is lost: its node accepts no connection"
                    worker_group_status.worker_statuses[rank].error = RankLost(message)
        errors = worker_group_status.errors
        if errors:
            _Verdict.final = self._ends_the_run(list(errors.values()))

    def before_worker_group_shutdown(self, worker_group: Any) -> None:
        """End the ranks on silent nodes first: Ray would wait 5 s for them to end by themselves."""
        if not self._elastic:
            return
        silent = self._silent(self._nodes)
        for worker in worker_group.get_workers():
            if worker.metadata.node_id in silent:
                ray.kill(worker.actor)

    def after_init_train_context(self) -> None:
        """In a worker, before the program's function runs: connect to the other ranks."""
        filter_logs(WORKER_LOG, _no_error)
        try:
            node = ray.get_runtime_context().get_node_id()
            member = join(environment.read(), ranks.discover(), node=node, holds_later=True)
            session.adopt(session.Job(member))
            _Process.member = member
            set_train_fn_utils(Routed(member, self._below, self._total))
            context = get_train_context()
            context.checkpoint_upload_threadpool = _Flushed(context.checkpoint_upload_threadpool, member)
        except Exception as error:  # noqa: BLE001 – raised where the program can be ended by it
            session.adopt(error)
            set_train_fn_utils(Routed(error, self._below, self._total))

    def _ends_the_run(self, errors: list[BaseException]) -> bool:
        handed_over = [error for error in errors if isinstance(error, HandedOver)]
        if handed_over and all(isinstance(error, HandedOver) for error in errors if isinstance(error, Interrupted)):
            self._drain({node for error in handed_over for node in error.leaving} - {*self._drained, RESIZED})
            return False
        if any(isinstance(error, Interrupted | Fenced) for error in errors):
            return True
        if any(is_preempted(error) for error in errors) or self._lost_a_node():
            return False
        if any(isinstance(error, StoreRefused) for error in errors):
            return True
        if any(isinstance(error, StoreUnavailable) for error in errors):
            return False  # The next group waits for the store before it starts.
        if not any(isinstance(error, _MAY_PASS) for error in errors):
            return True
        self._unexplained += not self._counted  # Ray passes the same errors several times.
        self._counted = True
        return self._unexplained > UNEXPLAINED_LIMIT

    def _drain(self, nodes: set[str]) -> None:
        """Drain the leaving nodes in Ray, so that the next worker group does not use them. The controller drains them
        too, perhaps later."""
        deadline = int((time.time() + DRAIN_LIMIT) * 1000)
        for node in nodes:
            try:
                drain_node(node, "handed over", deadline)
            except Exception as error:  # noqa: BLE001 – Ray's internals: without it the group may start once more
                _log.warning("Ray node %s is not drained before its end: %r", node, error)
        self._drained |= nodes

    def _lost_a_node(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> bool:
        end = clock() + NODE_LOSS_WINDOW
        while True:
            alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
            if not alive.issuperset(self._nodes) or (self._elastic and self._silent(self._nodes)):
                return True
            if clock() >= end:
                return False
            sleep(0.2)

    @staticmethod
    def _silent(names: Collection[str]) -> set[str]:
        """The Ray nodes among these that have been silent for too long."""
        return SILENT_NODES.lost(node for node in ray.nodes() if node["NodeID"] in names)


def _no_error(record: logging.LogRecord) -> bool:
    """Suppresses Ray's error log with a traceback when a training function was interrupted: an interruption is not an
    error."""
    message = record.getMessage()
    return not any(f"{kind.__module__}.{kind.__name__}:" in message for kind in (Interrupted, HandedOver))


class _Flushed:
    """Ray's upload threads, which Ray shuts down after the training function returns. The shutdown also waits for the
    last commit."""

    def __init__(self, pool: Any, member: Member) -> None:
        self._pool = pool
        self._member = member

    def submit(self, *call: Any, **options: Any) -> Any:
        return self._pool.submit(*call, **options)

    def shutdown(self, *call: Any, **options: Any) -> None:
        self._pool.shutdown(*call, **options)
        self._member.commits.wait()


class Routed(DistributedTrainFnUtils):  # type: ignore[misc]
    """`ray.train` inside the training function, with `report` and `get_checkpoint` backed by the commit log."""

    def __init__(self, member: Member | Exception, below: str, total: int) -> None:
        self._joined = member
        self._below = below
        self._total = total
        self._reports = 0
        self._reported: Any = None
        self._found: Found | None = None
        self._found_is_read = False
        self._committed = 0
        self._replicated = False

    def get_checkpoint(self) -> Any:
        """The newest commit; at the start of an attempt, the newest commit of earlier attempts."""
        if self._reported is not None:
            return self._reported
        found = self._find()
        return Checkpoint.from_directory(str(found.merged())) if found else None

    def report(  # noqa: PLR0917 – Ray's signature
        self,
        metrics: dict[str, Any],
        checkpoint: Any = None,
        checkpoint_dir_name: str | None = None,
        checkpoint_upload_mode: Any = CheckpointUploadMode.SYNC,
        delete_local_checkpoint_after_upload: bool | None = None,
        checkpoint_upload_fn: Callable[[Any, str], Any] | None = None,
        validation: Any = False,
    ) -> None:
        """Commit the checkpoint, if any rank has one, then report to Ray. Raises to end the run if it must stop.

        If only rank 0 reports checkpoints, they are the whole state: when another rank is lost, rank 0 commits its
        checkpoint alone, then raises RankLost.
        """
        member = self._member()
        member.begin()
        decision = self._agree(member, metrics, checkpoint is not None)
        with member.stacks.pause():
            committed = self._commit(member, decision, metrics, checkpoint) if decision["commit"] else None
            if decision["stop"]:
                member.commits.wait()  # Raises RankLost if rank 0 has committed alone.
                raise interrupted(decision["step"], tuple(decision["leaving"]))
            at_once = committed is not None and checkpoint_upload_mode != CheckpointUploadMode.ASYNC
            if at_once and not member.commits.copy_uncommitted():
                committed = checkpoint = None  # Report to Ray only checkpoints that exist.
        member.stacks.step()
        member.heartbeat.learned(metrics)
        member.heartbeat.beat(decision["step"], decision["total"], at_once=decision["commit"])

        def uploaded(_: Any, __: str) -> Any:
            member.commits.copy_uncommitted()
            return committed

        super().report(
            metrics,
            checkpoint,
            checkpoint_dir_name,
            CheckpointUploadMode.SYNC
            if checkpoint_upload_mode == CheckpointUploadMode.NO_UPLOAD
            else checkpoint_upload_mode,
            bool(delete_local_checkpoint_after_upload),
            checkpoint_upload_fn or uploaded,
            validation,
        )
        if committed is not None:
            self._reported = committed
            self._release_found()

    def _member(self) -> Member:
        if isinstance(self._joined, Exception):
            raise self._joined
        return self._joined

    def _find(self) -> Found | None:
        """The commit from which the attempt starts, read once for each process."""
        if not self._found_is_read:
            member = self._member()
            member.begin()
            folder = Path(tempfile.mkdtemp(prefix="spotladder-resume-"))
            self._found = find_as_of(member.log, member.started, folder, member.retry)
            self._found_is_read = True
            if self._found is not None:
                member.commits.stepped_over(self._found.skipped)
            self._committed = self._found.step if self._found else 0
        return self._found

    def _release_found(self) -> None:
        """Remove the files of the commit from which the attempt started. Ray kills workers, so an exit handler would
        not run."""
        if self._found is not None:
            shutil.rmtree(self._found.path.parent, ignore_errors=True)
            self._member().log.release()
            self._found = None

    def _agree(self, member: Member, metrics: dict[str, Any], mine: bool) -> dict[str, Any]:
        """The step of this report, whether it is committed, and whether it is the last: the same on every rank."""
        self._reports += 1
        notice = member.listener.poll()

        def decide(answers: list[tuple[bool, list[str]]]) -> dict[str, Any]:
            commit = any(has for has, _ in answers)
            self._find()
            counted = self._counted(metrics, commit)
            done = counted["total"] > 0 and counted["step"] >= counted["total"]
            going = [name for _, names in answers for name in names]
            stop = commit and not done and bool(going)
            again = member.writer.start.restart if member.writer else 0
            name = f"ckpt-{counted['step']:06d}.{again}"
            replicated = commit and not any(has for has, _ in answers[1:])
            how = {"commit": commit, "replicated": replicated, "stop": stop, "leaving": leaving_of(going)}
            return {**how, "name": name, **counted}

        answer = (mine, member.going(notice))
        try:
            decision: dict[str, Any] = member.channel.exchange(f"report {self._reports}", answer, decide)
        except RankLost:
            if member.writer is None or not (mine and self._replicated):
                raise
            decision = {**decide([answer]), "stop": True}
        if decision["commit"]:
            self._committed, self._replicated = decision["step"], decision["replicated"]
        return decision

    def _counted(self, metrics: dict[str, Any], commit: bool) -> dict[str, int]:
        """The metric "step" if the program reports one that increases; otherwise the number of commits so far."""
        given, total = metrics.get("step"), metrics.get("total", self._total)
        step = given if isinstance(given, int) and given > self._committed else self._committed + commit
        return {"step": step, "total": total if isinstance(total, int) and total >= step else 0}

    def _commit(self, member: Member, decision: dict[str, Any], metrics: dict[str, Any], checkpoint: Any) -> Any:
        folder = None if checkpoint is None else Path(_local(checkpoint))
        path = f"{self._below}/{decision['name']}"
        member.commits.submit(
            pending.Checkpoint(
                decision["step"],
                folder,
                decision["total"],
                metrics,
                keep_folder=True,
                path=path,
                last=decision["stop"],
                replicated=decision["replicated"],
            )
        )
        storage = get_train_context().get_storage()
        return Checkpoint(f"{storage.experiment_fs_path}/{decision['name']}", filesystem=storage.storage_filesystem)


def _local(checkpoint: Any) -> str:
    """The checkpoint's folder on this machine; downloads a checkpoint that the program put elsewhere."""
    from pyarrow.fs import LocalFileSystem

    if isinstance(checkpoint.filesystem, LocalFileSystem):
        return str(checkpoint.path)
    return str(checkpoint.to_directory())
