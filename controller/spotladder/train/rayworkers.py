"""Code that runs inside Ray Train's processes: the callback in its controller and its workers, and the failure
budgets.

The extension point, as Ray documents it: callbacks in `RunConfig.callbacks` that are not `UserCallback` "allow custom
workarounds built on top of internal callbacks".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.train import FailureConfig

from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, StoreUnavailable
from spotladder.train import environment, ranks, session
from spotladder.train.interruption import RESIZED, HandedOver, Interrupted, RankLost
from spotladder.train.membership import Member, join
from spotladder.train.rayhuggingface import save_at_notices
from spotladder.train.rayinternals import (
    FAILURES_LOG,
    WORKER_LOG,
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
from spotladder.train.rayreports import Flushed, Routed

_log = logging.getLogger("spotladder.train")

NODE_LOSS_WINDOW = 5.0
"""Seconds after an error in which a lost node explains it: ranks that lost a peer often fail with their own error
before Ray knows about the node."""

UNEXPLAINED_LIMIT = 3
"""Number of worker groups that may end because a process died on a live node (out of memory, a crash) before the error
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

    @property
    def max_failures(self) -> int:
        return 0 if _Verdict.final else -1

    @max_failures.setter
    def max_failures(self, value: int) -> None:
        """Ignore the base class's assignment: the verdict decides the limit."""

    max_preemption_failures = max_failures


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
            member = join(environment.read(), ranks.discover(), node=node)
            job, routed = session.Job(member), Routed(member, self._below, self._total)
            session.adopt(job)
            _Process.member = member
            set_train_fn_utils(routed)
            save_at_notices(job, routed)
            context = get_train_context()
            context.checkpoint_upload_threadpool = Flushed(context.checkpoint_upload_threadpool, member)
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

    def _lost_a_node(self) -> bool:
        end = time.monotonic() + NODE_LOSS_WINDOW
        while True:
            alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
            if not alive.issuperset(self._nodes) or (self._elastic and self._silent(self._nodes)):
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(0.2)

    @staticmethod
    def _silent(names: Collection[str]) -> set[str]:
        """The Ray nodes among these that have been silent for too long."""
        return SILENT_NODES.lost(node for node in ray.nodes() if node["NodeID"] in names)


def _no_error(record: logging.LogRecord) -> bool:
    """Suppresses Ray's error log with a traceback when a training function was interrupted: an interruption is not an
    error."""
    message = record.getMessage()
    return not any(f"{kind.__module__}.{kind.__name__}:" in message for kind in (Interrupted, HandedOver))
