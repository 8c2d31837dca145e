"""The program's side of an attempt: `current()` and the `Job` it returns."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any

from spotladder.core.contract import Milestone, Notice, NoticeKind
from spotladder.errors import InvalidSpec
from spotladder.train import environment, ranks, rayprocess, writing
from spotladder.train.ending import exit_code_of, exit_with_what_happened
from spotladder.train.found import Found, find
from spotladder.train.interruption import RankLost, interrupted
from spotladder.train.membership import Member, join, leave_at_once, leaving_of
from spotladder.train.pending import Checkpoint

_log = logging.getLogger("spotladder.train")

LOOK_INTERVAL = 1.0
"""Seconds between two checks for a notice while the program waits for its commits."""


class Job:
    """One rank of the running attempt. Every rank makes the same calls with the same steps.

    A step's number is the count of finished steps when it ends: the first step is 1, the last is `total`, and a job
    that resumes from `found.step` continues with `found.step + 1`.
    """

    def __init__(self, member: Member, clock: Callable[[], float] = time.monotonic) -> None:
        self._member = member
        self._clock = clock
        self._interval = member.environment.interval
        self._total = 0
        self._asked: tuple[int, bool] = (-1, False)
        self._committed = 0
        self._replicated = False
        self._base = 0
        self._last_commit_at = clock()
        self._reported: set[Notice] = set()
        self._served: set[tuple[object, object]] = set()
        self._stop_announced = False
        self._leaving: tuple[str, ...] = ()
        self._stop_at: int | None = None
        self._resumes = 0
        self._found = False

    @property
    def name(self) -> str:
        return self._member.environment.job

    @property
    def namespace(self) -> str:
        return self._member.environment.namespace

    @property
    def attempt(self) -> int:
        return self._member.environment.attempt

    @property
    def tier(self) -> str:
        return self._member.environment.tier

    @property
    def rank(self) -> int:
        return self._member.world.rank

    @property
    def world_size(self) -> int:
        return self._member.world.size

    def share_of(self, batch: int) -> range:
        """The positions of this rank in a batch of `batch` examples over all ranks, for any number of ranks.

        The shares of the ranks are consecutive, cover the batch, and differ by at most one example. To train the same
        model with any number of workers, add up the gradients over the examples of all ranks and divide by `batch`: the
        mean of the ranks' means weighs the shares wrongly if they differ.
        """
        if batch < self.world_size:
            raise ValueError(f"share_of({batch}): expected at least one example for each of {self.world_size} ranks")
        return range(batch * self.rank // self.world_size, batch * (self.rank + 1) // self.world_size)

    @property
    def uri(self) -> str:
        """The job's folder in the bucket."""
        return self._member.log.uri

    @property
    def stopping(self) -> bool:
        """Whether the attempt is being drained and `should_commit` has returned True for the last commit.

        Only for programs that do not use `steps`, as in a `while` loop of unknown length: when it is true after a
        commit, call `flush` and exit with code 75. Such a program also makes its last commit itself.
        """
        return self._stop_at is not None

    @contextmanager
    def resume(self) -> Iterator[Found | None]:
        """The newest commit that verifies, downloaded; None if the log has no commit. The same on every rank.

        Waits while the store is unavailable, and in a standby attempt until the attempt takes over. Raises
        CheckpointCorrupt if no commit of the log verifies, StoreRefused.
        """
        self._member.begin()
        folder = Path(tempfile.mkdtemp(prefix="spotladder-resume-"))
        try:
            self._resumes += 1
            member = self._member
            found = find(member.log, member.channel, member.world, folder, self._resumes, member.retry)
            if found:
                self._begin_at(found.step)
                self._found = True
                member.commits.stepped_over(found.skipped)
                _log.info("resuming after step %d of attempt %d", found.step, found.attempt)
            yield found
            self._restored()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._member.log.release()

    def steps(self, start: int, total: int) -> Iterator[int]:
        """The steps `start + 1` … `total`.

        When the attempt is drained, the loop ends after the last commit: it raises `Interrupted` (a SystemExit with
        code 75) when everything is committed. After step `total` it waits until the last commit is recorded.
        """
        start, total = index(start), index(total)
        if not 0 <= start <= total:
            raise ValueError(f"steps({start}, {total}): expected 0 ≤ start ≤ total")
        self._member.begin()
        self._begin_at(start)
        self._total = total
        self._restored()
        self._member.heartbeat.beat(start, total, at_once=True)
        if start < total:
            self._member.heartbeat.enter("first step")
        self._member.stacks.step()
        try:
            for step in range(start + 1, total + 1):
                yield step
                self._member.stacks.step()
                self._member.heartbeat.reach(Milestone.STEPPED)
                self._member.heartbeat.beat(step, total, at_once=step == total)
                if self._stop_at is not None and step < total:
                    self._finish()
                    raise interrupted(self._committed, self._leaving)
            self._finish()
        finally:
            self._member.stacks.close()
            self._member.listener.close()

    def should_commit(self, step: int) -> bool:
        """Whether to commit after this step: the interval is over, the attempt is being drained, or it is the last.

        The answer is the same on every rank; the ranks exchange messages only if a commit is due. Raises the error of
        an earlier commit.
        """
        step = index(step)
        self._member.commits.check()
        if step == self._asked[0]:
            return self._asked[1]
        self._listen(step)
        agreed = self._member.agreement.answer(step)
        due = agreed is not None or step == self._total or self._every(step)
        if due:
            self._last_commit_at = self._clock()
            self._base = step
        if agreed is not None and agreed.stop:
            self._stop_at, self._leaving = step, agreed.leaving
        self._asked = (step, due)
        return due

    @contextmanager
    def commit(
        self, step: int, metrics: Mapping[str, Any] | None = None, *, replicated: bool = False
    ) -> Iterator[Path]:
        """An empty folder for this rank's files. After the `with` block the files are uploaded and committed in the
        background.

        Waits for the previous commit, but only for a short time: while the store is unavailable the training
        continues, and the newest checkpoint replaces a pending one. Raises the error of an earlier commit. An
        exception in the block propagates and nothing is committed. `metrics` (numbers or text) are recorded with the
        commit.

        `replicated`: every rank has the same state after this step. Only rank 0's files are stored, and every rank
        resumes from them. If another rank is lost before the commit is recorded, rank 0 records it alone; its next call
        raises RankLost. Give the same value on every rank.
        """
        step, member = index(step), self._member
        member.begin()
        if step <= self._committed:
            raise ValueError(f"commit({step}) after step {self._committed}: expected a higher step")
        with member.stacks.pause():
            member.commits.make_room()
        folder, began = Path(tempfile.mkdtemp(prefix="spotladder-commit-")), self._clock()
        try:
            with member.stacks.pause(), writing.deferred(folder, replicated=replicated) as writes:
                yield folder
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            member.commits.abandon(step, error)
            raise
        kept: Path | None = folder
        if replicated and self.rank > 0:
            shutil.rmtree(folder, ignore_errors=True)
            kept, writes = None, []
        self._replicated = replicated
        written_in = self._clock() - began
        member.commits.submit(
            Checkpoint(
                step,
                kept,
                self._total,
                metrics,
                last=self.stopping,
                replicated=replicated,
                written_in=written_in,
                writes=writes,
            )
        )
        self._committed = step
        member.heartbeat.reach(Milestone.STEPPED)
        member.heartbeat.learned(metrics or {})
        member.heartbeat.beat(step, self._total, at_once=True)

    def flush(self) -> None:
        """Wait until all commits are complete. Raises the error of a failed commit."""
        while not self._member.commits.wait(LOOK_INTERVAL):
            self._member.listener.poll()  # Attempts to store are more frequent while the attempt is being drained.

    def _finish(self) -> None:
        """After the last step: wait until all commits are complete."""
        self._member.stacks.close()
        self.flush()

    def close(self) -> None:
        """Leave the job; called automatically when the process exits. Raises the error of the last commit.

        A commit in progress gets the attempt's grace period. While the store is unavailable and the attempt has not
        been asked to stop, this call waits for the store.
        """
        grace, commits = self._member.environment.grace, self._member.commits
        try:
            while not (done := commits.wait(grace)) and commits.away and self._member.listener.poll() is None:
                pass
            if not done:
                _log.error("the last commit is lost: it was not finished after %.0f s", grace)
        finally:
            self._member.close()

    def _begin_at(self, step: int) -> None:
        self._base = self._committed = step
        self._last_commit_at = self._clock()

    def _restored(self) -> None:
        """The program has read what it resumes from, if it resumes."""
        self._member.log.await_compiled()
        if self._found:
            self._member.heartbeat.reach(Milestone.RESTORED)

    def _every(self, step: int) -> bool:
        """Whether an interval in steps ends. Computed from the step alone, so equal on every rank."""
        steps = self._interval.steps
        return bool(steps) and step // steps > self._base // steps

    def saves_now(self, step: int) -> bool:
        """Whether to save after this step because a rank has a new notice, for a trainer that saves at its own interval
        and ends at its own report (see `rayhuggingface`). The same on every rank. Call it after every step, on every
        rank.

        False in a program that calls `should_commit`, which answers for notices, too.
        """
        if self._asked[0] >= 0:
            return False
        self._listen(step, asks=False)
        return self._member.agreement.answer(step) is not None

    def meet(self, topic: str) -> None:
        """Wait until every rank has called this with the same topic. Raises RankLost."""
        with self._member.stacks.pause():
            self._member.channel.exchange(topic, None, lambda _: None)

    def _listen(self, step: int, *, asks: bool = True) -> None:
        """Poll for notices; on rank 0, also decide whether to agree on a commit now. `asks`: the program calls
        `should_commit`, so a notice can end it after that commit, and an interval in seconds causes one."""
        member = self._member
        member.listener.poll()
        heard = member.listener.notices
        if self.rank > 0:
            for notice in heard:
                if notice not in self._reported:
                    self._reported.add(notice)
                    words = {"kind": notice.kind, "reason": notice.reason, "deadline": notice.deadline}
                    member.channel.report({**words, "node": member.goes(notice)})
            return
        if self._total and step >= self._total - (self.world_size > 1):
            return  # The last step is always committed.
        own = [{"kind": each.kind, "deadline": each.deadline, "node": member.goes(each)} for each in heard]
        known: list[Mapping[str, object]] = [*member.warned, *own]
        fresh = {(words["kind"], words.get("deadline")) for words in known} - self._served
        going = [str(words.get("node") or "") for words in known if words["kind"] != NoticeKind.COMMIT]
        going += member.going(None)
        stop = asks and bool(going) and not self._stop_announced
        saves = self._may_commit and any(not asks or kind == NoticeKind.COMMIT for kind, _ in fresh)
        if stop or saves or (asks and self._time_is_up()):
            self._stop_announced |= stop
            self._served |= fresh
            leaving = leaving_of(going) if stop else ()
            try:
                member.channel.agree(step, stop=stop, leaving=leaving)
            except RankLost:
                if not self._replicated:
                    raise
                member.agreement.set_step(step, stop, leaving)  # Rank 0 commits this step alone.

    def _time_is_up(self) -> bool:
        """Whether an interval in seconds is over and the job may commit."""
        if not self._interval.seconds or not self._may_commit:
            return False
        return self._clock() - self._last_commit_at >= self._interval.seconds

    @property
    def _may_commit(self) -> bool:
        """Whether no commit is due or in progress: a slow bucket must not stall the training."""
        commits = self._member.commits
        return not self._member.agreement.pending and (not commits.busy or commits.away)


_current: Job | Exception | None = None
_opening = threading.Lock()


def current() -> Job:
    """This process's rank of the running job. The first call joins the job: every rank must make it.

    Outside a job it returns a local default: attempt 1 of a job named like the script, in a folder in the user's home.
    Waits while the store is unavailable. Raises Fenced if a newer attempt has started already, StoreRefused,
    LogCorrupt, RankLost, InvalidSpec. If uncaught, these errors end the process with their exit code and one line.
    """
    global _current  # noqa: PLW0603 – a process has one rank
    with _opening:
        if isinstance(_current, Exception):
            raise _current
        if _current is None:
            if rayprocess.in_tune_trial():
                raise InvalidSpec(
                    "a trial of Ray Tune cannot join as a rank: report checkpoints with tune.report, create the tuner "
                    "with train.tune_restore",
                    where="train.current",
                )
            world = ranks.discover()
            exit_with_what_happened()
            env = environment.read()
            if env.program_folder:
                raise InvalidSpec(
                    f"the checkpoints in {env.program_folder} are committed for this program: remove the field from "
                    "the job, or spotladder.train from the program",
                    where="spec.checkpoints.programFolder",
                )
            if env.sizes and world.launcher != "ray":
                raise InvalidSpec(
                    "needs a trainer of Ray Train, but this process is not a worker of one: call train.current() in "
                    "the training function of the trainer, or remove elastic",
                    where="spec.elastic",
                )
            leave = None if world.launcher == "ray" else leave_at_once
            _current = Job(join(env, world, leave=leave))
            _at_exit(_end)
        return _current


def adopt(joined: Job | Exception) -> None:
    """Let `current` return the rank that this process has already joined as, or raise the error of joining."""
    _set(joined)


def forget() -> None:
    """Make the next call of `current` join again."""
    _set(None)


def _set(joined: Job | Exception | None) -> None:
    global _current  # noqa: PLW0603 – a process has one rank
    with _opening:
        _current = joined


def _end() -> None:
    """Finish the commit in progress when the process exits. Its error is logged and sets the exit code."""
    if not isinstance(_current, Job):
        return
    try:
        _current.close()
    except Exception as error:  # noqa: BLE001 – no caller is left to raise it to
        _log.error("the last commit failed: %s", error)
        leave_at_once(exit_code_of(error) or 1)


def _at_exit(do: Callable[[], None]) -> None:
    """Run `do` before Python closes thread pools, which uploads need. That is earlier than `atexit`. Not in a process
    that this one forks, such as a loader process of PyTorch: it shares the connections to the other ranks."""
    here = os.getpid()
    getattr(threading, "_register_atexit", atexit.register)(lambda: do() if os.getpid() == here else None)
