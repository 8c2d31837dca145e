"""How a process joins as a rank of the job: its environment, its commit log, its end of the channel."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store_check import check_today
from spotladder.checkpoints.writer import Writer
from spotladder.core.contract import ExitCode, Milestone, Notice, NoticeKind
from spotladder.errors import Fenced
from spotladder.train import rendezvous
from spotladder.train.agreement import Agreement
from spotladder.train.channel import Alone, Channel
from spotladder.train.commits import Commits
from spotladder.train.environment import Environment
from spotladder.train.framing import Address
from spotladder.train.hangs import StackWatch
from spotladder.train.heartbeat import Heartbeat
from spotladder.train.hub import Hub
from spotladder.train.interruption import RESIZED
from spotladder.train.notice import Listener, listen
from spotladder.train.rank_errors import described, raised
from spotladder.train.ranks import ProcessRank
from spotladder.train.spoke import Spoke
from spotladder.train.standby import must_wait, wait_for_turn
from spotladder.train.store_retry import StoreRetry
from spotladder.train.stored_heartbeat import HeartbeatWriter

_log = logging.getLogger("spotladder.train")


_STARTED = "started"
"""What rank 0 of a standby attempt announces: the number of its start entry."""


@dataclass
class Member:
    """The state that one rank shares between its parts. Only rank 0 has a `writer`; in a standby attempt it has none
    until the attempt takes over."""

    environment: Environment
    world: ProcessRank
    log: CommitLog
    writer: Writer | None
    agreement: Agreement
    channel: Channel
    commits: Commits
    listener: Listener
    heartbeat: Heartbeat
    stacks: StackWatch
    retry: StoreRetry
    warned: list[dict[str, object]]
    """Eviction notices of other ranks; filled on rank 0 only."""
    started: int
    """The log entry with which this group of ranks started; -1 on ranks that do not know it."""
    node: str = ""
    """The Ray node of this rank if the program can continue without it; else empty."""
    held: Callable[[], Writer] | None = None
    """On rank 0 of a standby attempt that has not taken over: waits until it may, and starts to write."""
    follows: bool = False
    """On another rank of a group of Ray Train in a standby attempt: rank 0 announces when it has started to write."""

    resizing: bool = False
    """On rank 0: the worker group is to restart at another size after the next commit."""

    def begin(self) -> None:
        """Wait until this attempt may write, if it is a standby attempt: rank 0 until the attempt takes over, the
        others for rank 0."""
        if self.held is not None:
            self.writer = self.held()
            self.started = self.heartbeat.start = self.writer.start.seq
            self.commits.begin(self.writer)
            self.held = None
            self.heartbeat.enter("joined")
            self.channel.announce(_STARTED, self.started)
        elif self.follows:
            self.started = int(self.channel.announced(_STARTED))
            self.follows = False

    def goes(self, notice: Notice) -> str:
        """The Ray node without which the program continues after this notice; empty if the notice ends the program."""
        return self.node if notice.kind == NoticeKind.HANDOVER else ""

    def going(self, notice: Notice | None) -> list[str]:
        """The nodes without which the program continues after this rank's notice, and RESIZED if it is to resize, for
        `leaving_of`."""
        return [*([] if notice is None else [self.goes(notice)]), *([RESIZED] if self.resizing else [])]

    def close(self) -> None:
        self.stacks.close()
        self.heartbeat.close()
        self.listener.close()
        self.channel.close()


def join(
    environment: Environment,
    world: ProcessRank,
    *,
    leave: Callable[[int], None] | None = None,
    node: str = "",
) -> Member:
    """Open the commit log (rank 0) and connect to the other ranks. Waits while the store is unavailable.

    Rank 0 of a standby attempt joins without a writer, and waits in `Member.begin` until the attempt takes over.

    Raises Fenced, StoreRefused (StoreUnsafe: the store cannot fence this attempt), LogCorrupt, RankLost. `leave` ends
    the process at once when it is fenced later. With None, only the next call raises the error; a program inside
    another process, as under Ray Train, needs this. `node` is the Ray node of this rank if the program can continue
    without it.
    """
    log = CommitLog(open_store(environment.uri), environment.job, namespace=environment.namespace, uid=environment.uid)
    if environment.cache_folder:
        from spotladder.checkpoints.cache import NodeCache

        log.cache = NodeCache(environment.cache_folder, log.uri, environment.cache_size)
    if environment.compiled_folder:
        from spotladder.checkpoints.compiled import CompileCaches

        log.compiled = CompileCaches(environment.compiled_folder, log.store)
    agreement = Agreement()
    warned: list[dict[str, object]] = []
    heartbeat = _heartbeat(environment, log) if world.rank == 0 else Heartbeat(None)
    heartbeat.reach(Milestone.IMPORTED)
    retry = StoreRetry(log.store, on_change=heartbeat.report_outage)
    heartbeat.workers = workers = world.size if environment.sizes else 0
    waits = world.rank == 0 and must_wait(environment, log, retry)

    def start() -> Writer:
        # Before anything is written that an older attempt could overwrite.
        retry.until_answered(partial(check_today, log.store), starting=True)
        if waits:
            wait_for_turn(environment, log, retry, heartbeat)
        append = partial(log.start, environment.attempt, environment.tier, hands_over=bool(node), stands_by=True)
        return retry.until_answered(partial(append, workers=workers, tried=set()), starting=True)

    writer, channel, started = _meet(
        environment, world, log, agreement, warned.append, retry=retry, start=None if waits else start
    )
    if log.compiled:
        log.compiled.put_back()  # The log is this job's.
    heartbeat.start = started
    heartbeat.reach(Milestone.JOINED)
    heartbeat.enter("joined")

    def fenced(error: Fenced) -> None:
        _log.error("%s", error)
        if leave is not None:
            leave(ExitCode.FENCED)

    least = environment.sizes[0] if environment.sizes else 0
    listener = listen(environment.notice_files, least if node else 0)
    commits = Commits(
        log,
        writer,
        channel,
        world,
        keep=environment.keep,
        fenced=fenced,
        retry=retry,
        hurry=lambda: listener.heard is not None,
    )
    return Member(
        environment,
        world,
        log,
        writer,
        agreement,
        channel,
        commits,
        listener,
        heartbeat,
        StackWatch(
            world.rank,
            shortest=environment.hang_timeout,
            hangs=environment.hangs,
            report=partial(_report_hang, heartbeat, channel) if world.rank == 0 else lambda _: None,
        ),
        retry,
        warned,
        started,
        node,
        start if waits else None,
        world.rank > 0 and world.launcher == "ray" and started < 0,
    )


def _heartbeat(environment: Environment, log: CommitLog) -> Heartbeat:
    """The heartbeat of rank 0: in a file if an observer on this machine reads it, else in the store if a controller
    has launched the attempt."""
    launched = environment.notice_file is not None and environment.heartbeat_file is None
    stored = HeartbeatWriter(log.store, environment.attempt, uid=environment.uid) if launched else None
    return Heartbeat(environment.heartbeat_file, stored=stored)


def _report_hang(heartbeat: Heartbeat, channel: Channel, hang: str) -> None:
    """Report a hang that is not the loss of another rank, or the end of a hang."""
    if channel.connected or not hang:
        heartbeat.report_hang(hang)


def leave_at_once(code: int) -> None:
    """End the process without running more of the program; flushes its output."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _meet(
    environment: Environment,
    world: ProcessRank,
    log: CommitLog,
    agreement: Agreement,
    heard: Callable[[dict[str, object]], None],
    *,
    retry: StoreRetry,
    start: Callable[[], Writer] | None,
) -> tuple[Writer | None, Channel, int]:
    """Start to write on rank 0, and connect the ranks. Returns the log entry of the start, too, as far as this rank
    knows it. `start` is None in a standby attempt, whose rank 0 starts to write later."""
    by_ray = world.launcher == "ray" and world.size > 1
    if world.rank > 0 and by_ray:
        joined = rendezvous.broadcast_by_ray(None)
        if "error" in joined:
            raise raised(joined["error"])
        return None, Spoke(Address.from_json(joined["address"]), world.rank, world.size, agreement), joined["started"]
    if world.rank > 0:
        seek = partial(rendezvous.seek, log.store, environment.attempt, world, agreement, retry=retry)
        return None, seek(timeout=math.inf) if environment.standby else seek(), -1
    try:
        writer = start() if start else None
        started = writer.start.seq if writer else -1
        if world.size == 1:
            return writer, Alone(agreement), started
        hub = Hub(world.size, agreement, group=world.group, heard=heard, timeout=rendezvous.RENDEZVOUS_TIMEOUT)
    except Exception as error:
        if by_ray:
            rendezvous.broadcast_by_ray({"error": described(error)})
        raise
    if by_ray:
        rendezvous.broadcast_by_ray({"address": asdict(hub.address), "started": started})
    else:
        number = started if writer else retry.until_answered(log.read, starting=True).seq + 1
        publish = partial(rendezvous.publish, log.store, environment.attempt, number, hub.address)
        retry.until_answered(publish, starting=True)
    hub.complete()
    return writer, hub, started


def leaving_of(going: list[str]) -> tuple[str, ...]:
    """The nodes without which the program continues. None when one of the notices ends it ("")."""
    return tuple(sorted(set(going))) if all(going) else ()
