"""One rank's side of a commit: upload in the background, then one append by rank 0 for all ranks.

1. One checkpoint is being uploaded, and at most one more is pending: the newest. The program waits for the upload
   before it, for at most `PREVIOUS_COMMIT_TIMEOUT`, and not at all while the store is unavailable. The disk holds only
   these two and the checkpoint that the program is writing.
2. While the store is unavailable, all ranks retry together, with a backoff. After each failed round rank 0
   decides whether to retry with this checkpoint or the next one. A checkpoint whose append may have arrived is never
   abandoned.
3. A rank may have dropped a checkpoint that another rank still holds. Before each commit the ranks therefore agree on
   the step. A rank with an older checkpoint drops it too, and waits until its program has reached that step.
4. The cache, if there is one, gets the files while they are uploaded. When the commit is appended, it drops the others.
5. With replicated state rank 0's files are the whole checkpoint. When another rank is lost, rank 0 then finishes its
   commit alone, and raises the error afterwards.
6. An error that a retry cannot fix is raised by the program's next call, on all ranks. Only the folder of a report
   of Ray Train may be unreadable: its commit is dropped with a warning, and the job continues.
"""

from __future__ import annotations

import itertools
import logging
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spotladder.checkpoints.entries import FileEntry, Skipped
from spotladder.checkpoints.store import UploadTorn
from spotladder.errors import Fenced, SpotladderError, StoreUnavailable
from spotladder.train.channel import Channel, Decide
from spotladder.train.interruption import RankLost
from spotladder.train.old_checkpoints import OldCheckpoints
from spotladder.train.pending import Checkpoint, Pending, agreed_step
from spotladder.train.rank_files import files_of, joined, upload_files
from spotladder.train.ranks import ProcessRank
from spotladder.train.shared_files import SharedFiles
from spotladder.train.store_retry import StoreRetry

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.checkpoints.writer import Writer

_log = logging.getLogger("spotladder.train")

PREVIOUS_COMMIT_TIMEOUT = 10.0
"""Seconds that the program waits for the upload of the previous checkpoint."""

LAST_RETRY_INTERVAL = 1.0
"""Seconds between two attempts to store the last checkpoint of a drained attempt, which has little time left."""

Wait = Callable[[threading.Condition, Callable[[], bool], "float | None"], bool]


class Commits:
    """The commits of one process, one at a time and in order. Every rank makes the same commits.

    The next call raises an error of the background thread. When a newer writer owns the log, the background thread
    calls `fenced` at once. `hurry` returns whether this attempt is being drained. `wait` waits for a condition, like
    `threading.Condition.wait_for`.
    `dropped`: the newest checkpoint was dropped. The same on every rank once `wait` has returned True.
    """

    def __init__(
        self,
        log: CommitLog,
        writer: Writer | None,
        channel: Channel,
        world: ProcessRank,
        *,
        keep: int,
        fenced: Callable[[Fenced], None],
        retry: StoreRetry | None = None,
        hurry: Callable[[], bool] = lambda: False,
        wait: Wait = threading.Condition.wait_for,
    ) -> None:
        self._log = log
        self._writer = writer
        self._channel = channel
        self._world = world
        self._fenced = fenced
        self._retry = retry or StoreRetry(log.store)
        self._hurry = hurry
        self._wait = wait
        self._count = 0
        self._folders = Counter[str]()
        self._changed = threading.Condition()
        self._current: Pending | None = None
        self._waiting: Pending | None = None
        self._overdue: Pending | None = None
        self._skipped = False
        self.dropped = False
        self._shared = SharedFiles(world.rank, world.size)
        self._old = OldCheckpoints(log, keep)
        self._stepped_over: tuple[Skipped, ...] = ()
        self._error: BaseException | None = None
        self._lost: RankLost | None = None
        self._thread: threading.Thread | None = None

    def begin(self, writer: Writer) -> None:
        """Commit with this writer from now on. Called on rank 0 of a standby attempt when the attempt takes over."""
        self._writer = writer

    # --- called by the program --------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a commit is in progress."""
        return self._current is not None or self._waiting is not None

    @property
    def away(self) -> bool:
        """Whether the store is unavailable. The program then continues and commits as if no upload were in progress."""
        return self._retry.outage is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every submitted checkpoint is committed; False after `timeout` seconds. Raises the error of a
        failed commit."""
        with self._changed:
            self._wait(self._changed, lambda: not self.busy or self._error is not None, timeout)
            self._raise()
            return not self.busy

    def check(self) -> None:
        """Raise the error of a finished commit, if it failed; never waits."""
        with self._changed:
            self._raise()

    def stepped_over(self, skipped: Iterable[Skipped]) -> None:
        """Record in the next commit the commits that this start could not resume from."""
        self._stepped_over = tuple(skipped)

    def make_room(self) -> None:
        """Wait for the previous checkpoint, for at most `PREVIOUS_COMMIT_TIMEOUT`. Raises its error."""
        with self._changed:
            if not self._wait(
                self._changed, lambda: self._error is not None or self._has_room, PREVIOUS_COMMIT_TIMEOUT
            ):
                self._overdue = self._current  # The program has already waited for this checkpoint.
            self._raise()

    @property
    def _has_room(self) -> bool:
        return not self.busy or self.away or (self._overdue is not None and self._overdue is self._current)

    def submit(self, checkpoint: Checkpoint, unreadable: str = "") -> None:
        """Commit in the background. Waits as `make_room` does, then replaces a pending checkpoint."""
        pending = Pending(checkpoint, checkpoint.folder, not checkpoint.keep_folder, unreadable=unreadable)
        try:
            self.make_room()
        except BaseException:
            pending.release()
            raise
        self._put(pending)

    def copy_uncommitted(self) -> bool:
        """Wait as `make_room` does, then copy the files that are not committed, so that the program can reuse its
        folders.

        Returns whether every checkpoint is committed.
        """
        self.make_room()
        for pending in (self._current, self._waiting):
            if pending is not None:
                self._copy(pending)
        return not self.busy and not self.dropped

    def abandon(self, step: int, reason: BaseException) -> None:
        """Report to the other ranks that this rank does not take part in their commit of `step`."""
        if self._world.size > 1:
            self._put(Pending(Checkpoint(step, None), None, owned=False, gave_up=repr(reason)))

    def _put(self, pending: Pending) -> None:
        with self._changed:
            if self._waiting is not None:
                self._waiting.release()
                self._skipped = True
            self._waiting = pending
            self.dropped = False
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spotladder-commit", daemon=True)
                self._thread.start()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _copy(self, pending: Pending) -> None:
        if pending.owned or pending.folder is None:
            return
        copy, unreadable = pending.copied()
        with self._changed:
            if pending is self._current or pending is self._waiting:
                pending.folder, pending.owned, pending.unreadable = copy, True, unreadable
                return
        shutil.rmtree(copy, ignore_errors=True)

    # --- runs in the background -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._take()
            try:
                self._commit()
            except BaseException as error:  # noqa: BLE001 – raised again in the program's thread
                self._failed(error)
            else:
                self._release()

    def _take(self) -> None:
        """Wait for a pending checkpoint and make it the current one."""
        with self._changed:
            self._wait(self._changed, lambda: self._waiting is not None, None)
            self._current, self._waiting = self._waiting, None

    def _release(self, *, skipped: bool = False) -> None:
        """Finish the current checkpoint: it is committed, or a newer one replaces it (`skipped`)."""
        with self._changed:
            self._in_progress.release()
            self._current = None
            self._skipped = skipped or (self._skipped and self._waiting is not None)
            self._changed.notify_all()

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Fenced):
            self._fenced(error)
        with self._changed:
            pending = [self._current, self._waiting]
            for each in pending:
                if each is not None:
                    each.release()
            self._current = self._waiting = None
            self._error = error
            self._changed.notify_all()

    @property
    def _in_progress(self) -> Pending:
        if self._current is None:
            raise AssertionError("no commit is in progress")
        return self._current

    def _commit(self) -> None:
        """Commit the current checkpoint, or the newer one that all ranks agree on."""
        while True:
            self._count += 1
            path, owners = self._agreed_path(self._count)
            if not path:
                return
            committed = self._committed(self._count, path, owners)
            if committed != path:
                self._old.add_orphan(path)
            if committed:
                break
            self._release(skipped=True)
            self._take()
        if self._log.cache:
            self._log.cache.keep(committed)
        if self._writer is not None and not self._in_progress.checkpoint.last:
            self._old.collect(self._writer, self._in_progress.checkpoint)
            if self._log.compiled:
                self._log.compiled.save(self._writer.start.seq)
        if self._lost is not None:
            raise self._lost

    def _agreed_path(self, number: int) -> tuple[str, dict[str, int]]:
        """The folder of the commit, once all ranks have the same current checkpoint; "" if this rank does not take
        part. With it the owners of the files that several ranks have."""
        for again in itertools.count():
            pending = self._in_progress
            offer = {**pending.offer(), "skipped": self._skipped, "files": self._shared.offer(pending)}
            try:
                agreed = self._exchange(f"folder {number}.{again}", offer, self._agree_on_path)
            except SpotladderError as error:
                if not pending.gave_up:
                    raise
                _log.info("%s", error)  # This rank raises its own error.
                return "", {}
            if agreed["path"]:
                return str(agreed["path"]), agreed["owners"]
            if pending.checkpoint.step < agreed["step"]:
                self._release(skipped=True)
                self._take()
        raise AssertionError("unreachable")

    def _agree_on_path(self, offers: list[dict[str, Any]]) -> dict[str, Any]:
        step = agreed_step(offers)
        if step is None:
            return {"step": max(offer["step"] for offer in offers), "path": ""}
        if self._writer is None:
            raise AssertionError("only rank 0 decides")
        path = self._in_progress.checkpoint.path or self._new_folder(self._writer.folder(step))
        return {"step": step, "path": path, "owners": self._shared.owners([offer.get("files", {}) for offer in offers])}

    def _new_folder(self, folder: str) -> str:
        """A folder that this process has not used: a program may commit a step again."""
        again = self._folders[folder]
        self._folders[folder] += 1
        return f"{folder}-{again}" if again else folder

    def _committed(self, number: int, path: str, owners: dict[str, int]) -> str:
        """Upload and append until the store accepts the commit. Returns its folder, or "" if the checkpoint is dropped
        or a newer one is to be committed instead."""
        appending = False
        gift: dict[str, Any] = {}
        began, rounds = self._retry.clock(), 0

        def took() -> float:
            """The duration of this commit; 0 after a failed round, which would count the outage."""
            return 0.0 if rounds else self._in_progress.checkpoint.written_in + self._retry.clock() - began

        def decide(gifts: list[dict[str, Any]]) -> dict[str, Any]:
            nonlocal appending
            if dropped := next((gift["dropped"] for gift in gifts if "dropped" in gift), ""):
                return {"committed": "", "dropped": dropped}
            files = [files_of(gift) for gift in gifts if "away" not in gift]
            away = next((gift["away"] for gift in gifts if "away" in gift), "")
            if away:
                newer = not appending and all(gift["newer"] for gift in gifts)
                return {"committed": "", "away": away, "newer": newer}
            try:
                committed = self._append(path, files, took)
            except StoreUnavailable as error:
                appending = appending or not isinstance(error, UploadTorn)
                if not self._retry.waits_for(error):
                    raise
                return {"committed": "", "away": str(error), "again": isinstance(error, UploadTorn)}
            return {"committed": committed}

        for rounds in itertools.count():
            if "files" not in gift:
                gift = upload_files(
                    self._log,
                    self._in_progress,
                    path,
                    world=self._world,
                    retry=self._retry,
                    without=self._shared.others(owners),
                )
            mine = {**gift, "newer": self._waiting is not None}
            outcome = self._exchange(f"commit {number}.{rounds}", mine, decide, patient=True)
            if outcome["committed"]:
                self._retry.answered()
                return str(outcome["committed"])
            if outcome.get("dropped"):
                if self._writer is not None:
                    _log.warning(
                        "the checkpoint of step %d is dropped: %s",
                        self._in_progress.checkpoint.step,
                        outcome["dropped"],
                    )
                self.dropped = self._waiting is None
                return ""
            interval = self._retry.failed(outcome["away"])
            if outcome.get("again"):
                gift = {}
            self._pause(interval)
            if outcome.get("newer"):
                return ""
        raise AssertionError("unreachable")

    def _exchange(self, topic: str, mine: Any, decide: Decide, *, patient: bool = False) -> Any:
        """The channel's exchange. If another rank is lost and the state is replicated, rank 0 decides alone."""
        try:
            return self._channel.exchange(topic, mine, decide, patient=patient)
        except RankLost as lost:
            checkpoint = self._in_progress.checkpoint
            if self._writer is None or not checkpoint.replicated:
                raise
            if self._lost is None:
                _log.warning("%s: rank 0 commits step %d alone", lost, checkpoint.step)
            self._lost = lost
            return decide([mine])

    def _pause(self, interval: float) -> None:
        """Wait before the next attempt; only briefly while the attempt is being drained."""
        with self._changed:
            self._changed.notify_all()  # The program need not wait any longer.
            until, hurried = self._retry.clock() + interval, False
            while (left := until - self._retry.clock()) > 0 and not hurried:
                pending = (self._current, self._waiting)
                hurried = self._hurry() or any(each is not None and each.checkpoint.last for each in pending)
                self._wait(self._changed, lambda: False, min(left, LAST_RETRY_INTERVAL))

    def _append(self, path: str, files_by_rank: list[list[FileEntry]], took: Callable[[], float]) -> str:
        if self._writer is None:
            raise AssertionError("only rank 0 appends")
        checkpoint, files = self._in_progress.checkpoint, joined(files_by_rank)
        if not files:
            _log.warning(
                "the commit of step %d has no files: write the state into the folder that job.commit gives",
                checkpoint.step,
            )
        commit = self._writer.commit(
            checkpoint.step,
            files,
            total=checkpoint.total,
            path=path,
            metrics=checkpoint.metrics,
            skipped=self._stepped_over,
            seconds=took,
        )
        self._stepped_over = ()
        _log.info("committed step %d of attempt %d (%d bytes)", commit.step, commit.attempt, commit.size)
        return commit.path
