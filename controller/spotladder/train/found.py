"""The commit from which a program resumes: the same on every rank, downloaded and verified."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.checkpoints.entries import Commit, FileEntry, Skipped, decode, encode
from spotladder.checkpoints.rank_folders import rank_folder, rank_of
from spotladder.checkpoints.resume import Resumed
from spotladder.errors import CheckpointCorrupt
from spotladder.train.channel import Channel
from spotladder.train.ranks import ProcessRank
from spotladder.train.store_retry import StoreRetry

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog

_log = logging.getLogger("spotladder.train")

LONGEST_WHY = 300
"""Maximum length, in characters, of the reason that the log keeps for a skipped commit."""

_DELETED = "deleted"


@dataclass(frozen=True)
class Found:
    """A commit and its files on this machine. The files are deleted when the `with` block ends. With a cache on this
    machine they are read-only.

    `step` is the number of finished steps.
    """

    commit: Commit = field(repr=False)
    _log: CommitLog = field(repr=False)
    _folder: Path = field(repr=False)
    _retry: StoreRetry = field(repr=False)
    _rank: int = field(default=0, repr=False)
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    """Newer commits that did not verify."""

    @property
    def path(self) -> Path:
        """A folder with the files of this rank, or with rank 0's files if this rank wrote none.

        The files of a log in a folder of this machine are copied and verified when this is first read. Waits while the
        store is unavailable. Raises CheckpointCorrupt.
        """
        if not self._folder.exists() and self._folder.parent.exists():  # after the `with` block, neither exists
            incoming = self._folder.with_name(f"{self._folder.name}.incoming")
            self._retry.until_answered(lambda: self._log.fetch(self.commit, incoming, [self._source]), starting=True)
            incoming.rename(self._folder)
        own = self._folder / rank_folder(self._source)
        return own if own.is_dir() else self._folder

    @property
    def _source(self) -> int:
        return _source(self.commit, self._rank)

    @property
    def step(self) -> int:
        return self.commit.step

    @property
    def total(self) -> int:
        """The number of steps of the whole job, as recorded with the commit; 0 if unknown."""
        return self.commit.total

    @property
    def attempt(self) -> int:
        """The attempt that made the commit."""
        return self.commit.attempt

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The metrics that the program passed to `commit`."""
        return self.commit.metrics

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that wrote files of their own; empty if the files belong to all ranks."""
        return _ranks(self.commit)

    def merged(self) -> Path:
        """A folder with the files of all ranks side by side, as sharded formats need it. If several ranks wrote a file
        of the same name, the lowest rank's is used. Waits and raises as `share` does."""
        if not self.ranks:
            return self.path
        if self._log.in_place is None:
            return self.to_read()  # Links to copies that only this process has.
        merged = self._folder.with_name(f"{self._folder.name}.merged")
        if not merged.exists():
            shutil.copytree(self.to_read(), merged)
        return merged

    def to_read(self) -> Path:
        """Like `merged`, for code that never writes: no bytes are copied."""
        return self.share(0, 1)

    def shares(self, size: int) -> Mapping[str, tuple[int, int]]:
        """For each file, by its name in `share`, which of `size` ranks has it in its share, and its bytes."""
        return {name: ((rank_of(file.name) or 0) % size, file.size) for name, file in self._side_by_side().items()}

    def share(self, rank: int, size: int) -> Path:
        """A folder with the share of `rank` when `size` ranks read each file of the commit once: links, side by side,
        without the folders of the ranks that wrote the files. If the log is in a folder of this machine, these are all
        files of the commit, of which this rank has verified its share.

        Waits while the store is unavailable. Raises CheckpointCorrupt.
        """
        place, folder = self._log.in_place, self._folder.with_name(f"{self._folder.name}.share-{rank}-{size}")
        if folder.exists():
            return folder
        mine = [writer for writer in self.ranks or (0,) if writer % size == rank]
        had = [writer for writer in mine if writer == self._source and (place or self._folder.exists())]
        rest = [writer for writer in mine if writer not in had]
        parts = None if place else self._folder.with_name(f"{folder.name}.rest")
        if rest:
            self._retry.until_answered(lambda: self._log.fetch(self.commit, parts, rest), starting=True)
        folder.mkdir(parents=True)
        for name, file in self._side_by_side().items():
            writer = rank_of(file.name) or 0
            if place or writer in mine:
                source = place / self.commit.path if place else parts if writer in rest and parts else self._folder
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(source / file.name)
        return folder

    def _side_by_side(self) -> Mapping[str, FileEntry]:
        """Each file by its name without the folder of its rank. Of the same name, the lowest rank's."""
        return {_bare(file.name): file for file in sorted(self.commit.files, key=lambda file: file.name, reverse=True)}


def find(  # noqa: PLR0917 – one call, from `Job.resume`
    log: CommitLog, channel: Channel, world: ProcessRank, folder: Path, call: int, retry: StoreRetry
) -> Found | None:
    """The newest commit whose files verify on every rank. Collective; `call` counts the calls of this process.

    Each rank downloads the files that it needs, all at the same time. If a file does not verify, all ranks use an older
    commit.
    """
    corrupt: dict[str, str] = {}
    skipped: dict[int, Skipped] = {}
    tries = 0
    while True:
        tries += 1
        mine = _candidate(log, corrupt, retry) if world.rank == 0 else None
        chosen = channel.exchange(f"resume {call}.{tries}", None, lambda _: _described(mine))  # noqa: B023 – used at once
        if chosen is None:
            _keep(log, "")
            return None
        commit = decode(json.dumps(chosen).encode(), log.uri, chosen["seq"])
        if not isinstance(commit, Commit):
            raise AssertionError(f"{commit.kind} is not a commit")  # noqa: TRY004 – our bug, not the caller's
        target = folder / Path(commit.path).name
        problem = _fetched(log, commit, target, world, retry)
        decide = partial(_first, log, commit, problem, retry)
        bad = channel.exchange(f"resumed {call}.{tries}", _text(problem), decide, patient=True)
        if bad is None:
            _keep(log, commit.path)
            found = tuple(skipped[step] for step in sorted(skipped, reverse=True))
            return Found(commit, log, target, retry, world.rank, found)
        shutil.rmtree(target, ignore_errors=True)
        if bad != _DELETED:
            corrupt[commit.path] = bad
            skipped[commit.step] = _skipped(commit, bad)
            _log.warning("skipping the commit of step %d: %s", commit.step, bad)


def find_as_of(log: CommitLog, started: int, folder: Path, retry: StoreRetry) -> Found | None:
    """The newest commit before entry `started` whose files verify, with the files of all ranks.

    Not collective, for a program that does not call this on all of its ranks. Every rank reads the same log and gets
    the same commit.
    """

    def read() -> Resumed | None:
        commits = log.commits()
        later = {commit.path: "This group made the commit itself." for commit in commits if commit.seq > started}
        return log.resume(folder, without=later) if len(later) < len(commits) else None

    resumed = retry.until_answered(read)
    _keep(log, resumed.commit.path if resumed else "")
    if resumed is None:
        return None
    skipped = tuple(_skipped(commit, why) for commit, why in resumed.skipped)
    return Found(resumed.commit, log, resumed.path, retry, skipped=skipped)


def _keep(log: CommitLog, path: str) -> None:
    """Remove from the cache what earlier starts have copied and not committed."""
    if log.cache:
        log.cache.keep(path)


def _skipped(commit: Commit, why: str) -> Skipped:
    return Skipped(commit.step, " ".join(why.split())[:LONGEST_WHY])


def _candidate(log: CommitLog, corrupt: Mapping[str, str], retry: StoreRetry) -> Commit | Exception | None:
    """The newest commit that is not in `corrupt`. All ranks must raise the returned error."""
    try:
        return retry.until_answered(lambda: log.newest_without(corrupt))
    except Exception as error:  # noqa: BLE001 – raised by all ranks in the exchange
        return error


def _described(chosen: Commit | Exception | None) -> dict[str, Any] | None:
    if isinstance(chosen, Exception):
        raise chosen
    if chosen is None:
        return None
    commit: dict[str, Any] = json.loads(encode(chosen))
    return commit


def _fetched(log: CommitLog, commit: Commit, target: Path, world: ProcessRank, retry: StoreRetry) -> Exception | None:
    """Download to `target` the files that this rank needs. Returns CheckpointCorrupt or None; on rank 0 any error,
    which all ranks must raise."""

    def fetch() -> None:
        if world.rank == 0 or world.rank in _ranks(commit):
            log.fetch(commit, None if log.in_place else target, ranks=[world.rank])

    try:
        retry.until_answered(fetch, starting=True)
        if world.rank == 0 and any(rank >= world.size for rank in _ranks(commit)):
            retry.until_answered(lambda: _check_listed(log, commit))
    except CheckpointCorrupt as error:
        return error
    except Exception as error:
        if world.rank > 0:
            raise
        return error
    return None


def _text(problem: Exception | None) -> str | None:
    return None if problem is None else str(problem)


def _first(
    log: CommitLog, commit: Commit, mine: Exception | None, retry: StoreRetry, problems: list[str | None]
) -> str | None:
    """On rank 0: the first problem of a rank, in their order; `_DELETED` if the commit was deleted meanwhile."""
    if mine is not None and not isinstance(mine, CheckpointCorrupt):
        raise mine
    bad = next((problem for problem in problems if problem is not None), None)
    return bad if bad is None or retry.until_answered(lambda: log.has(commit)) else _DELETED


def _check_listed(log: CommitLog, commit: Commit) -> None:
    """Check that the files of ranks that no longer exist are in the store: no rank downloads them."""
    sizes = {meta.key: meta.size for meta in log.store.list(f"{commit.path}/")}
    for file in commit.files:
        key = f"{commit.path}/{file.name}"
        if sizes.get(key) != file.size:
            raise CheckpointCorrupt(f"{log.uri}{os.sep}{key}: this file of step {commit.step} is missing or cut short")


def _bare(name: str) -> str:
    """The name of a file without the folder of its rank."""
    return name if rank_of(name) is None else name.partition("/")[2]


def _source(commit: Commit, rank: int) -> int:
    """The rank whose files this rank gets."""
    return rank if rank in _ranks(commit) else 0


def _ranks(commit: Commit) -> tuple[int, ...]:
    return tuple(sorted({rank for file in commit.files if (rank := rank_of(file.name)) is not None}))
