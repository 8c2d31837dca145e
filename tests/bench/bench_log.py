"""Overhead of the commit log, compared with transfers of the same bytes by the same number of threads in the same run,
and a resume from the cache on the machine, compared with one from the store.

The object store is the fake of Google Cloud Storage in another local process. Without its `latency` the ratios are
larger than with a real bucket.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from obstore.store import GCSStore

from spotladder.checkpoints.bucket import AT_ONCE, PART, RANGE
from spotladder.checkpoints.cache import NodeCache
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.resume import FILES_AT_ONCE
from spotladder.checkpoints.upload import upload_folder
from tests.bench import rows
from tests.bench.rows import Row, limited
from tests.checkpoints import little_memory
from tests.checkpoints.builders import commit_folder
from tests.checkpoints.gcs import BUCKET, google

MIB = 1 << 20
COMMIT_FILES = (64 * MIB,) * 4 + (256 * 1024,) * 4
RESUME_FILES = (128 * MIB,) * 8
CACHE_FILES = (1024 * MIB,) * 4
LATENCY = 0.05
ROUNDS = 9
RESUME_ROUNDS = 5
CACHE_ROUNDS = 3


def measure() -> list[Row]:
    bucket = f"gs://{BUCKET}/bench"
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as name:
        folder = Path(name)
        with server():
            near = [
                commit_to(bucket, folder),
                resume_from(bucket, folder, "resume of 1 GiB, bucket", RESUME_FILES),
                resume_in_place(bucket, folder),
            ]
        with server(LATENCY):
            far = [
                resume_from(bucket, folder, f"resume of {what}, bucket with {1000 * LATENCY:g} ms latency", sizes)
                for what, sizes in (("1 GiB", RESUME_FILES), ("1 GiB in one file", (sum(RESUME_FILES),)))
            ]
            return [*near, *far, memory_of("folder", str(folder / "log"), folder), memory_of("bucket", bucket, folder)]


def commit_to(address: str, folder: Path) -> Row:
    """A commit of 257 MiB, compared with an upload of the same files alone."""
    source = files(folder / "commit", COMMIT_FILES)
    log = CommitLog(open_store(address), "commit")
    writer = log.start(1)

    def commit(round_: int) -> None:
        commit_folder(writer, round_ + 1, source)

    mine, plain = in_turn(commit, lambda round_: bare_upload(source, f"{address}/bare-{round_}"), ROUNDS)
    shutil.rmtree(source)
    return compared("commit of 257 MiB, bucket", mine, plain, "bare upload", 1.05)


def resume_from(address: str, folder: Path, what: str, sizes: Sequence[int]) -> Row:
    """A verified resume, compared with a parallel download without verification."""
    source = files(folder / "resume", sizes)
    log = CommitLog(open_store(address), f"resume-{len(sizes)}")
    commit_folder(log.start(1), 1, source)
    shutil.rmtree(source)

    def resume(_: int) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as to:
            log.resume(Path(to))

    def plain(_: int) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as to:
            bare_download(log, Path(to))

    mine, others = in_turn(resume, plain, RESUME_ROUNDS)
    return compared(what, mine, others, "plain parallel download", 1.1)


def memory_of(what: str, address: str, folder: Path) -> Row:
    """The memory that a commit and a resume of a file of 1 GiB use."""
    source = files(folder / f"large-{what}", (1024 * MIB,))
    command = [sys.executable, "-m", little_memory.__name__, address, str(source), str(folder / f"resumed-{what}")]
    used = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return limited(f"memory for a commit and a resume of 1 GiB, {what}", used, "MiB", 512)


def resume_in_place(address: str, folder: Path) -> Row:
    """A resume of 4 GiB on the machine that has committed them, compared with one on another machine."""
    source = files(folder / "cached", CACHE_FILES)
    here, elsewhere = (CommitLog(open_store(address), "cached") for _ in range(2))
    here.cache = NodeCache(folder / "cache", here.uri)
    writer = elsewhere.start(1)
    path = writer.folder(1)
    with here.cache.copying(source, path):
        found = upload_folder(elsewhere.store, source, path)
        while not all(here.cache.fetch(path, file, folder / "probe") for file in found):
            time.sleep(0.5)  # This store is in memory, so the upload may be faster than the copy.
    writer.commit(1, found)
    shutil.rmtree(source)

    def resume(log: CommitLog) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as to:
            log.resume(Path(to))
        log.release()

    mine, others = in_turn(lambda _: resume(here), lambda _: resume(elsewhere), CACHE_ROUNDS)
    elsewhere.store.delete([f"{path}/{file.name}" for file in found])
    shutil.rmtree(folder / "cache")
    return compared("resume of 4 GiB in place, from the cache", mine, others, "from the bucket", 0.25)


def in_turn(
    mine: Callable[[int], object], other: Callable[[int], object], rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of both in alternating order, so that other load affects both alike. The first round is not counted."""
    taken: tuple[list[float], list[float]] = ([], [])
    for round_ in range(rounds + 1):
        for which, work in enumerate((mine, other) if round_ % 2 else (other, mine)):
            began = time.perf_counter()
            work(round_)
            if round_:
                taken[which if round_ % 2 else 1 - which].append(time.perf_counter() - began)
    return taken


def compared(what: str, mine: Sequence[float], plain: Sequence[float], compared_with: str, goal: float) -> Row:
    """Compare the minimum of each, because other load on the machine only adds time."""
    measured, reference = min(mine), min(plain)
    return Row(what, measured, "s", compared_with, reference, f"≤ {goal:.2f}×", measured / reference <= goal)


# --- references -----------------------------------------------------------------------------------------------------


def bare_upload(source: Path, address: str) -> None:
    """Upload each file with obstore alone, in parallel."""
    prefix = address.removeprefix(f"gs://{BUCKET}/")
    store = raw_bucket()

    def put(path: Path) -> None:
        store.put(f"{prefix}/{path.name}", path, chunk_size=PART, max_concurrency=AT_ONCE)

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        list(pool.map(put, sorted(source.iterdir())))


def bare_download(log: CommitLog, to: Path) -> None:
    """Download ranges of the files with obstore alone, in parallel."""
    prefix = log.uri.removeprefix(f"gs://{BUCKET}/")
    store = raw_bucket()

    def get(name: str, start: int, end: int) -> None:
        part = memoryview(store.get_range(f"{prefix}/{commit.path}/{name}", start=start, end=end))
        opened = os.open(to / name, os.O_WRONLY | os.O_CREAT)
        try:
            while part:
                count = os.pwrite(opened, part, start)
                part, start = part[count:], start + count
        finally:
            os.close(opened)

    commit = log.commits()[-1]
    ranges = [
        (file.name, start, min(start + RANGE, file.size))
        for file in commit.files
        for start in range(0, file.size, RANGE)
    ]
    with ThreadPoolExecutor(FILES_AT_ONCE * AT_ONCE) as pool:
        list(pool.map(lambda one: get(*one), ranges))


def raw_bucket() -> GCSStore:
    return GCSStore(BUCKET, client_options={"allow_http": True})


# --- setup ----------------------------------------------------------------------------------------------------------


def files(folder: Path, sizes: Sequence[int]) -> Path:
    folder.mkdir()
    for number, size in enumerate(sizes):
        (folder / f"file-{number}").write_bytes(os.urandom(size))
    return folder


@contextmanager
def server(latency: float = 0.0) -> Iterator[None]:
    """The object store in another process. `latency` is in seconds, for each read."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    process = context.Process(target=_serve, args=(child_end, latency), daemon=True)
    process.start()
    child_end.close()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("GOOGLE_BASE_URL", parent_end.recv())
            environment.setenv("GOOGLE_BEARER_TOKEN", "test")
            yield
    finally:
        process.terminate()
        process.join()


def _serve(connection: Connection, latency: float) -> None:
    with pytest.MonkeyPatch.context() as environment, google(environment, latency) as address:
        connection.send(address)
        with suppress(EOFError):
            connection.recv()  # returns when the benchmark's process ends


if __name__ == "__main__":
    rows.main(measure, "Commit log")
