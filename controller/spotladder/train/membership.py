"""How a process becomes a rank of the job: its variables, its commit log, its end of the channel."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import open_store
from spotladder.checkpoints.writer import Writer
from spotladder.errors import Fenced
from spotladder.train import rendezvous
from spotladder.train.agreement import Agreement
from spotladder.train.channel import Address, Alone, Channel, Hub, Spoke, described, raised
from spotladder.train.commits import Commits
from spotladder.train.environment import Environment
from spotladder.train.heartbeat import Heartbeat
from spotladder.train.interruption import FENCED
from spotladder.train.notice import Listener, listen
from spotladder.train.ranks import World

_log = logging.getLogger("spotladder.train")


@dataclass
class Member:
    """Everything one rank works with. `writer` is rank 0's."""

    environment: Environment
    world: World
    log: CommitLog
    writer: Writer | None
    agreement: Agreement
    channel: Channel
    commits: Commits
    listener: Listener
    heartbeat: Heartbeat
    warned: list[dict[str, object]]
    """Notices that other ranks heard; filled on rank 0."""

    def close(self) -> None:
        self.listener.close()
        self.channel.close()


def join(
    environment: Environment,
    world: World,
    *,
    path: Callable[[Writer, int], str] | None = None,
    leave: Callable[[int], None] | None = None,
) -> Member:
    """Start to write (rank 0) and meet the other ranks. Raises Fenced, StoreUnavailable, LogCorrupt, RankLost.

    `path` chooses the folder of a commit. `leave` ends the process, at once, when it is fenced later; None: the
    error is only raised by the next call, for a program that runs inside another's process, as under Ray Train.
    """
    log = CommitLog(open_store(environment.uri), environment.job, namespace=environment.namespace)
    agreement = Agreement()
    warned: list[dict[str, object]] = []
    writer, channel = _meet(environment, world, log, agreement, warned.append)

    def fenced(error: Fenced) -> None:
        _log.error("%s", error)
        if leave is not None:
            leave(FENCED)

    commits = Commits(
        log,
        writer,
        channel,
        world,
        keep=environment.keep,
        fenced=fenced,
        path=(lambda step: path(writer, step)) if path and writer else None,
    )
    heartbeat = Heartbeat(environment.heartbeat_file if world.rank == 0 else None)
    listener = listen(environment.notice_file, environment.notice_url)
    return Member(environment, world, log, writer, agreement, channel, commits, listener, heartbeat, warned)


def leave_at_once(code: int) -> None:
    """End the process without running anything of the program any more; what it printed is kept."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _meet(
    environment: Environment,
    world: World,
    log: CommitLog,
    agreement: Agreement,
    heard: Callable[[dict[str, object]], None],
) -> tuple[Writer | None, Channel]:
    if world.rank > 0:
        return None, _spoke(environment, world, log, agreement)
    if world.size == 1:
        return log.start(environment.attempt, environment.tier), Alone(agreement)
    if world.launcher != "ray":
        writer = log.start(environment.attempt, environment.tier)
        hub = Hub(world.size, agreement, group=world.group, heard=heard, patience=rendezvous.PATIENCE)
        rendezvous.publish(log.store, environment.attempt, writer.start.seq, hub.address)
        return writer, hub
    try:
        writer = log.start(environment.attempt, environment.tier)
        hub = Hub(world.size, agreement, heard=heard, patience=rendezvous.PATIENCE)
    except Exception as error:
        rendezvous.broadcast_by_ray({"error": described(error)})
        raise
    rendezvous.broadcast_by_ray(hub.address.to_json())
    return writer, hub


def _spoke(environment: Environment, world: World, log: CommitLog, agreement: Agreement) -> Channel:
    if world.launcher != "ray":
        return rendezvous.seek(log.store, environment.attempt, world, agreement)
    said = rendezvous.broadcast_by_ray(None)
    if "error" in said:
        raise raised(said["error"])
    return Spoke(Address.from_json(said), world.rank, world.size, agreement)
