"""`ray.train` inside the training function: `report` is a commit, `get_checkpoint` returns the newest one.

`TrainFnUtils`, as Ray documents it, "can be patched if new user APIs behaviors is wanted".
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ray.train import Checkpoint, CheckpointUploadMode, PreemptionInfo

from spotladder.checkpoints.entries import LARGEST_INTEGER
from spotladder.checkpoints.metrics import metrics_of
from spotladder.core.contract import Milestone, Notice, NoticeKind
from spotladder.train import pending
from spotladder.train.found import Found, find_as_of
from spotladder.train.interruption import RankLost, interrupted
from spotladder.train.membership import Member, leaving_of
from spotladder.train.rayinternals import DistributedTrainFnUtils, get_train_context


class Flushed:
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
        self._found_in = Path()
        self._found_is_read = False
        self._committed = 0
        self._replicated = False
        self._asked = 0
        self._served: set[tuple[Any, ...]] = set()
        self.trained_to = 0
        """The step of the program's trainer at its newest save, if the trainer is known; more reliable than a metric,
        which may be of an earlier step."""

    def get_preemption_info(self) -> Any:
        """Ray's information about a preemption, from the first notice to any rank until the commit after it.

        Like Ray's own function, a barrier over all ranks. The nodes are those of the ranks with a notice; a handover
        and an end of the attempt bring new information.
        """
        member = self._member()
        member.begin()
        self._asked += 1
        member.listener.poll()

        def decide(answers: list[tuple[str, list[_Notice]]]) -> dict[str, Any] | None:
            fresh = {rank: set(map(tuple, keys)) - self._served for rank, (_, keys) in enumerate(answers)}
            if not any(fresh.values()):
                return None
            nodes: dict[str, list[int]] = {}
            for rank in (rank for rank, keys in fresh.items() if keys):
                nodes.setdefault(answers[rank][0], []).append(rank)
            ends = [at for keys in fresh.values() for kind, at in keys if kind != NoticeKind.COMMIT and at is not None]
            return {"nodes": nodes, "deadline": min(ends, default=None)}

        answer = (member.node, [_sent(notice) for notice in member.listener.notices])
        info = member.channel.exchange(f"preemption {self._asked}", answer, decide)
        if info is None:
            return None
        deadline = None if info["deadline"] is None else int(info["deadline"] * 1000)
        return PreemptionInfo(deadline_ms=deadline, preempted_node_to_ranks=info["nodes"])

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
        """Commit the checkpoint, if any rank has one, then report to Ray. Raises to end the run if it must stop. No
        content of a report ends the run: the commit of a folder that a rank cannot read is dropped with a warning.

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
                if not member.commits.dropped:
                    raise interrupted(decision["step"], tuple(decision["leaving"]))
            at_once = committed is not None and checkpoint_upload_mode != CheckpointUploadMode.ASYNC
            if at_once and not member.commits.copy_uncommitted():
                committed = checkpoint = None  # Report to Ray only checkpoints that exist.
        member.stacks.step()
        member.heartbeat.reach(Milestone.STEPPED)
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
            self._found_in = Path(tempfile.mkdtemp(prefix="spotladder-resume-"))
            self._found = find_as_of(member.log, member.started, self._found_in, member.retry)
            member.log.await_compiled()
            self._found_is_read = True
            if self._found is not None:
                member.commits.stepped_over(self._found.skipped)
                member.heartbeat.reach(Milestone.RESTORED)
            self._committed = self._found.step if self._found else 0
        return self._found

    def _release_found(self) -> None:
        """Remove the files of the commit from which the attempt started. Ray kills workers, so an exit handler would
        not run."""
        if self._found is not None:
            shutil.rmtree(self._found_in, ignore_errors=True)
            self._member().log.release()
            self._found = None

    def _agree(self, member: Member, metrics: dict[str, Any], mine: bool) -> dict[str, Any]:
        """The step of this report, whether it is committed, and whether it is the last: the same on every rank."""
        self._reports += 1
        notice = member.listener.poll()

        def decide(answers: list[tuple[bool, list[str], list[_Notice]]]) -> dict[str, Any]:
            commit = any(has for has, _, _ in answers)
            if commit:
                self._served.update(tuple(key) for _, _, keys in answers for key in keys)
            self._find()
            counted = self._counted(metrics, commit)
            done = counted["total"] > 0 and counted["step"] >= counted["total"]
            going = [name for _, names, _ in answers for name in names]
            stop = commit and not done and bool(going)
            again = member.writer.start.restart if member.writer else 0
            name = f"ckpt-{counted['step']:06d}.{again}"
            replicated = commit and not any(has for has, _, _ in answers[1:])
            how = {"commit": commit, "replicated": replicated, "stop": stop, "leaving": leaving_of(going)}
            return {**how, "name": name, **counted}

        answer = (mine, member.going(notice), [_sent(notice) for notice in member.listener.notices])
        try:
            decision: dict[str, Any] = member.channel.exchange(f"report {self._reports}", answer, decide)
        except RankLost:
            if member.writer is None or not (mine and self._replicated):
                raise
            decision = {**decide([answer]), "stop": True}
        self.trained_to = 0
        if decision["commit"]:
            self._committed, self._replicated = decision["step"], decision["replicated"]
        return decision

    def _counted(self, metrics: dict[str, Any], commit: bool) -> dict[str, int]:
        """The step of the trainer, or the metric "step", if it increases; otherwise the number of commits so far."""
        given, total = self.trained_to or _count(metrics.get("step")), _count(metrics.get("total", self._total))
        step = given if given > self._committed else self._committed + commit
        return {"step": step, "total": total if total >= step else 0}

    def _commit(self, member: Member, decision: dict[str, Any], metrics: dict[str, Any], checkpoint: Any) -> Any:
        folder, unreadable = None, ""
        try:
            folder = None if checkpoint is None else Path(_local(checkpoint))
        except Exception as error:  # noqa: BLE001 – the program's own storage
            unreadable = f"rank {member.world.rank}: {error}"
        path = f"{self._below}/{decision['name']}"
        member.commits.submit(
            pending.Checkpoint(
                decision["step"],
                folder,
                decision["total"],
                metrics_of(metrics),  # The program may change its own later.
                keep_folder=True,
                path=path,
                last=decision["stop"],
                replicated=decision["replicated"],
            ),
            unreadable,
        )
        storage = get_train_context().get_storage()
        return Checkpoint(f"{storage.experiment_fs_path}/{decision['name']}", filesystem=storage.storage_filesystem)


_Notice = Sequence[str | float | None]
"""A notice of any rank, as it is sent: its kind and its deadline."""


def _sent(notice: Notice) -> _Notice:
    return (str(notice.kind), notice.deadline)


def _count(value: Any) -> int:
    """A number of steps, of any library's type; 0 if it is not one."""
    if isinstance(value, bool | str):
        return 0
    try:
        return int(value) if int(value) == value and 0 <= value < LARGEST_INTEGER else 0
    except Exception:  # noqa: BLE001 – the program's own type
        return 0


def _local(checkpoint: Any) -> str:
    """The checkpoint's folder on this machine; downloads a checkpoint that the program put elsewhere."""
    from pyarrow.fs import LocalFileSystem

    if isinstance(checkpoint.filesystem, LocalFileSystem):
        return str(checkpoint.path)
    return str(checkpoint.to_directory())
