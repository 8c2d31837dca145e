"""The writer of the log: rank 0 of the newest start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spotladder.checkpoints.entries import LARGEST_INTEGER, Commit, FileEntry, Skipped, Start
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.garbage import Collected, collect
from spotladder.checkpoints.history import History
from spotladder.checkpoints.metrics import metrics_of
from spotladder.checkpoints.store import UploadTorn
from spotladder.errors import Fenced, InvalidSpec


class Writer:
    """Created by `CommitLog.start`. Thread-safe: its methods run one at a time.

    Every method that appends raises Fenced if the log has a newer start or the job's end. The process must then write
    nothing more and exit at once.
    """

    def __init__(self, log: EntryLog, history: History, start: Start) -> None:
        self.log = log
        self.start = start
        self._history = history
        self._deleted: set[str] = set()
        self._lock = threading.Lock()

    @property
    def history(self) -> History:
        """The log as this writer has read it, complete up to its own last append."""
        return self._history

    def folder(self, step: int) -> str:
        """The folder for the files of a commit at `step`, relative to the log's store; no other start writes there."""
        again = f".{self.start.restart}" if self.start.restart else ""
        return f"attempts/{self.start.attempt:04d}{again}/ckpt-{step:06d}"

    def check(self) -> None:
        """Read the new entries of the log. Raises Fenced when another writer has started or the job has ended."""
        with self._lock:
            self._history = self.log.follow(self._history)
            self._fence(self._history)

    def commit(
        self,
        step: int,
        files: Iterable[FileEntry],
        *,
        total: int = 0,
        path: str = "",
        metrics: Mapping[str, Any] | None = None,
        skipped: Iterable[Skipped] = (),
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> Commit:
        """Record a checkpoint whose files (names relative to `path`, by default `folder(step)`) have been uploaded.

        `seconds` returns the duration of the commit so far; it is called once the files are checked.
        The store must list every file with its size. Committing the same path again returns the existing commit.
        Raises Fenced; UploadTorn if a file is missing or short; StoreUnavailable if the outcome is unknown, then
        repeat the call; InvalidSpec for a path that another start has committed, and for numbers that no reader
        accepts.
        """
        if not 0 <= min(step, total) <= max(step, total) < LARGEST_INTEGER:
            raise InvalidSpec(f"step {step} of {total}: expected numbers below 2^63 and not below 0")
        path = path or self.folder(step)
        files = tuple(sorted(files, key=lambda file: file.name))

        def build(history: History) -> Commit:
            self._fence(history)
            return Commit(
                seq=history.seq + 1,
                nonce=f"{self.start.nonce}:{path}",
                at=self.log.clock(),
                writer=self.start.nonce,
                attempt=self.start.attempt,
                tier=self.start.tier,
                step=step,
                total=total,
                path=path,
                files=files,
                metrics=metrics_of(metrics),
                skipped=tuple(skipped),
                seconds=round(took, 3),
            )

        with self._lock:
            for commit in self._history.commits:
                if commit.path == path and commit.writer == self.start.nonce:
                    return commit
                if commit.path == path:
                    raise InvalidSpec(
                        f"{self.log.uri}/{path}: has the commit of step {commit.step} of an earlier start: "
                        "use a different path for every start, as `folder` does"
                    )
            self._check_uploaded(path, files)
            took = max(0.0, seconds())
            self._history, entry = self.log.append(self._history, build)
        assert isinstance(entry, Commit)  # noqa: S101 – `build` returns no other kind
        return entry

    def collect(self, keep: int, *, final: bool = False) -> Collected:
        """Delete checkpoints that need not be kept; fenced like a commit. `final`: the job's last step is committed."""
        with self._lock:
            self._history, collected = collect(
                self.log, self._history, keep, self._fence_start, self._deleted, final=final
            )
        return collected

    def _fence(self, history: History) -> None:
        self._fence_start(history)
        if history.end:
            raise Fenced(f"{self.log.uri}: the job has ended ({history.end.outcome}): no further commit is accepted")

    def _fence_start(self, history: History) -> None:
        newest = history.start
        if newest is None or newest.nonce != self.start.nonce:
            other = f"attempt {newest.attempt} on tier {newest.tier or '?'}" if newest else "a log without this writer"
            raise Fenced(
                f"{self.log.uri}: {other} has started after this writer of attempt {self.start.attempt}, which must "
                "stop: no attempt would resume from its commits"
            )

    def _check_uploaded(self, path: str, files: tuple[FileEntry, ...]) -> None:
        found = {meta.key: meta.size for meta in self.log.store.list(path + "/")} if files else {}
        for file in files:
            size = found.get(f"{path}/{file.name}")
            if size != file.size:
                what = "is missing" if size is None else f"has {size} bytes instead of {file.size}"
                raise UploadTorn(
                    f"{self.log.uri}/{path}/{file.name}: {what} after its upload: upload the file again, then commit"
                )
