"""The commit log of one job: start a writer, resume from a commit, verify it, collect garbage.

`entry_log` has the protocol of the log, and `writer` what rank 0 appends. `resume` downloads and verifies the files of
a commit; `garbage` deletes checkpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.checkpoints.entries import Commit, Start
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.garbage import Collected, collect
from spotladder.checkpoints.history import History
from spotladder.checkpoints.resume import Resumed, fetch
from spotladder.checkpoints.writer import Writer
from spotladder.errors import CheckpointCorrupt, Fenced

if TYPE_CHECKING:
    from spotladder.checkpoints.cache import NodeCache
    from spotladder.checkpoints.compiled import CompileCaches


class CommitLog(EntryLog):
    """The entry log of a job with its checkpoints. `EntryLog` describes the parameters."""

    cache: NodeCache | None = None
    """The files of the newest commit on this machine. `fetch` and `resume` read them instead of the store's."""

    compiled: CompileCaches | None = None
    """The compile caches of this machine, if they are stored beside the log."""

    def await_compiled(self) -> None:
        """Wait until the compile caches of earlier attempts are put back, if that has begun and is not late."""
        if self.compiled:
            self.compiled.wait()

    def start(
        self,
        attempt: int,
        tier: str = "",
        *,
        tried: set[str] | None = None,
        hands_over: bool = False,
        stands_by: bool = False,
        workers: int = 0,
    ) -> Writer:
        """Append a start entry as rank 0 of `attempt`, which fences every older writer, and return the new writer.

        An in-place restart within an attempt appends a start entry too. A caller that gets no response repeats the
        call with the same set `tried`, so that a start entry of an earlier call is reused. `hands_over`: the program
        can continue inside the attempt without workers that leave. `stands_by`: its library can hold the program of a
        standby attempt. `workers`: the number of ranks of an elastic job. Raises Fenced if a newer attempt has started
        already.
        """
        mine = self.new_nonce()
        tried = set() if tried is None else tried

        def build(history: History) -> Start:
            if history.attempt > attempt:
                raise Fenced(
                    f"{self.uri}: attempt {history.attempt} has started after attempt {attempt}, which must stop: "
                    "no attempt would resume from its commits"
                )
            last = history.start
            return Start(
                seq=history.seq + 1,
                nonce=mine,
                at=self.clock(),
                owner=self.owner,
                attempt=attempt,
                tier=tier,
                restart=last.restart + 1 if last and last.attempt == attempt else 0,
                hands_over=hands_over,
                stands_by=stands_by,
                workers=workers,
            )

        history = self.read()
        if history.start is not None and history.start.nonce in tried:
            return Writer(self, history, history.start)
        tried.add(mine)
        history, entry = self.append(history, build)
        assert isinstance(entry, Start)  # noqa: S101 – `build` returns no other kind
        return Writer(self, history, entry)

    def fetch(self, commit: Commit, folder: Path | None, ranks: Collection[int] | None = None) -> None:
        """Download the commit's files into `folder` in parallel; None: only verify them. Raises CheckpointCorrupt,
        StoreUnavailable.

        With `ranks`, downloads only the files of these ranks below `rank-<n>/`.
        """
        fetch(self.store, commit, folder, ranks, self.cache)

    def release(self) -> None:
        """The files of `fetch` and `resume` are no longer used: the cache may remove its own."""
        if self.cache:
            self.cache.release()

    def verify(self, commit: Commit) -> None:
        """Read all files of the commit in the store and compare them. Raises CheckpointCorrupt, StoreUnavailable."""
        fetch(self.store, commit, None)

    @property
    def in_place(self) -> Path | None:
        """The folder of the log, if a program can read the files of commits there: a folder of this machine, without a
        cache that is faster."""
        return None if self.cache else self.store.folder

    def resume(self, folder: Path, without: Mapping[str, str] | None = None) -> Resumed | None:
        """Download the newest commit whose files verify to `folder`. Returns None if the log has no commit.

        `without` maps the paths of commits that are not to be used to the reason. Raises CheckpointCorrupt if no commit
        verifies, StoreUnavailable.
        """
        corrupt, skipped = dict(without or {}), list[tuple[Commit, str]]()
        while (commit := self.newest_without(corrupt)) is not None:
            target = folder / Path(commit.path).name
            try:
                self.fetch(commit, target)
            except CheckpointCorrupt as error:
                shutil.rmtree(target, ignore_errors=True)
                if self.has(commit):  # Otherwise it was deleted meanwhile.
                    corrupt[commit.path] = str(error)
                    skipped.append((commit, str(error)))
                continue
            return Resumed(commit, target, tuple(skipped))
        return None

    def newest_without(self, corrupt: Mapping[str, str]) -> Commit | None:
        """The newest commit whose path is not in `corrupt`, which has the reasons; None if the log has no commit.
        Raises CheckpointCorrupt if all are in it, StoreUnavailable."""
        commits = self.commits()
        good = [commit for commit in commits if commit.path not in corrupt]
        if commits and not good:
            raise CheckpointCorrupt(
                f"{self.uri}: none of the {len(commits)} commits verifies (newest: {corrupt[commits[-1].path]}): "
                "restore the files from the bucket's versions or a backup, or start in a new checkpoint folder"
            )
        return good[-1] if good else None

    def has(self, commit: Commit) -> bool:
        """Whether this is still a commit of the log."""
        return any(commit.path == other.path for other in self.commits())

    def collect(self, keep: int) -> Collected:
        """Delete checkpoints that need not be kept, for a caller that is not the writer (see `Writer.collect`)."""
        return collect(self, self.read(), keep)[1]
