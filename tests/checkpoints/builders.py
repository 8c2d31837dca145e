"""Builders for commit logs in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spotladder.checkpoints.compiled import CompileCaches
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.upload import upload_folder
from spotladder.checkpoints.writer import Writer
from tests.checkpoints.memory_store import MemoryStore, file_entry

AT = 1_800_000_000.0


@dataclass
class PauseClock:
    """A stepped clock that advances only in `pause` and records the pauses."""

    now: float = AT
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def a_log(store: MemoryStore, job: str = "digits", *, namespace: str = "team-a", uid: str = "") -> CommitLog:
    clock = PauseClock()
    return CommitLog(store, job, namespace=namespace, uid=uid, clock=clock, pause=clock.pause)


def uploaded(writer: Writer, step: int, name: str = "w", data: bytes = b"weights") -> list[FileEntry]:
    """Put one file of a commit into the writer's memory store."""
    store = writer.log.store
    key = f"{writer.folder(step)}/{name}"
    store.delete([key])
    store.put_if_absent(key, data)
    return [file_entry(name, data)]


def committed(writer: Writer, *steps: int) -> list[Commit]:
    return [writer.commit(step, uploaded(writer, step), total=100) for step in steps]


def commit_folder(writer: Writer, step: int, folder: Path, **more: Any) -> Commit:
    """Upload a folder and commit it."""
    return writer.commit(step, upload_folder(writer.log.store, folder, writer.folder(step)), **more)


def a_folder(path: Path, **files: bytes) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


def wait_for_save(caches: CompileCaches) -> None:
    """Wait until the folder of the compile caches is stored."""
    if caches._saving.is_alive():
        caches._saving.join()
