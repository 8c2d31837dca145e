"""A job chooses what its bucket contains. No object of it takes a reader more memory or time than its limit."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spotladder.checkpoints import outputs
from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.entries import LARGEST_ENTRY, MAX_VALUES, Commit, FileEntry, decode, encode
from spotladder.checkpoints.entry_log import MAX_ENTRIES
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.progress import Follower
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta
from spotladder.checkpoints.writer import Writer
from spotladder.errors import LogCorrupt, TooLarge
from tests.checkpoints.memory_store import MemoryStore

MIB = 1 << 20
HUGE = 400 * MIB


def most_memory(work: Callable[[], object]) -> int:
    """The bytes that `work` allocates at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Server(ThreadingHTTPServer):
    """Has one object of `HUGE` bytes under every key; counts the bytes that it sends."""

    sent = 0


class Huge(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.send_response(200)
        self.send_header("Content-Length", str(HUGE))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        try:
            for _ in range(HUGE // MIB):
                self.wfile.write(bytes(MIB))
                self.server.sent += MIB
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Huge) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_a_huge_object_of_a_bucket_is_refused_before_its_body_is_read(server: Server) -> None:
    store = open_store(
        "s3://b/p",
        {
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        },
    )
    with pytest.raises(TooLarge, match=r"s3://b/p/log/1: has at least 419,430,400 bytes, and at most 16,777,216 are"):
        store.get("log/1")
    with pytest.raises(TooLarge):
        store.get_many(["log/1", "log/2"])
    assert server.sent < 3 * LARGEST_OBJECT, "only what the sockets buffer is sent"


def test_a_huge_object_of_a_disk_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(HUGE)
    store = DiskStore(tmp_path)

    def read() -> None:
        with pytest.raises(TooLarge, match="419,430,400"):
            store.get("huge")

    assert most_memory(read) < MIB


def test_a_huge_entry_names_the_object_and_the_limit() -> None:
    store = MemoryStore("s3://b/p/")
    store.objects["job/log/00000000.json"] = bytes(LARGEST_ENTRY + 1)
    with pytest.raises(LogCorrupt, match=r"log/00000000.json: has at least 16,777,217 bytes, and at most 16,777,216"):
        CommitLog(store, "job").read()


COMMIT = Commit(3, "n", 1.0, "w", 1, "spot", 7, 100, "attempts/0001", (FileEntry("a", 1, "00000000"),))


@pytest.mark.parametrize(
    ("hostile", "says"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"v":1,"kind":"commit","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"[" + b"0," * MAX_VALUES + b"0]", "has 1,000,001 values"),
        (json.dumps({**json.loads(encode(COMMIT)), "at": 1}).replace('"at": 1', '"at": 1e999').encode(), "a time in"),
        (json.dumps({**json.loads(encode(COMMIT)), "at": 1}).replace('"at": 1', '"at": NaN').encode(), "a time in"),
        (json.dumps({**json.loads(encode(COMMIT)), "step": 10**400}).encode(), "a non-negative integer"),
        (json.dumps({**json.loads(encode(COMMIT)), "tier": "x" * MIB}).encode(), "1,048,576 characters"),
        (json.dumps({**json.loads(encode(COMMIT)), "at": "x" * MIB}).encode(), "1,048,576 characters"),
        (json.dumps({**json.loads(encode(COMMIT)), "path": "/" * MIB}).encode(), "1,048,576 characters"),
        (json.dumps({**json.loads(encode(COMMIT)), "step": ["x" * MIB]}).encode(), "got a list of 1"),
    ],
)
def test_a_hostile_entry_is_a_corrupt_log_with_a_short_message(hostile: bytes, says: str) -> None:
    with pytest.raises(LogCorrupt, match=says) as caught:
        decode(hostile, "s3://b/log/00000003.json", 3)
    assert len(str(caught.value)) < 500


def test_a_message_of_any_length_is_cut() -> None:
    raw = {**json.loads(encode(COMMIT)), "skipped": [{"step": 1, "why": "x" * MIB}]}
    entry = decode(json.dumps(raw).encode(), "log", 3)
    assert isinstance(entry, Commit)
    assert len(entry.skipped[0].why) == 4096


def test_a_gzip_bomb_is_refused_while_it_is_unpacked() -> None:
    store, output = MemoryStore(), Output(1, 0, "driver")
    store.objects[output.key] = gzip.compress(bytes(32 * MIB))
    assert len(store.objects[output.key]) < outputs.LARGEST_STORED

    def read() -> None:
        with pytest.raises(TooLarge, match=r"0001/driver.log.gz: has at least 524,289 bytes when it is unpacked"):
            outputs.read(store, [output])

    assert most_memory(read) < 4 * MIB


@pytest.mark.parametrize("damage", [b"", b"x", gzip.compress(b"text", mtime=0)[:-4]])
def test_output_that_is_no_complete_gzip_file_is_refused(damage: bytes) -> None:
    store, output = MemoryStore(), Output(1, 0, "driver")
    store.objects[output.key] = damage
    if damage:
        with pytest.raises(LogCorrupt, match="is not a gzip file"):
            outputs.read(store, [output])
    else:
        assert outputs.read(store, [output]) == [""]


class Endless(MemoryStore):
    """Its listings do not end."""

    given = 0

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        while True:
            self.given += 1
            yield ObjectMeta(f"{prefix}{self.given:08d}.json", 1)


def test_a_listing_without_end_is_given_up_after_a_limited_number_of_objects() -> None:
    store = Endless()
    with pytest.raises(TooLarge, match=r"log/: has at least 10,001 objects, and at most 10,000 are read"):
        CommitLog(store, "job").read()
    assert store.given == MAX_ENTRIES + 1
    with pytest.raises(TooLarge):
        outputs.kept(store)


def test_a_follower_of_many_logs_keeps_no_lists_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "_check_uploaded", lambda *_: None)
    store = MemoryStore()
    writer = CommitLog(store, "job").start(1)
    many = [FileEntry(f"file-{number:08d}", 10, "00000000") for number in range(200)]
    for step in range(1, 6):
        writer.commit(step, many)
    followers = {brief: Follower(CommitLog(store, "job", brief=brief)) for brief in (False, True)}
    assert followers[True].progress() == followers[False].progress()
    assert followers[True].progress() == followers[False].progress(), "the size is known without the files"
    assert followers[True].progress().size.bytes == 2_000
    assert sum(len(commit.files) for commit in followers[True].history.commits) == 0
    writer.commit(6, many[:7])
    assert followers[True].progress() == followers[False].progress()
